"""Which rows are present in slots that change from state to state, and which enter and leave."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from panewise.kernels import Flags, Int8Array, Int64Array, kernel


@kernel
def range_present(
    present: Int64Array, slots: Int64Array, now: Int64Array
) -> tuple[Int64Array, Flags, Int64Array, Int64Array]:
    """For each state the row that was present before it, and whether there is one before and now; and afterwards the
    slots that have a row, with these rows.

    Both the slots that have a row and those of states are ascending; the row of a slot is its place in `present` until
    a state comes. `now` is the row of each state, -1 where it has none.
    """
    before, both = np.empty(len(slots), np.int64), np.empty(len(slots), np.bool_)
    kept, rows = np.empty(len(present) + len(slots), np.int64), np.empty(len(present) + len(slots), np.int64)
    count = place = 0
    for state in range(len(slots)):
        slot = slots[state]
        if state > 0 and slots[state - 1] == slot:
            before[state] = now[state - 1]
        else:
            while place < len(present) and present[place] < slot:
                kept[count], rows[count] = present[place], place
                count, place = count + 1, place + 1
            before[state] = -1
            if place < len(present) and present[place] == slot:
                before[state] = place
                place += 1
        both[state] = before[state] >= 0 and now[state] >= 0
        if now[state] >= 0 and (state + 1 == len(slots) or slots[state + 1] != slot):
            kept[count], rows[count] = slot, now[state]
            count += 1
    while place < len(present):
        kept[count], rows[count] = present[place], place
        count, place = count + 1, place + 1
    # Kept from turn to turn, so that it must not keep the memory of all states.
    return before, both, kept[:count].copy(), rows[:count]


@kernel
def range_equal(values: npt.NDArray[Any], before: Int64Array, now: Int64Array, same: Flags) -> None:
    """Of the states that may be the same as before, leave only those whose value is equal; NaN is equal to NaN."""
    for state in range(len(same)):
        if same[state]:
            one, other = values[before[state]], values[now[state]]
            same[state] = one == other or (one != one and other != other)


@kernel
def range_report(
    turns: Int64Array, size: int, before: Int64Array, now: Int64Array, same: Flags
) -> tuple[Int64Array, Int64Array, Int8Array, Int64Array]:
    """The rows that enter and leave, turn by turn; in each of them rows enter first, and states keep their order.

    A state has its turn, of so many, the row that leaves and the row that enters, -1 where there is none; if it is the
    same as before, nothing does. Returned are the rows, their states and their signs, and how many rows each turn has.
    """
    starts = np.zeros(2 * size + 1, np.int64)
    for state in range(len(turns)):
        if not same[state]:
            starts[2 * turns[state] + 1] += now[state] >= 0
            starts[2 * turns[state] + 2] += before[state] >= 0
    counts = starts[1::2] + starts[2::2]
    for half in range(2 * size):
        starts[half + 1] += starts[half]
    total = starts[-1]
    rows, found, signs = np.empty(total, np.int64), np.empty(total, np.int64), np.empty(total, np.int8)
    for state in range(len(turns)):
        if same[state]:
            continue
        half = 2 * turns[state]
        if now[state] >= 0:
            place = starts[half]
            rows[place], found[place], signs[place] = now[state], state, 1
            starts[half] += 1
        if before[state] >= 0:
            place = starts[half + 1]
            rows[place], found[place], signs[place] = before[state], state, -1
            starts[half + 1] += 1
    return rows, found, signs, counts


@kernel
def range_subscribed(subscriptions: Int64Array, numbers: Int64Array) -> tuple[Int64Array, Int64Array]:
    """The rows of some subscriptions, one subscription after the other, and for each row which of them it is.

    `subscriptions` is the one of each row, ascending.
    """
    firsts = np.searchsorted(subscriptions, numbers)
    stops = np.searchsorted(subscriptions, numbers, side="right")
    size = 0
    for each in range(len(numbers)):
        size += stops[each] - firsts[each]
    places, origin = np.empty(size, np.int64), np.empty(size, np.int64)
    count = 0
    for each in range(len(numbers)):
        for place in range(firsts[each], stops[each]):
            places[count], origin[count] = place, each
            count += 1
    return places, origin
