"""The kernel of rows with lifetimes: those that matter between two instants, group by group."""

from __future__ import annotations

import numpy as np

from panewise.kernels import Flags, Int64Array, helper, kernel


@kernel
def lifetime_groups(
    codes: Int64Array, enter: Int64Array, leave: Int64Array, since: int, limit: int, opening: bool, size: int
) -> tuple[Int64Array, Int64Array, Int64Array, Int64Array, Int64Array, Flags]:
    """The rows that are there at some instant from `since` to `limit`, of groups that change after `since`.

    With `opening`, those of all groups. Codes are below a size; rows with a negative one have no group. Returned are
    the places of the rows, ordered by group and otherwise as they are, when each enters and leaves; the codes of the
    groups, where the rows of each begin, and whether they leave in the order in which they enter.
    """
    starts, changes = np.zeros(size, np.int64), np.full(size, opening)
    for row in range(len(codes)):
        if _is_there(codes[row], enter[row], leave[row], since, limit):
            starts[codes[row]] += 1
            changes[codes[row]] |= enter[row] > since or leave[row] <= limit
    groups, edges = np.empty(size, np.int64), np.empty(size + 1, np.int64)
    count = total = 0
    for code in range(size):
        rows, starts[code] = starts[code], total
        if rows > 0 and changes[code]:
            groups[count], edges[count] = code, total
            count, total = count + 1, total + rows
        else:
            changes[code] = False
    edges[count] = total
    places, comes, goes = np.empty(total, np.int64), np.empty(total, np.int64), np.empty(total, np.int64)
    for row in range(len(codes)):
        code = codes[row]
        if _is_there(code, enter[row], leave[row], since, limit) and changes[code]:
            place = starts[code]
            places[place], comes[place], goes[place] = row, enter[row], leave[row]
            starts[code] = place + 1
    in_order = np.ones(count, np.bool_)
    for group in range(count):
        for row in range(edges[group] + 1, edges[group + 1]):
            in_order[group] &= comes[row] >= comes[row - 1] and goes[row] >= goes[row - 1]
    return places, comes, goes, groups[:count], edges[: count + 1], in_order


@helper
def _is_there(code: int, enter: int, leave: int, since: int, limit: int) -> bool:
    return code >= 0 and enter < leave and leave > since and enter <= limit
