"""Grouped aggregation over rows with lifetimes: where each group changes, and its states from then on.

This is the one lane for changes: continuous and counted windows, and groups over joins, distincts and sub-queries.
Where the rows of a group leave in the order in which they enter, its states are those of a range that moves over them.
Elsewhere every row covers a stretch of the changes of its group; see `aggregate.stretches`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from panewise import kernels
from panewise.aggregate import (
    Int64Array,
    Items,
    MovingRanges,
    RowStretches,
    StateArrays,
    StateWords,
    moving_states,
    running_states,
    states_at,
    stretch_states,
)
from panewise.engine.sorting import order_by_code, order_by_instant

Flags = npt.NDArray[np.bool_]
#: The items of each column of states, of the rows at some places.
ItemsAt = Callable[[Int64Array], Sequence[Items]]
#: With fewer groups than this, those that do not occur are counted, too.
FEW_GROUPS = 1024


@dataclass(frozen=True, eq=False)
class Lifetimes:
    """Rows of groups, ordered by time and arrival: the code of the group, and when each enters and leaves."""

    codes: Int64Array
    enter: Int64Array
    leave: Int64Array

    def at(self, places: Int64Array) -> Lifetimes:
        return Lifetimes(self.codes[places], self.enter[places], self.leave[places])


@dataclass(frozen=True, eq=False)
class GroupedLifetimes:
    """Rows by group: their places, when each enters and leaves; the codes of groups, and where the rows of each begin.

    `in_order` is which groups have rows that leave in the order in which they enter.
    """

    places: Int64Array
    enter: Int64Array
    leave: Int64Array
    codes: Int64Array
    starts: Int64Array
    in_order: Flags

    @classmethod
    def of(cls, rows: Lifetimes, since: int, limit: int, opening: bool) -> GroupedLifetimes:
        """The rows of groups that change; see `kernels.lifetime_groups`."""
        codes, size, known = rows.codes, int(rows.codes.max(initial=-1)) + 1, None
        if size > FEW_GROUPS and size > 16 * len(codes):
            # Where few of many codes occur, counting all of them would take longer than sorting.
            known, codes = np.unique(codes, return_inverse=True)
            codes, known = codes - int(known[0] < 0), known[known >= 0]
            size = len(known)
        words = kernels.lifetime_groups(codes, rows.enter, rows.leave, since, limit, opening, size)
        found = cls(*words)
        return found if known is None else replace(found, codes=known[found.codes])

    def __len__(self) -> int:
        return len(self.places)

    @property
    def counts(self) -> Int64Array:
        """How many rows each group has."""
        return np.diff(self.starts)

    def where(self, groups: Flags) -> GroupedLifetimes:
        """Those of some groups."""
        rows, starts = np.flatnonzero(np.repeat(groups, self.counts)), np.zeros(np.count_nonzero(groups) + 1, np.int64)
        np.cumsum(self.counts[groups], out=starts[1:])
        words = (self.places[rows], self.enter[rows], self.leave[rows])
        return GroupedLifetimes(*words, self.codes[groups], starts, self.in_order[groups])


@dataclass(frozen=True, eq=False)
class GroupSteps:
    """The changes of some groups, ordered by group and instant, and their states from each change on.

    `columns` says how states are lowered. `ends` are the groups and their states after the last change, where
    there are totals.
    """

    codes: Int64Array
    at: Int64Array
    columns: Sequence[StateArrays]
    states: Sequence[StateWords]
    ends: tuple[Int64Array, Sequence[StateWords]] | None = None

    def __len__(self) -> int:
        return len(self.codes)

    def at_places(self, places: Int64Array | slice) -> GroupSteps:
        """Those at some places."""
        states = [states_at(words, places) for words in self.states]
        return GroupSteps(self.codes[places], self.at[places], self.columns, states)


def group_steps(
    columns: Sequence[StateArrays],
    rows: Lifetimes,
    items: ItemsAt,
    since: int,
    limit: int,
    opening: bool = False,
    totals: Sequence[StateWords] = (),
) -> Iterator[GroupSteps]:
    """The changes of all groups after `since` and up to `limit`, those of a group in one piece.

    With `opening`, all groups are returned, also with their states at `since`; otherwise only those that change. With
    `totals`, rows never leave, and states are those of rows together with the totals of their groups.
    """
    mine = GroupedLifetimes.of(rows, since, limit, opening)
    if not len(mine):
        return
    if mine.in_order.all():
        yield _moving_steps(columns, mine, items(mine.places), since, limit, opening, totals)
        return
    for kind, steps in ((mine.in_order, _moving_steps), (~mine.in_order, _stretch_steps)):
        if kind.any():
            chosen = mine.where(kind)
            yield steps(columns, chosen, items(chosen.places), since, limit, opening, totals)


def _moving_steps(
    columns: Sequence[StateArrays],
    rows: GroupedLifetimes,
    items: Sequence[Items],
    since: int,
    limit: int,
    opening: bool,
    totals: Sequence[StateWords],
) -> GroupSteps:
    ranges = MovingRanges.of(rows.starts, rows.enter, rows.leave, since, limit, opening)
    codes = rows.codes[ranges.groups]
    if not totals:
        found = [moving_states(column, each, ranges) for column, each in zip(columns, items, strict=True)]
        return GroupSteps(codes, ranges.at, [column for column, _ in found], [words for _, words in found])
    whole = [
        running_states(column, each, ranges, states_at(total, rows.codes))
        for column, each, total in zip(columns, items, totals, strict=True)
    ]
    lowered, states, ends = zip(*whole, strict=True)
    return GroupSteps(codes, ranges.at, lowered, states, (rows.codes, ends))


# ---- rows that leave in any order ------------------------------------------------------------------------------------


def _stretch_steps(
    columns: Sequence[StateArrays],
    rows: GroupedLifetimes,
    items: Sequence[Items],
    since: int,
    limit: int,
    opening: bool,
    totals: Sequence[StateWords],
) -> GroupSteps:
    groups, order = np.repeat(np.arange(len(rows.codes)), rows.counts), order_by_instant(rows.leave)
    by_leave = order[order_by_code(groups[order])]
    by_enter = np.arange(len(rows))
    if ((rows.enter[1:] < rows.enter[:-1]) & (groups[1:] == groups[:-1])).any():
        order = order_by_instant(rows.enter)
        by_enter = order[order_by_code(groups[order])]
    words = rows.starts, by_enter, by_leave, rows.enter, rows.leave
    groups, at, low, high = kernels.stretch_steps(*words, since, limit, opening)
    stretches = RowStretches(low, high, len(at), by_leave, rows.starts)
    states = [stretch_states(column, each, stretches) for column, each in zip(columns, items, strict=True)]
    codes = rows.codes[groups]
    if not totals:
        return GroupSteps(codes, at, columns, states)
    whole = [
        column.combine(states_at(total, codes), words)
        for column, total, words in zip(columns, totals, states, strict=True)
    ]
    last = np.flatnonzero(np.append(np.diff(codes) != 0, True))
    return GroupSteps(codes, at, columns, whole, (codes[last], [states_at(words, last) for words in whole]))
