"""What Panewise promises about registering thousands of queries whose texts differ in numbers only."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from time import perf_counter

import numpy as np
import pyarrow as pa

import panewise as pw
from benchmarks.harness.figure import Figure, Finding, Points, Row
from panewise.cql import bind_query

STREAMS = {
    "S": pw.StreamSchema(pa.schema([("t", pa.int64()), ("k", pa.int32()), ("v", pa.int64())]), time="t"),
}
#: n and m are a range and a slide, x and y any numbers.
WINDOWS = ("SELECT k, SUM(v) AS s FROM S [RANGE {n} SLIDE {m}] GROUP BY k",)
MIXED = (
    "SELECT k, SUM(v) AS s FROM S [RANGE {n} SLIDE {m}] WHERE v > {x} GROUP BY k",
    "SELECT k, SUM(v) AS s FROM S [RANGE {n} SLIDE {m}] GROUP BY k HAVING SUM(v) > {x}",
    "SELECT k, COUNT(*) AS c FROM S [RANGE {n} SLIDE {m}] WHERE v < {x} GROUP BY k",
    "SELECT k, AVG(v) AS a FROM S [RANGE {n} SLIDE {m}] GROUP BY k HAVING AVG(v) < {x}",
    "SELECT k, MAX(v) AS a FROM S [RANGE {n} SLIDE {m}] GROUP BY k HAVING MAX(v) < {x}",
    "SELECT k, MIN(v) AS a FROM S [RANGE {n} SLIDE {m}] WHERE v > {x} GROUP BY k",
    "SELECT k, MAX(v) - MIN(v) AS a FROM S [RANGE {n} SLIDE {m}] WHERE v > {x} GROUP BY k",
    "SELECT SUM(v) AS a FROM S [RANGE {n} SLIDE {m}] WHERE v > {x}",
    "SELECT COUNT(*) AS a FROM S [RANGE {n} SLIDE {m}] WHERE v > {x} AND k < {y}",
    "SELECT k, SUM(v) AS a FROM S [RANGE {n} SLIDE {m}] WHERE v > {x} AND k < {y} GROUP BY k",
    "SELECT k, SUM(v) AS s FROM S [RANGE {n} SLIDE {n}] GROUP BY k HAVING COUNT(*) > {y}",
    "SELECT k, SUM(v * {y}) AS s FROM S [RANGE {n} SLIDE {m}] GROUP BY k",
    "SELECT k, SUM(v) AS s, COUNT(*) AS c FROM S [RANGE {n} SLIDE {m}] GROUP BY k",
    "SELECT k, SUM(v) AS s, COUNT(*) AS c FROM S [RANGE {n} SLIDE {m}] WHERE k = {y} GROUP BY k",
    "SELECT k, SUM(v) + {y} AS s FROM S [RANGE {n} SLIDE {m}] WHERE k = {y} GROUP BY k",
    "SELECT k, VAR(v) AS s FROM S [RANGE {n} SLIDE {m}] WHERE v BETWEEN {x} AND 5000 GROUP BY k",
    "SELECT k, AVG(v) AS s FROM S [RANGE {n} SLIDE {m}] WHERE v > {x} GROUP BY k HAVING COUNT(*) > {y}",
    "SELECT k, MIN(v) AS s FROM S [ROWS {n}] WHERE v > {x} GROUP BY k",
    "SELECT k, SUM(v) AS s FROM S [RANGE {n} SLIDE {m}] WHERE v > {x} OR v < {y} GROUP BY k",
    "SELECT k % {y} AS j, SUM(v) AS s FROM S [RANGE {n} SLIDE {m}] GROUP BY k % {y}",
)
KINDS = {"windows": WINDOWS, "conditions": MIXED}
PARSED = "each text parsed"
SECONDS = 2.0


@dataclass(frozen=True)
class Settings:
    texts: int
    #: Texts that are parsed one by one, for comparison.
    slow: int


def measure(settings: Settings) -> Iterator[Row]:
    """Seconds for 10,000 texts. The garbage collector may run, as it does for users."""
    for kind, templates in KINDS.items():
        texts = random_texts(templates, settings.texts)
        yield Row(PARSED, kind, scaled(settings.slow, lambda text: bind_query(text, STREAMS), texts[: settings.slow]))
        for name, pool in pools(templates).items():
            yield Row(name, kind, scaled(len(texts), lambda each, pool=pool: pool.register(*each), enumerate_names(texts)))
