"""What Panewise promises about single rows, each fed to one engine with many standing queries and answered at once."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import mean
from time import process_time

import numpy as np
import pyarrow as pa

import panewise as pw
from benchmarks.harness.figure import Figure, Finding, Points, Row

STREAMS = {
    name: pw.StreamSchema(
        pa.schema([("t", pa.int64()), ("k", pa.int64()), ("v", pa.float64()), ("i", pa.int64())]), time="t", delay=0
    )
    for name in ("S", "R")
}
CALLS = ("SUM(v)", "COUNT(*)", "MAX(v)", "AVG(i)", "MIN(i)")


def grouped(calls: Sequence[str], windows: Sequence[str], where: str = "") -> list[str]:
    """A query for each window; the calls take turns."""
    pairs = [(calls[number % len(calls)], window) for number, window in enumerate(windows)]
    return [f"SELECT k, {call} AS a FROM S {window} {where} GROUP BY k" for call, window in pairs]


def queries() -> Mapping[str, Sequence[str]]:
    """One hundred queries by the kind of their windows."""
    return {
        "sliding": grouped(CALLS, [f"[RANGE {60 + 10 * n} SLIDE {10 + 10 * (n % 3)}]" for n in range(40)]),
        "nested": grouped(CALLS[:2], [f"[RANGES {600 + 60 * n}, 120, 60 SLIDES 60, 30, 10]" for n in range(10)]),
        "conditions": [
            text for n in range(4) for text in grouped(CALLS[:1], ["[RANGE 60 SLIDE 20]"], f"WHERE i > {20 * n}")
        ],
        "sessions": grouped(CALLS[:2], [f"[PARTITION BY k SESSION {100 + 10 * n}]" for n in range(8)]),
        "cumulating": grouped(CALLS[:1], [f"[CUMULATE {600 + 60 * n} STEP 60]" for n in range(8)]),
        "continuous": grouped(CALLS[:1], [f"[RANGE {100 + 10 * n}]" for n in range(6)]),
        "counted": grouped(CALLS[2:3], [f"[ROWS {100 + 10 * n}]" for n in range(4)]),
        "partitioned": grouped(CALLS[3:4], [f"[PARTITION BY k ROWS {10 + n}]" for n in range(4)]),
        "landmark": grouped(CALLS[:2], ["[UNBOUNDED]"] * 2),
        "selections": [f"SELECT k, v FROM S [RANGE {60 + n}] WHERE v > 0.9{n}" for n in range(6)],
        "joins": [
            f"SELECT S.k, S.v, R.i FROM S [RANGE {60 + 20 * n} SLIDE 20], R [RANGE 60 SLIDE 20] WHERE S.k = R.k"
            for n in range(4)
        ],
        "frames": [f"SELECT AVG(v) AS a FROM S [FRAME WHILE v < 0.{5 + n} PARTITION BY k]" for n in range(4)],
    }


#: Rows of the second stream: one in so many instants.
RARELY = 10
#: The most milliseconds that the usual row and the slowest of a hundred may take.
USUAL, SLOWEST = 2.0, 6.0
#: Series: the turns of all queries or of one kind, and how many of them have something to say.
MEDIAN, P99, SPEAKING = "p50", "p99", "queries with results"
ALL = "all"


@dataclass(frozen=True)
class Settings:
    rows: int
    #: Rows that fill the windows first.
    filling: int


def measure(settings: Settings) -> Iterator[Row]:
    """Milliseconds of the processor, with the garbage collector as users have it."""
    for case in (ALL, *queries()):
        texts = [text for kind, some in queries().items() if case in (kind, ALL) for text in some]
        taken, spoken = turns(texts, settings)
        yield Row(MEDIAN, case, float(np.percentile(taken, 50)))
        yield Row(P99, case, float(np.percentile(taken, 99)))
        if case == ALL:
            yield Row(SPEAKING, case, spoken)


def turns(texts: Sequence[str], settings: Settings) -> tuple[list[float], float]:
    """The milliseconds of each turn, a row fed and everything answered, and how many queries had results on average."""
    pool = pw.Pool(STREAMS, bounded=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", pw.PanewiseWarning)
        for number, text in enumerate(texts):
            pool.register(f"q{number}", text)
    engine, taken, spoken = pw.Engine(pool), [], []
    batches = [single_rows(settings.rows + settings.filling, seed) for seed in range(len(STREAMS))]
    for at, rows in enumerate(zip(*batches, strict=True)):
        start = process_time()
        for stream, row in zip(STREAMS, rows, strict=True):
            if stream == "S" or at % RARELY == 0:
                engine.feed(stream, row)
        emission = engine.advance(at)
        emission.table()
        taken.append(1000 * (process_time() - start))
        if at % 50 == 7:
            spoken.append(sum(len(emission[name]) > 0 for name in emission))
    return taken[settings.filling :], mean(spoken[len(spoken) // 2 :])


def single_rows(count: int, seed: int) -> list[pa.Table]:
    """Tables of one row, one for each instant; twenty keys."""
    rng = np.random.default_rng(seed)
    columns = [np.arange(count), rng.integers(0, 20, count), rng.random(count), rng.integers(0, 100, count)]
    table = pa.table(columns, schema=STREAMS["S"].schema)
    return [table.slice(at, 1) for at in range(count)]


def findings(points: Points) -> Iterator[Finding]:
    for series, limit in ((MEDIAN, USUAL), (P99, SLOWEST)):
        if (found := points.get(series, ALL)) is not None:
            yield Finding(f"One hundred queries: {series} below {limit:g} ms", f"{found:.2f} ms", found < limit)


FIGURE = Figure(
    title="Small batches: what Panewise promises",
    claim="one row is fed to an engine with a hundred standing queries, and answered, within two milliseconds",
    paper="No paper measures this; the bounds are our own. One hundred queries of mixed kinds stand in one engine. A "
    "row comes at every instant, to the second stream of the joins at every tenth, and all answers of the instant are "
    "taken as one table. The other cases have the queries of one kind alone",
    x="queries",
    y="milliseconds of the processor a row",
    baseline=MEDIAN,
    sizes={
        "smoke": Settings(rows=60, filling=10),
        "seconds": Settings(rows=600, filling=400),
        "full": Settings(rows=2000, filling=1000),
    },
    measure=measure,
    findings=findings,
    log=frozenset({"y"}),
)
