"""REGR_SLOPE, REGR_INTERCEPT and REGR_R2 in arrays.

Over whole x, such as time, sums of x and x*x are exact, and so are those of y and x*y where y is whole. Sums over real
numbers are compensated pairs, and never subtracted.

The answer is within 4 ulps of the exact one, but for what pairs lose: a slope may be off by k**2 * 2**-100 of the
largest |x| times the largest |y| over the variance of x, where k is how many parts a sum has been made of. Where x is
real, the largest |x| and |y| are meant relative to one of the points.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from fractions import Fraction
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from panewise import kernels
from panewise.aggregate.states.base import Int64Array, Items, StateArrays, StateWords
from panewise.aggregate.states.positional import PositionalStates, TierStates

if TYPE_CHECKING:
    from panewise.aggregate.view import LevelView

Float64Array: TypeAlias = npt.NDArray[np.float64]
#: Heads and sums, as `kernels.moments` has them.
Moments: TypeAlias = tuple[StateWords, Float64Array]

_ODD, _X_DIFFERS = 1, 2


class LineProperty(Enum):
    """What may be asked of a line: its slope, its value at some x, and how well it fits."""

    SLOPE, VALUE, FIT = range(3)


@dataclass(frozen=True)
class LineRequest:
    """What is asked of lines. x counts steps of `step` ticks or parts of one; `unit` ticks are one in the answer."""

    asked: LineProperty
    unit: int = 1
    step: Fraction = Fraction(1)

    def answers(self, moments: Moments, at: Int64Array | None = None) -> pa.Array:
        """The answers of many lines; values at 0, or at some number of ticks."""
        heads, sums = moments
        match self.asked:
            case LineProperty.SLOPE:
                found = kernels.line_slopes(heads, sums, float(self.unit / self.step))
            case LineProperty.FIT:
                found = kernels.line_fits(heads, sums)
            case LineProperty.VALUE:
                ticks = np.zeros_like(heads[2]) if at is None else at
                found = kernels.line_values(heads, sums, ticks, self.step.numerator, self.step.denominator)
        found[heads[1] & _ODD > 0] = np.nan
        return pa.array(found + 0.0, mask=heads[1] & (_ODD | _X_DIFFERS) == 0)


class LineStates(StateArrays):
    """Columns whose states are moments of lines."""

    def __init__(self, question: LineRequest) -> None:
        self.request = question

    @abstractmethod
    def moments(self, words: StateWords) -> Moments:
        """States as heads and sums."""

    def lower(self, words: StateWords) -> pa.Array:
        return self.request.answers(self.moments(words))


class IntegerLineStates(LineStates):
    """One word: a row of how many points there are and the digits of the sums of x, x*x, y and x*y.

    They are integers, so that parts can be subtracted.
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

    def moments(self, words: StateWords) -> Moments:
        return _to_moments(words[0], np.zeros(len(words[0]), np.uint8), np.zeros((0, 0)))


class FloatLineStates(LineStates):
    """The same with real y: digits for the sums of x and x*x, whether a point was not finite, pairs for y and x*y."""

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

    def moments(self, words: StateWords) -> Moments:
        return _to_moments(*words)


class AnchoredLineStates(LineStates):
    """Any points: how many, what is known of them, the first of them, and a row of sums relative to it, as pairs."""

    def __init__(self, y: pa.DataType, x: pa.DataType, question: LineRequest) -> None:
        super().__init__(question)
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

    def moments(self, words: StateWords) -> Moments:
        return words[:4], words[4]


class ForecastStates(PositionalStates):
    """The states of a line, integer or float; once settled they also know for which time the line is asked."""

    def __init__(self, lines: LineStates, ahead: int) -> None:
        self.lines, self.ahead, self.exact = lines, ahead, lines.exact

    def identity(self, size: int) -> StateWords:
        return self.lines.identity(size)

    def _gather(self, slots: Int64Array, items: Items, into: StateWords) -> None:
        self.lines._gather(slots, items, into)

    def combine(self, left: StateWords, right: StateWords) -> StateWords:
        return self.lines.combine(left, right)

    def invert(self, whole: StateWords, part: StateWords) -> StateWords:
        return self.lines.invert(whole, part)

    def combine_tiers(self, view: LevelView, tiers: Sequence[TierStates], size: int) -> StateWords:
        words = self.identity(size)
        for tier in tiers:
            words = self.combine(words, tier.total())
        return *words, np.full(size, view.front + self.ahead)

    def lower(self, words: StateWords) -> pa.Array:
        return self.lines.request.answers(self.lines.moments(words[:-1]), words[-1])


def _to_moments(digits: Int64Array, odd: npt.NDArray[np.uint8], pairs: Float64Array) -> Moments:
    with np.errstate(over="ignore"):  # the kernel counts on int64 that wrap around
        moments: Moments = kernels.power_moments(digits, odd, pairs)
    return moments


def is_whole(kind: pa.DataType) -> bool:
    """Whether values are int64 as they stand."""
    return bool(pa.types.is_timestamp(kind) or (pa.types.is_integer(kind) and kind != pa.uint64()))


def _first(values: Int64Array) -> int:
    return int(values[0]) if len(values) else 0


def _are_near(values: Int64Array, origin: int) -> bool:
    """Whether all are less than 2**31 from a number."""
    return bool(len(values)) and int(values.max()) - origin < 2**31 and origin - int(values.min()) < 2**31


def _float64_array(values: pa.Array) -> Float64Array:
    found: Float64Array = values.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
    return found


def _int64_array(values: pa.Array) -> Int64Array:
    if pa.types.is_timestamp(values.type):
        values = values.cast(pa.int64())
    found: Int64Array = values.to_numpy(zero_copy_only=False).astype(np.int64, copy=False)
    return found
