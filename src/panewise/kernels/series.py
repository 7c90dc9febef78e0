"""The kernels of series, which have one value for each instant: the mean of its items.

A pane has a *run* for each group: keys of time, ascending, and beside each how many items it has and their sum as a
pair. A *segment* has what lines need of all instants of a group between two positions. Its first and its last instant
are kept as counts and sums, since the segments before and after it may have items of the same instants; those between
are moments of lines, over the numbers of instants, as in `regression_float`.
"""

from __future__ import annotations

from typing import TypeAlias

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
    Y_DIFFERS,
    YY,
    Heads,
    Pair,
    X,
    Y,
    apart,
    grow_sum,
    move_moments,
    over,
    pair_at,
    plus,
    put_pair,
    times,
)

#: Keys, how many items each has, and both halves of their sums.
SeriesEntries: TypeAlias = tuple[Int64Array, Int64Array, Float64Array, Float64Array]
#: A row of whole and one of real numbers for each group.
Segments: TypeAlias = tuple[Int64Array, Float64Array]

#: The first, second and last instant; how many items the first has, none if it is the last, and how many the last has;
#: how many points the moments have, their flags, and the x of their anchor.
FIRST, SECOND, LAST, HEAD, TAIL, POINTS, FLAGS, X_ANCHOR = range(8)
#: Pairs of the sums of the first and of the last instant, the moments from the second to the last, the y of the anchor.
HEAD_SUM, TAIL_SUM, MOMENTS, Y_ANCHOR = 0, 2, 4, 4 + FIELDS
#: A double holds the sum of the squares of all whole numbers that are smaller than this.
SHORT = 2**17


@kernel
def series_gather(
    slots: Int64Array, keys: Int64Array, values: Float64Array, odd: UInt8Array
) -> tuple[Int64Array, SeriesEntries]:
    """The run of each slot. `odd` has a mark for slots with values that are not finite, which are counted as zero."""
    size = len(odd)
    ends = np.zeros(size + 1, np.int64)
    for i in range(len(slots)):
        ends[slots[i] + 1] += 1
    for slot in range(size):
        ends[slot + 1] += ends[slot]
    order, fill = np.empty(len(slots), np.int64), ends[:size].copy()
    for i in range(len(slots)):
        order[fill[slots[i]]] = i
        fill[slots[i]] += 1
    runs, entries = np.empty((size, 2), np.int64), _new_entries(len(slots))
    found, counts, highs, lows = entries
    last = 0
    for slot in range(size):
        begin, stop = ends[slot], ends[slot + 1]
        for place in range(begin + 1, stop):
            if keys[order[place]] < keys[order[place - 1]]:
                order[begin:stop] = order[begin:stop][np.argsort(keys[order[begin:stop]], kind="mergesort")]
                break
        runs[slot, 0] = last
        for place in range(begin, stop):
            row = order[place]
            key, value = keys[row], values[row]
            if not np.isfinite(value):
                odd[slot], value = 1, 0.0
            if last == runs[slot, 0] or found[last - 1] != key:
                found[last], counts[last], highs[last], lows[last] = key, 0, 0.0, 0.0
                last += 1
            counts[last - 1] += 1
            highs[last - 1], lows[last - 1] = plus((highs[last - 1], lows[last - 1]), (value, 0.0))
        runs[slot, 1] = last - runs[slot, 0]
    return runs, (found[:last].copy(), counts[:last].copy(), highs[:last].copy(), lows[:last].copy())


@helper
def _new_entries(room: int) -> SeriesEntries:
    return np.empty(room, np.int64), np.empty(room, np.int64), np.empty(room), np.empty(room)


