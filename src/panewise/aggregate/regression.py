"""REGR_SLOPE, REGR_INTERCEPT and REGR_R2: the least-squares line through (x, y), by default over time.

Paper: "Multi-granular windows" section IV.B, equations 2 and 3.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import pyarrow as pa

from panewise.aggregate.base import Invertible, Laws, numeric
from panewise.aggregate.columns import Columns
from panewise.aggregate.columns.regression import Anchored, Asked, Real, Whole, fits, intercepts, slopes, whole
from panewise.aggregate.total import nearest

#: Count, sums of x, y, x*x, x*y and y*y over finite points, and how many points were not finite.
State = tuple[int, Fraction, Fraction, Fraction, Fraction, Fraction, int]
_NOTHING: State = (0, Fraction(0), Fraction(0), Fraction(0), Fraction(0), Fraction(0), 0)

#: Numbers from here on count as infinite, smaller ones as zero, so that doubles can hold sums of their squares.
HUGE, TINY = Fraction(2) ** 400, Fraction(2) ** -400


@dataclass(frozen=True)
class Line:
    """A least-squares line: what has been said of its points, exactly."""

    mean_x: Fraction
    mean_y: Fraction
    #: Sums of squares and products around the means.
    xx: Fraction
    xy: Fraction
    yy: Fraction

    @property
    def slope(self) -> Fraction:
        return self.xy / self.xx

    def value(self, x: Fraction) -> Fraction:
        return self.mean_y + self.slope * (x - self.mean_x)

    @property
    def fit(self) -> Fraction:
        """Which share of the variance of y the line explains; a y that does not vary is explained."""
        return self.slope * self.xy / self.yy if self.yy else Fraction(1)


class RegrSlope(Invertible[State]):
    """Algebraic: the line comes from sums, all distributive, so every level of a hierarchy can share them.

    Values are (y, x). With one argument x is the item's time: seconds on timestamps, ticks on integers.
    """

    names = ("REGR_SLOPE",)
    arity = 2
    laws = Laws(invertible=True)

    def result_type(self) -> pa.DataType:
        numeric(self, 0)
        if not pa.types.is_timestamp(self.types[1]):
            numeric(self, 1)
        return pa.float64()

    @property
    def unit(self) -> int:
        """Ticks to the unit of x."""
        return 1_000_000 if pa.types.is_timestamp(self.types[1]) else 1

    def meaning(self, values: Sequence[tuple[Any, Any]]) -> float | None:
        if not all(finite(y) and finite(x) for y, x in values):
            return math.nan
        points = [(plain(y), plain(x) / self.unit) for y, x in values]
        if len({x for _, x in points}) < 2:
            return None
        mean_y, mean_x = sum(y for y, _ in points) / Fraction(len(points)), sum(x for _, x in points) / len(points)
        xx = sum(((x - mean_x) ** 2 for _, x in points), Fraction(0))
        xy = sum(((x - mean_x) * (y - mean_y) for y, x in points), Fraction(0))
        yy = sum(((y - mean_y) ** 2 for y, _ in points), Fraction(0))
        return nearest(self._shaped(Line(Fraction(mean_x), Fraction(mean_y), xx, xy, yy)))

    def identity(self) -> State:
        return _NOTHING

    def lift(self, value: tuple[Any, Any]) -> State:
        y, x = value
        if not (finite(y) and finite(x)):
            return (1, *_NOTHING[1:6], 1)
        fy, fx = plain(y), plain(x) / self.unit
        return 1, fx, fy, fx * fx, fx * fy, fy * fy, 0

    def combine(self, left: State, right: State) -> State:
        (n, x, y, xx, xy, yy, odd), (m, u, v, uu, uv, vv, more) = left, right
        return n + m, x + u, y + v, xx + uu, xy + uv, yy + vv, odd + more

    def invert(self, whole: State, part: State) -> State:
        (n, x, y, xx, xy, yy, odd), (m, u, v, uu, uv, vv, fewer) = whole, part
        return n - m, x - u, y - v, xx - uu, xy - uv, yy - vv, odd - fewer

    def lower(self, state: State) -> float | None:
        count, x, y, xx, xy, yy, odd = state
        if odd:
            return math.nan
        if count < 2 or count * xx == x * x:
            return None
        line = Line(x / count, y / count, xx - x * x / count, xy - x * y / count, yy - y * y / count)
        return nearest(self._shaped(line))

    def columns(self) -> Columns:
        y, x = self.types
        if whole(x) and whole(y):
            return Whole(self._asked())
        if whole(x) and pa.types.is_floating(y):
            return Real(self._asked())
        real = all(whole(kind) or pa.types.is_floating(kind) for kind in self.types)
        return Anchored(y, x, self._asked()) if real else super().columns()

    def _asked(self) -> Asked:
        return slopes(self.unit)

    def _shaped(self, line: Line) -> Fraction:
        return line.slope


class RegrIntercept(RegrSlope):
    """Where the line of REGR_SLOPE meets x = 0."""

    names = ("REGR_INTERCEPT",)

    def _asked(self) -> Asked:
        return intercepts

    def _shaped(self, line: Line) -> Fraction:
        return line.value(Fraction(0))


class RegrR2(RegrSlope):
    """How well the line fits, from 0 to 1: the square of the correlation. 1 where y does not vary, as in SQL."""

    names = ("REGR_R2",)

    def columns(self) -> Columns:
        # A y that does not vary must be told from one that varies little.
        y, x = self.types
        real = all(whole(kind) or pa.types.is_floating(kind) for kind in self.types)
        return Anchored(y, x, fits) if real else super(RegrSlope, self).columns()

    def _shaped(self, line: Line) -> Fraction:
        return line.fit


def finite(value: Any) -> bool:
    """Whether a number counts as finite."""
    return math.isfinite(value) and abs(value) < HUGE


def plain(value: Any) -> Fraction:
    """A finite number as it counts."""
    exact = Fraction(value)
    return exact if abs(exact) >= TINY else Fraction(0)
