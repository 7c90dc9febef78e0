"""What Panewise promises about the speed of regression: a line at every level for little more than a sum."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from statistics import median
from time import perf_counter

import numpy as np
import pyarrow as pa

import panewise as pw
from benchmarks.harness.draw import number
from benchmarks.harness.figure import Figure, Finding, Points, Row

LINES, SUMS, RATIO, PROMISED = "REGR_SLOPE(v)", "SUM(v)", "REGR_SLOPE over SUM", "promised"
WINDOW = "[RANGES 200, 80, 40, 20, 10 SLIDES 20, 10, 5, 2, 1]"
TIMED = (
    "[RANGES 200 SECONDS, 80 SECONDS, 40 SECONDS, 20 SECONDS, 10 SECONDS "
    "SLIDES 20 SECONDS, 10 SECONDS, 5 SECONDS, 2 SECONDS, 1 SECOND]"
)
#: The times more that a line may cost.
BOUND = 1.5


@dataclass(frozen=True)
class Settings:
    rows: int
    ticks: int
    batch: int
    keys: tuple[int, ...]
    repeats: int


def measure(settings: Settings) -> Iterator[Row]:
    if settings != SMALLEST:  # once at the smallest size first, so that no kernel is compiled on the clock
        list(measure(SMALLEST))
    for keys in settings.keys:
        for timed in (False, True):
            for real in (False, True):
                case = f"{keys} keys, {'timestamps' if timed else 'ticks'}, {'doubles' if real else 'integers'}"
                batches = list(made(settings, keys, timed, real))
                taken: dict[str, list[float]] = {LINES: [], SUMS: []}
                for _ in range(settings.repeats):  # in turns, so that a busy machine is busy for both
                    for call, seconds in taken.items():
                        seconds.append(answered(call, batches, timed))
                for call, seconds in taken.items():
                    yield Row(call, case, settings.rows / 1e6 / median(seconds))
                ratios = [line / total for line, total in zip(taken[LINES], taken[SUMS], strict=True)]
                yield Row(RATIO, case, median(ratios))
                yield Row(PROMISED, case, BOUND)


def answered(call: str, batches: list[pa.Table], timed: bool) -> float:
    """Seconds until all answers of all levels are there."""
    pool = pw.Pool({"S": pw.StreamSchema(batches[0].schema, "t", "0 SECONDS" if timed else 0)})
    pool.register("q", f"SELECT k, {call} AS answer FROM S {TIMED if timed else WINDOW} GROUP BY k")
    engine = pw.Engine(pool)
    began = perf_counter()
    for batch in batches:
        engine.feed("S", batch)
        engine.advance()
    engine.finish()
    return perf_counter() - began


def made(settings: Settings, keys: int, timed: bool, real: bool) -> Iterator[pa.Table]:
    """Rows in the order of time, evenly over the ticks."""
    rng = np.random.default_rng(1)
    for start in range(0, settings.rows, settings.batch):
        rows = np.arange(start, min(start + settings.batch, settings.rows))
        times = pa.array(rows * settings.ticks // settings.rows)
        if timed:
            times = pa.array(np.asarray(times) * 1_000_000 + 1_700_000_000_000_000).cast(pa.timestamp("us"))
        values = rng.integers(0, 1000, len(rows))
        groups = rng.integers(0, keys, len(rows)).astype(np.int32)
        yield pa.table({"t": times, "k": groups, "v": values / 8 if real else values})


def findings(points: Points) -> Iterator[Finding]:
    for case in map(str, points.xs):
        ratio, line = (points.get(series, case) or 0.0 for series in (RATIO, LINES))
        told = f"{number(ratio)} times, {number(line)} M rows/s"
        yield Finding(f"{case}: at most {BOUND} times the cost of SUM", told, ratio <= BOUND)


SMALLEST = Settings(rows=20_000, ticks=100, batch=10_000, keys=(10,), repeats=1)

FIGURE = Figure(
    title="Speed: a line at every level",
    claim="regression at every level of a window costs at most 1.5 times what SUM costs",
    paper='"Multi-granular windows" section IV.B: every summation is shared along the hierarchy, at O(1) an item. No '
    "numbers are given. Ours: five levels, one thread; rates include all results, one for ten rows with 1,000 keys",
    x="case",
    y="M rows/s; times",
    baseline=SUMS,
    sizes={
        "smoke": SMALLEST,
        "seconds": Settings(rows=2_000_000, ticks=100, batch=500_000, keys=(1000, 10), repeats=3),
        "full": Settings(rows=20_000_000, ticks=1000, batch=500_000, keys=(1000, 10), repeats=5),
    },
    measure=measure,
    findings=findings,
    log=frozenset("y"),
)
