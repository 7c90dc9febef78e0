"""Which rows are present in slots that change from state to state."""

from __future__ import annotations

import numpy as np

from panewise.kernels import Int64Array, kernel


@kernel
def range_present(present: Int64Array, slots: Int64Array, now: Int64Array) -> tuple[Int64Array, Int64Array, Int64Array]:
    """For each state the row that was present before it; and afterwards the slots that have a row, with these rows.

    Both the slots that have a row and those of states are ascending; the row of a slot is its place in `present` until
    a state comes. `now` is the row of each state, -1 where it has none.
    """
    before = np.empty(len(slots), np.int64)
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
        if now[state] >= 0 and (state + 1 == len(slots) or slots[state + 1] != slot):
            kept[count], rows[count] = slot, now[state]
            count += 1
    while place < len(present):
        kept[count], rows[count] = present[place], place
        count, place = count + 1, place + 1
    return before, kept[:count], rows[:count]


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
