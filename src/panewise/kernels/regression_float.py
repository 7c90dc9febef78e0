"""The kernels of lines through points: counts, sums and products of points, relative to a point of their own.

A group's moments are a row of doubles, pairs of a sum and what rounding lost of it, and its *anchor*: the first of its
points. Differences of points from their anchor are exact pairs too, so that large offsets (microseconds since 1970,
prices of 1e9) cost no digits, and because the anchor is one of the points, the sums are at most a number of points
times larger than those around the mean.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numba
import numpy as np
import numpy.typing as npt
from numba.extending import intrinsic, overload

from panewise.kernels import Float64Array, Int64Array, UInt8Array, helper, kernel

#: Int64 or doubles.
Numbers: TypeAlias = npt.NDArray[Any]
#: A double and what rounding lost of it.
Pair: TypeAlias = tuple[float, float]
#: Of each group: the number of its finite points, what else is known of it, and the x and y of its anchor.
Heads: TypeAlias = tuple[Int64Array, UInt8Array, Numbers, Numbers]

#: Moments have a row for each group. Which column is which: high and low halves of the sums of x, y, x*x, x*y and y*y.
X, Y, XX, XY, YY = 0, 2, 4, 6, 8
FIELDS = 10

#: What is known of a group beside its moments.
ODD, X_DIFFERS, Y_DIFFERS = 1, 2, 4

#: Numbers from here on count as infinite and those below as zero: no square or product of others leaves the doubles.
HUGE, TINY = 2.0**400, 2.0**-400

_SPLITTER = 134217729.0  # 2**27 + 1


@helper
def two_sum(a: float, b: float) -> Pair:
    total = a + b
    shadow = total - a
    return total, (a - (total - shadow)) + (b - shadow)


def two_product(a: float, b: float) -> Pair:
    """The rounded product and what rounding lost."""
    product = a * b
    wide_a, wide_b = _SPLITTER * a, _SPLITTER * b
    high_a, high_b = wide_a - (wide_a - a), wide_b - (wide_b - b)
    low_a, low_b = a - high_a, b - high_b
    return product, ((high_a * high_b - product) + high_a * low_b + low_a * high_b) + low_a * low_b


@intrinsic
def _fused_multiply_add(typing: Any, a: Any, b: Any, c: Any) -> Any:
    """a * b + c, rounded once: one instruction where the machine has it."""
    real = numba.float64
    return real(real, real, real), lambda context, builder, signature, arguments: builder.fma(*arguments)


@overload(two_product)
def _two_product_fused(a: float, b: float) -> Callable[[float, float], Pair]:
    def two_product(a: float, b: float) -> Pair:
        return a * b, _fused_multiply_add(a, b, -(a * b))  # type: ignore[call-arg]

    return two_product


@helper
def plus(a: Pair, b: Pair) -> Pair:
    high, lost = two_sum(a[0], b[0])
    low, rest = two_sum(a[1], b[1])
    high, lost = two_sum(high, lost + low)
    return two_sum(high, lost + rest)


@helper
def times(a: Pair, b: Pair) -> Pair:
    high, low = two_product(a[0], b[0])
    return two_sum(high, low + (a[0] * b[1] + a[1] * b[0]))


@helper
def minus(a: Pair) -> Pair:
    return -a[0], -a[1]


@helper
def over(a: Pair, b: Pair) -> Pair:
    first = a[0] / b[0]
    rest = plus(a, minus(times(b, (first, 0.0))))
    return two_sum(first, rest[0] / b[0])


@helper
def _whole_apart(value: Any, anchor: Any) -> Pair:
    """Two int64 may be further apart than one int64 or one double can hold."""
    return two_sum(
        np.float64((value >> 32) - (anchor >> 32)) * 4294967296.0,
        np.float64((value & 0xFFFFFFFF) - (anchor & 0xFFFFFFFF)),
    )


@helper
def _real_apart(value: Any, anchor: Any) -> Pair:
    return two_sum(value, -anchor)


def apart(value: Any, anchor: Any) -> Pair:
    """The exact difference of two int64 or two doubles."""
    return _whole_apart(value, anchor) if isinstance(value, np.integer) else _real_apart(value, anchor)


@overload(apart)
def _apart_by_type(value: Any, anchor: Any) -> Callable[[Any, Any], Pair]:
    found: Callable[[Any, Any], Pair] = _whole_apart if isinstance(value, numba.types.Integer) else _real_apart
    return found


@helper
def grow_sum(moments: Float64Array, slot: int, field: int, amount: Pair) -> None:
    """Add to one sum; its low half is settled when groups are combined."""
    total, lost = two_sum(moments[slot, field], amount[0])
    moments[slot, field] = total
    moments[slot, field + 1] += lost + amount[1]


@helper
def _product(a: Pair, b: Pair) -> Pair:
    """A product whose low half is not settled yet."""
    high, low = two_product(a[0], b[0])
    return high, low + (a[0] * b[1] + a[1] * b[0])


@kernel
def line_points(slots: Int64Array, xs: Numbers, ys: Numbers, heads: Heads, moments: Float64Array) -> None:
    """Add points to the groups they belong to."""
    counts, flags, x_anchors, y_anchors = heads
    for i in range(len(slots)):
        slot, x, y = slots[i], xs[i], ys[i]
        if not (-HUGE < x < HUGE and -HUGE < y < HUGE):
            flags[slot] |= ODD
            continue
        if -TINY < x < TINY:
            x = x - x
        if -TINY < y < TINY:
            y = y - y
        if not counts[slot]:
            x_anchors[slot], y_anchors[slot] = x, y
        counts[slot] += 1
        dx, dy = apart(x, x_anchors[slot]), apart(y, y_anchors[slot])
        if dx[0] != 0:
            flags[slot] |= X_DIFFERS
        if dy[0] != 0:
            flags[slot] |= Y_DIFFERS
        grow_sum(moments, slot, X, dx)
        grow_sum(moments, slot, Y, dy)
        grow_sum(moments, slot, XX, _product(dx, dx))
        grow_sum(moments, slot, XY, _product(dx, dy))
        grow_sum(moments, slot, YY, _product(dy, dy))


@helper
def pair_at(sums: Float64Array, place: int, field: int) -> Pair:
    return sums[place, field], sums[place, field + 1]


@helper
def put_pair(sums: Float64Array, place: int, field: int, pair: Pair) -> None:
    sums[place, field], sums[place, field + 1] = pair


@kernel
def line_combine(left: Heads, ours: Float64Array, right: Heads, theirs: Float64Array) -> tuple[Heads, Float64Array]:
    """The moments of both parts, place by place. The right part is moved to the anchor of the left one."""
    heads, sums = (left[0].copy(), left[1].copy(), left[2].copy(), left[3].copy()), ours.copy()
    for i in range(len(sums)):
        _absorb(heads, sums, i, right, theirs, i)
    return heads, sums


@helper
def _absorb(heads: Heads, sums: Float64Array, i: Any, others: Heads, theirs: Float64Array, other: Any) -> None:
    """Add the points of another group to a group."""
    counts, flags, x_anchors, y_anchors = heads
    flags[i] |= others[1][other]
    if not others[0][other]:
        return
    if not counts[i]:
        x_anchors[i], y_anchors[i], sums[i] = others[2][other], others[3][other], theirs[other]
    else:
        d, e = apart(others[2][other], x_anchors[i]), apart(others[3][other], y_anchors[i])
        if d[0] != 0:
            flags[i] |= X_DIFFERS
        if e[0] != 0:
            flags[i] |= Y_DIFFERS
        move_moments(theirs, 0, other, others[0][other], d, e, sums, i)
    counts[i] += others[0][other]


@kernel
def line_ranges(
    heads: Heads, sums: Float64Array, low: Int64Array, high: Int64Array, middle: Int64Array
) -> tuple[Heads, Float64Array]:
    """The moments of ranges of rows that move; see `ranges.range_float_sums`. Those of the rows are overwritten."""
    steps = len(low)
    found = (
        np.zeros(steps, np.int64),
        np.zeros(steps, np.uint8),
        np.zeros(steps, heads[2].dtype),
        np.zeros(steps, heads[3].dtype),
    )
    out = np.zeros((steps, FIELDS))
    newest = np.zeros(1, np.int64), np.zeros(1, np.uint8), np.zeros(1, heads[2].dtype), np.zeros(1, heads[3].dtype)
    newest_sums = np.zeros((1, FIELDS))
    border = filled = np.int64(-1)
    for step in range(steps):
        first = low[step]
        if middle[step] != border:
            border = filled = middle[step]
            for place in range(border - 2, first - 1, -1):
                _absorb(heads, sums, place, heads, sums, place + 1)
            newest[0][0], newest[1][0] = 0, 0
        while filled < high[step]:
            _absorb(newest, newest_sums, 0, heads, sums, filled)
            filled += 1
        if first < border:
            _absorb(found, out, step, heads, sums, first)
        _absorb(found, out, step, newest, newest_sums, 0)
    return found, out


@helper
def move_moments(
    theirs: Float64Array, begin: int, other: int, points: int, d: Pair, e: Pair, sums: Float64Array, i: int
) -> None:
    """Add the moments of other points to those of a group, whose anchor is this far before theirs.

    Both have them in the columns that `begin` somewhere.
    """
    count = (np.float64(points), 0.0)
    x, y = pair_at(theirs, other, begin + X), pair_at(theirs, other, begin + Y)
    far_x, far_y = plus(x, times(count, d)), plus(y, times(count, e))
    xx = plus(pair_at(theirs, other, begin + XX), times(d, plus(x, far_x)))
    xy = plus(pair_at(theirs, other, begin + XY), plus(times(d, y), times(e, far_x)))
    yy = plus(pair_at(theirs, other, begin + YY), times(e, plus(y, far_y)))
    put_pair(sums, i, begin + X, plus(pair_at(sums, i, begin + X), far_x))
    put_pair(sums, i, begin + Y, plus(pair_at(sums, i, begin + Y), far_y))
    put_pair(sums, i, begin + XX, plus(pair_at(sums, i, begin + XX), xx))
    put_pair(sums, i, begin + XY, plus(pair_at(sums, i, begin + XY), xy))
    put_pair(sums, i, begin + YY, plus(pair_at(sums, i, begin + YY), yy))


@helper
def around(count: Pair, ab: Pair, a: Pair, b: Pair) -> Pair:
    """The number of points times their co-moment around the means. No division, so that small numbers stay exact."""
    return plus(times(count, ab), minus(times(a, b)))


@helper
def _slope(count: Pair, sums: Float64Array, i: int) -> Pair:
    x, y = pair_at(sums, i, X), pair_at(sums, i, Y)
    return over(around(count, pair_at(sums, i, XY), x, y), around(count, pair_at(sums, i, XX), x, x))


@kernel
def line_slopes(heads: Heads, sums: Float64Array, scale: float) -> Float64Array:
    """The slope of the line through each group's points, times a number; 0 where there is none."""
    out = np.zeros(len(heads[0]))
    for i in range(len(out)):
        if heads[1][i] & X_DIFFERS:
            count, x, y = (np.float64(heads[0][i]), 0.0), pair_at(sums, i, X), pair_at(sums, i, Y)
            out[i] = around(count, pair_at(sums, i, XY), x, y)[0] / around(count, pair_at(sums, i, XX), x, x)[0] * scale
    return out


