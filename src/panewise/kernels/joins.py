"""The kernels of joins and of ordering: pairs of rows that meet, and rows by their codes."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np

from panewise.kernels import Int64Array, loops_of

#: One side of a join: codes of new rows, where they begin, when all rows enter and leave, and the chains of codes:
#: `heads` is the newest row of each, `links` the one before each row. The last is whether rows leave in
#: the order in which they came.
Chain: TypeAlias = tuple[Int64Array, int, Int64Array, Int64Array, Int64Array, Int64Array, bool]


def bucket_order(codes: Int64Array, size: int) -> Int64Array:
    """The order by code, of codes below a size; equal ones stay as they are."""
    return np.argsort(codes, kind="stable")


@loops_of(bucket_order)
def _bucket_order(codes: Int64Array, size: int) -> Int64Array:
    starts = np.zeros(size + 1, np.int64)
    for code in codes:
        starts[code + 1] += 1
    for code in range(size):
        starts[code + 1] += starts[code]
    order = np.empty(len(codes), np.int64)
    for place in range(len(codes)):
        code = codes[place]
        order[starts[code]] = place
        starts[code] += 1
    return order


def overlap_join(left: Chain, right: Chain) -> tuple[Int64Array, Int64Array]:
    """Pairs of rows with equal codes that are there at some same instant, as two lists of places.

    New rows of both sides, ordered by when they enter, are chained one after the other; each meets those that are.
    """
    found: list[tuple[int, int]] = []
    events = []
    for which, (codes, start, enters, *_) in enumerate((left, right)):
        events += [(int(enters[start + n]), which, n) for n in range(len(codes))]
    for _, which, n in sorted(events):
        codes, start, enters, leaves, heads, links, _ = (left, right)[which]
        _, _, others_enter, others_leave, other_heads, other_links, in_order = (left, right)[1 - which]
        row, code = start + n, codes[n]
        other = int(other_heads[code])
        while other >= 0 and not (in_order and others_leave[other] <= enters[row]):
            if max(enters[row], others_enter[other]) < min(leaves[row], others_leave[other]):
                found.append((other, row) if which else (row, other))
            other = int(other_links[other])
        links[row], heads[code] = heads[code], row
    pairs = np.array(found, np.int64).reshape(-1, 2)
    return pairs[:, 0], pairs[:, 1]


@loops_of(overlap_join)
def _overlap_join(left: Chain, right: Chain) -> tuple[Int64Array, Int64Array]:
    codes_a, start_a, enter_a, leave_a, heads_a, links_a, in_order_a = left
    codes_b, start_b, enter_b, leave_b, heads_b, links_b, in_order_b = right
    size = max(len(codes_a) + len(codes_b), 16)
    ours, theirs = np.empty(size, np.int64), np.empty(size, np.int64)
    found, i, j = 0, 0, 0
    while i < len(codes_a) or j < len(codes_b):
        first = j >= len(codes_b) or (i < len(codes_a) and enter_a[start_a + i] <= enter_b[start_b + j])
        if first:
            row, code = start_a + i, codes_a[i]
            enter, leave, other = enter_a[row], leave_a[row], heads_b[code]
        else:
            row, code = start_b + j, codes_b[j]
            enter, leave, other = enter_b[row], leave_b[row], heads_a[code]
        while other >= 0:
            since = enter_b[other] if first else enter_a[other]
            until = leave_b[other] if first else leave_a[other]
            if until <= enter and (in_order_b if first else in_order_a):
                break
            if max(enter, since) < min(leave, until):
                if found == size:
                    size *= 2
                    more, others = np.empty(size, np.int64), np.empty(size, np.int64)
                    more[:found], others[:found] = ours, theirs
                    ours, theirs = more, others
                ours[found], theirs[found] = (row, other) if first else (other, row)
                found += 1
            other = links_b[other] if first else links_a[other]
        if first:
            links_a[row], heads_a[code] = heads_a[code], row
            i += 1
        else:
            links_b[row], heads_b[code] = heads_b[code], row
            j += 1
    return ours[:found], theirs[:found]