@kernel
def series_merge(
    left: Int64Array, ours: SeriesEntries, right: Int64Array, theirs: SeriesEntries
) -> tuple[Int64Array, SeriesEntries]:
    """Both runs as one, place by place."""
    runs, entries = np.empty((len(left), 2), np.int64), _new_entries(left[:, 1].sum() + right[:, 1].sum())
    keys, counts, highs, lows = entries
    last = 0
    for i in range(len(left)):
        runs[i, 0] = last
        a, a_stop = left[i, 0], left[i, 0] + left[i, 1]
        b, b_stop = right[i, 0], right[i, 0] + right[i, 1]
        while a < a_stop or b < b_stop:
            mine = a < a_stop and (b >= b_stop or ours[0][a] <= theirs[0][b])
            theirs_too = b < b_stop and (not mine or ours[0][a] == theirs[0][b])
            keys[last], counts[last], total = 0, 0, (0.0, 0.0)
            if mine:
                keys[last], counts[last], total = ours[0][a], ours[1][a], (ours[2][a], ours[3][a])
            if theirs_too:
                keys[last], counts[last] = theirs[0][b], counts[last] + theirs[1][b]
                total = plus(total, (theirs[2][b], theirs[3][b]))
            highs[last], lows[last] = total
            a, b, last = a + mine, b + theirs_too, last + 1
        runs[i, 1] = last - runs[i, 0]
    return runs, (keys[:last], counts[:last], highs[:last], lows[:last])


@kernel
def series_segments(runs: Int64Array, entries: SeriesEntries, odd: UInt8Array, shift: int, filled: bool) -> Segments:
    """The segment of each run.

    A key is twice the number of whole steps before a time, and one more where some of a step is left: positions are
    `shift` ticks later than times, and the instant of a position is the step that it lies in or ends.
    """
    whole, real = np.zeros((len(runs), X_ANCHOR + 1), np.int64), np.zeros((len(runs), Y_ANCHOR + 1))
    for i in range(len(runs)):
        if odd[i]:
            whole[i, FLAGS] = ODD
        for place in range(runs[i, 0], runs[i, 0] + runs[i, 1]):
            instant = (entries[0][place] >> 1) + 1 if shift else (entries[0][place] + 1) >> 1
            _append(i, instant, entries[1][place], (entries[2][place], entries[3][place]), whole, real, filled)
    return whole, real


@helper
def _append(i: int, instant: int, count: int, total: Pair, whole: Int64Array, real: Float64Array, filled: bool) -> None:
    """Add items of one instant that is not before the last one of a segment."""
    if whole[i, TAIL] and whole[i, LAST] == instant:
        count, total = count + whole[i, TAIL], plus(pair_at(real, i, TAIL_SUM), total)
    elif whole[i, TAIL]:
        _leave_last(i, instant, whole, real, filled)
    else:
        whole[i, FIRST] = instant
    whole[i, LAST], whole[i, TAIL] = instant, count
    put_pair(real, i, TAIL_SUM, total)


@helper
def _leave_last(i: int, instant: int, whole: Int64Array, real: Float64Array, filled: bool) -> None:
    """A later instant follows: the last one becomes the first, if there is none yet, or part of the moments."""
    total = pair_at(real, i, TAIL_SUM)
    if whole[i, HEAD]:
        last = whole[i, LAST]
        _add_points(i, last, instant if filled else last + 1, whole[i, TAIL], total, whole, real)
    else:
        whole[i, SECOND], whole[i, HEAD] = instant, whole[i, TAIL]
        put_pair(real, i, HEAD_SUM, total)


@helper
def _add_points(i: int, first: int, end: int, count: int, total: Pair, whole: Int64Array, real: Float64Array) -> None:
    """Add the mean of an instant to the moments, for every instant from there to the end, itself excluded."""
    mean = (total[0] + total[1]) / count
    if not -HUGE < mean < HUGE:
        whole[i, FLAGS] |= ODD
        return
    if -TINY < mean < TINY:
        mean = 0.0
    if not whole[i, POINTS]:
        whole[i, X_ANCHOR], real[i, Y_ANCHOR] = first, mean
    near = first - whole[i, X_ANCHOR]
    far = near + end - first - 1
    e = apart(mean, real[i, Y_ANCHOR])
    whole[i, POINTS] += end - first
    if near != 0 or far != 0:
        whole[i, FLAGS] |= X_DIFFERS
    if e[0] != 0:
        whole[i, FLAGS] |= Y_DIFFERS
    n, x, xx = _sums_of_whole(near, far)
    grow_sum(real, i, MOMENTS + X, x)
    grow_sum(real, i, MOMENTS + Y, times(n, e))
    grow_sum(real, i, MOMENTS + XX, xx)
    grow_sum(real, i, MOMENTS + XY, times(x, e))
    grow_sum(real, i, MOMENTS + YY, times(n, times(e, e)))