@kernel
def line_values(heads: Heads, sums: Float64Array, at: Numbers, step: int, parts: int) -> Float64Array:
    """Where the line through each group's points is at some x, given `step` / `parts` times as large; 0 for no line."""
    out = np.zeros(len(heads[0]))
    for i in range(len(out)):
        if heads[1][i] & X_DIFFERS:
            count = (np.float64(heads[0][i]), 0.0)
            there = times(apart(at[i], at[i] - at[i]), (np.float64(parts), 0.0))
            here = times(apart(heads[2][i], heads[2][i] - heads[2][i]), (np.float64(step), 0.0))
            far = over(plus(there, minus(here)), (np.float64(step), 0.0))
            ahead = plus(far, minus(over(pair_at(sums, i, X), count)))
            mean = plus(apart(heads[3][i], heads[3][i] - heads[3][i]), over(pair_at(sums, i, Y), count))
            out[i] = plus(mean, times(_slope(count, sums, i), ahead))[0]
    return out


@kernel
def line_fits(heads: Heads, sums: Float64Array) -> Float64Array:
    """Which share of the variance of y the line explains; 1 where y does not vary, 0 where there is no line."""
    out = np.zeros(len(heads[0]))
    for i in range(len(out)):
        if heads[1][i] & X_DIFFERS and heads[1][i] & Y_DIFFERS:
            count, x, y = (np.float64(heads[0][i]), 0.0), pair_at(sums, i, X), pair_at(sums, i, Y)
            xy = around(count, pair_at(sums, i, XY), x, y)
            # In this order no product leaves the doubles.
            along = over(xy, around(count, pair_at(sums, i, XX), x, x))
            across = over(xy, around(count, pair_at(sums, i, YY), y, y))
            out[i] = min(times(along, across)[0], 1.0)
        elif heads[1][i] & X_DIFFERS:
            out[i] = 1.0
    return out
