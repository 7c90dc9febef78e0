"""The kernel of the most frequent values of ranges that move over rows."""

from __future__ import annotations

import numpy as np

from panewise.kernels import Flags, Int64Array, helper, kernel


@kernel
def range_heaviest(
    values: tuple[Int64Array, Int64Array],
    rows: tuple[Int64Array, Int64Array],
    low: Int64Array,
    high: Int64Array,
    groups: Int64Array,
    most: int,
) -> tuple[Int64Array, Int64Array, Int64Array]:
    """The `most` values that occur most often in each range, heaviest first, equals by value: places and counts.

    `values` are the different values of each group, ascending, as runs and keys (`runs_gather`). `rows` have a key, and
    how often it counts: 0 for rows without a value. Ranges of one group in which nothing changes have the same run.

    The heaviest values are a sorted list. All others are in a tree whose inner nodes have the heavier one of their two
    children, so that it has the next one for the list. A value that comes or goes costs the length of the list and the
    height of the tree.
    """
    runs, keys = values
    row_keys, weights = rows
    known = np.empty(len(weights), np.int64)
    counts, inside = np.zeros(len(keys), np.int64), np.zeros(len(keys), np.bool_)
    tree, listed = np.full(2 * len(keys), -1, np.int64), np.empty(most, np.int64)
    out, room = np.empty((len(low), 2), np.int64), 0
    for step in range(len(low)):
        room += min(runs[groups[step], 1], most)
    places, found = np.empty(room, np.int64), np.empty(room, np.int64)
    group, size, used = -1, 0, 0
    first = last = np.int64(0)
    for step in range(len(low)):
        changed = groups[step] != group
        if changed:
            group, size, first, last = groups[step], 0, low[step], low[step]
        start, width = runs[group, 0], runs[group, 1]
        while last < high[step]:
            if weights[last]:
                place = _find(keys, start, start + width, row_keys[last])
                known[last] = place
                counts[place] += weights[last]
                size = _rise(place, start, width, counts, inside, tree, listed, size)
                changed = True
            last += 1
        while first < low[step]:
            if weights[first]:
                place = known[first]
                counts[place] -= weights[first]
                size = _fall(place, start, width, counts, inside, tree, listed, size)
                changed = True
            first += 1
        if changed:
            out[step, 0], out[step, 1] = used, size
            for number in range(size):
                places[used], found[used] = listed[number], counts[listed[number]]
                used += 1
        else:
            out[step] = out[step - 1]
    return out, places[:used], found[:used]


@helper
def _find(keys: Int64Array, low: int, high: int, key: int) -> int:
    """The place of a key among sorted ones."""
    while low < high:
        middle = (low + high) >> 1
        if keys[middle] < key:
            low = middle + 1
        else:
            high = middle
    return low


@helper
def _is_heavier(one: int, other: int, counts: Int64Array) -> bool:
    return bool(counts[one] > counts[other]) or bool(counts[one] == counts[other] and one < other)


@helper
def _plant(place: int, start: int, width: int, counts: Int64Array, inside: Flags, tree: Int64Array) -> None:
    """Put a value into the tree of its group, if it occurs and is not listed, else take it out."""
    node = width + place - start
    tree[2 * start + node] = -1 if inside[place] or counts[place] == 0 else place
    while node > 1:
        node >>= 1
        left, right = tree[2 * start + 2 * node], tree[2 * start + 2 * node + 1]
        if left < 0 or (right >= 0 and _is_heavier(right, left, counts)):
            left = right
        tree[2 * start + node] = left


@helper
def _rise(
    place: int,
    start: int,
    width: int,
    counts: Int64Array,
    inside: Flags,
    tree: Int64Array,
    listed: Int64Array,
    size: int,
) -> int:
    """A value occurs more often; returns how many are listed then."""
    at = size
    if inside[place]:
        at = 0
        while listed[at] != place:
            at += 1
    elif size < len(listed):
        inside[place] = True
        size += 1
    elif _is_heavier(place, listed[size - 1], counts):
        at = size - 1
        inside[place], inside[listed[at]] = True, False
        _plant(listed[at], start, width, counts, inside, tree)
        _plant(place, start, width, counts, inside, tree)
    else:
        _plant(place, start, width, counts, inside, tree)
        return size
    while at > 0 and _is_heavier(place, listed[at - 1], counts):
        listed[at] = listed[at - 1]
        at -= 1
    listed[at] = place
    return size


@helper
def _fall(
    place: int,
    start: int,
    width: int,
    counts: Int64Array,
    inside: Flags,
    tree: Int64Array,
    listed: Int64Array,
    size: int,
) -> int:
    """A value occurs less often; returns how many are listed then."""
    if not inside[place]:
        _plant(place, start, width, counts, inside, tree)
        return size
    at = 0
    while listed[at] != place:
        at += 1
    while at + 1 < size and _is_heavier(listed[at + 1], place, counts):
        listed[at] = listed[at + 1]
        at += 1
    listed[at] = place
    next_ = tree[2 * start + 1]
    if at + 1 == size and (counts[place] == 0 or (next_ >= 0 and _is_heavier(next_, place, counts))):
        inside[place] = False
        size -= 1
        _plant(place, start, width, counts, inside, tree)
        if next_ >= 0:
            listed[size] = next_
            inside[next_] = True
            size += 1
            _plant(next_, start, width, counts, inside, tree)
    return size
