""" "Resource sharing" figure 11: lookup rates by the width of the window.

The paper's curve of quantiles in base intervals is left out, as in figure 10. Recomputing, which the paper does not
show here, is added as the measure of what a store saves. Widths begin at 10: at width 1 every position is a landmark,
so that L-INT combines nothing and is about three times as fast as at any other width.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import cycle, islice
from math import log2
from random import Random
from typing import Any

import pyarrow as pa

from benchmarks.bench import Figure, Finding, Points, Row, rate
from panewise.aggregate import Max, Sum
from panewise.stores import BaseIntervals, LandmarkIntervals, Recompute, RunningIntervals, Store


@dataclass(frozen=True)
class Settings:
    reach: int
    widths: tuple[int, ...]
    seconds: float
    repeats: int


def series(settings: Settings) -> dict[str, Store[Any]]:
    largest, reach = Max(pa.int64()), settings.reach
    return {
        "R-INT, SUM": RunningIntervals(Sum(pa.int64()), reach),
        "L-INT, MAX": LandmarkIntervals(largest, reach, settings.widths),
        "B-INT, MAX": BaseIntervals(largest, reach),
        "recompute, MAX": Recompute(largest, reach),
    }


def measure(settings: Settings) -> Iterator[Row]:
    for name, store in series(settings).items():
        for value in range(3 * settings.reach // 2):  # past the reach, so that no window begins at position one
            store.append(store.aggregate.lift(value % 1009))
        for width in settings.widths:
            yield Row(name, width, rate(lookups(store, width), settings.seconds, settings.repeats))


def lookups(store: Store[Any], width: int) -> Callable[[int], None]:
    """Windows of one width, anywhere within reach: suffix and historical."""
    random = Random(width)
    lasts = cycle([random.randint(store.length - store.reach + width, store.length) for _ in range(1000)])

    def work(count: int) -> None:
        for last in islice(lasts, count):
            store.lookup(last - width + 1, last)

    return work


def findings(points: Points) -> Iterator[Finding]:
    narrow, wide = (float(points.xs[place]) for place in (0, -1))
    for name, source in (("R-INT, SUM", "figure 11"), ("L-INT, MAX", "theorem 3.4, not in this figure")):
        yield Finding(
            f"{name.partition(',')[0]} looks up in O(1) ({source})",
            f"the width grows by a factor of {wide / narrow:,.0f}, the rate changes by a factor of "
            f"{points.growth(name):.2f}",
            0.4 < points.growth(name) < 2.5,
        )
    slower, logarithms = 1 / points.growth("B-INT, MAX"), log2(wide) / log2(narrow)
    yield Finding(
        "B-INT looks up in O(log W)",
        f"a lookup of the widest window takes {slower:.1f} times as long as one of the narrowest; log W grows by a "
        f"factor of {logarithms:.1f}",
        1 < slower < 2 * logarithms,
    )
    longer = 1 / points.growth("recompute, MAX")
    yield Finding(
        "(not in this figure) Computing on demand is linear in W",
        f"a lookup of the widest window takes {longer:,.0f} times as long as one of the narrowest",
        longer > wide / narrow / 4,
    )
    rates, lead = points.of("R-INT, SUM"), points.lead("R-INT, SUM", "B-INT, MAX")
    yield Finding(
        "R-INT answers about 10,000,000 lookups a second at every width",
        f"{min(rates):,.0f} to {max(rates):,.0f} a second: these stores are Python objects",
        min(rates) > 5e6,
    )
    yield Finding(
        "R-INT is so far above B-INT that the plot leaves it out", f"at least {lead:.1f} times the rate", lead > 2
    )


FIGURE = Figure(
    title="Resource sharing, figure 11: lookup rates",
    claim="The cost of a lookup does not depend on the width in R-INT and L-INT, grows with its logarithm in B-INT, "
    "and with the width itself without a store",
    paper="N_max = 100,000, windows anywhere within it; R-INT about 10,000,000 lookups a second at every width; "
    "B-INT-QNT about 22,000 at the largest; Pentium III, 700 MHz. We leave QUANTILE out and add L-INT and recomputing",
    x="W",
    y="lookups a second",
    baseline="R-INT, SUM",
    sizes={
        "smoke": Settings(reach=100, widths=(10, 100), seconds=0.001, repeats=1),
        "seconds": Settings(reach=10_000, widths=(10, 100, 1000, 10_000), seconds=0.02, repeats=5),
        "full": Settings(reach=100_000, widths=(10, 100, 1000, 10_000, 100_000), seconds=0.3, repeats=5),
    },
    measure=measure,
    findings=findings,
    log=frozenset("xy"),
)
