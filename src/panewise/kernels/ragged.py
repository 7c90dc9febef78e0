"""The kernels of runs: states of different sizes, one after the other in a block, each with its start and its size.

A run of a multiset has different keys, ascending, and beside each how often it occurs.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np

from panewise.kernels import Flags, Int64Array, helper, kernel

#: The start and the size of each run, the keys and how often each occurs.
Multisets: TypeAlias = tuple[Int64Array, Int64Array, Int64Array]

#: From so many on, keys are sorted by their digits.
MANY_KEYS = 512


@kernel
def runs_copy(runs: Int64Array, entries: Any, out: Any) -> None:
    """The entries of runs, one run after the other."""
    place = 0
    for i in range(len(runs)):
        start, size = runs[i, 0], runs[i, 1]
        for n in range(size):
            out[place + n] = entries[start + n]
        place += size


@kernel
def runs_extent(runs: Int64Array) -> tuple[int, int]:
    """Where the first of some runs begins, -1 unless each begins where the one before ends; and how long all are."""
    first, total = runs[0, 0] if len(runs) else 0, 0
    for i in range(len(runs)):
        if runs[i, 0] != first + total:
            first = -1
            break
        total += runs[i, 1]
    return (first, total) if first >= 0 else (first, runs[:, 1].sum())


@kernel
def runs_gather(slots: Int64Array, keys: Int64Array, size: int) -> Multisets:
    """The multiset of the keys of each slot."""
    ends = np.zeros(size + 1, np.int64)
    for i in range(len(slots)):
        ends[slots[i] + 1] += 1
    for slot in range(size):
        ends[slot + 1] += ends[slot]
    ordered = np.empty(len(slots), np.int64)
    fill = ends[:size].copy()
    for i in range(len(slots)):
        slot = slots[i]
        ordered[fill[slot]] = keys[i]
        fill[slot] += 1
    runs, counts = np.empty((size, 2), np.int64), np.empty(len(slots), np.int64)
    last = 0
    for slot in range(size):
        runs[slot, 0] = last
        start, stop = ends[slot], ends[slot + 1]
        _sort(ordered, counts, start, stop)
        for place in range(start, stop):
            key = ordered[place]
            if last > runs[slot, 0] and ordered[last - 1] == key:
                counts[last - 1] += 1
            else:
                ordered[last], counts[last] = key, 1
                last += 1
        runs[slot, 1] = last - runs[slot, 0]
    return runs, ordered[:last].copy(), counts[:last].copy()


@kernel
def runs_sort(runs: Int64Array, keys: Int64Array, counts: Int64Array) -> None:
    """Sort the entries of each run by their keys, in place; no entry belongs to two runs."""
    for i in range(len(runs)):
        start, size = runs[i, 0], runs[i, 1]
        order = np.argsort(keys[start : start + size])
        keys[start : start + size] = keys[start : start + size][order]
        counts[start : start + size] = counts[start : start + size][order]


@helper
def _sort(keys: Int64Array, room: Int64Array, start: int, stop: int) -> None:
    """Sort keys by insertion, in blocks, and merge these; `room` is as long as the keys."""
    if stop - start >= MANY_KEYS:
        _sort_by_digits(keys, room, start, stop)
        return
    block = 16
    for low in range(start, stop, block):
        for place in range(low + 1, min(low + block, stop)):
            key, hole = keys[place], place
            while hole > low and keys[hole - 1] > key:
                keys[hole] = keys[hole - 1]
                hole -= 1
            keys[hole] = key
    while block < stop - start:
        for low in range(start, stop, 2 * block):
            middle, high = min(low + block, stop), min(low + 2 * block, stop)
            room[low:middle] = keys[low:middle]
            left, right, place = low, middle, low
            while left < middle and right < high:
                if room[left] <= keys[right]:
                    keys[place] = room[left]
                    left += 1
                else:
                    keys[place] = keys[right]
                    right += 1
                place += 1
            while left < middle:
                keys[place] = room[left]
                left, place = left + 1, place + 1
        block *= 2


@helper
def _sort_by_digits(keys: Int64Array, room: Int64Array, start: int, stop: int) -> None:
    """Sort many keys by the bytes of their distances from the smallest, the last byte first."""
    low, high = keys[start:stop].min(), keys[start:stop].max()
    shift = 0
    # The distance wraps around if it does not fit, and then has all bits.
    while shift < 64 and (high - low < 0 or (high - low) >> shift > 0):
        ends = np.zeros(257, np.int64)
        for place in range(start, stop):
            ends[((keys[place] - low) >> shift & 255) + 1] += 1
        ends[0] = start
        for digit in range(256):
            ends[digit + 1] += ends[digit]
        for place in range(start, stop):
            digit = (keys[place] - low) >> shift & 255
            room[ends[digit]] = keys[place]
            ends[digit] += 1
        keys[start:stop] = room[start:stop]
        shift += 8


@kernel
def runs_merge(
    left: Int64Array,
    left_keys: Int64Array,
    left_counts: Int64Array,
    right: Int64Array,
    right_keys: Int64Array,
    right_counts: Int64Array,
    sign: int,
) -> Multisets:
    """The sums of multisets, place by place, or their differences if the sign is -1; keys that no value has left go."""
    room = left[:, 1].sum() + right[:, 1].sum()
    runs, keys, counts = np.empty((len(left), 2), np.int64), np.empty(room, np.int64), np.empty(room, np.int64)
    last = 0
    for i in range(len(left)):
        runs[i, 0] = last
        a, a_stop = left[i, 0], left[i, 0] + left[i, 1]
        b, b_stop = right[i, 0], right[i, 0] + right[i, 1]
        while a < a_stop and b < b_stop:
            one, other = left_keys[a], right_keys[b]
            if one < other:
                keys[last], counts[last] = one, left_counts[a]
                a, last = a + 1, last + 1
            elif other < one:
                keys[last], counts[last] = other, sign * right_counts[b]
                b, last = b + 1, last + 1
            else:
                count = left_counts[a] + sign * right_counts[b]
                keys[last], counts[last] = one, count
                a, b, last = a + 1, b + 1, last + (count != 0)
        while a < a_stop:
            keys[last], counts[last] = left_keys[a], left_counts[a]
            a, last = a + 1, last + 1
        while b < b_stop:
            keys[last], counts[last] = right_keys[b], sign * right_counts[b]
            b, last = b + 1, last + 1
        runs[i, 1] = last - runs[i, 0]
    return (
        runs,
        keys[:last].copy() if 2 * last < room else keys[:last],
        counts[:last].copy() if 2 * last < room else counts[:last],
    )


@kernel
def runs_common(
    left: Int64Array,
    left_keys: Int64Array,
    left_counts: Int64Array,
    right: Int64Array,
    right_keys: Int64Array,
    right_counts: Int64Array,
) -> Multisets:
    """The keys that both multisets have, place by place, each with how often it occurs in both together."""
    room = np.minimum(left[:, 1], right[:, 1]).sum()
    runs, keys, counts = np.empty((len(left), 2), np.int64), np.empty(room, np.int64), np.empty(room, np.int64)
    last = 0
    for i in range(len(left)):
        runs[i, 0] = last
        a, a_stop = left[i, 0], left[i, 0] + left[i, 1]
        b, b_stop = right[i, 0], right[i, 0] + right[i, 1]
        while a < a_stop and b < b_stop:
            one, other = left_keys[a], right_keys[b]
            if one == other:
                keys[last], counts[last] = one, left_counts[a] + right_counts[b]
                last += 1
            a, b = a + (one <= other), b + (other <= one)
        runs[i, 1] = last - runs[i, 0]
    return runs, keys[:last], counts[:last]


@kernel
def runs_weigh(runs: Int64Array, counts: Int64Array) -> Int64Array:
    """How many values each multiset has."""
    out = np.zeros(len(runs), np.int64)
    for i in range(len(runs)):
        for place in range(runs[i, 0], runs[i, 0] + runs[i, 1]):
            out[i] += counts[place]
    return out


@kernel
def runs_select(runs: Int64Array, counts: Int64Array, ranks: Int64Array) -> Int64Array:
    """The place of the entry that has the value at a rank, counted from one, of each multiset; -1 if it is empty."""
    out = np.full(len(runs), -1, np.int64)
    for i in range(len(runs)):
        left = ranks[i]
        for place in range(runs[i, 0], runs[i, 0] + runs[i, 1]):
            left -= counts[place]
            if left <= 0:
                out[i] = place
                break
    return out


@kernel
def runs_greatest(slots: Int64Array, runs: Int64Array, data: Any, flip: int, best: Int64Array) -> None:
    """For each slot the number of the run whose bytes come last, or first if `flip` is set; `best` starts with -1."""
    for i in range(len(slots)):
        held = best[slots[i]]
        if held < 0 or (_compare(runs, data, i, runs, data, held) > 0) != (flip != 0):
            best[slots[i]] = i


@kernel
def runs_greater(
    left: Int64Array, left_data: Any, left_seen: Flags, right: Int64Array, right_data: Any, right_seen: Flags, flip: int
) -> tuple[Int64Array, Any]:
    """Of two runs of bytes that which comes last, or first if `flip` is set, place by place, as runs and bytes.

    Those that are not seen do not count.
    """
    runs, out = np.zeros((len(left), 2), np.int64), np.empty(left[:, 1].sum() + right[:, 1].sum(), np.uint8)
    last = 0
    for i in range(len(left)):
        chosen = right_seen[i]
        if chosen and left_seen[i]:
            chosen = (_compare(right, right_data, i, left, left_data, i) > 0) != (flip != 0)
        start, size = right[i] if chosen else left[i]
        runs[i, 0], runs[i, 1] = last, size
        for n in range(size):
            out[last + n] = right_data[start + n] if chosen else left_data[start + n]
        last += size
    return runs, out[:last]


@helper
def _compare(one: Int64Array, one_data: Any, i: int, other: Int64Array, other_data: Any, j: int) -> Any:
    """Above zero if the bytes of a run come after those of another, below if before, zero if they are equal."""
    a, b, size, length = one[i, 0], other[j, 0], one[i, 1], other[j, 1]
    for n in range(min(size, length)):
        if one_data[a + n] != other_data[b + n]:
            return np.int64(one_data[a + n]) - np.int64(other_data[b + n])
    return size - length
