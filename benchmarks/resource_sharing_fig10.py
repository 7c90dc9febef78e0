""" "Resource sharing" figure 10: update rates by the reach of a store.

The paper's third curve, quantiles in base intervals, is left out: the store that keeps sorted arrays is not built yet.
L-INT, which the paper does not measure, is added.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from benchmarks.bench import Figure, Finding, Points, Row, rate
from panewise.aggregate import Max, Sum
from panewise.stores import BaseIntervals, LandmarkIntervals, RunningIntervals, Store


@dataclass(frozen=True)
class Settings:
    reaches: tuple[int, ...]
    seconds: float
    repeats: int


#: L-INT for widths between half the reach and the reach: one partition.
SERIES: dict[str, Callable[[int], Store[Any]]] = {
    "R-INT, SUM": lambda reach: RunningIntervals(Sum(pa.int64()), reach),
    "B-INT, MAX": lambda reach: BaseIntervals(Max(pa.int64()), reach),
    "L-INT, MAX": lambda reach: LandmarkIntervals(Max(pa.int64()), reach, ((reach + 1) // 2, reach)),
}


def measure(settings: Settings) -> Iterator[Row]:
    for name, build in SERIES.items():
        for reach in settings.reaches:
            work = updates(build(reach))
            work(reach)
            yield Row(name, reach, rate(work, settings.seconds, settings.repeats, least=reach))


def updates(store: Store[Any]) -> Callable[[int], None]:
    state = store.aggregate.lift(1)

    def work(count: int) -> None:
        for _ in range(count):
            store.append(state)

    return work


def findings(points: Points) -> Iterator[Finding]:
    span = float(points.xs[-1]) / float(points.xs[0])
    for name in SERIES:
        growth = points.growth(name)
        yield Finding(
            f"{name.partition(',')[0]} updates in O(1) amortised, whatever N_max is (sections 3.1 and 3.2)",
            f"N_max grows by a factor of {span:,.0f}, the rate changes by a factor of {growth:.2f}",
            0.4 < growth < 2.5,
        )
    best = {name: max(points.of(name)) for name in SERIES}
    yield Finding(
        "Up to millions of updates a second",
        ", ".join(f"{name.partition(',')[0]} {value:,.0f}" for name, value in best.items()) + " a second in Python",
        max(best.values()) > 1e6,
    )
    yield Finding(
        "L-INT has dearer updates than B-INT (section 3.1.2, not in this figure)",
        f"B-INT updates at {points.of('B-INT, MAX')[-1] / points.of('L-INT, MAX')[-1]:.1f} times the rate of L-INT",
        points.of("B-INT, MAX")[-1] > points.of("L-INT, MAX")[-1],
    )


FIGURE = Figure(
    title="Resource sharing, figure 10: update rates",
    claim="The cost of an update does not depend on how far back a store reaches",
    paper="R-INT for SUM, B-INT for MAX and B-INT-QNT for QUANTILE, for several N_max; up to millions of updates a "
    "second on a Pentium III, 700 MHz. We leave QUANTILE out and add L-INT",
    x="N_max",
    y="updates a second",
    baseline="R-INT, SUM",
    sizes={
        "smoke": Settings(reaches=(10, 100), seconds=0.001, repeats=1),
        "seconds": Settings(reaches=(10, 100, 1000, 10_000), seconds=0.05, repeats=5),
        "full": Settings(reaches=(10, 100, 1000, 10_000, 100_000), seconds=0.5, repeats=5),
    },
    measure=measure,
    findings=findings,
    log=frozenset("xy"),
)
