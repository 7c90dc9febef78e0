"""The kernel of lines through whole points of ranges that move: sums are integers of 128 bits."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np

from panewise.kernels import Flags, Float64Array, Int64Array, helper, kernel
from panewise.kernels.regression_float import plus, two_sum
from panewise.kernels.regression_int import _to_pair

#: The lower and the upper 64 bits of a number of 128 bits; the upper ones have its sign.
Wide: TypeAlias = tuple[Any, Any]
#: How many points there are, and the sums of x, y, x*x and x*y.
Sums: TypeAlias = tuple[Any, Any, Any, Wide, Wide]

#: Differences and numbers of points below this have sums, and products of these, of less than 128 bits.
_NEAR = 2**31
_LOW, _SIGN, _SQUARE = 0xFFFFFFFF, np.int64(-(2**63)), 2.0**64


@kernel
def range_slopes(
    xs: Int64Array, ys: Int64Array, there: Flags, ranges: tuple[Int64Array, Int64Array], scale: float
) -> tuple[Float64Array, Flags, bool]:
    """The slope of the line through the points of each range that moves, times a number; and where there is none.

    Sums are relative to one of the points, and are taken anew where a point is too far from it. Where all points of a
    range cannot be near one, the last result is false, and the others mean nothing.
    """
    low, high = ranges
    found, missing = np.zeros(len(low)), np.ones(len(low), np.bool_)
    first = last = np.int64(0)
    x0 = y0 = np.int64(0)
    sums = _nothing()
    for step in range(len(low)):
        if low[step] >= last:
            first = last = low[step]
            sums = _nothing()
        while first < low[step]:
            if there[first]:
                sums = _grow(sums, xs[first] - x0, ys[first] - y0, -1)
            first += 1
        while last < high[step]:
            if there[last]:
                if sums[0] == 0 or not (_is_near(xs[last], x0) and _is_near(ys[last], y0)):
                    x0, y0 = xs[last], ys[last]
                    sums, near = _sums_around(xs, ys, there, first, last)
                    if not near:
                        return found, missing, False
                sums = _grow(sums, xs[last] - x0, ys[last] - y0, 1)
            last += 1
        count, x, y, xx, xy = sums
        if count > 1:
            along, across = _apart(count, xy, x, y), _apart(count, xx, x, x)
            if across != 0:
                found[step], missing[step] = along / across * scale + 0.0, False
    return found, missing, len(xs) < _NEAR


@helper
def _nothing() -> Sums:
    zero = np.int64(0)
    return zero, zero, zero, (zero, zero), (zero, zero)


@helper
def _sums_around(xs: Int64Array, ys: Int64Array, there: Flags, first: Any, last: Any) -> tuple[Sums, bool]:
    """The sums of points relative to the one after them, and whether all are near it."""
    sums = _nothing()
    for place in range(first, last):
        if there[place]:
            if not (_is_near(xs[place], xs[last]) and _is_near(ys[place], ys[last])):
                return sums, False
            sums = _grow(sums, xs[place] - xs[last], ys[place] - ys[last], 1)
    return sums, True


@helper
def _is_near(value: Any, origin: Any) -> bool:
    """Whether two int64 differ by little; their difference may wrap around."""
    apart = value - origin
    return bool(-_NEAR < apart < _NEAR and (apart < 0) == (value < origin))


@helper
def _grow(sums: Sums, x: Any, y: Any, sign: int) -> Sums:
    """Sums with a point more, or less."""
    count, total_x, total_y, xx, xy = sums
    return count + sign, total_x + sign * x, total_y + sign * y, _add(xx, sign * (x * x)), _add(xy, sign * (x * y))


@helper
def _add(wide: Wide, value: Any) -> Wide:
    low = wide[0] + value
    # As numbers without a sign, a sum is less than a part of it where it wraps around.
    carry = np.int64((low ^ _SIGN) < (value ^ _SIGN))
    return low, wide[1] + (value >> 63) + carry


@helper
def _product(a: Any, b: Any) -> Wide:
    """The product of two int64."""
    low_a, high_a, low_b, high_b = a & _LOW, a >> 32, b & _LOW, b >> 32
    first = np.int64(np.uint64(low_a) * np.uint64(low_b))
    middle = high_a * low_b + ((first >> 32) & _LOW)
    other = low_a * high_b + (middle & _LOW)
    return (other << 32) | (first & _LOW), high_a * high_b + (middle >> 32) + (other >> 32)


@helper
def _apart(count: Any, ab: Wide, a: Any, b: Any) -> float:
    """The number of points times a sum of products, less the product of their sums, as a double."""
    many, less = _product(count, ab[0]), _product(a, b)
    # The lower word counted as if it had a sign.
    upper = many[1] + count * ab[1] + (count if ab[0] < 0 else 0) - less[1]
    low = many[0] - less[0]
    if (many[0] ^ _SIGN) < (less[0] ^ _SIGN):
        upper -= 1
    if upper == low >> 63:
        return np.float64(low)
    high, rest = _to_pair(upper)
    below = _to_pair(low)
    if low < 0:
        below = plus(below, (_SQUARE, 0.0))
    return plus(two_sum(high * _SQUARE, rest * _SQUARE), below)[0]
