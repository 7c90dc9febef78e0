"""The kernels of stretches of steps that overlap in any way."""

from __future__ import annotations

import numpy as np

from panewise.kernels import Flags, Int64Array, helper, kernel

_LEAST = np.int64(np.iinfo(np.int64).min)


@kernel
def stretch_sums(word: Int64Array, low: Int64Array, high: Int64Array, count: int) -> Int64Array:
    """The sum of a word over all rows whose stretch has each step; it may wrap around."""
    steps = np.zeros(count + 1, np.int64)
    for row in range(len(word)):
        steps[low[row]] += word[row]
        steps[high[row]] -= word[row]
    for step in range(1, count):
        steps[step] += steps[step - 1]
    return steps[:count]


@kernel
def stretch_greatest(
    order: Int64Array, low: Int64Array, high: Int64Array, word: Int64Array, seen: Flags, count: int
) -> tuple[Int64Array, Flags]:
    """The greatest word of the rows whose stretch has each step, and whether there is any that is `seen`.

    `order` is that of `low`. A heap has the rows that have begun; those that have ended are removed when they are met.
    """
    best, there = np.full(count, _LEAST), np.zeros(count, np.bool_)
    heap, size, coming = np.empty(len(order), np.int64), 0, 0
    for step in range(count):
        while coming < len(order) and low[order[coming]] <= step:
            if seen[order[coming]] and high[order[coming]] > step:
                _push(heap, size, order[coming], word)
                size += 1
            coming += 1
        while size > 0 and high[heap[0]] <= step:
            size -= 1
            _sift_down(heap, size, heap[size], word)
        if size > 0:
            best[step], there[step] = word[heap[0]], True
    return best, there


@helper
def _push(heap: Int64Array, size: int, row: int, word: Int64Array) -> None:
    """Add a row to a heap of so many rows."""
    place = size
    while place > 0 and word[heap[(place - 1) // 2]] < word[row]:
        heap[place] = heap[(place - 1) // 2]
        place = (place - 1) // 2
    heap[place] = row


@helper
def _sift_down(heap: Int64Array, size: int, row: int, word: Int64Array) -> None:
    """Put a row into the place of the first one of a heap that has so many rows without the last one."""
    place = 0
    while 2 * place + 1 < size:
        child = 2 * place + 1
        if child + 1 < size and word[heap[child + 1]] > word[heap[child]]:
            child += 1
        if word[heap[child]] <= word[row]:
            break
        heap[place] = heap[child]
        place = child
    heap[place] = row
