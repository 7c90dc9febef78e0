"""REGR_SLOPE, REGR_INTERCEPT and REGR_R2 in arrays.

Over whole x, such as time, sums of x and x*x are exact, and so are those of y and x*y where y is whole. Sums over real
numbers are compensated pairs, and never subtracted.

The answer is within 4 ulps of the exact one, but for what pairs lose: a slope may be off by k**2 * 2**-100 of the
largest |x| times the largest |y| over the variance of x, where k is how many parts a sum has been made of. Where x is
real, the largest |x| and |y| are meant relative to one of the points.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from panewise import kernels
from panewise.aggregate.columns.base import Columns, Items, Longs, Words

Answers: TypeAlias = npt.NDArray[np.float64]
#: What is asked of lines, given the heads and sums of `kernels.moments`.
Asked: TypeAlias = Callable[[Words, Answers], Answers]

_ODD, _X_DIFFERS = 1, 2


def slopes(unit: int) -> Asked:
    """How much y grows from one x to the next, `unit` of which are one."""
    return lambda heads, sums: kernels.line_slopes(heads, sums, float(unit))  # type: ignore[no-any-return]


def intercepts(heads: Words, sums: Answers) -> Any:
    """Where lines are at x = 0."""
    return kernels.line_values(heads, sums, np.zeros_like(heads[2]))


def fits(heads: Words, sums: Answers) -> Any:
    """Which share of the variance of y lines explain."""
    return kernels.line_fits(heads, sums)


class Whole(Columns):
    """One word: a row of how many points there are and the digits of the sums of x, x*x, y and x*y.

    They are integers, so that parts can be subtracted.
    """

    exact = True

    def __init__(self, asked: Asked) -> None:
        self.asked = asked

    def identity(self, size: int) -> Words:
        return (np.zeros((size, 13), np.int64),)

    def _gather(self, slots: Longs, items: Items, into: Words) -> None:
        y, x = map(_longs, items.arguments)
        if _near(x, origin := _first(x)) and _near(y, 0):
            kernels.power_whole_near(slots, x, y, origin, into[0])
        else:
            kernels.power_whole(slots, x, y, into[0])

    def combine(self, left: Words, right: Words) -> Words:
        return (left[0] + right[0],)

    def invert(self, whole: Words, part: Words) -> Words:
        return (whole[0] - part[0],)

    def lower(self, words: Words) -> pa.Array:
        return _lowered(self.asked, words[0], np.zeros(len(words[0]), np.uint8), np.zeros((0, 0)))


class Real(Columns):
    """The same with real y: digits for the sums of x and x*x, whether a point was not finite, pairs for y and x*y."""

    def __init__(self, asked: Asked) -> None:
        self.asked = asked

    def identity(self, size: int) -> Words:
        return np.zeros((size, 7), np.int64), np.zeros(size, np.uint8), np.zeros((size, 4))

    def _gather(self, slots: Longs, items: Items, into: Words) -> None:
        y, x = _doubles(items.arguments[0]), _longs(items.arguments[1])
        if _near(x, origin := _first(x)):
            kernels.power_real_near(slots, x, y, origin, *into)
        else:
            kernels.power_real(slots, x, y, *into)

    def combine(self, left: Words, right: Words) -> Words:
        return left[0] + right[0], left[1] | right[1], kernels.power_joined(left[2], right[2])

    def lower(self, words: Words) -> pa.Array:
        return _lowered(self.asked, *words)


class Anchored(Columns):
    """Any points: how many, what is known of them, the first of them, and a row of sums relative to it, as pairs."""

    def __init__(self, y: pa.DataType, x: pa.DataType, asked: Asked) -> None:
        self.kinds, self.asked = (x, y), asked

    def identity(self, size: int) -> Words:
        anchors = (np.zeros(size, np.float64 if pa.types.is_floating(kind) else np.int64) for kind in self.kinds)
        return np.zeros(size, np.int64), np.zeros(size, np.uint8), *anchors, np.zeros((size, 10))

    def _gather(self, slots: Longs, items: Items, into: Words) -> None:
        y, x = (_doubles(a) if pa.types.is_floating(a.type) else _longs(a) for a in items.arguments)
        kernels.line_points(slots, x, y, into[:4], into[4])

    def combine(self, left: Words, right: Words) -> Words:
        heads, sums = kernels.line_joined(left[:4], left[4], right[:4], right[4])
        return *heads, sums

    def lower(self, words: Words) -> pa.Array:
        return _said(self.asked, words[:4], words[4])


def _lowered(asked: Asked, digits: Longs, odd: npt.NDArray[np.uint8], pairs: Answers) -> pa.Array:
    with np.errstate(over="ignore"):  # the kernel counts on int64 that wrap around
        return _said(asked, *kernels.power_anchored(digits, odd, pairs))


def _said(asked: Asked, heads: Words, sums: Answers) -> pa.Array:
    flags = heads[1]
    answers = asked(heads, sums)
    answers[flags & _ODD > 0] = np.nan
    return pa.array(answers + 0.0, mask=flags & (_ODD | _X_DIFFERS) == 0)


def whole(kind: pa.DataType) -> bool:
    """Whether values are int64 as they stand."""
    return bool(pa.types.is_timestamp(kind) or pa.types.is_integer(kind) and kind != pa.uint64())


def _first(values: Longs) -> int:
    return int(values[0]) if len(values) else 0


def _near(values: Longs, origin: int) -> bool:
    """Whether all are less than 2**31 from a number."""
    return bool(len(values)) and int(values.max()) - origin < 2**31 and origin - int(values.min()) < 2**31


def _doubles(values: pa.Array) -> npt.NDArray[np.float64]:
    found: npt.NDArray[np.float64] = values.to_numpy(zero_copy_only=False).astype(np.float64, copy=False)
    return found


def _longs(values: pa.Array) -> Longs:
    if pa.types.is_timestamp(values.type):
        values = values.cast(pa.int64())
    found: Longs = values.to_numpy(zero_copy_only=False).astype(np.int64, copy=False)
    return found
