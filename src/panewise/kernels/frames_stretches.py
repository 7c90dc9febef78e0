"""The kernels of frames that may overlap, or whose items are known only later: they find stretches of kept items.

The items of a group lie in places that follow each other, in the order of time, up to before `stops`; those from
`fresh` on are new. `start` is the first place at which a frame may still begin, and `reached` the last place of a frame
that decides about the next one; both are brought up to date. Returned are the first and last place of each stretch.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np

from panewise.kernels import Flags, Float64Array, Int64Array, helper, kernel
from panewise.kernels.frame_comparisons import RANKED, SPREAD, Comparison, Material
from panewise.kernels.frames import (
    COUNT_ROWS,
    MEAN,
    SUM,
    _holds,
    _with,
)
from panewise.kernels.frames_searches import _passes, flip_ranked, flip_summed
from panewise.kernels.frames_spread import flip_spread_far
from panewise.kernels.variance import variance_add_floats, variance_answers_floats

Stretches: TypeAlias = tuple[Int64Array, Int64Array]

#: No item so far ends the frame.
_OPEN = -2


@kernel
def frame_chain(
    begins: Int64Array,
    stops: Int64Array,
    start: Int64Array,
    reached: Int64Array,
    times: Int64Array,
    comparison: Comparison,
    material: Material,
    overlap: int,
    finishing: bool,
) -> Stretches:
    """Each frame decides where the next one begins: so long before its end, or after it where `overlap` is negative.

    A frame that ended with the last item keeps `reached` at its end, until the next item comes.
    """
    firsts, lasts = np.empty(len(times), np.int64), np.empty(len(times), np.int64)
    count = 0
    for group in range(len(stops)):
        first, stop, ended = start[group], stops[group], reached[group]
        if ended >= first:
            if ended + 1 == stop:
                continue
            first = _first_inside(times, first, ended, overlap)
        ended = np.int64(-1)
        while first < stop:
            last = _find_end(begins[group], first, stop, comparison, material)
            if last == _OPEN:
                if not finishing or comparison[1] < 2:
                    break
                last = stop - 1
            if last < first:
                first += 1
                continue
            firsts[count], lasts[count] = first, last
            count += 1
            if overlap < 0 or first == last:
                first = last + 1
            elif last + 1 == stop:
                first, ended = first + 1, last
                break
            else:
                first = _first_inside(times, first + 1, last, overlap)
        start[group], reached[group] = first, max(ended, first - 1)
    return firsts[:count], lasts[:count]


@helper
def _first_inside(times: Int64Array, first: int, last: int, overlap: int) -> int:
    """The first place from one on that is at most so long before another."""
    while times[first] < times[last] - overlap:
        first += 1
    return first


@kernel
def frame_everywhere(
    begins: Int64Array,
    stops: Int64Array,
    start: Int64Array,
    reached: Int64Array,
    times: Int64Array,
    comparison: Comparison,
    material: Material,
    advancing: bool,
    finishing: bool,
) -> Stretches:
    """A frame begins with every item; those that are `advancing` must end after all before them.

    Frames are found in the order of their starts: an open one holds up those that begin after it.
    """
    firsts, lasts = np.empty(len(times), np.int64), np.empty(len(times), np.int64)
    count = 0
    for group in range(len(stops)):
        first, stop = start[group], stops[group]
        while first < stop:
            last = _find_end(begins[group], first, stop, comparison, material)
            if last == _OPEN:
                if not finishing:
                    break
                last = first - 1 if comparison[1] < 2 else stop - 1
            if last >= first and not (advancing and last <= reached[group]):
                firsts[count], lasts[count], reached[group] = first, last, last
                count += 1
            first += 1
        start[group] = first
    return firsts[:count], lasts[:count]


# ---- where the frame that begins with an item ends -------------------------------------------------------------------


@helper
def _find_end(begin: int, first: int, stop: int, comparison: Comparison, material: Material) -> int:
    """The last place of the frame that begins with an item of a group, before that item if there is none, or _OPEN."""
    aggregate, operator, _, _, _ = comparison
    values, known, levels = material
    if aggregate == RANKED:
        place = flip_ranked(begin, first, stop, comparison, material)
    elif aggregate == SPREAD:
        place = flip_spread_far(begin, first, stop, comparison, levels)
        if place < 0:
            place = _flip_spread(first, stop, comparison, values)
    elif aggregate in (SUM, MEAN, COUNT_ROWS):
        place = flip_summed(begin, first, stop, comparison, levels)
        if place < 0:
            place = _flip_folded(first, stop, comparison, values)
    else:
        place = known[first]
    if place == stop:
        return _OPEN
    return int(place if operator < 2 else place - 1)


@helper
def _flip_folded(first: int, stop: int, comparison: Comparison, values: Float64Array) -> int:
    aggregate, operator, limit, _, _ = comparison
    so_far = (0.0, 0.0, np.int64(0))
    place = first
    while place < stop:
        if not np.isnan(values[place]):
            so_far = _with(so_far, values[place], aggregate)
        if _holds(so_far, aggregate, operator, limit) == (operator < 2):
            break
        place += 1
    return place


@helper
def _flip_spread(first: int, stop: int, comparison: Comparison, values: Float64Array) -> int:
    _, operator, limit, freedom, root = comparison
    slot, count, band = np.zeros(1, np.int64), np.zeros(1, np.int64), np.zeros(1, np.uint8)
    words = (count, band, np.zeros(1), np.zeros(1), np.zeros(1), np.zeros(1), np.zeros(1))
    place = first
    while place < stop:
        if not np.isnan(values[place]):
            variance_add_floats(slot, values[place : place + 1], words)
            answer = variance_answers_floats(words, freedom, root > 0)[0]
            if count[0] > freedom and _passes(answer, operator, limit):
                break
        place += 1
    return place


# ---- other kinds -----------------------------------------------------------------------------------------------------


@kernel
def frame_nested(fresh: Int64Array, stops: Int64Array, start: Int64Array, starts: Flags, ends: Flags) -> Stretches:
    """Frames begin inside each other and end together; none is open where `start` is a place that is to come."""
    firsts, lasts = np.empty(len(starts), np.int64), np.empty(len(starts), np.int64)
    count = 0
    for group in range(len(stops)):
        first = min(start[group], fresh[group])
        is_open = start[group] < fresh[group]
        for place in range(fresh[group], stops[group]):
            if is_open and ends[place]:
                for other in range(first, place):
                    if starts[other]:
                        firsts[count], lasts[count] = other, place
                        count += 1
                is_open = False
            elif starts[place] and not is_open:
                first, is_open = place, True
        start[group] = first if is_open else stops[group]
    return firsts[:count], lasts[:count]


@kernel
def frame_crowds(
    begins: Int64Array,
    fresh: Int64Array,
    stops: Int64Array,
    start: Int64Array,
    reached: Int64Array,
    times: Int64Array,
    least: int,
    per: int,
    now: int,
) -> Stretches:
    """At least so many items in so short a time, and all such stretches that share items; no item up to `now` comes.

    The open crowd of a group is from `start` to `reached`, if that is not before.
    """
    firsts, lasts = np.empty(len(times), np.int64), np.empty(len(times), np.int64)
    count = 0
    for group in range(len(stops)):
        first, last, stop = start[group], reached[group], stops[group]
        for place in range(fresh[group], stop):
            oldest = place - least + 1
            if first <= last < oldest:
                firsts[count], lasts[count] = first, last
                count += 1
                first = last + 1
            if oldest >= begins[group] and times[place] - times[oldest] < per:
                if last < first:
                    first = oldest
                last = place
        if first <= last and times[last] + per <= now:
            firsts[count], lasts[count] = first, last
            count += 1
            first = last + 1
        if last < first:
            first = max(first, stop - least + 1)
            while first < stop and times[first] + per <= now:
                first += 1
            last = first - 1
        start[group], reached[group] = first, last
    return firsts[:count], lasts[:count]


@kernel
def frame_peaks(firsts: Int64Array, lasts: Int64Array, times: Int64Array, per: int) -> Int64Array:
    """How many items of each stretch lie in so short a time, at most."""
    peaks = np.zeros(len(firsts), np.int64)
    for number in range(len(firsts)):
        low = firsts[number]
        for high in range(firsts[number], lasts[number] + 1):
            while times[high] - times[low] >= per:
                low += 1
            peaks[number] = max(peaks[number], high - low + 1)
    return peaks


@kernel
def frame_blocks(groups: Int64Array, low: Int64Array, high: Int64Array, size: int) -> tuple[Int64Array, Flags]:
    """For ranges of rows that move on in each group, where each goes from one block of rows into the next, and where
    blocks begin (see `kernels.ranges`).
    """
    middle, cuts = np.empty(len(low), np.int64), np.zeros(size + 1, np.bool_)
    border = np.int64(-1)
    for number in range(len(low)):
        begins = number == 0 or groups[number] != groups[number - 1]
        if begins:
            cuts[low[number]] = True
        if begins or low[number] >= border:
            border = high[number]
            cuts[border] = True
        middle[number] = border
    return middle, cuts
