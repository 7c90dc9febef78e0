"""Compensated float sums: a double and its rounding error, with specials counted aside.

The error of a pair does not grow with the number of additions or subtractions, and NaN or infinity can leave again.
"""

from __future__ import annotations

import math
from typing import NamedTuple


class Pair(NamedTuple):
    """`high + low` is the sum of the finite values; NaN and infinities are only counted."""

    high: float = 0.0
    low: float = 0.0
    nans: int = 0
    ups: int = 0
    downs: int = 0


def lift(value: float) -> Pair:
    if math.isfinite(value):
        return Pair(value)
    return Pair(nans=1) if math.isnan(value) else Pair(ups=1) if value > 0 else Pair(downs=1)


def add(a: Pair, b: Pair) -> Pair:
    return Pair(*_plus(a, b.high, b.low), a.nans + b.nans, a.ups + b.ups, a.downs + b.downs)


def subtract(a: Pair, b: Pair) -> Pair:
    return Pair(*_plus(a, -b.high, -b.low), a.nans - b.nans, a.ups - b.ups, a.downs - b.downs)


def value(pair: Pair) -> float:
    if pair.nans or (pair.ups and pair.downs):
        return math.nan
    if pair.ups or pair.downs:
        return math.inf if pair.ups else -math.inf
    return pair.high + pair.low


def _plus(a: Pair, high: float, low: float) -> tuple[float, float]:
    """Accurate double-double addition; an overflow stays infinite instead of turning into NaN."""
    s, e = _two_sum(a.high, high)
    if math.isinf(s):
        return s, 0.0
    t, f = _two_sum(a.low, low)
    s, e = _two_sum(s, e + t)
    return _two_sum(s, e + f)


def _two_sum(a: float, b: float) -> tuple[float, float]:
    s = a + b
    if math.isinf(s):
        return s, 0.0
    shadow = s - a
    return s, (a - (s - shadow)) + (b - shadow)
