"""The kernel of blocks of rows: in a counted window with a SLIDE, rows wait and come with the last of their block."""

from __future__ import annotations

import numpy as np

from panewise.kernels import Int64Array, loops_of
from panewise.kernels.ranges import OPEN


def range_blocks(edges: Int64Array, visible: Int64Array, size: int, before: Int64Array) -> Int64Array:
    """When the last row of the block of each row comes; OPEN if it has not come yet.

    The rows of partition `p` begin at `edges[p]`, ordered by time, and follow `before[p]` others. They are counted in
    the order in which they come, those of one instant by time.
    """
    counts = np.diff(edges)
    partitions = np.repeat(np.arange(len(counts)), counts)
    order = np.lexsort((visible, partitions))
    numbers = np.arange(len(visible)) - edges[partitions] + before[partitions]
    lasts = np.arange(len(visible)) + size - 1 - numbers % size
    complete = lasts < edges[partitions + 1]
    found = np.full(len(visible), OPEN)
    found[order[complete]] = visible[order[lasts[complete]]]
    return found


@loops_of(range_blocks)
def _range_blocks(edges: Int64Array, visible: Int64Array, size: int, before: Int64Array) -> Int64Array:
    found = np.full(len(visible), OPEN)
    for partition in range(len(edges) - 1):
        begin, end = edges[partition], edges[partition + 1]
        order, in_order = np.arange(begin, end), True
        for place in range(begin + 1, end):
            in_order &= visible[place] >= visible[place - 1]
        if not in_order:
            order = begin + np.argsort(visible[begin:end], kind="mergesort")
        # The first block may have begun before the first row.
        last = size - 1 - before[partition] % size
        row = 0
        while last < end - begin:
            at = visible[order[last]]
            while row <= last:
                found[order[row]] = at
                row += 1
            last += size
    return found
