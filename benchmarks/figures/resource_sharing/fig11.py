""" "Resource sharing" figure 11: lookup rates by the width of the window, many windows at once.

L-INT and computing on demand, which the paper does not show here, are added: the latter is the measure of what a store
saves. Each quantile has a phi of its own, of whole percents. One more curve asks R-INT for one window after the other.
Of windows as wide as the reach there is only one, which the cache holds; the widest before it shows what others cost.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import log2
from typing import TypeAlias

import numpy as np
import pyarrow as pa

from benchmarks.figures.resource_sharing.baselines import MaterialiseNone
from benchmarks.harness.figure import Figure, Finding, Points, Row
from benchmarks.harness.timing import rate
from panewise.aggregate import Int64Array, Max, Sum
from panewise.stores.arrays import BaseArrays, LandmarkArrays, QuantileArrays, RunningArrays

#: Asks for some windows at once.
Ask: TypeAlias = Callable[[Int64Array, Int64Array], object]


@dataclass(frozen=True)
class Settings:
    reach: int
    widths: tuple[int, ...]
    batch: int
    seconds: float
    repeats: int


def series(settings: Settings) -> dict[str, Ask]:
    """What answers windows after one and a half times the reach has come in."""
    reach, length = settings.reach, 3 * settings.reach // 2
    values, ones = np.random.default_rng(1).integers(0, 10**6, length), np.ones(length, np.int64)
    sums, greatest = Sum(pa.int64()).state_arrays(), Max(pa.int64()).state_arrays()
    running, none = RunningArrays(sums, reach), MaterialiseNone(sums, reach)
    landmarks, base = LandmarkArrays(greatest, reach, widths=settings.widths), BaseArrays(greatest, reach)
    quantiles = QuantileArrays(reach)
    running.append((ones, 0 * ones, values))
    none.append((ones, 0 * ones, values))
    landmarks.append((values, ones > 0))
    base.append((values, ones > 0))
    quantiles.append(ones, values)
    percents, hundred = np.random.default_rng(2).integers(1, 101, settings.batch), np.array([100])

    def one_by_one(firsts: Int64Array, lasts: Int64Array) -> None:
        for first, last in zip(firsts.tolist(), lasts.tolist(), strict=True):
            running.lookup_one(first, last)

    return {
        "R-INT, SUM": running.lookup,
        "L-INT, MAX": landmarks.lookup,
        "B-INT, MAX": base.lookup,
        "B-INT-QNT": lambda firsts, lasts: quantiles.lookup(firsts, lasts, (percents[: len(firsts)], hundred)),
        "R-INT, SUM, one by one": one_by_one,
        "on demand, SUM": none.lookup,
    }


def measure(settings: Settings) -> Iterator[Row]:
    for name, ask in series(settings).items():
        for width in settings.widths:
            yield Row(name, width, rate(lookups(ask, width, settings), settings.seconds, settings.repeats))


def lookups(ask: Ask, width: int, settings: Settings) -> Callable[[int], None]:
    """Windows of one width, anywhere within reach: suffix and historical."""
    length = 3 * settings.reach // 2
    lasts = np.random.default_rng(width).integers(length - settings.reach + width, length + 1, settings.batch)
    firsts = lasts - width + 1
    ask(firsts[:1], lasts[:1])  # a kernel is compiled when it is first used, which is no part of the figure

    def work(count: int) -> None:
        while count > 0:
            ask(firsts[:count], lasts[:count])
            count -= len(firsts)

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
    logarithms = log2(wide) / log2(narrow)
    squared = logarithms**2 * log2(log2(wide)) / log2(log2(narrow))
    for name, bound, allowed in (
        ("B-INT, MAX", "O(log W)", logarithms),
        ("B-INT-QNT", "O(log^2 W log log W)", squared),
    ):
        slower = points.of(name)[0] / min(points.of(name))
        yield Finding(
            f"{name.partition(',')[0]} looks up in {bound}",
            f"the slowest lookup takes {slower:.1f} times as long as one of the narrowest window; the bound grows by a "
            f"factor of {allowed:.1f}",
            slower < 2 * allowed,
        )
    longer = 1 / points.growth("on demand, SUM")
    yield Finding(
        "(not in this figure) Computing on demand is linear in W",
        f"a lookup of the widest window takes {longer:,.0f} times as long as one of the narrowest",
        longer > wide / narrow / 10,
    )
    rates, single = points.of("R-INT, SUM"), points.of("R-INT, SUM, one by one")
    yield Finding(
        "R-INT answers about 10,000,000 lookups a second at every width; we promise 50 million at once and half a "
        "million one by one",
        f"{min(rates):,.0f} to {max(rates):,.0f} a second at once, {min(single):,.0f} to {max(single):,.0f} one by one",
        min(rates) > 50e6 and min(single) > 0.5e6,
    )
    greatest = points.of("B-INT, MAX")
    yield Finding(
        "(our promise) B-INT answers at least 10 million lookups a second at the largest window",
        f"{greatest[-1]:,.0f} a second there, and {min(greatest):,.0f} at the slowest width",
        greatest[-1] > 10e6,
    )
    quantiles = points.of("B-INT-QNT")
    yield Finding(
        "B-INT-QNT answers about 22,000 lookups a second at the largest window; we promise 200,000",
        f"{quantiles[-1]:,.0f} a second there, and {min(quantiles):,.0f} at the slowest width",
        quantiles[-1] > 200e3,
    )
    lead = points.lead("R-INT, SUM", "B-INT, MAX")
    yield Finding(
        "R-INT is so far above B-INT that the plot leaves it out", f"at least {lead:.1f} times the rate", lead > 2
    )


FIGURE = Figure(
    title="Resource sharing, figure 11: lookup rates",
    claim="The cost of a lookup, among many at once from stores over arrays, does not depend on the width in R-INT and "
    "L-INT, grows with its logarithm in B-INT and a power of that in B-INT-QNT, and with the width itself on demand",
    paper="N_max = 100,000, windows anywhere within it; R-INT about 10,000,000 lookups a second at every width; "
    "B-INT-QNT about 22,000 at the largest; one after the other on a Pentium III, 700 MHz. We add L-INT and computing "
    "on demand",
    x="W",
    y="lookups a second",
    baseline="R-INT, SUM",
    sizes={
        "smoke": Settings(reach=100, widths=(10, 100), batch=100, seconds=0.001, repeats=1),
        "seconds": Settings(reach=100_000, widths=(10, 1000, 50_000, 100_000), batch=100_000, seconds=0.02, repeats=5),
        "full": Settings(
            reach=100_000,
            widths=(10, 100, 1000, 10_000, 50_000, 90_000, 100_000),
            batch=100_000,
            seconds=0.3,
            repeats=5,
        ),
    },
    measure=measure,
    findings=findings,
    log=frozenset("xy"),
)
