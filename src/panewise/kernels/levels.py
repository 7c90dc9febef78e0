"""The kernels of CI-COUNT and CI-SUM: timestamps by level for every substream, and a heap of them for every level.

A *row* is a level. Row 0 has the time of the last element of each substream, which for CI-COUNT is its first level, so
that `first`, the row of the first level, is 0 there and 1 for CI-SUM.

Of each row there is a heap with the latest timestamp on top: all that are later than some instant are found from the
top down, without looking at others. A heap is brought up to date when it is needed: `logs` hold, by size of level,
the substreams whose timestamps have changed, and a heap has read its log up to some place. A level that no lookup needs
costs one copy.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numba.cpython.unsafe.numbers import leading_zeros, trailing_zeros
from numba.extending import overload

from panewise.kernels import NO_TIME, Int32Array, Int64Array, helper, kernel

#: Timestamps by code and row; by size of level the codes whose have changed, and how often any did.
Stamps: TypeAlias = tuple[Int64Array, Int32Array, Int64Array]
#: By row: the timestamps in the heap, their codes, the place of each code, how many there are, how much is read.
Heaps: TypeAlias = tuple[Int64Array, Int32Array, Int32Array, Int64Array, Int64Array]

#: Functions of Numba whose declared types are wrong.
_trailing: Any = trailing_zeros
_leading: Any = leading_zeros

#: Candidates: codes, and timestamps in the row that is searched and in rows `low` and `high`.
Near: TypeAlias = tuple[Int32Array, Int64Array, Int64Array, Int64Array]

#: What was done: stamps set, steps up in heaps, places of heaps looked at.
SET, CLIMBED, VISITED = range(3)


def zeros(number: int) -> int:
    """How many zeros a positive number ends with, in binary."""
    number = int(number)
    return (number & -number).bit_length() - 1


@overload(zeros, strict=False)  # else Numba would have the annotations repeated
def _zeros(number: int) -> object:
    return lambda number: np.int64(_trailing(number))


def magnitude(number: int) -> int:
    """The largest power of two in a positive number, as its exponent."""
    return int(number).bit_length() - 1


@overload(magnitude, strict=False)
def _magnitude(number: int) -> object:
    return lambda number: 63 - np.int64(_leading(np.int64(number)))


@helper
def _note(state: Stamps, sizes: int, code: int) -> None:
    """Log that levels of the smallest sizes have changed for a substream."""
    _, logs, written = state
    for size in range(sizes):
        logs[size, written[size] & (logs.shape[1] - 1)] = code
        written[size] += 1


@kernel
def level_count(
    codes: Int64Array,
    times: Int64Array,
    start: int,
    counts: Int64Array,
    state: Stamps,
    rows: int,
    p: int,
    before: int,
    work: Int64Array,
) -> int:
    """Take elements in, from place `start` on; stops where a timestamp later than `before` needs one more level.

    With the m-th element of a substream all levels whose size divides m + p hand their element on to the next one.
    """
    stamps = state[0]
    for i in range(start, len(codes)):
        code = codes[i]
        sizes = zeros(counts[code] + 1 + p) + 1
        if sizes * p > rows:
            if stamps[code, rows - 1] > before:
                return i
            sizes = rows // p
        counts[code] += 1
        for row in range(sizes * p - 1, 0, -1):
            stamps[code, row] = stamps[code, row - 1]
        stamps[code, 0] = times[i]
        work[SET] += sizes * p
        _note(state, sizes, code)
    return len(codes)


@helper
def _level_of(distance: int, p: int) -> Any:
    """The level that holds the element so far from the end, the last one being at 1."""
    size = magnitude((distance - 1) // p + 1)
    return size * p + ((distance - 1 - p * ((np.int64(1) << size) - 1)) >> size)


@helper
def _stamp_at(stamps: Int64Array, code: int, position: int, count: int, newest: int, rows: int, p: int) -> Any:
    """The timestamp at a position, of which those after `count` are new and those that levels lost are forgotten."""
    if position > count:
        return newest
    if position < 1:
        return NO_TIME
    level = _level_of(count - position + 1, p)
    return stamps[code, level + 1] if level < rows - 1 else NO_TIME


@kernel
def level_add(
    codes: Int64Array,
    times: Int64Array,
    values: Int64Array,
    start: int,
    counts: Int64Array,
    state: Stamps,
    rows: int,
    p: int,
    before: int,
    work: Int64Array,
) -> int:
    """The same for elements that count `value` times each, all copies at once.

    A level of size 2**s holds the multiple of it with the number (m + p) / 2**s - p - j: it changes only if that does,
    which is so for sizes up to the value, and for larger ones as often as copies fill them. Read from the top down
    nothing is overwritten that is still needed, since elements only move to higher levels.
    """
    stamps = state[0]
    sizes = (rows - 1) // p
    for i in range(start, len(codes)):
        code, time, count = codes[i], times[i], counts[codes[i]]
        after = count + values[i]
        top = 0
        while top <= sizes and (after + p) >> top != (count + p) >> top:
            top += 1
        if top > sizes:
            position = (((after + p) >> sizes) - p) << sizes
            if _stamp_at(stamps, code, position, count, time, rows, p) > before:
                return i
            top = sizes
        for level in range(top * p - 1, -1, -1):
            size = level // p
            position = (((after + p) >> size) - p - (level - size * p)) << size
            stamps[code, level + 1] = _stamp_at(stamps, code, position, count, time, rows, p)
        stamps[code, 0] = time
        counts[code] = after
        work[SET] += top * p + 1
        _note(state, max(top, 1), code)
    return len(codes)


@helper
def _rise(heaps: Heaps, row: int, code: int, stamp: int, work: Int64Array) -> None:
    """A later timestamp for a substream in the heap of a row."""
    heap, codes, places, sizes, _ = heaps
    place: Any = np.int64(places[row, code])
    if place < 0:
        place = sizes[row]
        sizes[row] += 1
    elif heap[row, place] == stamp:
        return
    while place > 0:
        parent = (place - 1) >> 1
        if heap[row, parent] >= stamp:
            break
        heap[row, place], codes[row, place] = heap[row, parent], codes[row, parent]
        places[row, codes[row, place]] = place
        place = parent
        work[CLIMBED] += 1
    heap[row, place], codes[row, place], places[row, code] = stamp, code, place


@helper
def _follow(state: Stamps, heaps: Heaps, row: int, size: int, work: Int64Array) -> None:
    """Bring the heap of a row up to date from the log, or from all timestamps where the log is too short."""
    stamps, logs, written = state
    read = heaps[4]
    room = logs.shape[1]
    behind = written[size] - read[row]
    rebuild = behind > room
    for n in range(len(stamps) if rebuild else behind):
        code: Any = n if rebuild else logs[size, (read[row] + n) & (room - 1)]
        if stamps[code, row] != NO_TIME:
            _rise(heaps, row, code, stamps[code, row], work)
    read[row] = written[size]


@helper
def _mark_later(heap: Int64Array, codes: Int32Array, size: int, cut: int, found: Int32Array, words: Int64Array) -> int:
    """Set the bits of all codes of a heap whose timestamps are later than a cut; how many there are."""
    count, seen = 0, 0
    if size > 0 and heap[0] > cut:
        found[0] = 0
        count = 1
    while seen < count:
        child = 2 * np.int64(found[seen]) + 1
        seen += 1
        if child + 1 < size:
            # Written in any case and counted if it holds: there is no branch to be guessed wrong.
            found[count] = child
            count += heap[child] > cut
            found[count] = child + 1
            count += heap[child + 1] > cut
        elif child < size:
            found[count] = child
            count += heap[child] > cut
    for n in range(count):
        code = np.int64(codes[found[n]])
        words[code >> 5] |= np.int64(1) << (code & 31)
    return count


@helper
def _gather(state: Stamps, rows: tuple[Any, Any, Any], words: Int64Array, near: Near) -> Any:
    """The codes whose bits are set, ascending, with their timestamps in three rows; bits are cleared."""
    stamps = state[0]
    codes, seen, lower, higher = near
    count = 0
    for number in range(len(words)):
        word = words[number]
        words[number] = 0
        while word:
            code = (number << 5) + zeros(word)
            word &= word - 1
            codes[count] = code
            seen[count], lower[count], higher[count] = (
                stamps[code, rows[0]],
                stamps[code, rows[1]],
                stamps[code, rows[2]],
            )
            count += 1
    return count


@helper
def _emit(
    near: Near, count: int, cut: int, below: bool, out: Int32Array, total: Any, doubtful: Int32Array, doubts: Any
) -> Any:
    """Answer one lookup from the candidates near by, after `total` answers with some `doubts`; returns both.

    Every candidate is written, and the count advances for those that hold, so that there is no branch to predict.
    """
    codes, seen, lower, higher = near
    if below:
        for n in range(count):
            out[total], doubtful[doubts] = codes[n], total
            answers = (seen[n] > cut) & (higher[n] <= cut)
            total += answers
            doubts += answers & (lower[n] > cut)
    else:
        for n in range(count):
            out[total], doubtful[doubts] = codes[n], total
            answers = seen[n] > cut
            total += answers
            doubts += answers & (higher[n] <= cut)
    return total, doubts


@helper
def _narrow(near: Near, count: int, cut: int) -> Any:
    """Leave out candidates that no narrower window has; how many are left."""
    codes, seen, lower, higher = near
    kept = 0
    for n in range(count):
        stamp = seen[n]
        codes[kept], seen[kept], lower[kept], higher[kept] = codes[n], stamp, lower[n], higher[n]
        kept += stamp > cut
    return kept


@kernel
def level_lookup(
    state: Stamps,
    heaps: Heaps,
    rows: int,
    first: int,
    p: int,
    asked: tuple[Int64Array, Int64Array, Int64Array],
    order: Int64Array,
    below: bool,
    room: int,
    work: Int64Array,
) -> tuple[Int64Array, Int32Array, Int32Array]:
    """For each lookup the codes, ascending, whose aggregate after a cut may be beyond a threshold.

    `asked` are rows `low` and `high`, and cuts: whatever reaches the threshold has a timestamp after the cut in row
    `low`, and whatever has one in row `high` reaches it. Below it the roles change, and substreams that were not seen
    after the cut are left out.

    Lookups are answered in an order in which those of the same rows follow each other, widest window first: each finds
    its candidates among those of the one before. Returned are, for each lookup, where its codes begin and end and where
    its doubts do; all codes; and the places of those that are doubtful. `room` is how many codes to expect.
    """
    low, high, cuts = asked
    keys = heaps[1].shape[1]
    words, found = np.zeros((keys >> 5) + 1, np.int64), np.empty(keys + 2, np.int32)
    near = (np.empty(keys, np.int32), np.empty(keys, np.int64), np.empty(keys, np.int64), np.empty(keys, np.int64))
    parts = np.zeros((len(cuts), 4), np.int64)
    out, doubtful = np.empty(keys + room, np.int32), np.empty(keys + room, np.int32)
    total, doubts, count, last = 0, 0, 0, -1
    for i in order:
        cut, row = cuts[i], 0 if below else low[i]
        if last < 0 or low[i] != low[last] or high[i] != high[last]:
            count = 0
            if row < rows:
                _follow(state, heaps, row, max(row - first, 0) // p, work)
                if _mark_later(heaps[0][row], heaps[1][row], heaps[3][row], cut, found, words):
                    # A row that does not exist is one that no substream has reached.
                    count = _gather(state, (row, min(low[i], rows), min(high[i], rows)), words, near)
        last = i
        if total + count >= len(out):
            size = 2 * len(out) + keys
            more, others = np.empty(size, np.int32), np.empty(size, np.int32)
            more[:total], others[:doubts] = out[:total], doubtful[:doubts]
            out, doubtful = more, others
        work[VISITED] += count
        parts[i, 0], parts[i, 2] = total, doubts
        total, doubts = _emit(near, count, cut, below, out, total, doubtful, doubts)
        parts[i, 1], parts[i, 3] = total, doubts
        if 2 * (total - parts[i, 0]) < count:
            count = _narrow(near, count, cut)
    return parts, out[:total], doubtful[:doubts]
