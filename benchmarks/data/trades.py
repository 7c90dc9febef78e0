"""One trading day of trades by symbol, and standing questions about the busiest symbols."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from benchmarks.data.streams import Longs

MINUTE = 60_000  # milliseconds
DAY = 390 * MINUTE
SHORTEST, LONGEST = 15 * MINUTE, 180 * MINUTE


@dataclass(frozen=True)
class Questions:
    """Which symbols had more trades than a threshold in the last so long?"""

    lengths: Longs
    thresholds: Longs


class Trades:
    """Trades of one day after another, in batches; the same day is repeated.

    The rates of symbols are lognormal: the busiest twentieth has most of the trades. Within a day rates are constant,
    so that thresholds keep their selectivity. Codes are given in the order in which symbols appear.
    """

    def __init__(self, symbols: int, trades: int, seed: int = 12) -> None:
        rng = np.random.default_rng(seed)
        rates = rng.lognormal(0, 1.7, symbols)
        drawn = rng.choice(symbols, trades, p=rates / rates.sum())
        _, first, back = np.unique(drawn, return_index=True, return_inverse=True)
        self.codes: Longs = np.argsort(np.argsort(first))[back].astype(np.int64)
        self.times: Longs = np.sort(rng.integers(0, DAY, trades))
        self.symbols, self._rng = symbols, rng

    def batches(self, size: int) -> Iterator[tuple[Longs, Longs]]:
        """Codes and times of a batch, without end."""
        day = 0
        while True:
            for start in range(0, len(self.codes) - size + 1, size):
                yield self.codes[start : start + size], self.times[start : start + size] + day
            day += DAY

    def questions(self, count: int) -> Questions:
        """Windows of 15 minutes to 3 hours, and thresholds that 3 to 5 of 100 symbols pass in the middle of the day."""
        lengths = self._rng.integers(SHORTEST, LONGEST, count)
        shares = self._rng.uniform(0.03, 0.05, count)
        noon, last = DAY * 3 // 5, np.searchsorted(self.times, DAY * 3 // 5, side="right")
        thresholds = []
        for length, share in zip(lengths.tolist(), shares.tolist(), strict=True):
            first = np.searchsorted(self.times, noon - length, side="right")
            counts = np.bincount(self.codes[first:last], minlength=self.symbols)
            thresholds.append(int(np.sort(counts)[-1 - int(share * self.symbols)]))
        return Questions(lengths, np.array(thresholds, np.int64))
