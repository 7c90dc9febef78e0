"""Grouped aggregation over rows with lifetimes: where each group changes, and its states from then on.

This is the one lane for changes: continuous and counted windows, and groups over joins, distincts and sub-queries.
Where the rows of a group leave in the order in which they enter, its states are those of a range that moves over them.
Elsewhere every row covers a stretch of the changes of its group; see `aggregate.stretches`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import numpy.typing as npt

from panewise.aggregate import (
    Int64Array,
    Items,
    MovingRanges,
    StateArrays,
    StateWords,
    moving_states,
    runs,
    states_at,
    stretch_states,
)
from panewise.engine.sorting import order_by_code, order_by_instant

Flags = npt.NDArray[np.bool_]
#: The items of each column of states, of the rows at some places.
ItemsAt = Callable[[Int64Array], Sequence[Items]]


@dataclass(frozen=True, eq=False)
class Lifetimes:
    """Rows of groups, ordered by time and arrival: the code of the group, and when each enters and leaves."""

    codes: Int64Array
    enter: Int64Array
    leave: Int64Array

    def at(self, places: Int64Array) -> Lifetimes:
        return Lifetimes(self.codes[places], self.enter[places], self.leave[places])


@dataclass(frozen=True, eq=False)
class GroupSteps:
    """The changes of some groups, ordered by group and instant, and their states from each change on.

    `columns` says how states are lowered.
    """

    codes: Int64Array
    at: Int64Array
    columns: Sequence[StateArrays]
    states: Sequence[StateWords]

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
    combine: bool = False,
) -> Iterator[GroupSteps]:
    """The changes of all groups after `since` and up to `limit`, those of a group in one piece.

    With `opening`, all groups are returned, also with their states at `since`; otherwise only those that change. With
    `combine`, states can be combined with others.
    """
    mine = _rows_of_changing_groups(rows, since, limit, opening)
    if not len(mine):
        return
    mine = mine[order_by_code(rows.codes[mine])]
    rows = rows.at(mine)
    starts, stops = runs(rows.codes)
    moving = _groups_in_order(rows, starts)
    if moving.all():
        yield _moving_steps(columns, rows, items(mine), since, limit, opening, combine)
        return
    for kind, steps in ((moving, partial(_moving_steps, combine=combine)), (~moving, _stretch_steps)):
        chosen = np.flatnonzero(np.repeat(kind, stops - starts))
        if len(chosen):
            yield steps(columns, rows.at(chosen), items(mine[chosen]), since, limit, opening)


def _rows_of_changing_groups(rows: Lifetimes, since: int, limit: int, opening: bool) -> Int64Array:
    """The places of the rows that are there at some instant, of groups of which some row enters or leaves."""
    there = (rows.codes >= 0) & (rows.enter < rows.leave) & (rows.leave > since) & (rows.enter <= limit)
    if opening:
        return np.flatnonzero(there)
    changing = there & ((rows.enter > since) | (rows.leave <= limit))
    touched = np.zeros(int(rows.codes.max(initial=-1)) + 2, bool)
    touched[rows.codes[changing]] = True
    return np.flatnonzero(there & touched[rows.codes])


def _groups_in_order(rows: Lifetimes, starts: Int64Array) -> Flags:
    """Which groups have rows that leave in the order in which they enter."""
    in_order = np.ones(len(rows.codes), bool)
    in_order[1:] = (rows.enter[1:] >= rows.enter[:-1]) & (rows.leave[1:] >= rows.leave[:-1])
    in_order[starts] = True
    return np.logical_and.reduceat(in_order, starts)


def _moving_steps(
    columns: Sequence[StateArrays],
    rows: Lifetimes,
    items: Sequence[Items],
    since: int,
    limit: int,
    opening: bool,
    combine: bool,
) -> GroupSteps:
    starts, _ = runs(rows.codes)
    edges = np.append(starts, len(rows.codes))
    ranges = MovingRanges.of(edges, rows.enter, rows.leave, since, limit, opening)
    found = [moving_states(column, each, ranges, combine) for column, each in zip(columns, items, strict=True)]
    codes = rows.codes[starts][ranges.groups]
    return GroupSteps(codes, ranges.at, [column for column, _ in found], [words for _, words in found])


# ---- rows that leave in any order ------------------------------------------------------------------------------------


def _stretch_steps(
    columns: Sequence[StateArrays], rows: Lifetimes, items: Sequence[Items], since: int, limit: int, opening: bool
) -> GroupSteps:
    codes, at, low, high = _stretches(rows, since, limit, opening)
    states = [stretch_states(column, each, low, high, len(at)) for column, each in zip(columns, items, strict=True)]
    return GroupSteps(codes, at, columns, states)


def _stretches(
    rows: Lifetimes, since: int, limit: int, opening: bool
) -> tuple[Int64Array, Int64Array, Int64Array, Int64Array]:
    """The code and instant of each change of each group, ordered by both; and the stretch of them that each row covers.

    Rows are ordered by group, and every group changes.
    """
    entering = rows.enter > since if not opening else np.ones(len(rows.codes), bool)
    leaving = rows.leave <= limit
    codes = np.concatenate((rows.codes[entering], rows.codes[leaving]))
    at = np.concatenate((np.maximum(rows.enter[entering], since), rows.leave[leaving]))
    order = order_by_instant(at)
    order = order[order_by_code(codes[order])]
    codes, at = codes[order], at[order]
    fresh = np.ones(len(codes), bool)
    fresh[1:] = (np.diff(codes) != 0) | (np.diff(at) != 0)
    numbers = np.empty(len(order), np.int64)
    numbers[order] = np.cumsum(fresh) - 1
    codes, at = codes[fresh], at[fresh]
    (firsts, lasts), (starts, stops) = runs(codes), runs(rows.codes)
    low, high = np.repeat(firsts, stops - starts), np.repeat(lasts, stops - starts)
    count = np.count_nonzero(entering)
    low[entering], high[leaving] = numbers[:count], numbers[count:]
    return codes, at, low, high
