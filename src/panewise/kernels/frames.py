"""The kernels of frames: state machines over rows in the order of time, with a little state for each group.

Rows of a frame share a slot; a row with -1 is in none. `current` holds the slot of the frame that is open in each
group, and `free` is the next free slot.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from panewise.kernels import NO_TIME, Flags, Float64Array, Int64Array, UInt8Array, helper, kernel

#: What is known of a frame: a row of a table with these columns.
GROUP, FIRST, LAST, COUNT, MISSING, BEFORE, AFTER, SOME, WHOLE, NUMBER, REPORTED_AT, REPORTED_ROWS = range(12)
FIELDS = 12

#: What a row does to whole frames: it completes its own, the one before it in its group, or undoes that one.
COMPLETES, COMPLETES_LAST, UNDOES_LAST = 1, 2, 3

#: What frames follow with a few numbers: aggregates, the width between the least and the greatest value, and whether
#: all values are labels that are the same.
SUM, COUNT_ROWS, MINIMUM, MAXIMUM, MEAN, OLDEST, NEWEST, WIDTH, LABEL = range(9)


@kernel
def frame_flags(codes: Int64Array, flags: Flags, current: Int64Array, free: int) -> tuple[Int64Array, int]:
    """Runs of rows whose flag is set."""
    slots = np.empty(len(codes), np.int64)
    for i in range(len(codes)):
        group = codes[i]
        slot = np.int64(-1)
        if flags[i]:
            slot = current[group]
            if slot < 0:
                slot = np.int64(free)
                free += 1
        current[group] = slot
        slots[i] = slot
    return slots, free


@kernel
def frame_reports(
    codes: Int64Array,
    times: Int64Array,
    flags: Flags,
    seen: Int64Array,
    current: Int64Array,
    free: int,
    every: int,
    missing: int,
) -> tuple[Int64Array, Int64Array, int, int]:
    """Runs of reports that come every so often; `missing` is 0 where a gap ends a run, 1 where it qualifies, 2 where it
    does as its neighbours do.

    Also how many missing reports before each row count: for its own run, or else at the end of the one before it. And
    the first row that is off the schedule, or -1. `seen` is read only: the time of the last report of each group.
    """
    slots, assumed = np.empty(len(codes), np.int64), np.zeros(len(codes), np.int64)
    last = seen.copy()
    for i in range(len(codes)):
        group = codes[i]
        slot = current[group]
        gap = np.int64(0)
        if last[group] != NO_TIME:
            if (times[i] - last[group]) % every != 0:
                return slots, assumed, free, i
            gap = max((times[i] - last[group]) // every - 1, np.int64(0))
        if gap > 0 and slot >= 0:
            if missing == 0:
                slot = np.int64(-1)
            elif missing == 1 or flags[i]:
                assumed[i] = gap
        if flags[i]:
            if slot < 0:
                slot = np.int64(free)
                free += 1
        else:
            slot = np.int64(-1)
        current[group] = slot
        slots[i] = slot
        last[group] = times[i]
    return slots, assumed, free, -1


@kernel
def frame_labels(
    codes: Int64Array, labels: Float64Array, label: Float64Array, current: Int64Array, free: int
) -> tuple[Int64Array, int]:
    """Runs of rows with the same label; a row without one (NaN) stays with those before it."""
    slots = np.empty(len(codes), np.int64)
    for i in range(len(codes)):
        group = codes[i]
        if not np.isnan(labels[i]) and (current[group] < 0 or label[group] != labels[i]):
            label[group] = labels[i]
            current[group] = free
            free += 1
        slots[i] = current[group]
    return slots, free


@kernel
def frame_delta(
    codes: Int64Array,
    values: Float64Array,
    low: Float64Array,
    high: Float64Array,
    current: Int64Array,
    free: int,
    limit: float,
    strict: bool,
) -> tuple[Int64Array, int]:
    """Runs whose greatest and least value are no more than a limit apart; a row without a value stays."""
    slots = np.empty(len(codes), np.int64)
    for i in range(len(codes)):
        group, value = codes[i], values[i]
        if not np.isnan(value):
            least, most = min(low[group], value), max(high[group], value)
            apart = 0.0 if most == least else most - least
            if current[group] < 0 or apart > limit or (strict and apart >= limit):
                least, most = value, value
                current[group] = free
                free += 1
            low[group], high[group] = least, most
        slots[i] = current[group]
    return slots, free


@kernel
def frame_trend(
    codes: Int64Array,
    values: Float64Array,
    last: Float64Array,
    current: Int64Array,
    free: int,
    direction: int,
    tolerance: float,
) -> tuple[Int64Array, int]:
    """Runs in which each value is above (1), below (-1) or near (0) the one before; a row without one is in none."""
    slots = np.empty(len(codes), np.int64)
    for i in range(len(codes)):
        group, value = codes[i], values[i]
        if np.isnan(value):
            current[group] = -1
        else:
            step = value - last[group]
            # Infinities that are equal are not apart, though their difference is no number.
            near = abs(step) <= tolerance or value == last[group]
            goes_on = step > 0 if direction > 0 else step < 0 if direction < 0 else near
            if current[group] < 0 or not goes_on:
                current[group] = free
                free += 1
            last[group] = value
        slots[i] = current[group]
    return slots, free


#: An aggregate so far: its total, what rounding took from that, and the number of values. For WIDTH the first two are
#: the least and the greatest value, for LABEL the first is NaN where labels differ.
RunningAggregate = tuple[float, float, Any]


@helper
def _with(so_far: RunningAggregate, value: float, aggregate: int) -> RunningAggregate:
    """One value more; sums are as exact as if added at once."""
    total, error, count = so_far
    if aggregate == MINIMUM:
        total = value if count == 0 else min(total, value)
    elif aggregate == MAXIMUM:
        total = value if count == 0 else max(total, value)
    elif aggregate == WIDTH:
        total, error = (value, value) if count == 0 else (min(total, value), max(error, value))
    elif aggregate == OLDEST:
        total = value if count == 0 else total
    elif aggregate == NEWEST:
        total = value
    elif aggregate == LABEL:
        total = value if count == 0 or total == value else np.nan
    elif aggregate != COUNT_ROWS:
        added = total + value
        if np.isfinite(added):
            error += (total - added) + value if abs(total) >= abs(value) else (value - added) + total
        else:
            error = 0.0
        total = added
    return total, error, count + 1


@helper
def _holds(so_far: RunningAggregate, aggregate: int, operator: int, limit: float) -> bool:
    """Whether an aggregate compares. What is no number has reached nothing, nor passed it; no labels are the same."""
    total, error, count = so_far
    if aggregate == LABEL:
        return bool(count > 0 and not np.isnan(total))
    if aggregate == WIDTH:
        return bool(count > 0 and _compares(0.0 if total == error else error - total, operator, limit))
    answer = total + error
    if aggregate == COUNT_ROWS:
        answer = float(count)
    elif count == 0:
        return operator >= 2
    elif aggregate == MEAN:
        answer = answer / count
    if np.isnan(answer):
        return operator >= 2
    return _compares(answer, operator, limit)


@helper
def _compares(answer: float, operator: int, limit: float) -> bool:
    """Whether a number compares with a limit: > 0, >= 1, < 2, <= 3."""
    if operator == 0:
        return answer > limit
    if operator == 1:
        return answer >= limit
    return answer < limit if operator == 2 else answer <= limit


@kernel
def frame_reach(
    codes: Int64Array,
    values: Float64Array,
    totals: Float64Array,
    errors: Float64Array,
    counts: Int64Array,
    current: Int64Array,
    free: int,
    aggregate: int,
    limit: float,
    operator: int,
) -> tuple[Int64Array, UInt8Array, int]:
    """Frames that an aggregate ends: with the row that lets it reach a limit (operators 0 and 1), or before the row
    that lets it pass one (2 and 3). Also which rows complete their frame.
    """
    slots, marks = np.empty(len(codes), np.int64), np.zeros(len(codes), np.uint8)
    for i in range(len(codes)):
        group, value = codes[i], values[i]
        before, alone = (totals[group], errors[group], counts[group]), (0.0, 0.0, np.int64(0))
        if current[group] < 0:
            before = alone
        after = before if np.isnan(value) else _with(before, value, aggregate)
        holds = _holds(after, aggregate, operator, limit)
        if operator >= 2 and not holds:
            # The row begins the next frame, or is in none where it passes the limit alone.
            current[group] = -1
            after = alone if np.isnan(value) else _with(alone, value, aggregate)
            holds = _holds(after, aggregate, operator, limit)
        if operator >= 2 and not holds:
            slots[i] = -1
            continue
        if current[group] < 0:
            current[group] = free
            free += 1
        totals[group], errors[group], counts[group] = after
        slots[i] = current[group]
        if operator < 2 and holds:
            marks[i] = COMPLETES
            current[group] = -1
    return slots, marks, free


@kernel
def frame_between(
    codes: Int64Array, starts: Flags, ends: Flags, current: Int64Array, free: int, drops: bool
) -> tuple[Int64Array, UInt8Array, int]:
    """From a row that starts to the next one that ends; a start inside ends the frame before it, or drops it."""
    slots, marks = np.empty(len(codes), np.int64), np.zeros(len(codes), np.uint8)
    for i in range(len(codes)):
        group = codes[i]
        slot = current[group]
        if slot >= 0 and ends[i]:
            marks[i] = COMPLETES
            current[group] = -1
        elif starts[i]:
            if slot >= 0:
                marks[i] = UNDOES_LAST if drops else COMPLETES_LAST
            slot = np.int64(free)
            free += 1
            current[group] = slot
        slots[i] = slot
    return slots, marks, free


@helper
def _leave(table: Int64Array, slot: int, time: int, mark: int) -> None:
    """Note in the frame of the row before that this row comes after it."""
    if table[slot, AFTER] == NO_TIME:
        table[slot, AFTER] = time
    if mark == COMPLETES_LAST:
        table[slot, WHOLE] = 1
    elif mark == UNDOES_LAST:
        table[slot, WHOLE] = -1


@helper
def _enter(table: Int64Array, slot: int, group: int, time: int, seen: int) -> None:
    """Add a row to its frame."""
    if table[slot, COUNT] == 0:
        table[slot, GROUP] = group
        table[slot, FIRST] = time
        table[slot, BEFORE] = seen
        table[slot, AFTER] = NO_TIME
        table[slot, NUMBER] = NO_TIME
        table[slot, REPORTED_AT] = NO_TIME
    table[slot, LAST] = time
    table[slot, COUNT] += 1


@helper
def _is_due(frame: Int64Array, time: int, growth: Int64Array, wants_some: bool) -> bool:
    """Whether a fragment is reported with this row: once its frame is certain, and whenever that has grown enough."""
    rows = frame[COUNT] + frame[MISSING]
    if frame[REPORTED_AT] == NO_TIME:
        start = frame[BEFORE] if growth[5] > 0 and frame[BEFORE] != NO_TIME else frame[FIRST]
        certain = time - start >= growth[1] and rows >= growth[2]
        return bool(certain and (not wants_some or frame[SOME] > 0))
    if growth[4] > 0:
        return bool(rows - frame[REPORTED_ROWS] >= growth[3])
    return bool(time - frame[REPORTED_AT] >= growth[3])


@kernel
def frame_extents(
    codes: Int64Array,
    times: Int64Array,
    slots: Int64Array,
    some: Flags,
    assumed: Int64Array,
    marks: UInt8Array,
    every: int,
    table: Int64Array,
    previous: Int64Array,
    seen: Int64Array,
    growth: Int64Array,
) -> tuple[Int64Array, Int64Array, Int64Array]:
    """Enter rows into the table of their frames. `some`, `assumed` and `marks` may be empty.

    `previous` is the slot of the last row of each group and `seen` its time. `growth` is when fragments are
    reported: whether at all, the least ticks and rows, by how much frames grow, whether that is rows, whether frames
    begin with the row before. Returned for fragments are the piece of a frame that each row belongs to, the slot of
    each piece, and the reports (slot, piece, time, rows, missing).
    """
    fragmenting = growth[0] > 0
    size = len(codes) if fragmenting else 0
    pieces, owners, reports = np.full(size, -1, np.int64), np.empty(size, np.int64), np.empty((size, 5), np.int64)
    piece_of = np.full(len(table) if fragmenting else 0, -1, np.int64)
    made, reported = 0, 0
    for i in range(len(codes)):
        group, slot, time = codes[i], slots[i], times[i]
        before = previous[group]
        if before >= 0 and before != slot:
            _leave(table, before, time, marks[i] if len(marks) > 0 else 0)
        if len(assumed) > 0 and assumed[i] > 0:
            owner = slot if slot >= 0 else before
            table[owner, MISSING] += assumed[i]
            if slot < 0:
                table[owner, LAST] = time - every
        previous[group] = slot
        if slot >= 0:
            _enter(table, slot, group, time, seen[group])
            if len(some) > 0 and some[i]:
                table[slot, SOME] += 1
            if len(marks) > 0 and marks[i] == COMPLETES:
                table[slot, WHOLE] = 1
            if fragmenting:
                if piece_of[slot] < 0:
                    piece_of[slot], owners[made] = made, slot
                    made += 1
                pieces[i] = piece_of[slot]
                if _is_due(table[slot], time, growth, len(some) > 0):
                    reports[reported, 0], reports[reported, 1], reports[reported, 2] = slot, piece_of[slot], time
                    reports[reported, 3], reports[reported, 4] = table[slot, COUNT], table[slot, MISSING]
                    table[slot, REPORTED_AT], table[slot, REPORTED_ROWS] = (
                        time,
                        table[slot, COUNT] + table[slot, MISSING],
                    )
                    piece_of[slot] = -1
                    reported += 1
        seen[group] = time
    return pieces, owners[:made], reports[:reported]


@kernel
def frame_numbers(groups: Int64Array, firsts: Int64Array, numbered: Int64Array) -> Int64Array:
    """The numbers of frames, in the order of time in each group: the time of the first item, or the next number.

    `numbered` has the last number of each group, or NONE, and is brought up to date.
    """
    numbers = np.empty(len(groups), np.int64)
    for i in range(len(groups)):
        group = groups[i]
        numbered[group] = max(numbered[group] + 1, firsts[i])
        numbers[i] = numbered[group]
    return numbers
