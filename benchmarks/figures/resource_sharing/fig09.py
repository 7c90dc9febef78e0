""" "Resource sharing" figure 9: stores under every mixture of updates and lookups.

Inputs come in batches: the updates of a batch are appended together, then its lookups are asked together. What the
paper compares with is compiled in the same way and takes the same batches.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from benchmarks.figures.resource_sharing.baselines import Baseline, MaterialiseAll, MaterialiseNone, SearchTree
from benchmarks.harness.figure import Figure, Finding, Points, Row
from benchmarks.harness.timing import rate
from panewise.aggregate import StateArrays, Sum
from panewise.stores.arrays import ArrayStore, BaseArrays, RunningArrays


@dataclass(frozen=True)
class Settings:
    operators: int
    shares: tuple[float, ...]
    batch: int
    seconds: float
    repeats: int


SERIES: dict[str, Callable[[StateArrays, int], ArrayStore | Baseline]] = {
    "R-INT": RunningArrays,
    "B-INT": BaseArrays,
    "PSoup": SearchTree,
    "materialise all": MaterialiseAll,
    "materialise none": MaterialiseNone,
}


def measure(settings: Settings) -> Iterator[Row]:
    for name, build in SERIES.items():
        store = build(Sum(pa.int64()).state_arrays(), settings.operators)
        for share in settings.shares:
            work = mixture(store, share, settings)
            work(2 * settings.operators)
            yield Row(name, share, rate(work, settings.seconds, settings.repeats, least=settings.batch))


def mixture(store: ArrayStore | Baseline, share: float, settings: Settings) -> Callable[[int], None]:
    """Inputs of which a share are updates and the others lookups of one of the operators, all equally likely."""
    random, updates = np.random.default_rng(9), round(share * settings.batch)
    words = (np.ones(updates, np.int64), np.zeros(updates, np.int64), random.integers(0, 1000, updates))
    widths = random.integers(1, settings.operators + 1, settings.batch - updates)
    filling = tuple(np.ones(settings.operators, np.int64) for _ in words)
    store.append(filling)

    def work(count: int) -> None:
        for _ in range(-(-count // settings.batch)):
            if len(words[0]):
                store.append(words)
            if len(widths):
                store.lookup(store.length - widths + 1, np.full(len(widths), store.length))

    return work


def findings(points: Points) -> Iterator[Finding]:
    everything, nothing = points.growth("materialise all"), points.growth("materialise none")
    yield Finding(
        "Full materialisation is good while updates are few and deteriorates quickly",
        f"its rate falls by a factor of {1 / everything:,.0f} from lookups only to updates only",
        everything < 0.1,
    )
    yield Finding(
        "Computing on demand is good while lookups are few and deteriorates quickly",
        f"its rate falls by a factor of {nothing:,.0f} from updates only to lookups only",
        nothing > 10,
    )
    swings = {name: points.swing(name) for name in ("R-INT", "B-INT", "PSoup")}
    yield Finding(
        "R-INT, B-INT and PSoup stay fairly stable over all mixtures",
        "best over worst rate: " + ", ".join(f"{name} {swing:.1f}" for name, swing in swings.items()),
        max(swings.values()) < min(1 / everything, nothing) / 2,
    )
    ahead = min(points.lead("R-INT", other) for other in ("B-INT", "PSoup"))
    yield Finding("R-INT is ahead of both", f"it has at least {ahead:.1f} times their rate", ahead > 1)
    ratios = [b / p for b, p in zip(points.of("B-INT"), points.of("PSoup"), strict=True)]
    yield Finding(
        "B-INT and PSoup are alike without updates",
        f"B-INT runs at {ratios[0]:.2f} times the rate of PSoup",
        0.5 < ratios[0] < 2.5,
    )
    yield Finding(
        "With more updates PSoup falls and B-INT gains",
        f"from lookups only to updates only, B-INT changes by {points.growth('B-INT'):.2f} and PSoup by "
        f"{points.growth('PSoup'):.2f}; with updates only B-INT has {ratios[-1]:.1f} times its rate",
        points.growth("B-INT") > 1 and ratios[-1] > ratios[0],
    )


FIGURE = Figure(
    title="Resource sharing, figure 9: mixtures of updates and lookups",
    claim="R-INT and B-INT over arrays keep their rate under every mixture of updates and lookups in batches, while "
    "keeping all answers or none, compiled alike, collapses at one end",
    paper="1000 operators, SUM over the last 0 to 999 tuples, one of them picked at random for each lookup, one input "
    "after the other; PSoup on a red-black tree; Pentium III, 700 MHz. Only the shapes can be read from the text, the "
    "curves have no numbers in it",
    x="share of updates",
    y="inputs a second",
    baseline="PSoup",
    sizes={
        "smoke": Settings(operators=50, shares=(0.0, 0.5, 1.0), batch=10, seconds=0.001, repeats=1),
        "seconds": Settings(operators=1000, shares=(0.0, 0.1, 0.5, 0.9, 1.0), batch=1000, seconds=0.02, repeats=5),
        "full": Settings(operators=1000, shares=tuple(n / 10 for n in range(11)), batch=1000, seconds=0.3, repeats=5),
    },
    measure=measure,
    findings=findings,
    log=frozenset("y"),
)
