"""The kernels of lookups: many windows at once from running totals or from base intervals.

States are tables, a row a place of the structure and a column a group.

A *tree* has the base intervals of a circle of `size` positions, a power of two: row `size + i` holds position i, and
row n what rows 2n and 2n + 1 hold. Level by level, positions are taken modulo what the level has room for.
A window `(first, last)` is asked as the positions from `first - 1` up to, not including, `last`, counted from zero.
"""

from __future__ import annotations

import numpy as np

from panewise.kernels import Flags, Int64Array, helper, kernel, loops_of

_LEAST = np.iinfo(np.int64).min
_ONE = np.uint64(1)


def interval_differences(totals: Int64Array, firsts: Int64Array, lasts: Int64Array, groups: Int64Array) -> Int64Array:
    """What running totals gained from before `first` to `last`; row r of the totals, modulo their number, is (1, r)."""
    mask = totals.shape[0] - 1
    found: Int64Array = totals[lasts & mask, groups] - totals[(firsts - 1) & mask, groups]
    return found


@loops_of(interval_differences)
def _interval_differences(totals: Int64Array, firsts: Int64Array, lasts: Int64Array, groups: Int64Array) -> Int64Array:
    flat, width, mask = totals.reshape(-1), totals.shape[1], totals.shape[0] - 1
    out = np.empty(len(firsts), np.int64)
    for i in range(len(firsts)):
        newer, older = (lasts[i] & mask) * width + groups[i], ((firsts[i] - 1) & mask) * width + groups[i]
        out[i] = flat[np.uint64(newer)] - flat[np.uint64(older)]
    return out


@kernel
def interval_outside(firsts: Int64Array, lasts: Int64Array, oldest: int, newest: int) -> int:
    """The place of the first window that does not lie after the `oldest` position and up to the `newest`, or -1."""
    for i in range(len(firsts)):
        if firsts[i] <= oldest or lasts[i] > newest or firsts[i] > lasts[i] + 1:
            return i
    return -1


@kernel
def interval_ends(values: Int64Array, starts: Int64Array, stops: Int64Array, limits: Int64Array) -> Int64Array:
    """Where in each slice of ascending values those up to a limit end."""
    out = np.empty(len(starts), np.int64)
    for i in range(len(starts)):
        low, high, limit = starts[i], stops[i], limits[i]
        while low < high:
            middle = (low + high) >> 1
            if values[middle] <= limit:
                low = middle + 1
            else:
                high = middle
        out[i] = low
    return out


def interval_run(totals: Int64Array, rows: Int64Array, length: int) -> None:
    """Continue running totals after row `length` by as many rows as there are new ones. They may wrap around."""
    mask = totals.shape[0] - 1
    totals[np.arange(length + 1, length + 1 + len(rows)) & mask] = totals[length & mask] + np.cumsum(rows, axis=0)


@loops_of(interval_run)
def _interval_run(totals: Int64Array, rows: Int64Array, length: int) -> None:
    mask = totals.shape[0] - 1
    for i in range(len(rows)):
        before, row = (length + i) & mask, (length + i + 1) & mask
        for group in range(rows.shape[1]):
            totals[row, group] = totals[before, group] + rows[i, group]


@kernel
def interval_add(tree: Int64Array, before: int, now: int, oldest: int) -> None:
    """Build the base intervals that are complete since there are `now` positions and begin after the `oldest`."""
    level = 1
    while before >> level < now >> level:
        room = tree.shape[0] >> (level + 1)
        for number in range(max(before >> level, -((-oldest) >> level)), now >> level):
            row = room + (number & (room - 1))
            for group in range(tree.shape[1]):
                tree[row, group] = tree[2 * row, group] + tree[2 * row + 1, group]
        level += 1


@kernel
def interval_choose(tree: Int64Array, seen: Flags, before: int, now: int, oldest: int) -> None:
    """The same for the greatest values, and whether there are any."""
    level = 1
    while before >> level < now >> level:
        room = tree.shape[0] >> (level + 1)
        for number in range(max(before >> level, -((-oldest) >> level)), now >> level):
            row = room + (number & (room - 1))
            for group in range(tree.shape[1]):
                tree[row, group] = max(tree[2 * row, group], tree[2 * row + 1, group])
                seen[row, group] = seen[2 * row, group] | seen[2 * row + 1, group]
        level += 1


