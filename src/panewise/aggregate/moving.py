"""States over ranges of rows that move: each range begins and ends where the one before it does, or later.

Nothing is subtracted: see `kernels.ranges` for how ranges are put together from two scans.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from panewise import kernels
from panewise.aggregate.states import (
    FusedOperation,
    Int64Array,
    Items,
    StateArrays,
    StateWords,
    concat_states,
    states_at,
)


@dataclass(frozen=True, eq=False)
class MovingRanges:
    """The ranges of rows that windows over groups hold, one for each change of a group.

    The rows of group `g` begin at `starts[g]`. A range goes from `low` to before `high`, and at `middle` from one block
    of rows into the next; `cuts` is where blocks begin.
    """

    starts: Int64Array
    groups: Int64Array
    at: Int64Array
    low: Int64Array
    high: Int64Array
    middle: Int64Array
    cuts: npt.NDArray[np.bool_]

    @classmethod
    def of(
        cls, starts: Int64Array, enter: Int64Array, leave: Int64Array, since: int, limit: int, opening: bool
    ) -> MovingRanges:
        """The ranges of groups whose rows enter and leave in their order; see `kernels.range_steps`."""
        return cls(starts, *kernels.range_steps(starts, enter, leave, since, limit, opening))

    def __len__(self) -> int:
        return len(self.at)

    def counts(self, items: Items) -> Int64Array:
        """How many items of each range have no NULL."""
        present = items.present()
        if present is None:
            return self.high - self.low
        known: Int64Array = np.concatenate((np.zeros(1, np.int64), np.cumsum(present)))
        return known[self.high] - known[self.low]

    @property
    def row_groups(self) -> Int64Array:
        """The group of each row."""
        return np.repeat(np.arange(len(self.starts) - 1), np.diff(self.starts))

    def after(self, sizes: Int64Array) -> tuple[MovingRanges, Int64Array]:
        """The same where more rows, so many for each group, come before its rows and are in all its ranges.

        Also which row is where, if all that come before are numbered first. Nothing leaves these ranges.
        """
        shift = np.cumsum(sizes)
        starts, middle = self.starts + np.append(0, shift), self.middle + shift[self.groups]
        order = np.empty(starts[-1], np.int64)
        order[np.repeat(self.starts[:-1], sizes) + np.arange(shift[-1])] = np.arange(shift[-1])
        order[shift[self.row_groups] + np.arange(self.starts[-1])] = shift[-1] + np.arange(self.starts[-1])
        cuts = np.zeros(len(order) + 1, bool)
        cuts[starts], cuts[middle] = True, True
        low, high = self.low + (shift - sizes)[self.groups], self.high + shift[self.groups]
        return MovingRanges(starts, self.groups, self.at, low, high, middle, cuts), order

    def are_in_order(self, items: Items) -> bool:
        """Whether the items of all groups are ordered by time, then by arrival."""
        times, order = items.times, items.order
        later = (times[1:] > times[:-1]) | ((times[1:] == times[:-1]) & (order[1:] >= order[:-1]))
        later[self.starts[1:-1] - 1] = True
        return bool(later.all())

    def is_rising(self, values: Int64Array) -> bool:
        """Whether the values of all groups rise or stay equal from row to row."""
        rising = values[1:] >= values[:-1]
        rising[self.starts[1:-1] - 1] = True
        return bool(rising.all())


class PickedValues(StateArrays):
    """States that are places of values in an array, -1 where there is none; they are only lowered."""

    def __init__(self, values: pa.Array) -> None:
        # There is one zero.
        self.values = pc.add(values, pa.scalar(0.0, values.type)) if pa.types.is_floating(values.type) else values

    def identity(self, size: int) -> StateWords:
        return (np.full(size, -1),)

    def _gather(self, slots: Int64Array, items: Items, into: StateWords) -> None:
        raise TypeError("picked values are not gathered")

    def combine(self, left: StateWords, right: StateWords) -> StateWords:
        raise TypeError("picked values are not combined")

    def lower(self, words: StateWords) -> pa.Array:
        return self.values.take(pa.array(words[0], mask=words[0] < 0))


def moving_states(column: StateArrays, items: Items, ranges: MovingRanges) -> tuple[StateArrays, StateWords]:
    """The states of all ranges over some items, and how they are lowered."""
    found = column.moving_answers(items, ranges)
    return (column, _combined_scans(column, items, ranges)) if found is None else found


def running_states(
    column: StateArrays, items: Items, ranges: MovingRanges, before: StateWords
) -> tuple[StateArrays, StateWords, StateWords]:
    """The same for ranges that nothing leaves, together with what groups had before; and the states of all groups then.

    All items of a group are in its last range.
    """
    found = column.running_answers(items, ranges, before)
    if found is not None:
        return *found, column.combine(before, column.gather(ranges.row_groups, items, len(ranges.starts) - 1))
    moving = column.moving_answers(items, ranges)
    combinable = moving is not None and moving[0] is column
    words = moving[1] if moving is not None and combinable else _combined_scans(column, items, ranges)
    words = column.combine(states_at(before, ranges.groups), words)
    last = np.flatnonzero(np.append(np.diff(ranges.groups) != 0, True))
    return column, words, states_at(words, last)


def _combined_scans(column: StateArrays, items: Items, ranges: MovingRanges) -> StateWords:
    """For each range the end of its first block and the beginning of its second, combined.

    Integers that are only added, and may wrap around, are differences of one running sum.
    """
    size = len(items)
    words = column.gather(np.arange(size, dtype=np.int64), items, size)
    if column.fused is FusedOperation.ADDED:
        totals = [np.concatenate((np.zeros(1, np.int64), np.cumsum(word))) for word in words]
        return tuple(total[ranges.high] - total[ranges.low] for total in totals)
    nothing, older = column.identity(1), ranges.low < ranges.middle
    beginnings = concat_states([column.scan(words, ranges.cuts, backward=False), nothing])
    newer = states_at(beginnings, np.where(ranges.middle < ranges.high, ranges.high - 1, size))
    if not older.any():
        return newer
    ends = concat_states([column.scan(words, ranges.cuts, backward=True), nothing])
    return column.combine(states_at(ends, np.where(older, ranges.low, size)), newer)
