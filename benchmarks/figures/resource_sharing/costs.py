""" "Resource sharing" figure 1, the table of costs of window aggregates, as measured curves.

Each curve lets one of W, N_max and gamma grow and says by which factor a cost has grown since its smallest value: the
time of an update or of a lookup, or the memory. Updates come in batches of one size, lookups ask for many windows at
once. W and N_max begin at a thousand, gamma at one partition of widths. The lower half of the table, substream
filters, is measured elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import log2
from typing import TypeAlias

import numpy as np
import pyarrow as pa

from benchmarks.harness.figure import Figure, Finding, Points, Row
from benchmarks.harness.timing import rate
from panewise.aggregate import Max, StateWords, Sum
from panewise.stores.arrays import ArrayStore, BaseArrays, LandmarkArrays, QuantileArrays, RunningArrays

START = 1000
#: From the factor by which a parameter has grown to a cost.
Cost: TypeAlias = Callable[[int], float]


@dataclass(frozen=True)
class Settings:
    factors: tuple[int, ...]
    partitions: tuple[int, ...]
    batch: int
    windows: int
    seconds: float
    repeats: int


@dataclass(frozen=True)
class Costs:
    """What is measured of each store."""

    settings: Settings

    def running(self, reach: int) -> tuple[ArrayStore, StateWords]:
        ones = np.ones(self.settings.batch, np.int64)
        return RunningArrays(Sum(pa.int64()).state_arrays(), reach), (ones, 0 * ones, self._values())

    def base(self, reach: int) -> tuple[ArrayStore, StateWords]:
        words = (self._values(), np.ones(self.settings.batch, bool))
        return BaseArrays(Max(pa.int64()).state_arrays(), reach), words

    def landmarks(self, gamma: int) -> tuple[LandmarkArrays, StateWords]:
        """Widths of which each is a quarter of the one before, so that each needs a partition of its own."""
        reach = START * self.settings.factors[-1]
        widths = [max(reach >> 2 * part, 1) for part in range(gamma)]
        words = (self._values(), np.ones(self.settings.batch, bool))
        return LandmarkArrays(Max(pa.int64()).state_arrays(), reach, widths=widths), words

    def update(self, store: ArrayStore, words: StateWords) -> float:
        fill(store, words)
        return self._time(lambda: store.append(words))

    def update_quantiles(self, reach: int) -> float:
        store, ones, values = QuantileArrays(reach), np.ones(self.settings.batch, np.int64), self._values()
        for _ in range(-(-2 * reach // self.settings.batch)):
            store.append(ones, values)
        return self._time(lambda: store.append(ones, values))

    def lookup(self, store: ArrayStore, words: StateWords, widths: list[int]) -> float:
        fill(store, words)
        random = np.random.default_rng(1)
        wide = random.choice(widths, self.settings.windows)
        lasts = random.integers(store.forgotten_until + wide, store.length + 1)
        return self._time(lambda: store.lookup(lasts - wide + 1, lasts))

    def lookup_quantiles(self, width: int) -> float:
        reach, random = START * self.settings.factors[-1], np.random.default_rng(1)
        store = QuantileArrays(reach)
        store.append(np.ones(reach, np.int64), random.integers(0, 10**6, reach))
        lasts, ranks = random.integers(width, reach + 1, 1000), random.integers(1, width + 1, 1000)
        return self._time(lambda: store.select(lasts - width + 1, lasts, ranks))

    def quantile_space(self, reach: int) -> float:
        store = QuantileArrays(reach)
        store.append(np.ones(reach, np.int64), np.arange(reach))
        return float(store.nbytes)

    def _values(self) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
        return np.random.default_rng(1).integers(0, 10**6, self.settings.batch)

    def _time(self, call: Callable[[], object]) -> float:
        """Seconds of a call, the median of some repeats; the first one compiles."""
        call()

        def work(count: int) -> None:
            for _ in range(count):
                call()

        return 1 / rate(work, self.settings.seconds, self.settings.repeats)


def fill(store: ArrayStore, words: StateWords) -> ArrayStore:
    while store.length < 2 * store.reach:
        store.append(words)
    return store


def curves(settings: Settings) -> dict[str, tuple[tuple[int, ...], Cost]]:
    """By name, the factors of its parameter and the cost at each."""
    costs, reach, by, gamma = Costs(settings), START * settings.factors[-1], settings.factors, settings.partitions

    def landmark_lookup(parts: int) -> float:
        store, words = costs.landmarks(parts)
        return costs.lookup(store, words, [part.widest for part in store.partitions])

    return {
        "R-INT update, N_max": (by, lambda n: costs.update(*costs.running(START * n))),
        "R-INT lookup, W": (by, lambda n: costs.lookup(*costs.running(reach), [START * n])),
        "R-INT space, N_max": (by, lambda n: fill(*costs.running(START * n)).nbytes),
        "B-INT update, N_max": (by, lambda n: costs.update(*costs.base(START * n))),
        "B-INT lookup, W": (by, lambda n: costs.lookup(*costs.base(reach), [START * n])),
        "B-INT space, N_max": (by, lambda n: fill(*costs.base(START * n)).nbytes),
        "L-INT update, gamma": (gamma, lambda n: costs.update(*costs.landmarks(n))),
        "L-INT lookup, gamma": (gamma, landmark_lookup),
        "L-INT space, gamma": (gamma, lambda n: fill(*costs.landmarks(n)).nbytes),
        "B-INT-QNT update, N_max": (by, lambda n: costs.update_quantiles(START * n)),
        "B-INT-QNT lookup, W": (by, lambda n: costs.lookup_quantiles(START * n)),
        "B-INT-QNT space, N_max": (by, lambda n: costs.quantile_space(START * n)),
    }


def measure(settings: Settings) -> Iterator[Row]:
    for name, (factors, cost) in curves(settings).items():
        first = cost(factors[0])
        yield Row(name, factors[0], 1.0)
        for factor in factors[1:]:
            yield Row(name, factor, cost(factor) / first)


def log_growth(factor: float) -> float:
    return log2(START * factor) / log2(START)


#: What the table says of each curve: the bound in its words, and the growth that it allows.
TABLE: dict[str, tuple[str, Callable[[float], float]]] = {
    "R-INT update, N_max": ("O(1)", lambda n: 1),
    "R-INT lookup, W": ("O(1)", lambda n: 1),
    "R-INT space, N_max": ("O(N_max)", lambda n: n),
    "B-INT update, N_max": ("O(1)", lambda n: 1),
    "B-INT lookup, W": ("O(log W)", log_growth),
    "B-INT space, N_max": ("O(N_max)", lambda n: n),
    "L-INT update, gamma": ("O(gamma)", lambda n: n),
    "L-INT lookup, gamma": ("O(1)", lambda n: 1),
    "L-INT space, gamma": ("O(gamma N_max)", lambda n: n),
    "B-INT-QNT update, N_max": ("O(log N_max)", log_growth),
    "B-INT-QNT lookup, W": (
        "O(log^2 W log log W)",
        lambda n: log_growth(n) ** 2 * log2(log2(START * n)) / log2(log2(START)),
    ),
    "B-INT-QNT space, N_max": ("O(N_max log N_max)", lambda n: n * log_growth(n)),
}


def findings(points: Points) -> Iterator[Finding]:
    for name, (bound, allowed) in TABLE.items():
        grown = float([row.x for row in points.rows if row.series == name][-1])
        cost = points.of(name)[-1]
        what, _, parameter = name.partition(", ")
        yield Finding(
            f"{what} {bound}",
            f"{parameter} grows by a factor of {grown:,.0f}, the cost by {cost:.2f}; the bound by {allowed(grown):.2f}",
            cost < 2.5 * allowed(grown),
        )


FIGURE = Figure(
    title="Resource sharing, figure 1: the costs of window aggregates",
    claim="Updates, lookups and memory of the stores over arrays grow no faster with W, N_max and gamma than the "
    "table of the paper says",
    paper="Update, lookup and space: R-INT O(1), O(1), O(N_max); B-INT O(1), O(log W), O(N_max); L-INT O(gamma), O(1), "
    "O(gamma N_max); quantiles in base intervals O(log N_max), O(log^2 W log log W), O(N_max log N_max). The costs of "
    "updates are amortised",
    x="growth of the parameter",
    y="growth of the cost",
    baseline="R-INT lookup, W",
    sizes={
        "smoke": Settings(factors=(1, 2), partitions=(1, 2), batch=500, windows=500, seconds=0.001, repeats=1),
        "seconds": Settings(
            factors=(1, 4, 16, 64), partitions=(1, 2, 4), batch=1000, windows=20_000, seconds=0.01, repeats=5
        ),
        "full": Settings(
            factors=(1, 4, 16, 64, 128), partitions=(1, 2, 4, 8), batch=1000, windows=20_000, seconds=0.2, repeats=5
        ),
    },
    measure=measure,
    findings=findings,
    log=frozenset("xy"),
)
