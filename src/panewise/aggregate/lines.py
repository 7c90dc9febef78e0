"""The least-squares line through points, exactly: what the aggregates of `regression` and `series` mean.

Paper: "Multi-granular windows" section IV.B, equations 2 to 4.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

#: Numbers from here on count as infinite, smaller ones as zero, so that doubles can hold sums of their squares.
HUGE, TINY = Fraction(2) ** 400, Fraction(2) ** -400


@dataclass(frozen=True)
class Line:
    """A line by the means of its points, and their sums of squares and products around these."""

    mean_x: Fraction
    mean_y: Fraction
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


def fit_line(points: Sequence[tuple[Fraction, Fraction]]) -> Line | None:
    """The line through points (y, x); None where they do not have two different x."""
    if len({x for _, x in points}) < 2:
        return None
    mean_y, mean_x = (sum((point[n] for point in points), Fraction(0)) / len(points) for n in (0, 1))
    xx = sum(((x - mean_x) ** 2 for _, x in points), Fraction(0))
    xy = sum(((x - mean_x) * (y - mean_y) for y, x in points), Fraction(0))
    yy = sum(((y - mean_y) ** 2 for y, _ in points), Fraction(0))
    return Line(mean_x, mean_y, xx, xy, yy)


def is_finite(value: Any) -> bool:
    """Whether a number counts as finite."""
    return math.isfinite(value) and abs(value) < HUGE


def as_fraction(value: Any) -> Fraction:
    """A finite number as it counts."""
    exact = Fraction(value)
    return exact if abs(exact) >= TINY else Fraction(0)
