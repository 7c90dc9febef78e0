"""The kernels of R-INT for many substreams: the times of their elements, and what all before each of them sum to.

The elements of a substream lie in a ring. Kept of each ring are its start in the pool, its room (a power of two, or
none), and the numbers of the oldest element kept and of the next one.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np

from panewise.kernels import Int32Array, Int64Array, helper, kernel

#: The pool's times, and sums (none where elements are counted); then what is known of each ring.
Rings: TypeAlias = tuple[Int64Array, Int64Array, Int64Array]
#: The columns of that: they lie together, since a lookup needs them all.
START, ROOM, OLDEST, NEXT, TOTAL = range(5)
FIELDS = 5


@kernel
def running_append(
    codes: Int64Array, times: Int64Array, values: Int64Array, start: int, rings: Rings, before: int
) -> int:
    """Add elements from place `start` on; stops where a ring is full of elements later than `before`."""
    pool, sums, known = rings
    for i in range(start, len(codes)):
        ring = known[codes[i]]
        first, mask = ring[START], ring[ROOM] - 1
        if ring[NEXT] - ring[OLDEST] == ring[ROOM]:
            while ring[OLDEST] < ring[NEXT] and pool[first + (ring[OLDEST] & mask)] <= before:
                ring[OLDEST] += 1
            if ring[NEXT] - ring[OLDEST] == ring[ROOM]:
                return i
        place = first + (ring[NEXT] & mask)
        pool[place] = times[i]
        ring[NEXT] += 1
        if len(values):
            sums[place] = ring[TOTAL]
            ring[TOTAL] += values[i]
    return len(codes)


@helper
def _counts(rings: Rings, code: int, cut: int, least: int) -> Any:
    """Whether a substream has `least` elements after a cut: whether the one that far back is later. No branch."""
    pool, _, known = rings
    oldest, place = known[code, OLDEST], known[code, NEXT] - least
    stamp = pool[known[code, START] + (max(place, oldest) & (known[code, ROOM] - 1))]
    return (place >= oldest) & (stamp > cut)


@helper
def _sums_to(rings: Rings, code: int, cut: int, least: int) -> Any:
    """Whether what a substream sums to after a cut is so much, from its first element there on."""
    pool, sums, known = rings
    first, mask = known[code, START], known[code, ROOM] - 1
    low, high = known[code, OLDEST], known[code, NEXT]
    while low < high:
        middle = (low + high) >> 1
        if pool[first + (middle & mask)] > cut:
            high = middle
        else:
            low = middle + 1
    return low < known[code, NEXT] and known[code, TOTAL] - sums[first + (low & mask)] >= least


@kernel
def running_confirm(
    rings: Rings,
    parts: Int64Array,
    codes: Int32Array,
    doubtful: Int32Array,
    cuts: Int64Array,
    least: Int64Array,
    below: bool,
) -> tuple[Int64Array, Int64Array]:
    """Of the candidates of each lookup (see `level_lookup`) those that are right, in the order of lookups.

    Checking, striking out and copying are loops of their own without branches: which candidates are right cannot be
    guessed, and the processor waits for many places of memory at once.
    """
    offsets, out = np.zeros(len(parts) + 1, np.int64), np.empty(len(codes) + 1, np.int64)
    wrong = np.empty(len(doubtful), np.bool_)
    counted = len(rings[1]) == 0
    total = 0
    for i in range(len(parts)):
        cut, enough, first, end = cuts[i], least[i], parts[i, 2], parts[i, 3]
        if counted:
            for n in range(first, end):
                wrong[n] = _counts(rings, codes[doubtful[n]], cut, enough) == below
        else:
            for n in range(first, end):
                wrong[n] = _sums_to(rings, codes[doubtful[n]], cut, enough) == below
        for n in range(first, end):
            codes[doubtful[n]] |= -np.int32(wrong[n])
        for place in range(parts[i, 0], parts[i, 1]):
            out[total] = codes[place]
            total += codes[place] >= 0
        offsets[i + 1] = total
    return offsets, out[:total]
