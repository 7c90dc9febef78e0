"""What frames hold: the states of the aggregates of a query, by frame."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np
import pyarrow as pa

from panewise.aggregate import (
    CountStates,
    Int64Array,
    Items,
    StateArrays,
    StateWords,
    moving_states,
    put,
    runs,
    states_at,
)
from panewise.algebra import Host
from panewise.engine.frames.framer import FrameAssignment
from panewise.engine.frames.order import TimedRows
from panewise.engine.frames.report import FrameCells, concat_cells
from panewise.engine.frames.row_ranges import RowRanges
from panewise.engine.keys import Keys
from panewise.engine.panes.grouping import arrays_of
from panewise.engine.panes.open_panes import compact_slots
from panewise.engine.row_steps import apply_steps
from panewise.engine.state.snapshot import Tree, pane_tree, panes_from
from panewise.plan.frame_plan import FrameAggregation
from panewise.stores.pane import Pane, merge_panes


def rank_in_group(groups: Int64Array) -> Int64Array:
    """For each place, how many places before it have the same number."""
    order = np.argsort(groups, kind="stable")
    starts, stops = runs(groups[order])
    ranks = np.empty(len(groups), np.int64)
    ranks[order] = np.arange(len(groups)) - np.repeat(starts, stops - starts)
    return ranks


class FrameContents:
    """States by cell: a frame, and inside it a group where the query names more keys than frames have.

    The code of a cell is its slot times the number of inner groups, plus the code of its group.
    """

    def __init__(self, asked: FrameAggregation, groups: Collection[str], host: Host) -> None:
        assert asked.group is not None
        self.between, self.group, self.host = asked.between, asked.group, host
        types = {c.name: c.type for c in self.group.child.columns}
        self.inner_keys = [key for key in self.group.keys if key not in groups]
        self.inner = Keys([types[key] for key in self.inner_keys])
        #: Presence first, then one for each aggregate; COUNT(*) is the presence.
        self.calls = [call for call in self.group.calls if not call.aggregate.counts_rows]
        self.columns: list[StateArrays] = [CountStates(), *(call.aggregate.state_arrays() for call in self.calls)]
        self.slots: Int64Array = np.zeros(0, np.int64)
        self.groups: Int64Array = np.zeros(0, np.int64)
        self.states: tuple[StateWords, ...] = tuple(column.identity(0) for column in self.columns)
        #: Whether the query has no aggregates over the rows of frames.
        self.unused = not self.group.calls and not self.inner_keys
        self._fragments: list[FrameCells] = []

    def take(self, step: FrameAssignment, table: pa.Table, times: Int64Array, order: Int64Array) -> None:
        """Add rows to the frames to which they belong."""
        self._fragments = []
        if self.unused:
            places = np.arange(len(step.fragments))
            self._fragments = [FrameCells(places, np.zeros_like(places), self.cells_in_slots(places).states)]
            return
        pieces = step.pieces if len(step.owners) else step.slots
        owners = step.owners if len(step.owners) else np.arange(len(step.frames))
        inside = np.flatnonzero(pieces >= 0)
        if not len(inside):
            return
        if len(inside) < len(pieces):
            table, times, order = table.take(pa.array(inside)), times[inside], order[inside]
            pieces = pieces[inside]
        self._add(step, self._gather_cells(pieces, table, times, order, len(owners)), owners)

    def cells_of(
        self, frames: Int64Array, table: pa.Table, times: Int64Array, order: Int64Array, size: int
    ) -> FrameCells:
        """The cells of `size` frames; `frames` has the frame of each row."""
        pane, width = self._gather_cells(frames, table, times, order, size), len(self.inner)
        return FrameCells(pane.codes // width, pane.codes % width, pane.states)

    def cells_in_ranges(self, rows: TimedRows, low: Int64Array, high: Int64Array, groups: Int64Array) -> FrameCells:
        """The cells of frames that are ranges of the rows of groups, by where they begin; a row may be in several."""
        if self.unused:
            return FrameCells(np.arange(len(low)), np.zeros(len(low), np.int64), (self.columns[0].identity(len(low)),))
        ranges = RowRanges.of(rows, low, high, groups).after_steps(self.between, self.host)
        if not self.inner_keys and ranges.are_moving:
            moving = ranges.moving_ranges()
            found = [
                moving_states(*pair, moving) for pair in zip(self.columns, self._items_of(ranges.rows), strict=True)
            ]
            columns, states = zip(*found, strict=True)
            return FrameCells(np.arange(len(low)), np.zeros(len(low), np.int64), states, columns)
        parts = [
            self._cells_of_frames(frames, ranges.rows.at(places), stop - start).shift(start)
            for start, stop, frames, places in ranges.portions()
        ]
        return concat_cells(parts)

    def _cells_of_frames(self, frames: Int64Array, rows: TimedRows, size: int) -> FrameCells:
        """The cells of `size` frames, of rows that have passed the steps."""
        pane, width = self._gather_states(frames, rows, size), len(self.inner)
        return FrameCells(pane.codes // width, pane.codes % width, pane.states)

    def _gather_cells(
        self, pieces: Int64Array, table: pa.Table, times: Int64Array, order: Int64Array, size: int
    ) -> Pane:
        """The states of all cells of some pieces."""
        table, kept = apply_steps(self.between, table, self.host)
        if kept is not None:
            times, order, pieces = times[kept], order[kept], pieces[kept]
        return self._gather_states(pieces, TimedRows(table, times, order), size)

    def _gather_states(self, pieces: Int64Array, rows: TimedRows, size: int) -> Pane:
        """The same, of rows that have passed the steps."""
        items = self._items_of(rows)
        if not self.inner_keys:
            states = tuple(column.gather(pieces, each, size) for column, each in zip(self.columns, items, strict=True))
            return Pane(0, 0, np.arange(size), states)
        arrays = arrays_of(rows.table)
        groups = self.inner.encode([arrays[key] for key in self.inner_keys], len(rows))
        cells, ranks = compact_slots(pieces * len(self.inner) + groups)
        pairs = zip(self.columns, items, strict=True)
        return Pane(0, 0, cells, tuple(column.gather(ranks, each, len(cells)) for column, each in pairs))

    def _items_of(self, rows: TimedRows) -> list[Items]:
        """The items of each column of states."""
        arrays, times, order = arrays_of(rows.table), rows.times, rows.order
        items = [Items((), times, order)]
        return items + [Items(tuple(arrays[a] for a in call.arguments), times, order) for call in self.calls]

    def _add(self, step: FrameAssignment, pane: Pane, owners: Int64Array) -> None:
        """Add pieces to their frames, one piece of each at a time, so that each fragment has its own states."""
        width = len(self.inner)
        pieces = pane.codes // width
        rounds: dict[int, Int64Array] = {0: np.arange(len(pieces))}
        telling: dict[int, Int64Array] = {}
        if len(step.fragments):
            ranks = rank_in_group(owners)
            rounds, telling = _by_rank(ranks[pieces]), _by_rank(ranks[step.fragments[:, 1]])
        for rank in sorted({**rounds, **telling}):
            if rank in rounds:
                mine = rounds[rank]
                self._merge(owners[pieces[mine]] * width + pane.codes[mine] % width, pane, mine)
            if rank in telling:
                self._note_fragments(step, telling[rank])

    def _merge(self, cells: Int64Array, pane: Pane, mine: Int64Array) -> None:
        """Add the states of some cells."""
        width = len(self.inner)
        order = np.argsort(cells, kind="stable")
        part = Pane(0, 0, cells[order], tuple(states_at(words, mine[order]) for words in pane.states))
        total = merge_panes(self.columns, [Pane(0, 0, self.slots * width + self.groups, self.states), part])
        self.slots, self.groups, self.states = total.codes // width, total.codes % width, total.states

    def _note_fragments(self, step: FrameAssignment, chosen: Int64Array) -> None:
        """Note what the frames of fragments hold now; each frame occurs at most once."""
        slots = step.fragments[chosen, 0]
        order = np.argsort(slots)
        held = self.cells_in_slots(slots[order])
        self._fragments.append(FrameCells(chosen[order][held.frames], held.groups, held.states))

    def fragment_cells(self) -> FrameCells:
        """What the frames of fragments held, in the order of `FrameAssignment.fragments`."""
        return concat_cells(self._fragments)

    def cells_in_slots(self, slots: Int64Array) -> FrameCells:
        """The cells of some frames, ascending.

        A frame without groups inside has a cell even if it holds nothing.
        """
        if self.inner_keys:
            cells = np.flatnonzero(np.isin(self.slots, slots))
            return FrameCells(np.searchsorted(slots, self.slots[cells]), self.groups[cells], self._states_at(cells))
        states = tuple(column.identity(len(slots)) for column in self.columns)
        where = np.searchsorted(self.slots, slots)
        found = np.flatnonzero((where < len(self.slots)) & (_at(self.slots, where) == slots))
        for words, held in zip(states, self._states_at(where[found]), strict=True):
            put(words, found, held)
        return FrameCells(np.arange(len(slots)), np.zeros(len(slots), np.int64), states)

    def forget(self, fresh: Int64Array) -> None:
        """Move frames to new slots; those with slot -1 are dropped."""
        slots = fresh[self.slots]
        keep = np.flatnonzero(slots >= 0)
        self.slots, self.groups, self.states = slots[keep], self.groups[keep], self._states_at(keep)

    def drop_unused_keys(self) -> None:
        """Drop inner groups that no frame holds. Codes and cells keep their order."""
        if kept := self.inner.shrink_to_live(lambda: [self.groups]):
            self.inner, self.groups = kept.keys, kept.codes[self.groups]

    def answer_columns(self, cells: FrameCells) -> dict[str, pa.Array]:
        """The inner keys and answers of some cells."""
        pairs = zip(cells.columns or self.columns, cells.states, strict=True)
        lower = [column.lower(words) for column, words in pairs]
        found = dict(zip(self.inner_keys, self.inner.take(cells.groups), strict=True))
        for call in self.group.calls:
            found[call.name] = lower[1 + self.calls.index(call)] if call in self.calls else lower[0]
        return found

    def _states_at(self, cells: Int64Array) -> tuple[StateWords, ...]:
        return tuple(states_at(words, cells) for words in self.states)

    def state(self) -> Tree:
        codes = np.arange(len(self.slots))
        cells = pa.table({"slot": self.slots, "group": self.groups})
        panes = pane_tree(self.columns, [Pane(0, 0, codes, self.states)])
        return {"inner": self.inner.state(), "cells": cells, "panes": panes}

    def restore(self, state: Tree) -> None:
        self.inner.restore(state["inner"])
        self.slots, self.groups = (np.array(column.to_numpy(), np.int64) for column in state["cells"].columns)
        (pane,) = panes_from(self.columns, state["panes"])
        self.states = pane.states


def _by_rank(ranks: Int64Array) -> dict[int, Int64Array]:
    """The places of each rank."""
    order = np.argsort(ranks, kind="stable")
    starts, stops = runs(ranks[order])
    return {int(ranks[order[a]]): order[a:b] for a, b in zip(starts, stops, strict=True)}


def _at(values: Int64Array, where: Int64Array) -> Int64Array:
    return values[np.minimum(where, len(values) - 1)] if len(values) else where - where - 1
