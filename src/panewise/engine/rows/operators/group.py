"""Grouped aggregation over any relation: a row of the result for each group and each stretch between its changes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from panewise.aggregate import CountStates, Int64Array, Items, Min, StateArrays, nullable_array, states_at
from panewise.algebra import Group
from panewise.engine.group_steps import GroupSteps, Lifetimes, group_steps
from panewise.engine.keys import Keys
from panewise.engine.places import take_values
from panewise.engine.purge import Purge
from panewise.engine.rows.inputs.timed import columns_of
from panewise.engine.rows.operators.base import Operator, is_crowded, order_count, schema_of
from panewise.engine.rows.spans import EMPTY, NO_EXPIRY, RelationDelta, Spans, empty_spans, with_ends
from panewise.engine.state.snapshot import Tree
from panewise.kernels.ranges import OPEN


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
        assert self.rows is not None
        rows, before, self.advanced_until = self.rows, self.advanced_until, limit
        lifetimes = Lifetimes(self.codes, rows.enter, rows.leave)
        steps = group_steps([*self.columns, *self.earliest], lifetimes, self._items, before, limit)
        turns = [self._delta(each) for each in steps]
        self._forget(limit)
        opened = Spans.concat([empty_spans(self.schema, self.orders), *(turn.opened for turn in turns)])
        closed, closed_at = (
            np.concatenate([EMPTY, *words])
            for words in ([turn.closed for turn in turns], [turn.closed_at for turn in turns])
        )
        return RelationDelta(opened, closed, closed_at)

    def _take(self, given: RelationDelta) -> None:
        rows = given.opened
        codes = self.keys.encode(columns_of(rows.table, self.node.keys), len(rows))
        self.rows = rows if self.rows is None else Spans.concat([with_ends(self.rows, given), rows])
        self.codes = np.concatenate((self.codes, codes))
        if len(self.keys) > len(self.result_ids):
            self.result_ids = np.concatenate((self.result_ids, np.full(len(self.keys) - len(self.result_ids), -1)))

    def _items(self, places: Int64Array) -> list[Items]:
        assert self.rows is not None
        rows, index = self.rows, pa.array(places)
        times, order = rows.time[places], rows.order[places]
        read = {name for call in self.calls for name in call.arguments}
        columns = {name: take_values(rows.table.column(name), index) for name in read}
        arguments = [(), *(tuple(columns[name] for name in call.arguments) for call in self.calls)]
        expiries = (word[places] for word in (rows.expires, *rows.orders))
        arguments += [(nullable_array(word, word == NO_EXPIRY),) for word in expiries]
        return [Items(each, times, order) for each in arguments]

    def _delta(self, steps: GroupSteps) -> RelationDelta:
        there = steps.states[0][0] > 0
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
        return RelationDelta(self._rows(steps, shown, until[shown], ids), closed, closed_at)

    def _rows(self, steps: GroupSteps, shown: Int64Array, until: Int64Array, ids: Int64Array) -> Spans:
        answers = [
            column.lower(states_at(words, shown)) for column, words in zip(steps.columns, steps.states, strict=True)
        ]
        answers, earliest = answers[: len(self.columns)], answers[len(self.columns) :]
        named = dict(zip((call.name for call in self.calls), answers[1:], strict=True))
        calls = [answers[0] if call.aggregate.counts_rows else named[call.name] for call in self.node.calls]
        table = pa.table([*self.keys.take(steps.codes[shown]), *calls], names=self.schema.names).cast(self.schema)
        leaving = [array.fill_null(NO_EXPIRY).to_numpy(zero_copy_only=False) for array in earliest]
        at = steps.at[shown]
        return Spans(table, at, until, ids, at, ids, leaving[0], tuple(leaving[1:]))

    def _forget(self, limit: int) -> None:
        assert self.rows is not None
        for column in self.columns:
            if column.oversized:
                column.forget(())
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
