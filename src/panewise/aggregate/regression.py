"""REGR_SLOPE and REGR_INTERCEPT: the least-squares line through (x, y), by default over time.

Paper: "Multi-granular windows" section IV.B, equations 6 and 7.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import pyarrow as pa

from panewise.aggregate.base import Invertible, Laws, numeric
from panewise.aggregate.total import nearest

#: Count, sums of x, y, x*x and x*y over finite points, and how many points were not finite.
State = tuple[int, Fraction, Fraction, Fraction, Fraction, int]


class RegrSlope(Invertible[State]):
    """Algebraic: the line comes from five sums, all distributive, so every level of a hierarchy can share them.

    Values are (y, x). With one argument x is the item's time: seconds on timestamps, ticks on integers.
    """

    names = ("REGR_SLOPE",)
    arity = 2
    laws = Laws(invertible=True)

    def result_type(self) -> pa.DataType:
        numeric(self, 0)
        numeric(self, 1)
        return pa.float64()

    def meaning(self, values: Sequence[tuple[Any, Any]]) -> float | None:
        if not all(math.isfinite(y) and math.isfinite(x) for y, x in values):
            return math.nan
        points = [(Fraction(y), Fraction(x)) for y, x in values]
        count = len(points)
        if count < 2 or len({x for _, x in points}) < 2:
            return None
        mean_y, mean_x = sum(y for y, _ in points) / Fraction(count), sum(x for _, x in points) / Fraction(count)
        slope = sum((x - mean_x) * y for y, x in points) / sum((x - mean_x) * x for _, x in points)
        return self._shaped(Fraction(slope), mean_x, mean_y)

    def identity(self) -> State:
        return 0, Fraction(0), Fraction(0), Fraction(0), Fraction(0), 0

    def lift(self, value: tuple[Any, Any]) -> State:
        y, x = value
        if not (math.isfinite(y) and math.isfinite(x)):
            return 1, Fraction(0), Fraction(0), Fraction(0), Fraction(0), 1
        fy, fx = Fraction(y), Fraction(x)
        return 1, fx, fy, fx * fx, fx * fy, 0

    def combine(self, left: State, right: State) -> State:
        (n, x, y, xx, xy, odd), (m, u, v, uu, uv, more) = left, right
        return n + m, x + u, y + v, xx + uu, xy + uv, odd + more

    def invert(self, whole: State, part: State) -> State:
        (n, x, y, xx, xy, odd), (m, u, v, uu, uv, fewer) = whole, part
        return n - m, x - u, y - v, xx - uu, xy - uv, odd - fewer

    def lower(self, state: State) -> float | None:
        count, x, y, xx, xy, odd = state
        if odd:
            return math.nan
        if count < 2 or count * xx == x * x:
            return None
        return self._shaped((count * xy - x * y) / (count * xx - x * x), x / count, y / count)

    def _shaped(self, slope: Fraction, mean_x: Fraction, mean_y: Fraction) -> float:
        return nearest(slope)


class RegrIntercept(RegrSlope):
    """Where the line of REGR_SLOPE meets x = 0."""

    names = ("REGR_INTERCEPT",)

    def _shaped(self, slope: Fraction, mean_x: Fraction, mean_y: Fraction) -> float:
        return nearest(mean_y - slope * mean_x)
