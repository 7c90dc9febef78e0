"""Operators that count equal rows: duplicate elimination and difference.

The count of a row changes at instants and is constant between them. A result row enters when its count rises and ends
when it falls. Departures with a known instant wait for it; others are reported by the input.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from panewise.aggregate import Int64Array, runs
from panewise.algebra import Distinct, Except, Node, Windowed
from panewise.engine.keys import Keys
from panewise.engine.rows.departures import Departures
from panewise.engine.rows.operators.base import Operator, is_crowded, order_count, schema_of
from panewise.engine.rows.spans import (
    EMPTY,
    NO_EXPIRY,
    UNKNOWN_EXPIRY,
    RelationDelta,
    Spans,
    empty_spans,
    end_instants,
)
from panewise.engine.sorting import order_by_code, order_by_instant
from panewise.engine.state.snapshot import Tree
from panewise.kernels.ranges import OPEN


@dataclass(frozen=True, eq=False)
class ChangeSteps:
    """Where counts change: the code and the instant, ordered by both, and the step of every change."""

    codes: Int64Array
    at: Int64Array
    slots: Int64Array

    @classmethod
    def of(cls, codes: Int64Array, at: Int64Array) -> ChangeSteps:
        """The steps of some changes; changes of one code at one instant are one step."""
        order = _order_by_code(codes, at)
        codes, at, fresh = codes[order], at[order], np.ones(len(codes), bool)
        fresh[1:] = (codes[1:] != codes[:-1]) | (at[1:] != at[:-1])
        slots = np.empty(len(codes), np.int64)
        slots[order] = np.cumsum(fresh) - 1
        return cls(codes[fresh], at[fresh], slots)

    def __len__(self) -> int:
        return len(self.codes)

    def heights(self, start: int, came: int, went: int, before: Int64Array) -> Int64Array:
        """The count after each step, from so many arrivals and departures, the first of which is the change at `start`.

        `before` holds every code's count up to then.
        """
        ups, downs = self.slots[start : start + came], self.slots[start + came : start + came + went]
        change: Int64Array = np.bincount(ups, minlength=len(self)) - np.bincount(downs, minlength=len(self))
        starts, stops = runs(self.codes)
        total = np.cumsum(change)
        return before[self.codes] + total - np.repeat(total[starts] - change[starts], stops - starts)

    def heights_before(self, heights: Int64Array, initial: Int64Array) -> Int64Array:
        """The height before each step; `initial` is that before the first step of its code."""
        first = np.ones(len(self), bool)
        first[1:] = np.diff(self.codes) != 0
        return np.where(first, initial, np.concatenate(([0], heights[:-1])))

    def last_places(self) -> Int64Array:
        """The place of the last step of each code."""
        return runs(self.codes)[1] - 1


def _order_by_code(codes: Int64Array, at: Int64Array) -> Int64Array:
    """The order by code, then by instant; arrivals and departures are each in the order of time already."""
    if not len(codes):
        return EMPTY
    order = order_by_instant(at)
    return order[order_by_code(codes[order])]


def _order_by_age(rows: Spans) -> Int64Array:
    """The order by time, then by arrival; most rows are in this order already."""
    later, same = np.diff(rows.time), np.diff(rows.order)
    if ((later > 0) | ((later == 0) & (same >= 0))).all():
        return np.arange(len(rows))
    return np.lexsort((rows.order, rows.time))


class RowCounts:
    """How often each row of one input is present."""

    def __init__(self) -> None:
        self.count = EMPTY
        self.departures = Departures()
        #: The codes of rows whose end is not known, by their numbers.
        self.ids, self.codes = EMPTY, EMPTY

    def advance(self, codes: Int64Array, given: RelationDelta, limit: int, size: int) -> tuple[Int64Array, Int64Array]:
        """Take rows in; returns the codes and instants of those that leave up to an instant."""
        opened = given.opened
        # A reported end may lie ahead, if rows stay longer than in the window below.
        self.departures.add(*self._take_closed(given))
        unknown, known = opened.leave == OPEN, opened.leave < OPEN
        if unknown.any():
            self.ids = np.concatenate((self.ids, opened.ids[unknown]))
            self.codes = np.concatenate((self.codes, codes[unknown]))
        self.departures.add(codes[known], opened.leave[known])
        if size > len(self.count):
            self.count = np.concatenate((self.count, np.zeros(max(size, 2 * len(self.count)) - len(self.count), int)))
        return self.departures.pop_until(limit)

    def _take_closed(self, given: RelationDelta) -> tuple[Int64Array, Int64Array]:
        """Codes and instants of rows whose end has become known."""
        if not len(given.closed) or not len(self.ids):
            return EMPTY, EMPTY
        at = end_instants(self.ids, given)
        mine = at < OPEN
        found = self.codes[mine], at[mine]
        self.ids, self.codes = self.ids[~mine], self.codes[~mine]
        return found

    def recode(self, codes: Int64Array, size: int) -> None:
        """Replace codes; those that become -1 are dropped."""
        live = np.flatnonzero(self.count)
        count = np.zeros(size, np.int64)
        count[codes[live]] = self.count[live]
        self.count, self.codes = count, codes[self.codes]
        self.departures.recode(codes)

    def state(self) -> Tree:
        present = np.flatnonzero(self.count)
        return {
            "counts": pa.table({"codes": present, "counts": self.count[present]}),
            "departures": self.departures.state(),
            "open": pa.table({"ids": self.ids, "codes": self.codes}),
        }

    def restore(self, state: Tree, size: int) -> None:
        codes, counts = (np.array(column.to_numpy(), np.int64) for column in state["counts"].columns)
        self.count = np.zeros(size, np.int64)
        self.count[codes] = counts
        self.departures.restore(state["departures"])
        self.ids, self.codes = (np.array(column.to_numpy(), np.int64) for column in state["open"].columns)


class CountingOperator(Operator):
    """Makes result rows from the counts of equal rows."""

    def __init__(self, node: Distinct | Except) -> None:
        self.schema, self.orders = schema_of(node), order_count(node)
        self.keys = Keys(self.schema.types)
        self.inputs = [RowCounts() for _ in node.children]
        self.serial = 0

    def _encode_rows(self, rows: Spans) -> Int64Array:
        return self.keys.encode([column.combine_chunks() for column in rows.table.columns], len(rows))

    def _next_ids(self, count: int) -> Int64Array:
        first, self.serial = self.serial, self.serial + count
        return np.arange(first, self.serial, dtype=np.int64)

    def _forget_rows(self) -> Int64Array | None:
        """Drop rows that are in no input; returns the new codes of the others, or None if nothing was done."""
        live = [np.flatnonzero(each.count) for each in self.inputs]
        if not is_crowded(len(self.keys), sum(map(len, live))):
            return None
        kept = self.keys.keep_codes(live)
        self.keys = kept.keys
        for each in self.inputs:
            each.recode(np.append(kept.codes, np.full(len(each.count) - len(kept.codes), -1)), len(kept.keys))
        return kept.codes

    def state(self) -> Tree:
        return {"keys": self.keys.state(), "inputs": [each.state() for each in self.inputs], "serial": self.serial}

    def restore(self, state: Tree) -> None:
        self.keys.restore(state["keys"])
        for each, saved in zip(self.inputs, state["inputs"], strict=True):
            each.restore(saved, len(self.keys))
        self.serial = state["serial"]


class DistinctOperator(CountingOperator):
    """Each different row once, as long as its count is not zero."""

    def __init__(self, node: Distinct) -> None:
        super().__init__(node)
        #: The number under which each code is in the result, -1 where it is not.
        self.result_ids = EMPTY

    def advance(self, limit: int, inputs: Sequence[RelationDelta]) -> RelationDelta:
        (given,), (rows,) = inputs, self.inputs
        codes = self._encode_rows(given.opened)
        left, at = rows.advance(codes, given, limit, len(self.keys))
        if len(rows.count) > len(self.result_ids):
            self.result_ids = np.concatenate((self.result_ids, np.full(len(rows.count) - len(self.result_ids), -1)))
        mine = self._affected_arrivals(codes, left)
        steps = ChangeSteps.of(np.concatenate((codes[mine], left)), np.concatenate((given.opened.enter[mine], at)))
        quiet = np.ones(len(codes), bool)
        quiet[mine] = False
        rows.count += np.bincount(codes[quiet], minlength=len(rows.count))
        if not len(steps):
            return RelationDelta(empty_spans(self.schema, self.orders))
        heights = steps.heights(0, len(mine), len(left), rows.count)
        before = steps.heights_before(heights, rows.count[steps.codes])
        rows.count[steps.codes[steps.last_places()]] = heights[steps.last_places()]
        delta = self._delta(steps, before, heights, given.opened.at(mine))
        if (fewer := self._forget_rows()) is not None:
            result_ids = np.full(len(self.keys), -1)
            live = np.flatnonzero(fewer >= 0)
            result_ids[fewer[live]] = self.result_ids[live]
            self.result_ids = result_ids
        return delta

    def _affected_arrivals(self, codes: Int64Array, left: Int64Array) -> Int64Array:
        """Arrivals that may change the result: of rows that are not present, or of which some leave."""
        count = self.inputs[0].count
        affected = count == 0
        affected[left] = True
        return np.flatnonzero(affected[codes])

    def _delta(self, steps: ChangeSteps, before: Int64Array, heights: Int64Array, arrived: Spans) -> RelationDelta:
        up, down = np.flatnonzero((before == 0) & (heights > 0)), np.flatnonzero((before > 0) & (heights == 0))
        ids = self._next_ids(len(up))
        # Rises and falls of a code alternate: a fall ends the rise before it, or else the row that was present before.
        after = np.searchsorted(down, up)
        following = down[np.minimum(after, len(down) - 1)] if len(down) else up
        ends_here = (after < len(down)) & (steps.codes[following] == steps.codes[up]) if len(down) else up < 0
        leave = np.where(ends_here, steps.at[following], OPEN)
        unpaired = np.ones(len(down), bool)
        unpaired[after[ends_here]] = False
        closed, closed_at = self.result_ids[steps.codes[down[unpaired]]], steps.at[down[unpaired]]
        self.result_ids[steps.codes[down]] = -1
        self.result_ids[steps.codes[up[~ends_here]]] = ids[~ends_here]
        return RelationDelta(self._spans(steps, up, leave, ids, arrived), closed, closed_at)

    def _spans(self, steps: ChangeSteps, up: Int64Array, leave: Int64Array, ids: Int64Array, arrived: Spans) -> Spans:
        """Rows with the time and expiry of the youngest of those that entered with them."""
        order = _order_by_age(arrived)
        last = np.zeros(len(steps), np.int64)
        last[steps.slots[order]] = order  # of several rows in one slot the last one stays
        youngest = last[up]
        table = pa.table(self.keys.take(steps.codes[up]), schema=self.schema)
        words = (arrived.time[youngest], arrived.order[youngest], arrived.expires[youngest])
        return Spans(table, steps.at[up], leave, ids, *words, tuple(order[youngest] for order in arrived.orders))

    def state(self) -> Tree:
        return super().state() | {"standing": pa.table({"ids": self.result_ids})}

    def restore(self, state: Tree) -> None:
        super().restore(state)
        self.result_ids = np.array(state["standing"].column(0).to_numpy(), np.int64)
        size = max(len(self.result_ids), len(self.keys))
        self.result_ids = np.concatenate((self.result_ids, np.full(size - len(self.result_ids), -1)))
        count = self.inputs[0].count
        self.inputs[0].count = np.concatenate((count, np.zeros(size - len(count), np.int64)))


def can_outlive_expiry(node: Node) -> bool:
    """Whether rows of a node may stay after their expiry, because equal rows come later."""
    match node:
        case Distinct():
            return True
        case Windowed():
            return False
    return any(map(can_outlive_expiry, node.children))


def without_expiry(delta: RelationDelta) -> RelationDelta:
    """The same rows without an expiry."""
    return replace(delta, opened=replace(delta.opened, expires=np.full(len(delta.opened), UNKNOWN_EXPIRY)))


class ExceptOperator(CountingOperator):
    """Multiset difference: multiplicities are subtracted, never below zero."""

    def __init__(self, node: Except) -> None:
        super().__init__(node)
        #: The rows that are in the result; of equal ones the youngest comes last.
        self.codes, self.ids = EMPTY, EMPTY

    def advance(self, limit: int, inputs: Sequence[RelationDelta]) -> RelationDelta:
        coded = [self._encode_rows(given.opened) for given in inputs]
        gone = [
            each.advance(codes, given, limit, len(self.keys))
            for each, codes, given in zip(self.inputs, coded, inputs, strict=True)
        ]
        codes = [some for arrived, (left, _) in zip(coded, gone, strict=True) for some in (arrived, left)]
        at = [some for given, (_, left) in zip(inputs, gone, strict=True) for some in (given.opened.enter, left)]
        steps = ChangeSteps.of(np.concatenate(codes), np.concatenate(at))
        if not len(steps):
            return RelationDelta(empty_spans(self.schema, self.orders))
        heights, start = [], 0
        for each, arrived, (left, _) in zip(self.inputs, coded, gone, strict=True):
            heights.append(steps.heights(start, len(arrived), len(left), each.count))
            start += len(arrived) + len(left)
            each.count[steps.codes[steps.last_places()]] = heights[-1][steps.last_places()]
        delta = self._delta(steps, np.maximum(heights[0] - heights[1], 0))
        if (fewer := self._forget_rows()) is not None:
            self.codes = fewer[self.codes]
        return delta

    def _delta(self, steps: ChangeSteps, height: Int64Array) -> RelationDelta:
        """Rises as rows that enter, falls as rows that leave: of equal ones the youngest leaves first."""
        mine = np.isin(self.codes, steps.codes)
        codes, ids = self.codes[mine], self.ids[mine]
        now = np.bincount(codes, minlength=len(self.keys))
        before = steps.heights_before(height, now[steps.codes])
        up, down = (np.repeat(np.arange(len(height)), np.maximum(by, 0)) for by in (height - before, before - height))
        fresh = self._next_ids(len(up))
        rows, row_ids = np.concatenate((codes, steps.codes[up])), np.concatenate((ids, fresh))
        ended_at = _end_instants(rows, np.repeat([-1], len(codes)), up, steps.codes[down], down, steps.at)
        known = len(codes)
        closed = ended_at[:known] < OPEN
        alive = ended_at >= OPEN
        self.codes = np.concatenate((self.codes[~mine], rows[alive]))
        self.ids = np.concatenate((self.ids[~mine], row_ids[alive]))
        table = pa.table(self.keys.take(steps.codes[up]), schema=self.schema)
        at, nothing = steps.at[up], np.full(len(up), NO_EXPIRY)
        opened = Spans(table, at, ended_at[known:], fresh, at, fresh, nothing)
        return RelationDelta(opened, ids[closed], ended_at[:known][closed])

    def state(self) -> Tree:
        return super().state() | {"standing": pa.table({"codes": self.codes, "ids": self.ids})}

    def restore(self, state: Tree) -> None:
        super().restore(state)
        self.codes, self.ids = (np.array(column.to_numpy(), np.int64) for column in state["standing"].columns)


def _end_instants(
    rows: Int64Array, known: Int64Array, up: Int64Array, down_codes: Int64Array, down: Int64Array, at: Int64Array
) -> Int64Array:
    """When each row ends: falls end rows like closing brackets, of one code the last that was opened."""
    codes = np.concatenate((rows, down_codes))
    place = np.concatenate((known, up, down))
    falls = np.repeat([False, True], [len(rows), len(down)])
    order = np.lexsort((falls, place, codes))
    step = np.where(falls[order], -1, 1)
    starts, stops = runs(codes[order])
    total = np.cumsum(step)
    depth = total - np.repeat(total[starts] - step[starts], stops - starts) + (step < 0)
    mine = order[np.lexsort((np.arange(len(order)), depth, codes[order]))]
    ending = np.flatnonzero(falls[mine])
    found = np.full(len(rows), OPEN)
    found[mine[ending - 1]] = at[place[mine[ending]]]
    return found