@helper
def _sums_of_whole(near: int, far: int) -> tuple[Pair, Pair, Pair]:
    """Of the whole numbers from one to another: how many, their sum, and the sum of their squares."""
    length = far - near + 1
    if near > -SHORT and far < SHORT:
        squares = far * (far + 1) * (2 * far + 1) - (near - 1) * near * (2 * near - 1)
        return (np.float64(length), 0.0), (np.float64(length * (near + far) // 2), 0.0), (np.float64(squares // 6), 0.0)
    # The sum of squares by that around their middle.
    n, middle = (np.float64(length), 0.0), ((near + far) / 2.0, 0.0)
    x = times(n, middle)
    spread = over(times(n, plus(times(n, n), (-1.0, 0.0))), (12.0, 0.0))
    return n, x, plus(spread, times(x, middle))


@kernel
def series_combine(left: Segments, right: Segments, filled: bool) -> Segments:
    """Both segments as one, place by place: one begins where the other ends, or at the same instant."""
    whole, real = left[0].copy(), left[1].copy()
    for i in range(len(whole)):
        if not right[0][i, TAIL]:
            continue
        early, late = whole[i, FIRST], right[0][i, FIRST]
        if not whole[i, TAIL] or late < early or (late == early and right[0][i, LAST] < whole[i, LAST]):
            whole[i], real[i] = right[0][i], right[1][i]
            _append_segment(i, left[0], left[1], whole, real, filled)
        else:
            _append_segment(i, right[0], right[1], whole, real, filled)
    return whole, real


@helper
def _append_segment(
    i: int, later: Int64Array, later_real: Float64Array, whole: Int64Array, real: Float64Array, filled: bool
) -> None:
    """Add a segment that does not begin before the last instant of another."""
    if not later[i, TAIL]:
        return
    total = pair_at(later_real, i, TAIL_SUM)
    if later[i, HEAD]:
        _append(i, later[i, FIRST], later[i, HEAD], pair_at(later_real, i, HEAD_SUM), whole, real, filled)
        _leave_last(i, later[i, SECOND], whole, real, filled)
        whole[i, LAST], whole[i, TAIL] = later[i, LAST], later[i, TAIL]
        put_pair(real, i, TAIL_SUM, total)
        _add_moments(i, later, later_real, whole, real)
    else:
        _append(i, later[i, LAST], later[i, TAIL], total, whole, real, filled)
    whole[i, FLAGS] |= later[i, FLAGS]


@helper
def _add_moments(i: int, later: Int64Array, later_real: Float64Array, whole: Int64Array, real: Float64Array) -> None:
    if not later[i, POINTS]:
        return
    if not whole[i, POINTS]:
        whole[i, POINTS], whole[i, X_ANCHOR] = later[i, POINTS], later[i, X_ANCHOR]
        real[i, MOMENTS:] = later_real[i, MOMENTS:]
        return
    d, e = apart(later[i, X_ANCHOR], whole[i, X_ANCHOR]), apart(later_real[i, Y_ANCHOR], real[i, Y_ANCHOR])
    whole[i, FLAGS] |= X_DIFFERS  # an instant lies in one of two segments
    if e[0] != 0:
        whole[i, FLAGS] |= Y_DIFFERS
    move_moments(later_real, MOMENTS, i, later[i, POINTS], d, e, real, i)
    whole[i, POINTS] += later[i, POINTS]


@kernel
def series_moments(segments: Segments, end: int, filled: bool) -> tuple[Heads, Float64Array]:
    """The moments of all instants. Where gaps are filled, the last instant lasts until the end, itself excluded."""
    whole, real = segments[0].copy(), segments[1].copy()
    for i in range(len(whole)):
        first, last = whole[i, FIRST], whole[i, LAST]
        if whole[i, HEAD]:
            stop = whole[i, SECOND] if filled else first + 1
            _add_points(i, first, stop, whole[i, HEAD], pair_at(real, i, HEAD_SUM), whole, real)
        if whole[i, TAIL]:
            stop = max(end, last + 1) if filled else last + 1
            _add_points(i, last, stop, whole[i, TAIL], pair_at(real, i, TAIL_SUM), whole, real)
    heads = (
        whole[:, POINTS].copy(),
        whole[:, FLAGS].astype(np.uint8),
        whole[:, X_ANCHOR].copy(),
        real[:, Y_ANCHOR].copy(),
    )
    return heads, real[:, MOMENTS:Y_ANCHOR].copy()
