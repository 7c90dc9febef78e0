""" "Resource sharing" figure 10: update rates by the reach of a store, in batches.

L-INT, which the paper does not measure, is added. No batch is larger than the reach: what nobody can ask for any more
would be left out, and cost nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import log2

import numpy as np
import pyarrow as pa

from benchmarks.harness.figure import Figure, Finding, Points, Row
from benchmarks.harness.timing import rate
from panewise.aggregate import Max, Sum
from panewise.stores.arrays import ArrayStore, BaseArrays, LandmarkArrays, QuantileArrays, RunningArrays


@dataclass(frozen=True)
class Settings:
    reaches: tuple[int, ...]
    batch: int
    seconds: float
    repeats: int


def _sums(store: ArrayStore, batch: int) -> Callable[[], None]:
    ones, values = np.ones(batch, np.int64), np.random.default_rng(1).integers(0, 1000, batch)
    words = (ones, np.zeros(batch, np.int64), values)
    return lambda: store.append(words)


def _greatest(store: ArrayStore, batch: int) -> Callable[[], None]:
    words = (np.random.default_rng(1).integers(0, 10**6, batch), np.ones(batch, bool))
    return lambda: store.append(words)


def _quantiles(store: QuantileArrays, batch: int) -> Callable[[], None]:
    ones, values = np.ones(batch, np.int64), np.random.default_rng(1).integers(0, 10**6, batch)
    return lambda: store.append(ones, values)


#: What appends one batch to a store of some reach. L-INT for widths between half the reach and the reach.
SERIES: dict[str, Callable[[int, int], Callable[[], None]]] = {
    "R-INT, SUM": lambda reach, batch: _sums(RunningArrays(Sum(pa.int64()).state_arrays(), reach), batch),
    "B-INT, MAX": lambda reach, batch: _greatest(BaseArrays(Max(pa.int64()).state_arrays(), reach), batch),
    "L-INT, MAX": lambda reach, batch: _greatest(
        LandmarkArrays(Max(pa.int64()).state_arrays(), reach, widths=((reach + 1) // 2, reach)), batch
    ),
    "B-INT-QNT": lambda reach, batch: _quantiles(QuantileArrays(reach), batch),
}


def measure(settings: Settings) -> Iterator[Row]:
    for name, build in SERIES.items():
        for reach in settings.reaches:
            work = updates(build(reach, settings.batch), settings.batch)
            work(2 * reach)
            yield Row(name, reach, rate(work, settings.seconds, settings.repeats, least=2 * reach))


def updates(append: Callable[[], None], batch: int) -> Callable[[int], None]:
    def work(count: int) -> None:
        for _ in range(-(-count // batch)):
            append()

    return work


def findings(points: Points) -> Iterator[Finding]:
    narrow, wide = (float(points.xs[place]) for place in (0, -1))
    for name in ("R-INT, SUM", "B-INT, MAX", "L-INT, MAX"):
        growth = points.growth(name)
        yield Finding(
            f"{name.partition(',')[0]} updates in O(1) amortised, whatever N_max is (sections 3.1 and 3.2)",
            f"N_max grows by a factor of {wide / narrow:,.0f}, the rate changes by a factor of {growth:.2f}",
            0.4 < growth < 2.5,
        )
    slower, logarithms = 1 / points.growth("B-INT-QNT"), log2(wide) / log2(narrow)
    yield Finding(
        "B-INT-QNT updates in O(log N_max)",
        f"an update of the longest reach takes {slower:.1f} times as long as one of the shortest; log N_max grows by "
        f"a factor of {logarithms:.1f}",
        slower < 2.5 * logarithms,
    )
    best = {name: max(points.of(name)) for name in SERIES}
    yield Finding(
        "Up to millions of updates a second; we promise 50 million for R-INT and 20 million for B-INT in batches",
        ", ".join(f"{name.partition(',')[0]} {value:,.0f}" for name, value in best.items()) + " a second",
        best["R-INT, SUM"] > 50e6 and best["B-INT, MAX"] > 20e6,
    )
    yield Finding(
        "L-INT has dearer updates than B-INT (section 3.1.2, not in this figure)",
        f"B-INT updates at {points.of('B-INT, MAX')[-1] / points.of('L-INT, MAX')[-1]:.1f} times the rate of L-INT",
        points.of("B-INT, MAX")[-1] > points.of("L-INT, MAX")[-1],
    )


FIGURE = Figure(
    title="Resource sharing, figure 10: update rates",
    claim="The cost of an update, in batches to stores over arrays, does not depend on how far back a store reaches, "
    "and for quantiles on no more than its logarithm",
    paper="R-INT for SUM, B-INT for MAX and B-INT-QNT for QUANTILE, for several N_max; up to millions of updates a "
    "second, one after the other, on a Pentium III, 700 MHz. We add L-INT",
    x="N_max",
    y="updates a second",
    baseline="R-INT, SUM",
    sizes={
        "smoke": Settings(reaches=(10, 100), batch=10, seconds=0.001, repeats=1),
        "seconds": Settings(reaches=(10_000, 100_000), batch=10_000, seconds=0.05, repeats=5),
        "full": Settings(reaches=(10_000, 30_000, 100_000, 300_000, 1_000_000), batch=10_000, seconds=0.5, repeats=5),
    },
    measure=measure,
    findings=findings,
    log=frozenset("xy"),
)
