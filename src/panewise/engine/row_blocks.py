"""Blocks of rows: in a counted window with a SLIDE, rows wait and come together with the last of their block."""

from __future__ import annotations

import numpy as np

from panewise.aggregate import Int64Array
from panewise.kernels.ranges import OPEN


def block_instants(edges: Int64Array, visible: Int64Array, size: int, before: Int64Array) -> Int64Array:
    """When the last row of the block of each row comes; OPEN if it has not come yet.

    The rows of partition `p` begin at `edges[p]`, ordered by time, and follow `before[p]` others. They are counted in
    the order in which they come, those of one instant by time.
    """
    counts = np.diff(edges)
    partitions = np.repeat(np.arange(len(counts)), counts)
    order = np.arange(len(visible))
    if (np.diff(visible) < 0)[np.diff(partitions) == 0].any():
        order = np.lexsort((visible, partitions))
    numbers = np.arange(len(visible)) - edges[partitions] + before[partitions]
    lasts = np.arange(len(visible)) + size - 1 - numbers % size
    complete = lasts < edges[partitions + 1]
    found = np.full(len(visible), OPEN)
    found[order[complete]] = visible[order[lasts[complete]]]
    return found
