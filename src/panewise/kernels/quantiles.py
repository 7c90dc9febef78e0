"""The kernels of quantiles: sorted arrays of base intervals, merged as they complete, and elements chosen from them.

Values are numbered as they arrive; `ends` says how many there are up to
each position, modulo their number. Level l holds the same values as level zero, each base interval of width `1 << l`
sorted by group and value in the places of its own values, modulo what the level has room for. Where there is one group
only, `codes` is empty.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from panewise.kernels import Flags, Int64Array, helper, kernel

#: An element that is no more than this many from either end is found by taking one after the other.
_FEW = 12
#: How often a pivot is guessed from the longest array before every other one is drawn from all that is left.
_GUESSES = 4


@kernel
def quantile_merge(values: Int64Array, codes: Int64Array, ends: Int64Array, before: int, now: int, oldest: int) -> None:
    """Sort the base intervals that are complete since there are `now` positions and begin after the `oldest`."""
    for level in range(1, values.shape[0]):
        first = max(before >> level, -((-oldest) >> level))
        for number in range(first, now >> level):
            start, stop = number << level, (number + 1) << level
            middle = start + (1 << (level - 1))
            mask = len(ends) - 1
            _merge(values, codes, level, ends[start & mask], ends[middle & mask], ends[stop & mask])


@helper
def _merge(values: Int64Array, codes: Int64Array, level: int, left: int, middle: int, stop: int) -> None:
    """Two sorted runs next to each other, from one level to the next."""
    mask, keyed = values.shape[1] - 1, len(codes) > 0
    right = middle
    for place in range(left, stop):
        early = right >= stop
        if not early and left < middle:
            a, b = values[level - 1, left & mask], values[level - 1, right & mask]
            early = a <= b
            if keyed:
                one, other = codes[level - 1, left & mask], codes[level - 1, right & mask]
                early = one < other or (one == other and early)
        source = left if early else right
        values[level, place & mask] = values[level - 1, source & mask]
        if keyed:
            codes[level, place & mask] = codes[level - 1, source & mask]
        if early:
            left += 1
        else:
            right += 1


@kernel
def quantile_sizes(
    values: Int64Array, codes: Int64Array, ends: Int64Array, firsts: Int64Array, lasts: Int64Array, groups: Int64Array
) -> Int64Array:
    """How many values each window of one group has."""
    runs, out = np.empty((3, 128), np.int64), np.empty(len(firsts), np.int64)
    for i in range(len(firsts)):
        out[i] = _cover(values, codes, ends, firsts[i], lasts[i], groups[i], runs)[1]
    return out


@kernel
def quantile_select(
    values: Int64Array,
    codes: Int64Array,
    ends: Int64Array,
    firsts: Int64Array,
    lasts: Int64Array,
    groups: Int64Array,
    ranks: Int64Array,
) -> tuple[Int64Array, Flags]:
    """The element at a rank, counted from one, of each window of one group, and whether there is one."""
    out, found = np.zeros(len(firsts), np.int64), np.zeros(len(firsts), np.bool_)
    runs, heads = np.empty((3, 128), np.int64), np.empty(128, np.int64)
    for i in range(len(firsts)):
        count, total = _cover(values, codes, ends, firsts[i], lasts[i], groups[i], runs)
        if 1 <= ranks[i] <= total:
            out[i], found[i] = _select(values, runs, count, total, ranks[i], heads), True
    return out, found


@helper
def _cover(
    values: Int64Array, codes: Int64Array, ends: Int64Array, first: int, last: int, group: int, runs: Int64Array
) -> tuple[int, int]:
    """The sorted runs of a window, as rows of level, start and stop; how many there are, and how many values."""
    low, high, level, count, total = first - 1, last, 0, 0, 0
    mask = len(ends) - 1
    while low < high:
        for end in range(2):
            if (low if end == 0 else high) & 1:
                number = low if end == 0 else high - 1
                start, stop = ends[(number << level) & mask], ends[((number + 1) << level) & mask]
                if len(codes) > 0:
                    start = _below(codes, level, start, stop, group)
                    stop = _below(codes, level, start, stop, group + 1)
                if start < stop:
                    runs[0, count], runs[1, count], runs[2, count] = level, start, stop
                    count += 1
                    total += stop - start
        low, high, level = (low + 1) >> 1, high >> 1, level + 1
    return count, total


@helper
def _below(table: Int64Array, level: int, start: int, stop: int, bound: int) -> int:
    """Where in a sorted run what is below a bound ends."""
    mask, count = table.shape[1] - 1, stop - start
    while count > 0:
        half = (count + 1) >> 1
        start += half if table[level, (start + half - 1) & mask] < bound else 0
        count -= half
    return start


@helper
def _narrow_up(values: Int64Array, level: int, start: int, stop: int, bound: int) -> tuple[int, int]:
    """A shorter part of a run in which what is below a bound ends; cheap where that is near its start."""
    mask, step = values.shape[1] - 1, 1
    while start + step <= stop and values[level, (start + step - 1) & mask] < bound:
        start += step
        step *= 2
    return start, min(stop, start + step - 1)


@helper
def _narrow_down(values: Int64Array, level: int, start: int, stop: int, bound: int) -> tuple[int, int]:
    """The same, cheap where that is near its end."""
    mask, step = values.shape[1] - 1, 1
    while stop - step >= start and values[level, (stop - step) & mask] >= bound:
        stop -= step
        step *= 2
    return max(start, stop - step + 1), stop


@helper
def _select(values: Int64Array, runs: Int64Array, count: int, total: int, rank: int, heads: Int64Array) -> Any:
    """The element at a rank of some sorted runs: parts of them are left out until few remain on one side of it.

    A pivot is guessed where the rank would be in the longest run, which is near where runs are alike. Where they are
    not, every other pivot is drawn from all that remain, so that half of them go on average.
    """
    drawn, rounds = 1, 0
    while rank > _FEW and total - rank >= _FEW:
        run, place = _longest(runs, count, rank, total)
        if rounds >= _GUESSES and rounds % 2 == 0:
            drawn = (drawn * 1103515245 + 12345) & 0x7FFFFFFF
            run, place = _element_at(runs, count, drawn % total)
        pivot = values[runs[0, run], place & (values.shape[1] - 1)]
        less, from_start, from_stop = 0, 8 * rank < total, 8 * (total - rank) < total
        for n in range(count):
            level, start, stop = runs[0, n], runs[1, n], runs[2, n]
            if from_start:
                start, stop = _narrow_up(values, level, start, stop, pivot)
            elif from_stop:
                start, stop = _narrow_down(values, level, start, stop, pivot)
            heads[n] = _below(values, level, start, stop, pivot)
            less += heads[n] - runs[1, n]
        if less >= rank:
            total = less
            for n in range(count):
                runs[2, n] = heads[n]
        else:
            same = 0
            for n in range(count):
                start = _end_of_equal(values, runs[0, n], heads[n], runs[2, n], pivot)
                same += start - heads[n]
                runs[1, n] = start
            if less + same >= rank:
                return pivot
            rank -= less + same
            total -= less + same
        count = _pack_runs(runs, count)
        rounds += 1
    if rank <= _FEW:
        return _from_below(values, runs, count, rank, heads)
    return _from_above(values, runs, count, total - rank + 1, heads)


@helper
def _longest(runs: Int64Array, count: int, rank: int, total: int) -> tuple[int, int]:
    """The longest run, and the place in it that a rank among all would have."""
    run, most = 0, 0
    for n in range(count):
        length = runs[2, n] - runs[1, n]
        if length > most:
            run, most = n, length
    return run, runs[1, run] + (2 * rank - 1) * most // (2 * total)


@helper
def _element_at(runs: Int64Array, count: int, number: int) -> tuple[int, int]:
    """The run and the place of an element, all runs counted one after the other."""
    for n in range(count):
        length = runs[2, n] - runs[1, n]
        if number < length:
            return n, runs[1, n] + number
        number -= length
    return 0, runs[1, 0]


@helper
def _end_of_equal(values: Int64Array, level: int, start: int, stop: int, pivot: int) -> int:
    """Where in a run, none of which is less than a pivot, those equal to it end. Mostly there are few."""
    mask, step = values.shape[1] - 1, 1
    while start + step <= stop and values[level, (start + step - 1) & mask] == pivot:
        start += step
        step *= 2
    stop = min(stop, start + step)
    while start < stop:
        middle = (start + stop) >> 1
        if values[level, middle & mask] == pivot:
            start = middle + 1
        else:
            stop = middle
    return start


@helper
def _pack_runs(runs: Int64Array, count: int) -> int:
    """The runs without those of which nothing is left."""
    kept = 0
    for n in range(count):
        if runs[1, n] < runs[2, n]:
            runs[0, kept], runs[1, kept], runs[2, kept] = runs[0, n], runs[1, n], runs[2, n]
            kept += 1
    return kept


@helper
def _from_below(values: Int64Array, runs: Int64Array, count: int, rank: int, heads: Int64Array) -> Any:
    """The element at a small rank, by taking the least away again and again."""
    mask = values.shape[1] - 1
    for n in range(count):
        heads[n] = values[runs[0, n], runs[1, n] & mask]
    while True:
        least = 0
        for n in range(1, count):
            if heads[n] < heads[least]:
                least = n
        if rank == 1:
            return heads[least]
        rank -= 1
        runs[1, least] += 1
        if runs[1, least] < runs[2, least]:
            heads[least] = values[runs[0, least], runs[1, least] & mask]
        else:
            count -= 1
            heads[least] = heads[count]
            runs[0, least], runs[1, least], runs[2, least] = runs[0, count], runs[1, count], runs[2, count]


@helper
def _from_above(values: Int64Array, runs: Int64Array, count: int, rank: int, heads: Int64Array) -> Any:
    """The same from the other end: ranks count down from the greatest."""
    mask = values.shape[1] - 1
    for n in range(count):
        heads[n] = values[runs[0, n], (runs[2, n] - 1) & mask]
    while True:
        most = 0
        for n in range(1, count):
            if heads[n] > heads[most]:
                most = n
        if rank == 1:
            return heads[most]
        rank -= 1
        runs[2, most] -= 1
        if runs[1, most] < runs[2, most]:
            heads[most] = values[runs[0, most], (runs[2, most] - 1) & mask]
        else:
            count -= 1
            heads[most] = heads[count]
            runs[0, most], runs[1, most], runs[2, most] = runs[0, count], runs[1, count], runs[2, count]
