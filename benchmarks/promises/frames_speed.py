"""What Panewise promises about the speed of frames, by kind, embedded and on one core."""

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

OURS, PROMISED, FRAMES, LENGTH = "Panewise", "promised", "thousands of frames", "rows of a frame"
SCHEMA = pa.schema([("t", pa.int64()), ("k", pa.int32()), ("v", pa.float64()), ("n", pa.int64())])
#: What frames are made of, and millions of rows a second that were promised.
KINDS = {
    "threshold": ("WHILE v < 40 FOR AT LEAST 1000", 20.0),
    "delta": ("DELTA v > 20", 10.0),
    "boundary": ("EVERY 10 OF v", 10.0),
    "aggregate": ("SUM(n) >= 100", 10.0),
    "density": ("DENSITY 5 PER 4000", 1.0),
    "nested": ("START WHEN v > 58 END WHEN v < 30 ON START CONTINUE", 1.0),
    "adjacent": ("DELTA v > 10 ADJACENT 1000", 1.0),
    "everywhere": ("DELTA v > 10 UNCONSTRAINED", 1.0),
    "advancing": ("SUM(n) >= 50 ADVANCING", 1.0),
    "median": ("MEDIAN(n) >= 2", 1.0),
    "distinct": ("COUNT(DISTINCT n) >= 4", 1.0),
    "deviation": ("STDDEV(v) <= 5", 1.0),
}
SELECTED = {"": "k", ", AVG(v)": "k, AVG(v) AS mean"}


@dataclass(frozen=True)
class Settings:
    rows: int
    batch: int
    groups: int
    #: Rows of a group in which its value rises and falls once.
    period: int
    repeats: int


def measure(settings: Settings) -> Iterator[Row]:
    if settings != SMALLEST:  # once at the smallest size first, so that no kernel is compiled on the clock
        list(measure(SMALLEST))
    batches = list(made(settings))
    for kind, (clause, promised) in KINDS.items():
        for name, selected in SELECTED.items():
            query = f"SELECT {selected} FROM S [FRAME {clause} PARTITION BY k]"
            found = [framed(query, batches) for _ in range(settings.repeats)]
            case, frames = f"{kind}{name}", found[0][1]
            yield Row(OURS, case, settings.rows / 1e6 / median(taken for taken, _ in found))
            yield Row(PROMISED, case, promised)
        yield Row(FRAMES, counted(kind), frames / 1e3)
        yield Row(LENGTH, counted(kind), settings.rows / frames)


def counted(kind: str) -> str:
    return f"{kind}: frames"


def framed(query: str, batches: list[pa.Table]) -> tuple[float, int]:
    """Seconds until all frames are there, and how many."""
    pool = pw.Pool({"S": pw.StreamSchema(SCHEMA, "t", 0)})
    pool.register("q", query)
    engine, frames = pw.Engine(pool), 0
    began = perf_counter()
    for batch in batches:
        engine.feed("S", batch)
        frames += engine.advance()["q"].num_rows
    frames += engine.finish()["q"].num_rows
    return perf_counter() - began, frames


def made(settings: Settings) -> Iterator[pa.Table]:
    """A row a tick, of any group; values rise and fall, each group at times of its own, with a little noise."""
    for start in range(0, settings.rows, settings.batch):
        rng = np.random.default_rng((1, start))
        times = np.arange(start, min(start + settings.batch, settings.rows))
        groups = rng.integers(0, settings.groups, len(times)).astype(np.int32)
        turns = times / (settings.groups * settings.period) + groups / settings.groups
        values = 40 + 20 * np.sin(2 * np.pi * turns) + rng.normal(0, 0.1, len(times))
        yield pa.table([times, groups, values, rng.integers(1, 5, len(times))], schema=SCHEMA)


def findings(points: Points) -> Iterator[Finding]:
    for kind, (clause, promised) in KINDS.items():
        frames, length = (points.get(series, counted(kind)) or 0.0 for series in (FRAMES, LENGTH))
        for name in SELECTED:
            ours = points.get(OURS, f"{kind}{name}") or 0.0
            yield Finding(
                f"{kind} frames{name} ({clause}): at least {number(promised)} M rows/s",
                f"{number(ours)} M rows/s; {number(1000 * frames)} frames, one for {number(length)} rows",
                ours >= promised,
            )


SMALLEST = Settings(rows=20_000, batch=5000, groups=20, period=200, repeats=1)

FIGURE = Figure(
    title="Speed of frames: what Panewise promises",
    claim="one core frames tens of millions of rows a second",
    paper="no paper: these bounds are our own, and meant for the size `full`: 20 M rows, a row a tick, 1,000 groups at "
    "random, values of a group that rise and fall once in 200 of its rows, in batches of 1 M rows without delay, after "
    "each of which all that is certain is reported. A threshold frame must last for about a row of its group",
    x="kind",
    y="M rows a second; thousands of frames; rows of a frame",
    baseline=PROMISED,
    sizes={
        "smoke": SMALLEST,
        "seconds": Settings(rows=2_000_000, batch=1_000_000, groups=1000, period=200, repeats=3),
        "full": Settings(rows=20_000_000, batch=1_000_000, groups=1000, period=200, repeats=3),
    },
    measure=measure,
    findings=findings,
    log=frozenset("y"),
)
