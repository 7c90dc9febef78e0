"""Grouped aggregation over any relation: a row of the result for each group and each stretch between its changes.

Groups that change are computed again: every row covers a stretch of its group's changes, and is added to the few
nodes of a tree that make up this stretch.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from panewise.aggregate import CountStates, Int64Array, Items, Min, StateArrays, StateWords, runs, states_at
from panewise.algebra import Group
from panewise.engine.keys import Keys
from panewise.engine.purge import Purge
from panewise.engine.rows.inputs.timed import columns_of
from panewise.engine.rows.operators.base import Operator, is_crowded, order_count, schema_of
from panewise.engine.rows.operators.distinct import ChangeSteps
from panewise.engine.rows.spans import EMPTY, NO_EXPIRY, OPEN, RelationDelta, Spans, empty_spans, with_ends
from panewise.engine.state.snapshot import Tree


class GroupOperator(Operator):
    """Groups and their aggregates; a group without rows has no result."""

    def __init__(self, node: Group, purge: Purge) -> None:
        self.node, self.schema, self.orders, self.purge = node, schema_of(node), order_count(node), purge
        types = {column.name: column.type for column in node.child.columns}
        self.keys = Keys([types[key] for key in node.keys])
        self.calls = [call for call in node.calls if not call.aggregate.counts_rows]
        self.columns: list[StateArrays] = [CountStates(), *(call.aggregate.state_arrays() for call in self.calls)]
        #: When the first row of a group leaves, by time and by the orders of counted windows.
        self.earliest: list[StateArrays] = [Min(pa.int64()).state_arrays() for _ in range(1 + self.orders)]
        self.rows: Spans | None = None
        self.codes = EMPTY
        #: The number under which each group is in the result, -1 where it is not.
        self.result_ids = EMPTY
        self.advanced_until = -OPEN
        self.serial = 0

    def advance(self, limit: int, inputs: Sequence[RelationDelta]) -> RelationDelta:
        (given,) = inputs
        self._take(given)
        steps, before = self._steps(limit), self.advanced_until
        self.advanced_until = limit
        if not len(steps):
            return RelationDelta(empty_spans(self.schema, self.orders))
        states = self._states(steps, before)
        turn = self._delta(steps, states)
        self._forget(limit)
        return turn

    def _take(self, given: RelationDelta) -> None:
        rows = given.opened
        codes = self.keys.encode(columns_of(rows.table, self.node.keys), len(rows))
        self.rows = rows if self.rows is None else Spans.concat([with_ends(self.rows, given), rows])
        self.codes = np.concatenate((self.codes, codes))
        if len(self.keys) > len(self.result_ids):
            self.result_ids = np.concatenate((self.result_ids, np.full(len(self.keys) - len(self.result_ids), -1)))

    def _steps(self, limit: int) -> ChangeSteps:
        """Where groups change in this turn."""
        assert self.rows is not None
        enters = self.rows.enter > self.advanced_until
        leaves = (self.rows.leave > self.advanced_until) & (self.rows.leave <= limit)
        return ChangeSteps.of(
            np.concatenate((self.codes[enters], self.codes[leaves])),
            np.concatenate((self.rows.enter[enters], self.rows.leave[leaves])),
        )

    def _states(self, steps: ChangeSteps, before: int) -> list[StateWords]:
        """The state of each group from each step until the next one."""
        assert self.rows is not None
        mine = np.flatnonzero(np.isin(self.codes, steps.codes) & (self.rows.leave > before + 1))
        rows, codes = self.rows.at(mine), self.codes[mine]
        starts, stops = runs(steps.codes)
        group = np.searchsorted(steps.codes[starts], codes)
        low, high = (
            _first_step_from(steps, starts[group], stops[group], instants) for instants in (rows.enter, rows.leave)
        )
        nodes, places = _covering_nodes(low, high, len(steps))
        return [
            _push_down(column, column.gather(nodes, items.at(places), 2 * _width(len(steps))), len(steps))
            for column, items in zip((*self.columns, *self.earliest), self._items(rows), strict=True)
        ]

    def _items(self, rows: Spans) -> list[Items]:
        def items(*arguments: pa.Array) -> Items:
            return Items(arguments, rows.time, rows.order)

        found = [items()]
        found += [items(*columns_of(rows.table, call.arguments)) for call in self.calls]
        return found + [items(pa.array(word, mask=word == NO_EXPIRY)) for word in (rows.expires, *rows.orders)]

    def _delta(self, steps: ChangeSteps, states: Sequence[StateWords]) -> RelationDelta:
        there = states[0][0] > 0
        last = np.ones(len(steps), bool)
        last[:-1] = np.diff(steps.codes) != 0
        until = np.where(last, OPEN, np.concatenate((steps.at[1:], [OPEN])))
        first = np.ones(len(steps), bool)
        first[1:] = np.diff(steps.codes) != 0
        stood = first & (self.result_ids[steps.codes] >= 0)
        closed, closed_at = self.result_ids[steps.codes[stood]], steps.at[stood]
        shown = np.flatnonzero(there)
        ids = np.arange(self.serial, self.serial + len(shown), dtype=np.int64)
        self.serial += len(shown)
        self.result_ids[steps.codes[stood]] = -1
        staying = until[shown] == OPEN
        self.result_ids[steps.codes[shown[staying]]] = ids[staying]
        return RelationDelta(self._rows(steps, states, shown, until[shown], ids), closed, closed_at)

    def _rows(
        self, steps: ChangeSteps, states: Sequence[StateWords], shown: Int64Array, until: Int64Array, ids: Int64Array
    ) -> Spans:
        answers = [column.lower(states_at(words, shown)) for column, words in zip(self.columns, states, strict=False)]
        named = dict(zip((call.name for call in self.calls), answers[1:], strict=True))
        calls = [answers[0] if call.aggregate.counts_rows else named[call.name] for call in self.node.calls]
        table = pa.table([*self.keys.take(steps.codes[shown]), *calls], names=self.schema.names).cast(self.schema)
        leaving = [
            column.lower(states_at(words, shown)).fill_null(NO_EXPIRY).to_numpy(zero_copy_only=False)
            for column, words in zip(self.earliest, states[len(self.columns) :], strict=True)
        ]
        at = steps.at[shown]
        return Spans(table, at, until, ids, at, ids, leaving[0], tuple(leaving[1:]))

    def _forget(self, limit: int) -> None:
        assert self.rows is not None
        alive = self.rows.leave > limit
        if self.purge.due(int(np.count_nonzero(alive)), len(alive)):
            self.rows, self.codes = self.rows.where(alive), self.codes[alive]
        if is_crowded(len(self.keys), len(self.codes)):
            kept = self.keys.keep_codes([self.codes, np.flatnonzero(self.result_ids >= 0)])
            live = np.flatnonzero(kept.codes >= 0)
            result_ids = np.full(len(kept.keys), -1)
            result_ids[kept.codes[live]] = self.result_ids[live]
            self.keys, self.codes, self.result_ids = kept.keys, kept.codes[self.codes], result_ids

    def state(self) -> Tree:
        return {
            "rows": None if self.rows is None else self.rows.state(),
            "keys": self.keys.state(),
            "standing": pa.table({"ids": self.result_ids}),
            "passed": self.advanced_until,
            "serial": self.serial,
        }

    def restore(self, state: Tree) -> None:
        self.keys.restore(state["keys"])
        self.result_ids = np.array(state["standing"].column(0).to_numpy(), np.int64)
        self.advanced_until, self.serial = state["passed"], state["serial"]
        if state["rows"] is not None:
            rows = Spans.from_state(state["rows"])
            self.rows = rows
            self.codes = self.keys.encode(columns_of(rows.table, self.node.keys), len(rows))


def _first_step_from(steps: ChangeSteps, first: Int64Array, stop: Int64Array, instants: Int64Array) -> Int64Array:
    """For each instant, the first step of a group that is not before it."""
    low, high = first.copy(), stop.copy()
    while (open_ := low < high).any():
        middle = (low + high) // 2
        before = open_ & (steps.at[np.minimum(middle, len(steps) - 1)] < instants)
        low = np.where(before, middle + 1, low)
        high = np.where(open_ & ~before, middle, high)
    return low


def _width(count: int) -> int:
    return 1 << max(count - 1, 0).bit_length()


def _covering_nodes(low: Int64Array, high: Int64Array, count: int) -> tuple[Int64Array, Int64Array]:
    """The nodes of a tree over all steps that make up each stretch, and which stretch each is for."""
    left, right = low + _width(count), high + _width(count)
    nodes, places = [EMPTY], [EMPTY]
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
