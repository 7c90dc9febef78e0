"""The kernels of the index of extremes: what the greatest value of each substream is, by where a window begins.

Different times have *slots*, in order. A *point* of a substream is an element that no later
one of it reaches; while a window begins in the slots after the point before it, up to its own, it is the greatest. The
slots of a point are a union of base intervals, and of each base interval there is a search tree (a treap) with the
values of its points. Nodes of the tree of base intervals count from one at the root; slot s is node `room + s`.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np

from panewise.kernels import Int64Array, helper, kernel

#: Links: the root of every base interval, then left and right of every entry. By entry: value, code, priority.
#: Then the entries that are free, and how many those are.
Trees: TypeAlias = tuple[Int64Array, Int64Array, Int64Array, Int64Array, Int64Array, Int64Array]
#: By point: slot, value, the point before it. By code the newest. Then the points that are free, and how many.
Points: TypeAlias = tuple[Int64Array, Int64Array, Int64Array, Int64Array, Int64Array, Int64Array]

#: What was done: entries looked at while trees change, and while they are asked.
CHANGED, VISITED = range(2)


@helper
def _put(trees: Trees, link: Any, value: int, code: int, room: int, work: Int64Array) -> None:
    """A value into the tree below a link: down to where its priority belongs, and there it splits what is below."""
    links, values, codes, ranks, free, unused = trees
    unused[0] -= 1
    entry = free[unused[0]]
    values[entry], codes[entry] = value, code
    node = links[link]
    while node >= 0 and ranks[node] >= ranks[entry]:
        less = values[node] < value or (values[node] == value and codes[node] < code)
        link = 2 * (room + node) + less
        node = links[link]
        work[CHANGED] += 1
    links[link] = entry
    left = 2 * (room + entry)
    right = left + 1
    while node >= 0:
        if values[node] < value or (values[node] == value and codes[node] < code):
            links[left] = node
            left = 2 * (room + node) + 1
            node = links[left]
        else:
            links[right] = node
            right = 2 * (room + node)
            node = links[right]
        work[CHANGED] += 1
    links[left] = links[right] = -1


@helper
def _take_out(trees: Trees, link: Any, value: int, code: int, room: int, work: Int64Array) -> None:
    """A value out of the tree below a link, where it is; what was below it takes its place."""
    links, values, codes, ranks, free, unused = trees
    entry = links[link]
    while values[entry] != value or codes[entry] != code:
        less = values[entry] < value or (values[entry] == value and codes[entry] < code)
        link = 2 * (room + entry) + less
        entry = links[link]
        work[CHANGED] += 1
    left, right = links[2 * (room + entry)], links[2 * (room + entry) + 1]
    while left >= 0 and right >= 0:
        if ranks[left] >= ranks[right]:
            links[link] = left
            link = 2 * (room + left) + 1
            left = links[link]
        else:
            links[link] = right
            link = 2 * (room + right)
            right = links[link]
        work[CHANGED] += 1
    links[link] = left if left >= 0 else right
    free[unused[0]] = entry
    unused[0] += 1


@helper
def _cover(trees: Trees, first: Any, last: Any, value: int, code: int, into: bool, room: int, work: Int64Array) -> None:
    """A value into the trees of all base intervals that make up some slots, or out of them."""
    low, high = first + room, last + room + 1
    while low < high:
        if low & 1:
            if into:
                _put(trees, low, value, code, room, work)
            else:
                _take_out(trees, low, value, code, room, work)
            low += 1
        if high & 1:
            high -= 1
            if into:
                _put(trees, high, value, code, room, work)
            else:
                _take_out(trees, high, value, code, room, work)
        low >>= 1
        high >>= 1


@kernel
def peak_update(
    codes: Int64Array,
    times: Int64Array,
    values: Int64Array,
    start: int,
    slots: Int64Array,
    used: int,
    points: Points,
    trees: Trees,
    entries: int,
    work: Int64Array,
) -> tuple[int, int]:
    """Take elements in, from place `start` on; also how many slots are used then.

    Stops where there is no slot, no point or not the number of entries that one point may need.
    """
    place, value_of, older_of, newest, spare, unused = points
    room = len(slots)
    for i in range(start, len(codes)):
        code, value = codes[i], values[i]
        fresh = used == 0 or slots[used - 1] < times[i]
        if (fresh and used == room) or unused[0] < 1 or trees[5][0] < entries:
            return i, used
        if fresh:
            slots[used] = times[i]
            used += 1
        slot, point = used - 1, newest[code]
        if point >= 0 and place[point] == slot and value_of[point] >= value:
            continue
        while point >= 0 and value_of[point] <= value:
            older = older_of[point]
            first = place[older] + 1 if older >= 0 else 0
            _cover(trees, first, place[point], value_of[point], code, False, room, work)
            spare[unused[0]] = point
            unused[0] += 1
            point = older
        unused[0] -= 1
        added = spare[unused[0]]
        place[added], value_of[added], older_of[added], newest[code] = slot, value, point, added
        _cover(trees, place[point] + 1 if point >= 0 else 0, slot, value, code, True, room, work)
    return len(codes), used


@kernel
def peak_build(codes: Int64Array, points: Points, room: int, trees: Trees, entries: int, work: Int64Array) -> int:
    """All points of some substreams into empty trees; stops before a substream that there may be no room for."""
    place, value_of, older_of, newest = points[:4]
    for i in range(len(codes)):
        point, count = newest[codes[i]], 0
        while point >= 0:
            count += 1
            point = older_of[point]
        if trees[5][0] < entries * count:
            return i
        point = newest[codes[i]]
        while point >= 0:
            older = older_of[point]
            first = place[older] + 1 if older >= 0 else 0
            _cover(trees, first, place[point], value_of[point], codes[i], True, room, work)
            point = older
    return len(codes)


@kernel
def peak_lookup(
    firsts: Int64Array, limits: Int64Array, below: bool, used: int, room: int, keys: int, trees: Trees, work: Int64Array
) -> tuple[Int64Array, Int64Array]:
    """For each window that begins in some slot the codes, ascending, whose maximum reaches a limit, or is at most it.

    Each substream has one point for the slot, in one of the base intervals that hold the slot.
    """
    links, values, codes = trees[:3]
    offsets, out = np.zeros(len(firsts) + 1, np.int64), np.empty(keys + 64, np.int64)
    waiting = np.empty(keys + 1, np.int64)
    total = 0
    # Away from the limit lie the values that are asked for.
    away, near = (0, 1) if below else (1, 0)
    for i in range(len(firsts)):
        begun, limit = total, limits[i]
        if total + keys > len(out):
            more = np.empty(2 * len(out) + keys, np.int64)
            more[:total] = out[:total]
            out = more
        interval = firsts[i] + room if firsts[i] < used else 0
        while interval > 0:
            entry, depth = links[interval], 0
            while entry >= 0 or depth > 0:
                if entry < 0:
                    depth -= 1
                    entry = waiting[depth]
                work[VISITED] += 1
                if values[entry] <= limit if below else values[entry] >= limit:
                    out[total] = codes[entry]
                    total += 1
                    if links[2 * (room + entry) + near] >= 0:
                        waiting[depth] = links[2 * (room + entry) + near]
                        depth += 1
                entry = links[2 * (room + entry) + away]
            interval >>= 1
        out[begun:total].sort()
        offsets[i + 1] = total
    return offsets, out[:total]
