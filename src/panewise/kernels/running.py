"""The kernels of R-INT for many substreams: the times of their elements, and what all before each of them sum to.

One text serves both twins. The elements of a substream lie in a ring, of which it knows where it starts in the pool,
its room (a power of two, or none), and the numbers of the oldest element kept and of the next one.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numba.extending import register_jitable

from panewise.kernels.plain import Flags, Longs

#: The pool's times and sums (none where elements are counted); by code: start, room, oldest, next, and the sum of all.
Rings: TypeAlias = tuple[Longs, Longs, Longs, Longs, Longs, Longs, Longs]


def running_append(codes: Longs, times: Longs, values: Longs, start: int, rings: Rings, before: int) -> int:
    """Add elements from place `start` on; stops where a ring is full of elements later than `before`."""
    pool, sums, starts, rooms, oldest, following, totals = rings
    for i in range(start, len(codes)):
        code = codes[i]
        first, mask = starts[code], rooms[code] - 1
        if following[code] - oldest[code] == rooms[code]:
            while oldest[code] < following[code] and pool[first + (oldest[code] & mask)] <= before:
                oldest[code] += 1
            if following[code] - oldest[code] == rooms[code]:
                return i
        place = first + (following[code] & mask)
        pool[place] = times[i]
        following[code] += 1
        if len(values):
            sums[place] = totals[code]
            totals[code] += values[i]
    return len(codes)


@register_jitable
def _reaches(rings: Rings, code: int, cut: int, least: int) -> Any:
    """Whether a substream has `least` or more after a cut.

    Counts know without a search: that many elements back, was it later? Sums look for the first element after the cut.
    """
    pool, sums, starts, rooms, oldest, following, totals = rings
    first, mask = starts[code], rooms[code] - 1
    low, high = oldest[code], following[code]
    if len(sums) == 0:
        return high - least >= low and pool[first + ((high - least) & mask)] > cut
    while low < high:
        middle = (low + high) >> 1
        if pool[first + (middle & mask)] > cut:
            high = middle
        else:
            low = middle + 1
    return low < following[code] and totals[code] - sums[first + (low & mask)] >= least


def running_confirm(
    rings: Rings, offsets: Longs, codes: Longs, sure: Flags, cuts: Longs, least: Longs, below: bool
) -> tuple[Longs, Longs]:
    """Of the candidates of each lookup those that are right: the sure ones, and those that running totals confirm."""
    kept, total = np.zeros(len(offsets), np.int64), 0
    for i in range(len(cuts)):
        cut, enough = cuts[i], least[i]
        for n in range(offsets[i], offsets[i + 1]):
            code = codes[n]
            codes[total] = code
            total += sure[n] or _reaches(rings, code, cut, enough) != below
        kept[i + 1] = total
    return kept, codes[:total]
