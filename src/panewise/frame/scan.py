"""Scan statistics: how likely it is that as many items lie in one stretch of time by chance alone.

Naus, "Approximations for distributions of scan statistics", JASA 77 (1982), for a Poisson process: exact where the
whole lasts two or three stretches, extrapolated from these two beyond.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import accumulate
from math import exp, lgamma, log


def scan_chance(count: int, mean: float, windows: float) -> float:
    """The chance that some stretch holds at least `count` items, where a stretch holds `mean` on average.

    `windows`: how many stretches long the whole is, at least two; stretches may begin anywhere in it. What is less
    likely than about 1e-15 may come out as zero. Takes time proportional to `count`, once for each count and mean.

    >>> round(scan_chance(2, 0.5, 2.0), 6)  # 1 - exp(-1) (1 + 1 + 1/8)
    0.218256
    """
    if count < 1:
        return 1.0
    if mean > 1e6 * count:
        return 1.0  # there is always such a stretch, and the terms below would overflow
    two, three = _quiet_chances(count, mean)
    if two <= 0 or three <= 0:
        # If such a stretch is almost certain, the probability of none is smaller than the rounding errors of its terms.
        return 1.0
    quiet: float = two * (three / two) ** (windows - 2)
    return min(1.0, max(0.0, 1 - quiet))


@lru_cache(maxsize=1 << 12)
def _quiet_chances(count: int, mean: float) -> tuple[float, float]:
    """The chances of no such stretch where the whole is two stretches long, and where it is three."""
    poisson = _Poisson(mean, 2 * count)
    return _quiet_chance_two(count, poisson), _quiet_chance_three(count, poisson)


class _Poisson:
    """Probabilities of a Poisson distribution up to some number; there is nothing below zero."""

    def __init__(self, mean: float, top: int) -> None:
        self.mean = mean
        self._exactly = [exp(n * log(mean) - mean - lgamma(n + 1)) for n in range(top + 1)]
        self._at_most = list(accumulate(self._exactly))

    def exactly(self, number: int) -> float:
        return self._exactly[number] if number >= 0 else 0.0

    def at_most(self, number: int) -> float:
        return self._at_most[number] if number >= 0 else 0.0


def _quiet_chance_two(k: int, poisson: _Poisson) -> float:
    """The chance that no stretch has k items where the whole is two stretches long: Q2 of the paper."""
    p, f = poisson.exactly, poisson.at_most
    return f(k - 1) ** 2 - (k - 1) * p(k) * p(k - 2) - (k - 1 - poisson.mean) * p(k) * f(k - 3)


def _quiet_chance_three(k: int, poisson: _Poisson) -> float:
    """The same for three stretches: Q3, of whose terms A1 to A4 are named below."""
    p, f, mean = poisson.exactly, poisson.at_most, poisson.mean
    a1 = 2 * p(k) * f(k - 1) * ((k - 1) * f(k - 2) - mean * f(k - 3))
    a2 = p(k) ** 2 / 2 * ((k - 1) * (k - 2) * f(k - 3) - 2 * (k - 2) * mean * f(k - 4) + mean**2 * f(k - 5))
    a3 = sum(p(2 * k - r) * f(r - 1) ** 2 for r in range(1, k))
    a4 = sum(p(2 * k - r) * p(r) * ((r - 1) * f(r - 2) - mean * f(r - 3)) for r in range(2, k))
    return f(k - 1) ** 3 - a1 + a2 + a3 - a4
