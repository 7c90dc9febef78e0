""" "Consistent results" figure 13: the memory of operators over landmark windows as states grow."""

from __future__ import annotations

import gc
import tracemalloc
from collections.abc import Iterator

import pyarrow as pa

from benchmarks.data.connections import GENERATED, traces
from benchmarks.figures.consistent.replay import Growing, Replay, every_operation, facts, judged, landmark
from benchmarks.harness.figure import Figure, Finding, Points, Row

TUPLES = "its tuples"


def measure(settings: Growing) -> Iterator[Row]:
    for name, trace in traces(settings.rows).items():
        for size in settings.snapshots:
            yield Row(f"{TUPLES}, {name}", size, trace.slice(0, size).nbytes / 1e6)
    for series, operation, trace in every_operation(settings.rows):
        replay = landmark(operation, trace, settings.rate)
        # Engines and pools know each other, so that those of other series leave their memory only now.
        gc.collect()
        tracemalloc.start()
        try:
            yield from memory(series, replay, settings)
        finally:
            tracemalloc.stop()


def memory(series: str, replay: Replay, settings: Growing) -> Iterator[Row]:
    """Megabytes that Python and Arrow keep beyond an engine without tuples."""
    empty = kept()
    while replay.rows < settings.snapshots[-1]:
        replay.wave(settings.rate)
        if replay.rows in settings.snapshots:
            yield Row(series, replay.rows, (kept() - empty) / 1e6)


def kept() -> int:
    """Arrow has memory of its own, of which Python does not know."""
    return int(tracemalloc.get_traced_memory()[0] + pa.total_allocated_bytes())


def findings(points: Points) -> Iterator[Finding]:
    wider = float(points.xs[-1]) / float(points.xs[0])
    yield judged(
        points,
        "The window itself grows linearly",
        lambda trace: points.growth(f"{TUPLES}, {trace}"),
        f"its tuples take {{}} times the bytes, where windows grow {wider:.0f} times",
        lambda growth: 0.8 < growth / wider < 1.25,
    )
    for operation in ("distinct", "SUM", "MAX"):
        yield negligible(points, operation)
    yield judged(
        points,
        "SUM and MAX need the same, since their groups are the same",
        lambda trace: points.of(f"MAX, {trace}")[-1] / points.of(f"SUM, {trace}")[-1],
        "MAX {} times as much",
        lambda ratio: 0.4 < ratio < 2.5,
    )
    yield judged(
        points,
        "(not in the paper) A join keeps the tuples, not its results, which nothing takes back",
        lambda trace: points.of(f"join, {trace}")[-1] / points.of(f"{TUPLES}, {trace}")[-1],
        "{} times the bytes of one window",
        lambda times: times < 10,
    )


def negligible(points: Points, operation: str) -> Finding:
    return judged(
        points,
        f"Joins need most memory, {operation} next to none",
        lambda trace: points.of(f"{operation}, {trace}")[-1] / points.of(f"join, {trace}")[-1],
        f"{operation} {{}} of what a join needs at the end",
        lambda share: share < 0.1,
    )


FIGURE = Figure(
    title="Consistent results, figure 13: memory over landmark windows",
    claim="where nothing leaves, distinct and aggregates keep their results only, and joins their tuples",
    paper=facts(
        "joins keep ever more results; those of distinct and of aggregates are few, and as many for SUM as for MAX; "
        "rate not given",
        "all that Python and Arrow keep; 10,000 tuples a timestamp; ",
        "one run",
    ),
    x="tuples in each window",
    y="megabytes",
    baseline=f"{TUPLES}, {GENERATED}",
    sizes={
        "smoke": Growing(rows=2000, rate=50, snapshots=(100, 200)),
        "seconds": Growing(rows=100_000, rate=5000, snapshots=(10_000, 20_000, 30_000, 40_000)),
        "full": Growing(rows=500_000, rate=10_000, snapshots=(40_000, 80_000, 120_000, 160_000, 200_000, 240_000)),
    },
    measure=measure,
    findings=findings,
    log=frozenset("y"),
)
