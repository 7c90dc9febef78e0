"""The kernels of lines over whole x, such as time: exact sums of x and x*x, and of y and x*y.

A sum of integers is kept as digits to the base of 2**32, each in an int64 that has room for 2**31 carries, so that
sums are added and subtracted digit by digit. Of real y and x*y there are pairs instead: a double and what rounding lost
of it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from panewise.kernels import Float64Array, Int64Array, UInt8Array, helper, kernel
from panewise.kernels.regression_float import (
    FIELDS,
    HUGE,
    ODD,
    TINY,
    X_DIFFERS,
    XX,
    XY,
    Heads,
    Pair,
    X,
    Y,
    around,
    minus,
    plus,
    put_pair,
    times,
    two_product,
    two_sum,
)

#: Where the digits of the sums of x, x*x, y and x*y begin, after the number of points.
N, SX, SXX, SY, SXY = 0, 1, 3, 7, 9

_LOW, _BASE, _SQUARE, _CUBE = 0xFFFFFFFF, 2.0**32, 2.0**64, 2.0**96


@helper
def _to_pair(value: int) -> Pair:
    return two_sum(np.float64(value >> 32) * _BASE, np.float64(value & _LOW))


@helper
def _add_product(words: Int64Array, place: int, field: int, a: int, b: int, often: int) -> None:
    """Add a product of two int64 to a sum of four digits, a number of times."""
    high, low, top, rest = a >> 32, a & _LOW, b >> 32, b & _LOW
    least, one, other, most = np.uint64(low) * np.uint64(rest), high * rest, low * top, high * top
    words[place, field] += often * np.int64(least & np.uint64(_LOW))
    words[place, field + 1] += often * (np.int64(least >> np.uint64(32)) + (one & _LOW) + (other & _LOW))
    words[place, field + 2] += often * ((one >> 32) + (other >> 32) + (most & _LOW))
    words[place, field + 3] += often * (most >> 32)


@helper
def _add(words: Int64Array, place: int, field: int, value: int, often: int) -> None:
    """Add an int64 to a sum of two digits, a number of times."""
    words[place, field] += often * (value & _LOW)
    words[place, field + 1] += often * (value >> 32)


@kernel
def power_whole(slots: Int64Array, xs: Int64Array, ys: Int64Array, words: Int64Array) -> None:
    """Add points with whole y to the groups they belong to; `words` has a row for each group."""
    for i in range(len(slots)):
        slot, x, y = slots[i], xs[i], ys[i]
        words[slot, N] += 1
        _add(words, slot, SX, x, 1)
        _add(words, slot, SY, y, 1)
        _add_product(words, slot, SXX, x, x, 1)
        _add_product(words, slot, SXY, x, y, 1)


@kernel
def power_whole_near(slots: Int64Array, xs: Int64Array, ys: Int64Array, origin: int, words: Int64Array) -> None:
    """The same where no x is 2**31 from the origin and no y is 2**31: half the words for each point, then a shift."""
    near = np.zeros((len(words), 7), np.int64)
    for i in range(len(slots)):
        slot, x, y = slots[i], xs[i] - origin, ys[i]
        near[slot, 0] += 1
        near[slot, 1] += x
        near[slot, 2] += y
        near[slot, 3] += (x * x) & _LOW
        near[slot, 4] += (x * x) >> 32
        near[slot, 5] += (x * y) & _LOW
        near[slot, 6] += (x * y) >> 32
    for slot in range(len(words)):
        count, x, y = near[slot, 0], near[slot, 1], near[slot, 2]
        if count:
            _shift(words, slot, count, x, origin)
            words[slot, SXX] += near[slot, 3]
            words[slot, SXX + 1] += near[slot, 4]
            _add(words, slot, SY, y, 1)
            words[slot, SXY] += near[slot, 5]
            words[slot, SXY + 1] += near[slot, 6]
            _add_product(words, slot, SXY, origin, y, 1)


@helper
def _shift(words: Int64Array, place: int, count: int, x: int, origin: int) -> None:
    """Add what points relative to an origin miss: the number of points, their sum and that of their squares."""
    words[place, N] += count
    _add(words, place, SX, x, 1)
    _add(words, place, SX, origin, count)
    _add_product(words, place, SXX, origin, x, 2)
    _add_product(words, place, SXX, origin, origin, count)


@helper
def _grow(pairs: Float64Array, place: int, field: int, amount: Pair) -> None:
    total, lost = two_sum(pairs[place, field], amount[0])
    pairs[place, field] = total
    pairs[place, field + 1] += lost + amount[1]


@kernel
def power_real(
    slots: Int64Array, xs: Int64Array, ys: Float64Array, words: Int64Array, odd: UInt8Array, pairs: Float64Array
) -> None:
    """The same for real y; `pairs` has a row for each group: the sums of y and of x*y."""
    for i in range(len(slots)):
        slot, x, y = slots[i], xs[i], ys[i]
        if not -HUGE < y < HUGE:
            odd[slot] |= ODD
            continue
        if -TINY < y < TINY:
            y = 0.0
        words[slot, N] += 1
        _add(words, slot, SX, x, 1)
        _add_product(words, slot, SXX, x, x, 1)
        _grow(pairs, slot, 0, (y, 0.0))
        _grow(pairs, slot, 2, times(_to_pair(x), (y, 0.0)))


@kernel
def power_real_near(
    slots: Int64Array,
    xs: Int64Array,
    ys: Float64Array,
    origin: int,
    words: Int64Array,
    odd: UInt8Array,
    pairs: Float64Array,
) -> None:
    """The same where no x is 2**31 from the origin."""
    near = np.zeros((len(words), 4), np.int64)
    for i in range(len(slots)):
        slot, x, y = slots[i], xs[i] - origin, ys[i]
        if not -HUGE < y < HUGE:
            odd[slot] |= ODD
            continue
        if -TINY < y < TINY:
            y = 0.0
        near[slot, 0] += 1
        near[slot, 1] += x
        near[slot, 2] += (x * x) & _LOW
        near[slot, 3] += (x * x) >> 32
        _grow(pairs, slot, 0, (y, 0.0))
        _grow(pairs, slot, 2, two_product(np.float64(x), y))
    for slot in range(len(words)):
        if near[slot, 0]:
            _shift(words, slot, near[slot, 0], near[slot, 1], origin)
            words[slot, SXX] += near[slot, 2]
            words[slot, SXX + 1] += near[slot, 3]
            y = pairs[slot, 0], pairs[slot, 1]
            pairs[slot, 2], pairs[slot, 3] = plus((pairs[slot, 2], pairs[slot, 3]), times(_to_pair(origin), y))


# ---- lines -----------------------------------------------------------------------------------------------------------
#
# Moments around the mean are small differences of large numbers. Pairs hold their size, to some 2**-100 of those
# numbers; int64 that wrap around hold them exactly, up to a multiple of 2**64. Both together are the exact number.


@helper
def _long(words: Int64Array, place: int, field: int) -> Any:
    """A sum, wrapped."""
    return words[place, field] + (words[place, field + 1] << 32)


@helper
def _short(words: Int64Array, place: int, field: int) -> Pair:
    """A sum of two digits."""
    low, high = words[place, field], words[place, field + 1]
    return two_sum(np.float64(high + (low >> 32)) * _BASE, np.float64(low & _LOW))


@helper
def _wide(words: Int64Array, place: int, field: int) -> Pair:
    """A sum of four digits, all but the first of 32 bits once they have been carried."""
    second = words[place, field + 1] + (words[place, field] >> 32)
    third = words[place, field + 2] + (second >> 32)
    fourth = words[place, field + 3] + (third >> 32)
    high, low = two_sum(np.float64(fourth) * _CUBE, np.float64(third & _LOW) * _SQUARE)
    return high, low + (np.float64(second & _LOW) * _BASE + np.float64(words[place, field] & _LOW))


@helper
def _less(whole: Pair, a: Pair, b: Pair) -> Pair:
    """A number less a product, as a pair that is not settled."""
    product, low = two_product(a[0], b[0])
    high, lost = two_sum(whole[0], -product)
    return high, lost + (whole[1] - (low + (a[0] * b[1] + a[1] * b[0])))


@helper
def _exact(near: Pair, wrapped: int) -> Pair:
    """The number that wraps to an int64 and is near a pair."""
    apart = plus(near, minus(_to_pair(wrapped)))
    # Beyond 2**117 one double cannot count the multiples of 2**64: the smaller half of the pair has its share of them.
    most = np.floor(apart[0] / _SQUARE)
    rest = np.floor(apart[0] / _SQUARE - most + apart[1] / _SQUARE + 0.5)
    return plus(two_sum(most * _SQUARE, rest * _SQUARE), _to_pair(wrapped))


@helper
def _middle(total: Pair, count: int) -> Any:
    """A whole number near the mean."""
    return np.int64(min(max(np.floor(total[0] / count), -9223372036854774784.0), 9223372036854774784.0))


@kernel
def power_moments(words: Int64Array, odd: UInt8Array, pairs: Float64Array) -> tuple[Heads, Float64Array]:
    """The same as moments relative to a whole x, and where y is whole relative to a whole y, near their means.

    Without `pairs` y is whole.
    """
    size = len(words)
    x_anchors, y_anchors, flags = np.zeros(size, np.int64), np.zeros(size, np.int64), odd.copy()
    sums = np.zeros((size, FIELDS))
    for i in range(size):
        count = words[i, N]
        if not count:
            continue
        total, whole = _short(words, i, SX), _long(words, i, SX)
        anchor = _middle(total, count)
        a, rest = _to_pair(anchor), whole - count * anchor
        x = _to_pair(rest)
        squares = _long(words, i, SXX) - anchor * (whole + rest)
        xx = _exact(_less(_less(_wide(words, i, SXX), a, total), a, x), squares)
        if pairs.shape[1]:
            y = pairs[i, 0], pairs[i, 1]
            xy = plus((pairs[i, 2], pairs[i, 3]), minus(times(a, y)))
        else:
            total, whole = _short(words, i, SY), _long(words, i, SY)
            middle = _middle(total, count)
            y = _to_pair(whole - count * middle)
            near = _less(_less(_wide(words, i, SXY), a, total), _to_pair(middle), x)
            xy = _exact(near, _long(words, i, SXY) - anchor * whole - middle * rest)
            y_anchors[i] = middle
        x_anchors[i] = anchor
        put_pair(sums, i, X, x)
        put_pair(sums, i, Y, y)
        put_pair(sums, i, XX, xx)
        put_pair(sums, i, XY, xy)
        if squares * count != rest * rest or around((np.float64(count), 0.0), xx, x, x)[0] > 0:
            flags[i] |= X_DIFFERS
    return (words[:, N].copy(), flags, x_anchors, y_anchors), sums


@kernel
def power_add(left: Float64Array, right: Float64Array) -> Float64Array:
    """Rows of pairs, added pair by pair."""
    out = left.copy()
    for i in range(len(left)):
        _add_row(out, i, right, i)
    return out


@helper
def _add_row(pairs: Float64Array, i: Any, others: Float64Array, other: Any) -> None:
    for k in range(0, pairs.shape[1], 2):
        pairs[i, k], lost = two_sum(pairs[i, k], others[other, k])
        pairs[i, k + 1] = lost + (pairs[i, k + 1] + others[other, k + 1])


@kernel
def power_ranges(rows: Float64Array, low: Int64Array, high: Int64Array, middle: Int64Array) -> Float64Array:
    """Rows of pairs, added over ranges that move; see `ranges.range_float_sums`. The rows are overwritten."""
    out, newest = np.zeros((len(low), rows.shape[1])), np.zeros((1, rows.shape[1]))
    border = filled = np.int64(-1)
    for step in range(len(low)):
        first = low[step]
        if middle[step] != border:
            border = filled = middle[step]
            for place in range(border - 2, first - 1, -1):
                _add_row(rows, place, rows, place + 1)
            newest[:] = 0.0
        while filled < high[step]:
            _add_row(newest, 0, rows, filled)
            filled += 1
        if first < border:
            out[step] = rows[first]
        _add_row(out, step, newest, 0)
    return out
