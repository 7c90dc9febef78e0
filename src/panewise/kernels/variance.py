"""The kernels of variance: sums of values and of their squares, exact for integers and in pairs for doubles.

Doubles are kept relative to an *anchor*, which is one of the values, so that a large offset costs no digits. Their
differences from the anchor have a *band*, by the largest of them: sums of very large or very small differences are
scaled by a power of two, so that their squares are doubles too.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np

from panewise.kernels import Float64Array, Int64Array, UInt8Array, helper, kernel
from panewise.kernels.regression_float import Pair, around, minus, over, plus, times, two_product, two_sum

#: Of each group: how many values, the band, the anchor, and the pairs of the sum of differences and of their squares.
FloatWords: TypeAlias = tuple[
    Int64Array, UInt8Array, Float64Array, Float64Array, Float64Array, Float64Array, Float64Array
]
#: The same of one group.
FloatState: TypeAlias = tuple[int, int, float, Pair, Pair]
#: Of each group: how many values, the lower digit of their sum, the two lower digits of the sum of their squares, then
#: the upper digit of the sum and the two upper ones of the squares.
IntegerWords: TypeAlias = tuple[Int64Array, Int64Array, Int64Array, Int64Array, Int64Array, Int64Array, Int64Array]
#: The first four of these: all that is needed for values of 32 bits.
NearWords: TypeAlias = tuple[Int64Array, Int64Array, Int64Array, Int64Array]

#: The bands: no differences, the largest is tiny, it is an ordinary number, it is huge, some value was not finite.
SAME, TINY, PLAIN, HUGE, ODD = range(5)
#: The bits by which TINY, HUGE and ODD differ from the bands whose sums have no scale.
_SCALED = TINY | ODD
#: Differences from `_LARGE` on are huge, those below `_SMALL` are tiny.
_LARGE, _SMALL = 2.0**400, 2.0**-400
#: By what the differences of a band are multiplied.
_SCALES = (1.0, 2.0**600, 1.0, 2.0**-600, 1.0)

#: Every whole number below this is a double.
_EXACT = 2**53
#: The square of a number below this is one too.
_FEW = 2**26
_LOW, _BASE, _SQUARE, _CUBE = 0xFFFFFFFF, 2.0**32, 2.0**64, 2.0**96


# ---- doubles ---------------------------------------------------------------------------------------------------------


@helper
def _band(value: float, anchor: float) -> int:
    """The band of one difference."""
    apart = abs(value - anchor)
    if not np.isfinite(value):
        return ODD
    return SAME if apart == 0 else TINY if apart < _SMALL else PLAIN if apart < _LARGE else HUGE


@helper
def _apart(value: float, anchor: float, band: int) -> Pair:
    """The difference of a value from the anchor, scaled for a band that is not below its own."""
    return two_sum(value * _SCALES[band], -anchor * _SCALES[band])


@helper
def _is_plain(one: int, other: int, apart: float) -> bool:
    """Whether two bands and a difference that is not negative need no scale."""
    return (one | other) & _SCALED == 0 and (apart == 0 or _SMALL <= apart < _LARGE)


@helper
def _rescale(pair: Pair, old: int, new: int, power: int) -> Pair:
    """A sum of differences, or of squares if `power` is 2, in the scale of a higher band.

    From the lowest to the highest band the factor is 0: what is lost is less than 2**-800 of the rest.
    """
    factor = _SCALES[new] / _SCALES[old]
    for _ in range(power):
        pair = pair[0] * factor, pair[1] * factor
    return pair


@helper
def _sum(a: Pair, b: Pair) -> Pair:
    """A sum that loses up to 2**-104 of the larger number, which is enough here: sums of squares do not cancel out."""
    high, lost = two_sum(a[0], b[0])
    low = lost + (a[1] + b[1])
    total = high + low
    return total, low - (total - high)


@helper
def _product(a: Pair, b: Pair) -> Pair:
    """A product whose low half may be large; a sum settles it."""
    high, low = two_product(a[0], b[0])
    return high, low + (a[0] * b[1] + a[1] * b[0])


@helper
def _add_difference(words: FloatWords, slot: int, apart: Pair) -> None:
    """Add a difference and its square."""
    _, _, _, sums, sums_lost, squares, squares_lost = words
    sums[slot], sums_lost[slot] = _sum((sums[slot], sums_lost[slot]), apart)
    squares[slot], squares_lost[slot] = _sum((squares[slot], squares_lost[slot]), _product(apart, apart))


@helper
def _add_any(words: FloatWords, slot: int, value: float) -> None:
    """Add a value that is too far from the anchor, or too near to it, for sums without a scale."""
    _, bands, anchors, sums, sums_lost, squares, squares_lost = words
    old, new = bands[slot], max(bands[slot], _band(value, anchors[slot]))
    bands[slot] = new
    sums[slot], sums_lost[slot] = _rescale((sums[slot], sums_lost[slot]), old, new, 1)
    squares[slot], squares_lost[slot] = _rescale((squares[slot], squares_lost[slot]), old, new, 2)
    if new != SAME and new != ODD:
        _add_difference(words, slot, _apart(value, anchors[slot], new))


@kernel
def variance_add_floats(slots: Int64Array, values: Float64Array, words: FloatWords) -> None:
    """Add values to the groups they belong to."""
    counts, bands, anchors = words[0], words[1], words[2]
    for i in range(len(slots)):
        slot, value = slots[i], values[i]
        if not counts[slot]:
            anchors[slot] = value
        counts[slot] += 1
        apart = two_sum(value, -anchors[slot])
        if _is_plain(bands[slot], SAME, abs(apart[0])):
            if apart[0] != 0:
                bands[slot] = PLAIN
                _add_difference(words, slot, apart)
        else:
            _add_any(words, slot, value)


@helper
def _state_at(words: FloatWords, place: int) -> FloatState:
    counts, bands, anchors, sums, sums_lost, squares, squares_lost = words
    total, square = (sums[place], sums_lost[place]), (squares[place], squares_lost[place])
    return int(counts[place]), int(bands[place]), anchors[place], total, square


@helper
def _put_state(words: FloatWords, place: int, state: FloatState) -> None:
    counts, bands, anchors, sums, sums_lost, squares, squares_lost = words
    counts[place], bands[place], anchors[place], total, square = state
    sums[place], sums_lost[place] = total
    squares[place], squares_lost[place] = square


@helper
def _both(left: FloatState, right: FloatState) -> FloatState:
    """The state of both parts. The right part is moved to the anchor of the left one."""
    count, band, anchor, x, xx = left
    more, other_band, other, y, yy = right
    if not more:
        return left
    if not count:
        return right
    apart = two_sum(other, -anchor)
    if _is_plain(band, other_band, abs(apart[0])):
        band = PLAIN if apart[0] != 0 else band | other_band
    else:
        old, band = band, max(band, other_band, _band(other, anchor))
        x, xx = _rescale(x, old, band, 1), _rescale(xx, old, band, 2)
        y, yy = _rescale(y, other_band, band, 1), _rescale(yy, other_band, band, 2)
        apart = _apart(other, anchor, band)
    number = np.float64(more)
    moved, lost = two_product(number, apart[0])
    far = _sum(y, (moved, lost + number * apart[1]))
    return count + more, band, anchor, _sum(x, far), _sum(_sum(xx, yy), _product(apart, _sum(y, far)))


@helper
def _no_words(size: int) -> FloatWords:
    counts, bands = np.zeros(size, np.int64), np.zeros(size, np.uint8)
    return counts, bands, np.zeros(size), np.zeros(size), np.zeros(size), np.zeros(size), np.zeros(size)


@kernel
def variance_combine_floats(left: FloatWords, right: FloatWords) -> FloatWords:
    """The words of both parts, place by place."""
    out = _no_words(len(left[0]))
    for i in range(len(left[0])):
        _put_state(out, i, _both(_state_at(left, i), _state_at(right, i)))
    return out


@kernel
def variance_ranges_floats(rows: FloatWords, low: Int64Array, high: Int64Array, middle: Int64Array) -> FloatWords:
    """The words of ranges of rows that move; see `ranges.range_float_sums`. Those of the rows are overwritten."""
    out = _no_words(len(low))
    nothing = (0, SAME, 0.0, (0.0, 0.0), (0.0, 0.0))
    border = filled = -1
    newest = nothing
    for step in range(len(low)):
        first = int(low[step])
        if middle[step] != border:
            border = filled = int(middle[step])
            for place in range(border - 2, first - 1, -1):
                _put_state(rows, place, _both(_state_at(rows, place), _state_at(rows, place + 1)))
            newest = nothing
        while filled < high[step]:
            newest = _both(newest, _state_at(rows, filled))
            filled += 1
        oldest = _state_at(rows, first) if first < border else nothing
        _put_state(out, step, _both(oldest, newest))
    return out


@helper
def _variance(count: int, total: Pair, squares: Pair, freedom: int) -> Pair:
    """The variance from sums; the number of values is greater than `freedom`."""
    number, fewer = (np.float64(count), 0.0), np.float64(count - freedom)
    return over(around(number, squares, total, total), two_product(number[0], fewer))


@kernel
def variance_answers_floats(words: FloatWords, freedom: int, root: bool) -> Float64Array:
    """The variance of each group, or its square root; 0 where there are too few values."""
    counts, bands, _, sums, sums_lost, squares, squares_lost = words
    out = np.zeros(len(counts))
    for i in range(len(counts)):
        if counts[i] <= freedom or bands[i] == SAME:
            continue
        if bands[i] == ODD:
            out[i] = np.nan
            continue
        total, square = two_sum(sums[i], sums_lost[i]), two_sum(squares[i], squares_lost[i])
        found = _variance(counts[i], total, square, freedom)[0]
        scale = _SCALES[bands[i]]
        out[i] = np.sqrt(found) / scale if root else found / scale / scale
    return out


# ---- integers --------------------------------------------------------------------------------------------------------


@kernel
def variance_add_near(slots: Int64Array, values: Int64Array, words: NearWords) -> None:
    """Add values to the groups they belong to, where none is further than 2**31 from zero."""
    counts, low, first, second = words
    for i in range(len(slots)):
        slot, value = slots[i], values[i]
        square = value * value
        counts[slot] += 1
        low[slot] += value
        first[slot] += square & _LOW
        second[slot] += square >> 32


@kernel
def variance_add_integers(slots: Int64Array, values: Int64Array, words: IntegerWords) -> None:
    """The same for any int64."""
    counts, low, first, second, high, third, fourth = words
    for i in range(len(slots)):
        slot, value = slots[i], values[i]
        top, rest = value >> 32, value & _LOW
        counts[slot] += 1
        low[slot] += rest
        high[slot] += top
        least, middle, most = np.uint64(rest) * np.uint64(rest), top * rest, top * top
        first[slot] += np.int64(least & np.uint64(_LOW))
        second[slot] += np.int64(least >> np.uint64(32)) + 2 * (middle & _LOW)
        third[slot] += 2 * (middle >> 32) + (most & _LOW)
        fourth[slot] += most >> 32


@helper
def _to_pair(value: Any) -> Pair:
    """An int64."""
    return two_sum(np.float64(value >> 32) * _BASE, np.float64(value & _LOW))


@helper
def _times_power(pair: Pair, power: float) -> Pair:
    return pair[0] * power, pair[1] * power


@helper
def _exact(near: Pair, wrapped: Any) -> Pair:
    """The number that is near a pair and of which an int64 has the last 64 bits."""
    apart = plus(near, minus(_to_pair(wrapped)))
    most = np.floor(apart[0] / _SQUARE)
    rest = np.floor(apart[0] / _SQUARE - most + apart[1] / _SQUARE + 0.5)
    return plus(two_sum(most * _SQUARE, rest * _SQUARE), _to_pair(wrapped))


@helper
def _around_center(total: Pair, wrapped: Any, squares: Pair, wrapped_squares: Any, count: int) -> tuple[Pair, Pair]:
    """Exact sums of differences from a whole number near the mean, and of their squares.

    They are small differences of large numbers: pairs give them to some 2**-100 of those, and int64 that wrap around
    give their last 64 bits.
    """
    center = np.int64(min(max(np.floor(total[0] / count), -9223372036854774784.0), 9223372036854774784.0))
    rest = wrapped - count * center
    near = plus(squares, minus(times(_to_pair(center), plus(total, _to_pair(rest)))))
    return _to_pair(rest), _exact(near, wrapped_squares - center * (wrapped + rest))


@kernel
def variance_answers_integers(words: IntegerWords, freedom: int, root: bool, unit: Pair) -> Float64Array:
    """The same for integers; variances are divided by a unit."""
    counts, low, first, second, high, third, fourth = words
    out = np.zeros(len(counts))
    for i in range(len(counts)):
        count = counts[i]
        if count <= freedom:
            continue
        wrapped = low[i] + (high[i] << 32)
        two = second[i] + (first[i] >> 32)
        three = third[i] + (two >> 32)
        squares = two_sum(np.float64(two & _LOW) * _BASE, np.float64(first[i] & _LOW))
        if three == 0 and fourth[i] == 0 and -_EXACT < wrapped < _EXACT:
            # Squares below 2**64 belong to a sum that did not wrap around, and pairs hold all products exactly.
            if squares[0] * count < _EXACT and count < _FEW and unit[0] == 1:
                # So do doubles: only the quotient is rounded.
                number = np.float64(count)
                quotient = (squares[0] * number - np.float64(wrapped) * wrapped) / (number * (number - freedom))
                out[i] = np.sqrt(quotient) if root else quotient
                continue
            found = _variance(count, (np.float64(wrapped), 0.0), squares, freedom)
        else:
            upper = _times_power(_to_pair(fourth[i] + (three >> 32)), _CUBE)
            squares = plus(plus(upper, (np.float64(three & _LOW) * _SQUARE, 0.0)), squares)
            total = plus(_times_power(_to_pair(high[i]), _BASE), _to_pair(low[i]))
            sums = _around_center(total, wrapped, squares, first[i] + (second[i] << 32), count)
            found = _variance(count, sums[0], sums[1], freedom)
        variance = found[0] if unit[0] == 1 else over(found, unit)[0]
        out[i] = np.sqrt(variance) if root else variance
    return out