@kernel
def interval_sums(tree: Int64Array, firsts: Int64Array, lasts: Int64Array, groups: Int64Array) -> Int64Array:
    """The sum over each window of one group."""
    # Both ends are read at every level and masked: a branch would be guessed wrong every other time.
    flat, width, all_sizes = tree.reshape(-1), np.uint64(tree.shape[1]), np.uint64(tree.shape[0] >> 1)
    out = np.empty(len(firsts), np.int64)
    for i in range(len(firsts)):
        low, high, group = np.uint64(firsts[i] - 1), np.uint64(lasts[i]), np.uint64(groups[i])
        size, total = all_sizes, np.int64(0)
        while low < high:
            total += flat[(size + (low & (size - _ONE))) * width + group] & -np.int64(low & _ONE)
            total += flat[(size + ((high - _ONE) & (size - _ONE))) * width + group] & -np.int64(high & _ONE)
            low, high, size = (low + _ONE) >> _ONE, high >> _ONE, size >> _ONE
        out[i] = total
    return out


@kernel
def interval_sums_of_all(tree: Int64Array, firsts: Int64Array, lasts: Int64Array, groups: int) -> Int64Array:
    """The sums over each window of the first groups, window by window."""
    out = np.zeros(len(firsts) * groups, np.int64)
    for i in range(len(firsts)):
        low, high, size, start = firsts[i] - 1, lasts[i], tree.shape[0] >> 1, i * groups
        while low < high:
            if low & 1:
                row = size + (low & (size - 1))
                for group in range(groups):
                    out[start + group] += tree[row, group]
            if high & 1:
                row = size + ((high - 1) & (size - 1))
                for group in range(groups):
                    out[start + group] += tree[row, group]
            low, high, size = (low + 1) >> 1, high >> 1, size >> 1
    return out


@kernel
def interval_greatest(
    tree: Int64Array, seen: Flags, firsts: Int64Array, lasts: Int64Array, groups: Int64Array
) -> tuple[Int64Array, Flags]:
    """The greatest value over each window of one group, and whether there is any."""
    flat, width, all_sizes = tree.reshape(-1), np.uint64(tree.shape[1]), np.uint64(tree.shape[0] >> 1)
    out, found = np.empty(len(firsts), np.int64), np.empty(len(firsts), np.bool_)
    for i in range(len(firsts)):
        low, high, group = np.uint64(firsts[i] - 1), np.uint64(lasts[i]), np.uint64(groups[i])
        size, best = all_sizes, np.int64(_LEAST)
        while low < high:
            early = flat[(size + (low & (size - _ONE))) * width + group]
            late = flat[(size + ((high - _ONE) & (size - _ONE))) * width + group]
            taken, also = -np.int64(low & _ONE), -np.int64(high & _ONE)
            best = max(best, (early & taken) | (_LEAST & ~taken))
            best = max(best, (late & also) | (_LEAST & ~also))
            low, high, size = (low + _ONE) >> _ONE, high >> _ONE, size >> _ONE
        # Only the least of all values leaves it open whether there was one.
        out[i], found[i] = best, best > _LEAST or _any(seen, firsts[i] - 1, lasts[i], groups[i])
    return out, found


@helper
def _any(seen: Flags, low: int, high: int, group: int) -> bool:
    """Whether a flag is set somewhere in a window of one group."""
    size, found = seen.shape[0] >> 1, False
    while low < high and not found:
        if low & 1:
            found |= seen[size + (low & (size - 1)), group]
        if high & 1:
            found |= seen[size + ((high - 1) & (size - 1)), group]
        low, high, size = (low + 1) >> 1, high >> 1, size >> 1
    return found


@kernel
def interval_greatest_of_all(
    tree: Int64Array, seen: Flags, firsts: Int64Array, lasts: Int64Array, groups: int
) -> tuple[Int64Array, Flags]:
    """The greatest values over each window of the first groups, window by window."""
    out, found = np.full(len(firsts) * groups, _LEAST, np.int64), np.zeros(len(firsts) * groups, np.bool_)
    for i in range(len(firsts)):
        low, high, size, start = firsts[i] - 1, lasts[i], tree.shape[0] >> 1, i * groups
        while low < high:
            for end in range(2):
                if (low if end == 0 else high) & 1:
                    row = size + ((low if end == 0 else high - 1) & (size - 1))
                    for group in range(groups):
                        out[start + group] = max(out[start + group], tree[row, group])
                        found[start + group] |= seen[row, group]
            low, high, size = (low + 1) >> 1, high >> 1, size >> 1
    return out, found
