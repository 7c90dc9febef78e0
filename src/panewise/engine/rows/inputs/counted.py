"""Counted windows as relations: an item enters when it is one of the last, and leaves when enough others have come.

That instant is not known beforehand, so rows are OPEN until then. They leave in the order in which they came, and
their end is reported by their numbers. With a SLIDE items wait until their block is complete.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa

from panewise import kernels
from panewise.aggregate import Int64Array, runs
from panewise.algebra import Host, Windowed
from panewise.core.time import Boundary
from panewise.engine.keys import Keys
from panewise.engine.lateness import Ledger, Verdict
from panewise.engine.rows.inputs.timed import Readers, WaitingItems, WindowInput, columns_of
from panewise.engine.rows.spans import EMPTY, NO_EXPIRY, RelationDelta, Spans, empty_spans
from panewise.engine.state.snapshot import Tree
from panewise.kernels.ranges import OPEN
from panewise.window import Rows


class CountedInput(WindowInput):
    """The last so many items of every partition, by time and arrival."""

    def __init__(self, node: Windowed, boundary: Boundary, host: Host) -> None:
        super().__init__(node, boundary, host)
        self.rows_window = Rows.of(node.window)
        types = {column.name: column.type for column in node.columns}
        self.partitions = Keys([types[name] for name in node.window.partition_by])
        #: The items that are in the window or will be, with the instant at which each entered, OPEN before it has.
        self.kept = empty_spans(self.schema, orders=1)
        #: How many items of each partition have left.
        self.gone = EMPTY
        self.advanced_until = -OPEN
        #: The last instant at which the window changes whatever may still come.
        self.final_change = -OPEN

    def advance(self, limit: int) -> RelationDelta:
        items = self._take_visible(limit)
        comes = self._block_instants(items)
        ready = comes <= limit
        # Late items may still come between those that wait, and then blocks end with other items.
        self.last_change = max(self.final_change, int(comes[comes < OPEN].max(initial=-OPEN)))
        self.final_change = max(self.final_change, int(comes[ready].max(initial=-OPEN)))
        self.waiting[:0] = [items.where(~ready)] if not ready.all() else []
        items = replace(items, visible=comes).where(ready)
        if self.watched or self.window.periodic:
            self.changed_at = np.unique(items.visible)
            self.own_instants = self.changed_at if self.window.periodic else EMPTY
        if not len(items):
            return RelationDelta(empty_spans(self.schema, orders=1))
        size = len(items)
        unknown = np.full(size, OPEN)
        words = (unknown, unknown, self._next_ids(size), items.times, items.order, np.full(size, NO_EXPIRY))
        rows = Spans.concat([self.kept, Spans(items.table, *words, (np.zeros(size, np.int64),))])
        visible = np.concatenate((np.full(len(self.kept), self.advanced_until), items.visible))
        return self._delta(rows, visible, limit)

    def _block_instants(self, items: WaitingItems) -> Int64Array:
        """When items enter: with the last of their block, of which none has entered before."""
        step = self.rows_window.step
        if step == 1:
            return items.visible
        codes = self.partitions.encode(columns_of(items.table, self.node.window.partition_by), len(items))
        order = np.lexsort((items.order, items.times, codes))
        edges = np.append(runs(codes[order])[0], len(order))
        comes = np.empty(len(items), np.int64)
        comes[order] = kernels.range_blocks(edges, items.visible[order], step, np.zeros(len(edges) - 1, np.int64))
        return comes

    def _delta(self, rows: Spans, visible: Int64Array, limit: int) -> RelationDelta:
        """The delta of the kept items and those that have come; see `kernels.range_counted`."""
        codes = self.partitions.encode(columns_of(rows.table, self.node.window.partition_by), len(rows))
        self.gone = np.append(self.gone, np.zeros(len(self.partitions) - len(self.gone), np.int64))
        order = np.lexsort((rows.order, rows.time, codes))
        rows, visible, codes = rows.at(order), visible[order], codes[order]
        edges = np.append(runs(codes)[0], len(codes))
        since, self.advanced_until = self.advanced_until, limit
        enter, leave = kernels.range_counted(edges, visible, since, limit, self.rows_window.lag, self.rows_window.count)
        inside = rows.enter < OPEN
        opened = np.flatnonzero(~inside & (enter < leave) & (enter <= limit))
        closed = np.flatnonzero(inside & (leave < OPEN))
        numbers = self._numbers(edges, visible, enter, since) + self.gone[codes]
        orders = self.rows_window.expires_order(numbers[opened] + 1)
        found = replace(rows.at(opened), enter=enter[opened], leave=leave[opened], orders=(orders,))
        staying = leave == OPEN
        self.gone += np.bincount(codes[~staying], minlength=len(self.gone))
        self.kept = replace(rows, enter=np.where(inside, rows.enter, enter)).where(staying)
        return RelationDelta(found, rows.ids[closed], leave[closed])

    def _numbers(self, edges: Int64Array, visible: Int64Array, enter: Int64Array, since: int) -> Int64Array:
        """The number of each item in its partition when it enters; late items may have come before it until then."""
        numbers, raised, at = kernels.range_numbers(edges, visible, since, self.advanced_until)
        found: Int64Array = numbers + np.bincount(raised[at <= enter[raised]], minlength=len(numbers))
        return found

    def note_newest(self, newest: int) -> None:
        """Note the change by an item; where items wait, it may change nothing."""
        if not self.window.items_wait:
            self.final_change = max(self.final_change, newest + self.boundary.shift)

    def record_late(self, late: WaitingItems, ledger: Ledger, readers: Readers) -> None:
        """Record late items as seen: whether they are among the last items is known only later."""
        yes = np.ones(len(late), bool)
        ledger.add(Verdict(late.order, yes, yes, yes), readers(self.node.window))

    def state(self) -> Tree:
        return super().state() | {
            "kept": self.kept.state(),
            "partitions": self.partitions.state(),
            "gone": pa.table({"gone": self.gone}),
            "last_change": self.final_change,
            "passed": self.advanced_until,
        }

    def restore(self, state: Tree) -> None:
        super().restore(state)
        self.kept = Spans.from_state(state["kept"])
        self.partitions.restore(state["partitions"])
        self.gone, self.advanced_until = np.array(state["gone"].column(0).to_numpy(), np.int64), state["passed"]
        self.final_change = self.last_change
