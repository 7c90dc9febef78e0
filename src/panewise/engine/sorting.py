"""Orders of rows by codes and instants, which are often few or close to each other."""

from __future__ import annotations

import numpy as np

from panewise import kernels
from panewise.aggregate import Int64Array
from panewise.kernels.joins import bucket_order

#: The digits by which instants are ordered.
DIGIT_BITS = 20
DIGIT = (1 << DIGIT_BITS) - 1


def order_by_code(codes: Int64Array) -> Int64Array:
    """The order by code; equal codes stay as they are."""
    size = int(codes.max(initial=-1)) + 1
    # Where few of many codes occur, counting all of them would take longer than sorting.
    sort = kernels.bucket_order if size < 16 * len(codes) else bucket_order
    found: Int64Array = sort(codes, size)
    return found


def order_by_instant(at: Int64Array) -> Int64Array:
    """The order by instant; equal instants stay as they are."""
    if not len(at):
        return np.zeros(0, np.int64)
    since = at - at.min()
    # Digit by digit, from the last one on, so that a table for a digit stays in the cache.
    order = order_by_code(since & DIGIT)
    since = since >> DIGIT_BITS
    while since.any():
        order = order[order_by_code((since & DIGIT)[order])]
        since = since >> DIGIT_BITS
    return order
