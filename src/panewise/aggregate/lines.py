"""The least-squares line through points, for the aggregates of `regression` and `series`: exactly, and in arrays.

Paper: "Multi-granular windows" section IV.B, equations 2 to 4. `Line` is exact and is the definition; states in arrays
approximate it.

Over whole x, such as time, sums of x and x*x are exact, and so are those of y and x*y where y is whole. Sums over real
numbers are compensated pairs, and never subtracted.

The answer is within 4 ulps of the exact one, apart from the rounding of pairs: a slope may be off by k**2 * 2**-100 of
the largest |x| times the largest |y| over the variance of x, where k is the number of parts of a sum. Where x is real,
the largest |x| and |y| are relative to one of the points.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from panewise import kernels
from panewise.aggregate.moving import MovingRanges
from panewise.aggregate.ordering import fits_int64, to_longs
from panewise.aggregate.states import Int64Array, Items, SolvedStates, StateArrays, StateWords, states_at

Float64Array: TypeAlias = npt.NDArray[np.float64]
#: Heads and sums, as `kernels.line_points` makes them.
Moments: TypeAlias = tuple[StateWords, Float64Array]

_ODD, _X_DIFFERS = 1, 2
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
        """The share of the variance of y that the line explains; 1 if y does not vary."""
        return self.slope * self.xy / self.yy if self.yy else Fraction(1)


def fit_line(points: Sequence[tuple[Fraction, Fraction]]) -> Line | None:
    """The line through points (y, x); None if there are not two different x."""
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
    """A finite number as a fraction; zero if it counts as zero."""
    exact = Fraction(value)
    return exact if abs(exact) >= TINY else Fraction(0)


class LineProperty(Enum):
    """What may be asked of a line: its slope, its value at some x, and how well it fits."""

    SLOPE, VALUE, FIT = range(3)


@dataclass(frozen=True)
class LineRequest:
    """What is asked of lines. x counts steps of `step` ticks; `unit` ticks are one in the answer.

    y counts parts, of which `parts` make one.
    """

    asked: LineProperty
    unit: int = 1
    step: Fraction = Fraction(1)
    parts: int = 1

    @property
    def scale(self) -> float:
        """How many steps are one in the answer."""
        return float(self.unit / self.step)

    def solve(self, moments: Moments, at: Int64Array | None = None) -> StateWords:
        """The answers of many lines, and where there is no line; a value of a line is that at 0, or at given ticks."""
        heads, sums = moments
        match self.asked:
            case LineProperty.SLOPE:
                found = kernels.line_slopes(heads, sums, self.scale)
            case LineProperty.FIT:
                found = kernels.line_fits(heads, sums)
            case LineProperty.VALUE:
                ticks = np.zeros_like(heads[2]) if at is None else at
                found = kernels.line_values(heads, sums, ticks, self.step.numerator, self.step.denominator)
        if self.parts != 1 and self.asked is not LineProperty.FIT:
            found = found / self.parts
        found[heads[1] & _ODD > 0] = np.nan
        return found + 0.0, heads[1] & (_ODD | _X_DIFFERS) == 0


class LineStates(SolvedStates):
    """States that are moments of lines."""

    def __init__(self, request: LineRequest) -> None:
        self.request = request

    @abstractmethod
    def moments(self, words: StateWords) -> Moments:
        """States as heads and sums."""

    def solve(self, words: StateWords) -> StateWords:
        return self.request.solve(self.moments(words))


class IntegerLineStates(LineStates):
    """One word: a row of how many points there are and the digits of the sums of x, x*x, y and x*y.

    All are integers, so that parts can be subtracted.
    """

    exact = True

    def identity(self, size: int) -> StateWords:
        return (np.zeros((size, 13), np.int64),)

    def _gather(self, slots: Int64Array, items: Items, into: StateWords) -> None:
        y, x = map(_int64_array, items.arguments)
        if _are_near(x, origin := _first(x)) and _are_near(y, 0):
            kernels.power_whole_near(slots, x, y, origin, into[0])
        else:
            kernels.power_whole(slots, x, y, into[0])

    def combine(self, left: StateWords, right: StateWords) -> StateWords:
        return (left[0] + right[0],)

    def invert(self, whole: StateWords, part: StateWords) -> StateWords:
        return (whole[0] - part[0],)

    def moving_answers(self, items: Items, ranges: MovingRanges) -> tuple[StateArrays, StateWords] | None:
        present = items.present()
        if self.request.asked is LineProperty.SLOPE:
            known = items if present is None else items.take(present)
            y, x = (np.zeros(len(items), np.int64) for _ in range(2))
            there = np.ones(len(items), bool) if present is None else present
            y[there], x[there] = map(_int64_array, known.arguments)
            found, missing, done = kernels.range_slopes(x, y, there, (ranges.low, ranges.high), self.request.scale)
            if done:
                return self, (found / self.request.parts, missing)
        return self, self._differences(items, ranges)

    def _differences(self, items: Items, ranges: MovingRanges) -> StateWords:
        return (_range_sums(self.gather(np.arange(len(items)), items, len(items))[0], ranges),)

    def running_answers(
        self, items: Items, ranges: MovingRanges, before: StateWords
    ) -> tuple[StateArrays, StateWords] | None:
        return self, self.combine(states_at(before, ranges.groups), self._differences(items, ranges))

    def moments(self, words: StateWords) -> Moments:
        return _to_moments(words[0], np.zeros(len(words[0]), np.uint8), np.zeros((0, 0)))


class FloatLineStates(LineStates):
    """For real y: digits for the sums of x and x*x, whether a point was not finite, and pairs for y and x*y."""

    def identity(self, size: int) -> StateWords:
        return np.zeros((size, 7), np.int64), np.zeros(size, np.uint8), np.zeros((size, 4))

    def _gather(self, slots: Int64Array, items: Items, into: StateWords) -> None:
        y, x = _float64_array(items.arguments[0]), _int64_array(items.arguments[1])
        if _are_near(x, origin := _first(x)):
            kernels.power_real_near(slots, x, y, origin, *into)
        else:
            kernels.power_real(slots, x, y, *into)

    def combine(self, left: StateWords, right: StateWords) -> StateWords:
        return left[0] + right[0], left[1] | right[1], kernels.power_add(left[2], right[2])

    def moving_answers(self, items: Items, ranges: MovingRanges) -> tuple[StateArrays, StateWords] | None:
        digits, odd, pairs = self.gather(np.arange(len(items)), items, len(items))
        strange = _range_sums(odd.astype(np.int64), ranges) > 0
        pairs = kernels.power_ranges(pairs, ranges.low, ranges.high, ranges.middle)
        return self, (_range_sums(digits, ranges), strange.astype(np.uint8), pairs)

    def moments(self, words: StateWords) -> Moments:
        return _to_moments(*words)


class AnchoredLineStates(LineStates):
    """For any points: how many, their marks, the first of them, and a row of sums relative to it, as pairs."""

    def __init__(self, y: pa.DataType, x: pa.DataType, request: LineRequest) -> None:
        super().__init__(request)
        self.kinds = x, y

    def identity(self, size: int) -> StateWords:
        anchors = (np.zeros(size, np.float64 if pa.types.is_floating(kind) else np.int64) for kind in self.kinds)
        return np.zeros(size, np.int64), np.zeros(size, np.uint8), *anchors, np.zeros((size, 10))

    def _gather(self, slots: Int64Array, items: Items, into: StateWords) -> None:
        y, x = (_float64_array(a) if pa.types.is_floating(a.type) else _int64_array(a) for a in items.arguments)
        kernels.line_points(slots, x, y, into[:4], into[4])

    def combine(self, left: StateWords, right: StateWords) -> StateWords:
        heads, sums = kernels.line_combine(left[:4], left[4], right[:4], right[4])
        return *heads, sums

    def moving_answers(self, items: Items, ranges: MovingRanges) -> tuple[StateArrays, StateWords] | None:
        *heads, sums = self.gather(np.arange(len(items)), items, len(items))
        found, sums = kernels.line_ranges(tuple(heads), sums, ranges.low, ranges.high, ranges.middle)
        return self, (*found, sums)

    def moments(self, words: StateWords) -> Moments:
        return words[:4], words[4]


def _range_sums(rows: Int64Array, ranges: MovingRanges) -> Int64Array:
    """The sums of ranges of rows as differences of one running sum, which may wrap around."""
    totals = np.zeros((len(rows) + 1, *rows.shape[1:]), np.int64)
    np.cumsum(rows, axis=0, out=totals[1:])
    found: Int64Array = totals.take(ranges.high, axis=0) - totals.take(ranges.low, axis=0)
    return found


def _to_moments(digits: Int64Array, odd: npt.NDArray[np.uint8], pairs: Float64Array) -> Moments:
    with np.errstate(over="ignore"):  # the kernel needs int64 that wrap around
        moments: Moments = kernels.power_moments(digits, odd, pairs)
    return moments


def is_whole(kind: pa.DataType) -> bool:
    """Whether int64 holds values of a type: integers, timestamps and decimals of up to 18 digits."""
    number = pa.types.is_timestamp(kind) or (pa.types.is_integer(kind) and kind != pa.uint64())
    return bool(number or (pa.types.is_decimal(kind) and fits_int64(kind)))


def parts_of(kind: pa.DataType) -> int:
    """How many of the units that int64 counts make one: those of decimals are their last digits."""
    return 10**kind.scale if pa.types.is_decimal(kind) and is_whole(kind) else 1


def _first(values: Int64Array) -> int:
    return int(values[0]) if len(values) else 0


def _are_near(values: Int64Array, origin: int) -> bool:
    """Whether there are values, and all are less than 2**31 from a number."""
    return bool(len(values)) and int(values.max()) - origin < 2**31 and origin - int(values.min()) < 2**31


def _float64_array(values: pa.Array) -> Float64Array:
    found: Float64Array = values.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
    return found


def _int64_array(values: pa.Array) -> Int64Array:
    if pa.types.is_decimal(values.type):
        return to_longs(values)
    if pa.types.is_timestamp(values.type):
        values = values.cast(pa.int64())
    found: Int64Array = values.to_numpy(zero_copy_only=False).astype(np.int64, copy=False)
    return found
