""" "Consistent results" figure 11: the cost of operators over partitioned windows."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from benchmarks.data.connections import populated, traces
from benchmarks.figures.consistent.replay import BASELINE, QUERIES, Counting, dearer, facts, judged, streams
from benchmarks.harness.figure import Figure, Finding, Points, Row

PARTITIONS = 5
WHOLE = "counted distinct"


def measure(settings: Counting) -> Iterator[Row]:
    for name, trace in traces(settings.rows).items():
        trace = populated(trace, PARTITIONS)
        count = len(trace["protocol"].unique())
        for size in settings.sizes:
            window = f"[PARTITION BY protocol ROWS {size // count}]"
            for operation in QUERIES:
                fill = filling(operation, trace, size // count)
                yield Row(f"{operation}, {name}", size, settings.cost(operation, window, trace, fill))
            yield Row(f"{WHOLE}, {name}", size, settings.cost("distinct", f"[ROWS {size}]", trace, fill=size))


def filling(operation: str, trace: pa.Table, tuples: int) -> int:
    """Rows that must come until the rarest protocol has so many tuples."""
    used = [
        stream["protocol"].value_counts().field("counts").to_numpy() for stream in streams(operation, trace).values()
    ]
    return max(int(np.ceil(tuples * counts.sum() / counts.min())) for counts in used)


def findings(points: Points) -> Iterator[Finding]:
    yield judged(
        points,
        "The cost of distinct hardly depends on the window: equal tuples are in one partition",
        lambda trace: points.swing(f"distinct, {trace}"),
        "it swings by a factor of {}",
        lambda swing: swing < 2.5,
    )
    yield dearer(points, "join", "MAX", "MAX costs less than joins")
    yield dearer(
        points, WHOLE, "MAX", "MAX costs about half as much as distinct over count-based windows", times=1 / 2.5
    )


FIGURE = Figure(
    title="Consistent results, figure 11: cost over partitioned windows",
    claim="partitions that also tell results apart keep the cost of each tuple to its partition",
    paper=facts(
        "the last tuples of each of the 5 protocols that have most, equally many of each; rate not given",
        "10,000 tuples a timestamp; KDD99 has 3 protocols; ",
    ),
    x="tuples in all partitions",
    y="ms a timestamp",
    baseline=BASELINE,
    sizes={
        "smoke": Counting(rows=2000, rate=100, sizes=(60, 240), timestamps=1),
        "seconds": Counting(rows=100_000, rate=10_000, sizes=(1000, 2000, 5000), timestamps=1),
        "full": Counting(rows=500_000, rate=10_000, sizes=(5000, 10_000, 20_000), timestamps=3),
    },
    measure=measure,
    findings=findings,
    log=frozenset("xy"),
)
