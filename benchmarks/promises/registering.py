"""What Panewise promises about registering thousands of queries whose texts differ in numbers only."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from time import process_time

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
KINDS = {"windows": WINDOWS, "windows and conditions": MIXED}
PARSED, ALONE, IDLE, RUNNING, REVOKED = (
    "each text parsed",
    "no engine",
    "an engine",
    "a running engine",
    "revoked again",
)
#: Texts, and the seconds that they may take.
MANY, LONGEST = 10_000, 2.0


@dataclass(frozen=True)
class Settings:
    texts: int
    #: Texts that are parsed one by one, for comparison.
    parsed: int


def measure(settings: Settings) -> Iterator[Row]:
    """Seconds for 10,000 texts. The garbage collector may run, as it does for users."""
    for kind, templates in KINDS.items():
        # Kernels and DuckDB are loaded when they are first needed.
        warm = pw.Pool(STREAMS)
        begin(warm, pw.Engine(warm), templates)
        texts = random_texts(templates, settings.texts)
        names = [f"q{number}" for number in range(len(texts))]
        yield Row(PARSED, kind, seconds(lambda text: bind_query(text, STREAMS), texts[: settings.parsed]))
        for series in (ALONE, IDLE, RUNNING):
            pool = pw.Pool(STREAMS)
            engines = [] if series == ALONE else [pw.Engine(pool)]
            if series == RUNNING:
                begin(pool, engines[0], templates)
            yield Row(series, kind, seconds(pool.register, names, texts, engines=engines))
            if series == RUNNING:
                yield Row(REVOKED, kind, seconds(pool.revoke, names, engines=engines))


def random_texts(templates: Sequence[str], count: int, seed: int = 1) -> list[str]:
    """Texts of all templates in turn, with numbers at random; half of the numbers in conditions are decimals."""
    rng = np.random.default_rng(seed)
    slides = rng.integers(1, 101, count)
    numbers = {"n": slides * rng.integers(1, 101, count), "m": slides, "y": rng.integers(1, 1001, count)}
    found = []
    for at, row in enumerate(zip(*(each.tolist() for each in numbers.values()), strict=True)):
        limit = rng.integers(1, 1001) if at % 40 < 20 else round(float(rng.uniform(1, 1000)), 2)
        found.append(templates[at % len(templates)].format(x=limit, **dict(zip(numbers, row, strict=True))))
    return found


def begin(pool: pw.Pool, engine: pw.Engine, templates: Sequence[str]) -> None:
    """Let an engine answer a query of each template, so that others meet panes that are there already."""
    for number, text in enumerate(random_texts(templates, len(templates), seed=2)):
        pool.register(f"first {number}", text)
    times = np.arange(1000)
    engine.feed("S", pa.table({"t": times, "k": (times % 5).astype(np.int32), "v": times}))
    engine.advance(900)


def seconds(work: Callable[..., object], *arguments: Sequence[str], engines: Sequence[pw.Engine] = ()) -> float:
    """How long work takes with each of the arguments, for 10,000 of them, and the next row of engines."""
    start = process_time()
    for each in zip(*arguments, strict=True):
        work(*each)
    for engine in engines:
        feed_one(engine)
    return (process_time() - start) * MANY / len(arguments[0])


def feed_one(engine: pw.Engine) -> None:
    """Feed one more row and take all answers: what new windows need, an engine may leave to the next rows."""
    at = (engine.newest("S") or 0) + 1
    engine.feed("S", pa.table({"t": np.array([at]), "k": np.array([1], np.int32), "v": np.array([500])}))
    engine.advance(at).families()


def findings(points: Points) -> Iterator[Finding]:
    for series in (ALONE, IDLE, RUNNING, REVOKED):
        for kind in KINDS:
            found = points.get(series, kind)
            if found is not None:
                yield Finding(
                    f"{kind}, {series}: {MANY:,} texts within {LONGEST:g} s", f"{found:.2f} s", found <= LONGEST
                )


FIGURE = Figure(
    title="Registering: what Panewise promises",
    claim="ten thousand queries whose texts differ in numbers only are registered within two seconds",
    paper="No paper measures this; the bound is our own. Texts are of one template, which differ in their windows, and "
    "of twenty, which differ in conditions too, so that most are families of their own. They are registered without an "
    "engine, with one that has no rows yet, and with one that runs; an engine then takes one more row and answers it, "
    "since it leaves to the next rows what is to be done for new windows. Parsing and binding each text, without "
    "planning, is the baseline. Seconds are those of the processor",
    x="texts",
    y="seconds for 10,000 texts",
    baseline=PARSED,
    sizes={
        "smoke": Settings(texts=40, parsed=5),
        "seconds": Settings(texts=2_000, parsed=100),
        "full": Settings(texts=10_000, parsed=1_000),
    },
    measure=measure,
    findings=findings,
    log=frozenset({"y"}),
)
