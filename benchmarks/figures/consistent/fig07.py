""" "Consistent results" figure 7: the cost of operators against the range of a sliding window."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from statistics import median

import pyarrow as pa

from benchmarks.figures.consistent.replay import (
    BASELINE,
    QUERIES,
    Replay,
    dearer,
    every_operation,
    facts,
    judged,
    linear,
)
from benchmarks.harness.figure import Figure, Finding, Points, Row


@dataclass(frozen=True)
class Settings:
    #: Rows of each trace that are replayed.
    rows: int
    rate: int
    ranges: tuple[int, ...]
    timestamps: int


def measure(settings: Settings) -> Iterator[Row]:
    for series, operation, trace in every_operation(settings.rows):
        for reach in settings.ranges:
            yield Row(series, reach, cost(operation, trace, reach, settings))


def cost(operation: str, trace: pa.Table, reach: int, settings: Settings) -> float:
    """Milliseconds a timestamp, at each of which the full window moves; median of some after the first."""
    replay = Replay(operation, f"[RANGE {reach} SLIDE 1]", trace)
    replay.fill([settings.rate] * reach)
    times = [replay.wave(settings.rate) for _ in range(1 + settings.timestamps)]
    return 1000 * median(times[1:])


def findings(points: Points) -> Iterator[Finding]:
    for operation in QUERIES:
        yield linear(points, operation, "range")
    yield judged(
        points,
        "The cost of joins clearly depends on the range",
        lambda trace: points.growth(f"join, {trace}"),
        "{} times from the narrowest to the widest",
        lambda growth: growth > 2.5,
    )
    yield dearer(points, "join", "distinct", "Join is the dearest")


FIGURE = Figure(
    title="Consistent results, figure 7: cost against the range of a sliding window",
    claim="only joins pay for wider windows, by the partners that they find there",
    paper=facts("10,000 tuples a timestamp, ranges not given", "up to 20 timestamps, moving at each; "),
    x="range of the window, in timestamps",
    y="ms a timestamp",
    baseline=BASELINE,
    sizes={
        "smoke": Settings(rows=2000, rate=50, ranges=(2, 8), timestamps=1),
        "seconds": Settings(rows=100_000, rate=1000, ranges=(2, 5, 10, 20), timestamps=5),
        "full": Settings(rows=500_000, rate=10_000, ranges=(2, 5, 10, 20), timestamps=5),
    },
    measure=measure,
    findings=findings,
    log=frozenset("xy"),
)
