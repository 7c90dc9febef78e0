""" "Consistent results" figure 6: the cost of operators against the step of a sliding window."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from statistics import median

import pyarrow as pa

from benchmarks.figures.consistent.replay import BASELINE, QUERIES, Replay, dearer, every_operation, facts, linear
from benchmarks.harness.figure import Figure, Finding, Points, Row


@dataclass(frozen=True)
class Settings:
    #: Rows of each trace that are replayed.
    rows: int
    rate: int
    range: int
    slides: tuple[int, ...]
    movements: int


def measure(settings: Settings) -> Iterator[Row]:
    for series, operation, trace in every_operation(settings.rows):
        for slide in settings.slides:
            yield Row(series, slide, movement(operation, trace, slide, settings))


def movement(operation: str, trace: pa.Table, slide: int, settings: Settings) -> float:
    """Milliseconds from one movement of the full window to the next, median of some after the first."""
    replay = Replay(operation, f"[RANGE {settings.range} SLIDE {slide}]", trace)
    steps = -(-settings.range // slide)
    replay.fill([settings.rate] * steps * slide)
    times = [sum(replay.wave(settings.rate) for _ in range(slide)) for _ in range(1 + settings.movements)]
    return 1000 * median(times[1:])


def findings(points: Points) -> Iterator[Finding]:
    for operation in QUERIES:
        yield linear(points, operation, "step")
    yield dearer(points, "join", "distinct", "Join is by far the dearest", times=2.5)
    yield dearer(points, "join", "SUM", "Aggregation costs next to nothing: SUM", times=10)
    yield dearer(points, "join", "MAX", "Aggregation costs next to nothing: MAX, which looks for a new one", times=10)
    yield dearer(points, "distinct", "SUM", "Distinct costs more than aggregation")


FIGURE = Figure(
    title="Consistent results, figure 6: cost against the step of a sliding window",
    claim="no operator over a sliding window costs more than in proportion to its step, and joins cost most",
    paper=facts("a window over 10 timestamps at 10,000 tuples a timestamp that moves every few of them"),
    x="step of the window, in timestamps",
    y="ms a step",
    baseline=BASELINE,
    sizes={
        "smoke": Settings(rows=2000, rate=50, range=4, slides=(1, 4), movements=1),
        "seconds": Settings(rows=100_000, rate=1000, range=10, slides=(1, 2, 5, 10), movements=3),
        "full": Settings(rows=500_000, rate=10_000, range=10, slides=(1, 2, 5, 10), movements=3),
    },
    measure=measure,
    findings=findings,
    log=frozenset("xy"),
)
