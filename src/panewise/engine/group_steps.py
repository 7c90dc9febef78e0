"""Grouped aggregation over rows with lifetimes: where each group changes, and its states from then on.

This is the one lane for changes: continuous and counted windows, and groups over joins, distincts and sub-queries.
Where the rows of a group leave in the order in which they enter, its states are those of a range that moves over them.
Elsewhere every row covers a stretch of the changes of its group, and is added to the few nodes of a tree that make up
this stretch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import numpy.typing as npt

from panewise import kernels
from panewise.aggregate import (
    Int64Array,
    Items,
    MovingRanges,
    StateArrays,
    StateWords,
    moving_states,
    runs,
    states_at,
)
from panewise.kernels.joins import bucket_order

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
    for kind, steps in ((moving, partial(_moving_steps, combine=combine)), (~moving, _tree_steps)):
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


def order_by_code(codes: Int64Array) -> Int64Array:
    """The order by code; equal codes stay as they are."""
    size = int(codes.max(initial=-1)) + 1
    # Where few of many codes occur, counting all of them would take longer than sorting.
    sort = kernels.bucket_order if size < 16 * len(codes) else bucket_order
    found: Int64Array = sort(codes, size)
    return found


def _groups_in_order(rows: Lifetimes, starts: Int64Array) -> Flags:
    """Which groups have rows that leave in the order in which they enter."""
    in_order = np.ones(len(rows.codes), bool)
    in_order[1:] = (np.diff(rows.enter) >= 0) & (np.diff(rows.leave) >= 0)
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


def _tree_steps(
    columns: Sequence[StateArrays], rows: Lifetimes, items: Sequence[Items], since: int, limit: int, opening: bool
) -> GroupSteps:
    codes, at = _change_instants(rows, since, limit, opening)
    starts, stops = runs(codes)
    group = np.searchsorted(codes[starts], rows.codes)
    low, high = (_first_step_from(at, starts[group], stops[group], instants) for instants in (rows.enter, rows.leave))
    nodes, places = _covering_nodes(low, high, len(at))
    size = 2 * _width(len(at))
    states = [
        _push_down(column, column.gather(nodes, each.at(places), size), len(at))
        for column, each in zip(columns, items, strict=True)
    ]
    return GroupSteps(codes, at, columns, states)


def _change_instants(rows: Lifetimes, since: int, limit: int, opening: bool) -> tuple[Int64Array, Int64Array]:
    """The code and instant of each change of each group, ordered by both."""
    pieces = [(rows.codes, instants) for instants in (rows.enter, rows.leave)]
    pieces = [(codes[here], at[here]) for codes, at in pieces for here in [(at > since) & (at <= limit)]]
    if opening:
        here = rows.enter <= since
        pieces.append((rows.codes[here], np.full(np.count_nonzero(here), since)))
    codes, at = (np.concatenate(words) for words in zip(*pieces, strict=True))
    order = np.lexsort((at, codes))
    fresh = np.ones(len(codes), bool)
    fresh[1:] = (np.diff(codes[order]) != 0) | (np.diff(at[order]) != 0)
    return codes[order][fresh], at[order][fresh]


def _first_step_from(at: Int64Array, first: Int64Array, stop: Int64Array, instants: Int64Array) -> Int64Array:
    """For each instant, the first step of a group that is not before it."""
    low, high = first.copy(), stop.copy()
    while (open_ := low < high).any():
        middle = (low + high) // 2
        before = open_ & (at[np.minimum(middle, len(at) - 1)] < instants)
        low = np.where(before, middle + 1, low)
        high = np.where(open_ & ~before, middle, high)
    return low


def _width(count: int) -> int:
    return 1 << max(count - 1, 0).bit_length()


def _covering_nodes(low: Int64Array, high: Int64Array, count: int) -> tuple[Int64Array, Int64Array]:
    """The nodes of a tree over all steps that make up each stretch, and which stretch each is for."""
    left, right = low + _width(count), high + _width(count)
    nodes, places = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
    mine = np.flatnonzero(left < right)
    left, right = left[mine], right[mine]
    while len(mine):
        for odd, node in ((left % 2 == 1, left), (right % 2 == 1, right - 1)):
            nodes.append(node[odd])
            places.append(mine[odd])
        left, right = (left + 1) // 2, right // 2
        keep = left < right
        mine, left, right = mine[keep], left[keep], right[keep]
    return np.concatenate(nodes), np.concatenate(places)


def _push_down(column: StateArrays, words: StateWords, count: int) -> StateWords:
    """The state at each step: that of its leaf and of all nodes above."""
    width = _width(count)
    level = 1
    while level < width:
        above = states_at(words, np.repeat(np.arange(level, 2 * level), 2))
        below = slice(2 * level, 4 * level)
        both = column.combine(states_at(words, below), above)
        for word, value in zip(words, both, strict=True):
            word[below] = value
        level *= 2
    return states_at(words, slice(width, width + count))
