""" "Consistent results" figure 9: the cost of operators over count-based windows."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.figures.consistent.replay import (
    BASELINE,
    QUERIES,
    Counting,
    dearer,
    every_operation,
    facts,
    judged,
    linear,
)
from benchmarks.harness.figure import Figure, Finding, Points, Row


def measure(settings: Counting) -> Iterator[Row]:
    for series, operation, trace in every_operation(settings.rows):
        for size in settings.sizes:
            yield Row(series, size, settings.cost(operation, f"[ROWS {size}]", trace, fill=size))


def findings(points: Points) -> Iterator[Finding]:
    yield dearer(points, "join", "distinct", "Join costs more than distinct")
    yield dearer(points, "distinct", "SUM", "Distinct costs more than SUM, which looks at two tuples for each new one")
    yield judged(
        points,
        "The cost of SUM does not depend on the window",
        lambda trace: points.swing(f"SUM, {trace}"),
        "it swings by a factor of {}",
        lambda swing: swing < 2.5,
    )
    yield dearer(points, "MAX", "SUM", "MAX costs more than SUM: a group is searched when its maximum leaves")
    for operation in QUERIES:
        yield linear(points, operation, "window")


FIGURE = Figure(
    title="Consistent results, figure 9: cost over count-based windows",
    claim="no operator over the last n tuples costs more than in proportion to n",
    paper=facts(
        "joins cost most among operators that mend their results in place; MAX, which searches its group, grows "
        "linearly with the window; rate not given",
        "10,000 tuples a timestamp; ",
    ),
    x="tuples in each window",
    y="ms a timestamp",
    baseline=BASELINE,
    sizes={
        "smoke": Counting(rows=2000, rate=100, sizes=(50, 200), timestamps=1),
        "seconds": Counting(rows=100_000, rate=10_000, sizes=(1000, 2000, 5000), timestamps=1),
        "full": Counting(rows=500_000, rate=10_000, sizes=(10_000, 20_000, 50_000, 100_000), timestamps=5),
    },
    measure=measure,
    findings=findings,
    log=frozenset("xy"),
)
