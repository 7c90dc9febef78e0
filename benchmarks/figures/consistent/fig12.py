""" "Consistent results" figure 12: the time that operators over landmark windows have taken as states grow."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.figures.consistent.replay import BASELINE, Growing, every_operation, facts, judged, landmark, linear
from benchmarks.harness.figure import Figure, Finding, Points, Row


def measure(settings: Growing) -> Iterator[Row]:
    for series, operation, trace in every_operation(settings.rows):
        replay, total = landmark(operation, trace, settings.rate), 0.0
        while replay.rows < settings.snapshots[-1]:
            total += replay.wave(settings.rate)
            if replay.rows in settings.snapshots:
                yield Row(series, replay.rows, total)


def findings(points: Points) -> Iterator[Finding]:
    wider = float(points.xs[-1]) / float(points.xs[0])
    yield judged(
        points,
        "Joins take more and more for each tuple",
        lambda trace: points.growth(f"join, {trace}"),
        f"{{}} times from the first snapshot to the last, where windows grow {wider:.0f} times",
        lambda growth: growth > 1.25 * wider,
    )
    for operation in ("distinct", "SUM", "MAX"):
        yield linear(points, operation, "window")
        yield negligible(points, operation)


def negligible(points: Points, operation: str) -> Finding:
    return judged(
        points,
        f"{operation} takes next to nothing beside joins",
        lambda trace: points.of(f"join, {trace}")[-1] / points.of(f"{operation}, {trace}")[-1],
        "a join has taken {} times as long at the end",
        lambda times: times > 10,
    )


FIGURE = Figure(
    title="Consistent results, figure 12: time over landmark windows",
    claim="where nothing leaves, all operators but joins cost what new tuples cost",
    paper=facts(
        "all the time taken until windows hold so many tuples, none of which ever leaves; distinct and aggregates look "
        "at their results only, joins find more and more partners; rate not given",
        "10,000 tuples a timestamp; ",
        "one run",
    ),
    x="tuples in each window",
    y="seconds so far",
    baseline=BASELINE,
    sizes={
        "smoke": Growing(rows=2000, rate=50, snapshots=(100, 200)),
        "seconds": Growing(rows=100_000, rate=5000, snapshots=(10_000, 20_000, 30_000, 40_000)),
        "full": Growing(rows=500_000, rate=10_000, snapshots=(40_000, 80_000, 120_000, 160_000, 200_000, 240_000)),
    },
    measure=measure,
    findings=findings,
    log=frozenset("y"),
)
