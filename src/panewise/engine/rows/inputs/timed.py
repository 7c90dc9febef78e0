"""Windows over streams: they take items and return rows with lifetimes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from panewise.aggregate import Int64Array
from panewise.algebra import Host, Windowed
from panewise.core.time import Boundary
from panewise.engine.intake import Arrivals
from panewise.engine.lateness import Ledger, late_verdict, visible_lifetimes
from panewise.engine.places import take_rows
from panewise.engine.portions import portion_limit, portion_slices
from panewise.engine.row_steps import apply_steps
from panewise.engine.rows.departures import Departures
from panewise.engine.rows.spans import EMPTY, NO_EXPIRY, RelationDelta, Spans
from panewise.engine.state.snapshot import Tree
from panewise.kernels.ranges import OPEN
from panewise.plan.pane_plan import RowStep
from panewise.plan.row_plan import StreamInput, stream_inputs
from panewise.window import FOREVER, LogicalWindow, Window

Flags = np.ndarray[tuple[int], np.dtype[np.bool_]]
#: The queries that read an input, with the window of each.
Readers = Callable[[Window], Sequence[str]]

#: Batches and items that may wait for the next report.
MANY_BATCHES, MANY_ITEMS = 64, 4096


@dataclass(frozen=True, eq=False)
class WaitingItems:
    """Items that have arrived: when each becomes visible, and the watermark at the arrival of late ones."""

    table: pa.Table
    times: Int64Array
    order: Int64Array
    visible: Int64Array

    def __len__(self) -> int:
        return len(self.times)

    def at(self, places: Int64Array) -> WaitingItems:
        return WaitingItems(take_rows(self.table, places), self.times[places], self.order[places], self.visible[places])

    def part(self, which: slice) -> WaitingItems:
        """Items that follow each other; they are not copied."""
        table = self.table.slice(which.start, which.stop - which.start)
        return WaitingItems(table, self.times[which], self.order[which], self.visible[which])

    def where(self, keep: Flags) -> WaitingItems:
        return self if keep.all() else self.at(np.flatnonzero(keep))

    def state(self) -> pa.Table:
        words = {"#0": self.times, "#1": self.order, "#2": self.visible}
        return pa.table([*self.table.columns, *map(pa.array, words.values())], names=[*self.table.column_names, *words])

    @classmethod
    def from_state(cls, table: pa.Table) -> WaitingItems:
        words = (np.array(table.column(name).to_numpy(), np.int64) for name in ("#0", "#1", "#2"))
        return cls(table.drop_columns(["#0", "#1", "#2"]), *words)


def concat_waiting(parts: Sequence[WaitingItems], schema: pa.Schema) -> WaitingItems:
    if len(parts) == 1:
        return parts[0]
    if not parts:
        return WaitingItems(schema.empty_table(), EMPTY, EMPTY, EMPTY)
    words = (np.concatenate([getattr(p, n) for p in parts]) for n in ("times", "order", "visible"))
    return WaitingItems(pa.concat_tables([p.table for p in parts]).combine_chunks(), *words)


@dataclass(frozen=True, eq=False)
class EnteringItems:
    """Items that a window is about to take in, and those that are late for it."""

    leaf: WindowInput
    items: WaitingItems
    late: WaitingItems | None
    readers: Readers

    def enter(self, ledger: Ledger) -> None:
        """Take the items in; this cannot fail."""
        if len(self.items):
            self.leaf.enter(self.items)
        if self.late is not None and len(self.late):
            self.leaf.record_late(self.late, ledger, self.readers)


class WindowView:
    """What a query sees of one of its windows: its instants and its bounds."""

    def __init__(self, window: Window) -> None:
        self.window = window
        #: The last instant at which the items seen so far change anything.
        self.last_change = -OPEN
        #: The instants at which the window changed in the last turn, for queries that report at each of them.
        self.watched = False
        self.changed_at = EMPTY
        #: The instants that the window had in the last turn, if it is periodic and these are not the points of a grid.
        self.own_instants = EMPTY

    def bounds(self, instants: Int64Array) -> tuple[Int64Array | None, Int64Array]:
        """`w_start` and `w_end` at some instants."""
        return self.window.spans(instants)


class WindowInput(WindowView, ABC):
    """A window over one stream, or over several that are united below it."""

    def __init__(self, node: Windowed, boundary: Boundary, host: Host) -> None:
        super().__init__(node.window)
        self.node, self.boundary, self.host = node, boundary, host
        self.inlets: tuple[StreamInput, ...] = stream_inputs(node)
        self.schema = pa.schema([(column.name, column.type) for column in node.columns])
        #: Times of day wait for the first item, which decides the day.
        self.anchored = not node.window.has_time_of_day
        self.first: int | None = None
        self.waiting: list[WaitingItems] = []
        self.serial = 0

    @property
    def is_crowded(self) -> bool:
        """Whether so many items wait that they should not wait for the next report."""
        return len(self.waiting) > MANY_BATCHES or sum(map(len, self.waiting)) > MANY_ITEMS

    def anchor(self, first: int) -> None:
        """Resolve times of day against the day of the first item of a stream."""
        if not self.anchored:
            self.window, self.anchored, self.first = self.window.anchor_to(first), True, first

    def read(self, stream: str, arrivals: Arrivals, alias: str | None, readers: Readers) -> Iterator[EnteringItems]:
        """The items of a stream, at every place where it is read below the window, or where it has an alias."""
        late = arrivals.late_flags()
        for inlet in self.inlets:
            if inlet.stream == stream and alias in (None, inlet.source.alias):
                items = self._items(inlet.steps, inlet, arrivals)
                if late is None and not len(items):
                    continue
                behind = None if late is None else arrivals.take(np.flatnonzero(late))
                missed = None if behind is None else self._items(inlet.stream_steps, inlet, behind)
                yield EnteringItems(self, replace(items, table=self._rename_columns(items.table)), missed, readers)

    def _items(self, steps: Sequence[RowStep], inlet: StreamInput, arrivals: Arrivals) -> WaitingItems:
        """The items that are left of arrivals after some steps."""
        table = arrivals.table.rename_columns([column.name for column in inlet.source.columns])
        table, kept = apply_steps(steps, table, self.host)
        rows = arrivals if kept is None else arrivals.take(kept)
        visible = rows.times + self.boundary.shift
        late = rows.late_flags()
        if late is not None and rows.marks is not None:
            visible = np.where(late, rows.marks + self.boundary.shift, visible)
        return WaitingItems(table, rows.times, rows.order, visible)

    def enter_results(self, inlet: StreamInput, items: WaitingItems) -> None:
        """Take in the results of another query."""
        table, kept = apply_steps(inlet.steps, items.table, self.host)
        if len(items):
            self.anchor(int(items.times[0]))
        items = items if kept is None else items.at(kept)
        self.enter(WaitingItems(self._rename_columns(table), items.times, items.order, items.visible))

    def _rename_columns(self, table: pa.Table) -> pa.Table:
        names = [column.name for column in self.node.columns]
        return table.select(range(len(names))).rename_columns(names) if names else table.select([])

    def enter(self, items: WaitingItems) -> None:
        """Let items wait until they are visible."""
        self.waiting += [items.part(each) for each in portion_slices(len(items))]

    def portion_limit(self, after: int, limit: int) -> int:
        """The instant, later than `after` and up to `limit`, by which a portion of the items is visible."""
        coming = (items.visible for items in self.waiting if items.visible.max(initial=after) > after)
        return portion_limit(coming, after, limit)

    def _take_visible(self, limit: int) -> WaitingItems:
        """Take out the items that wait, those that come much later than an instant excepted."""
        due = [items for items in self.waiting if items.visible.min(initial=OPEN) <= limit]
        self.waiting = [items for items in self.waiting if items.visible.min(initial=OPEN) > limit]
        return concat_waiting(due, self.schema)

    @abstractmethod
    def note_newest(self, newest: int) -> None:
        """Note that an item of this time is in the window, here or in another shard."""

    def _note_changes(self, instants: Int64Array) -> None:
        if len(instants):
            self.last_change = max(self.last_change, int(instants.max()))

    @abstractmethod
    def advance(self, limit: int) -> RelationDelta:
        """The delta up to an instant, which is final."""

    @abstractmethod
    def record_late(self, late: WaitingItems, ledger: Ledger, readers: Readers) -> None:
        """Record whether late items, which have just entered, missed instants to which they belong."""

    def _next_ids(self, count: int) -> Int64Array:
        first, self.serial = self.serial, self.serial + count
        return np.arange(first, self.serial, dtype=np.int64)

    def state(self) -> Tree:
        items = concat_waiting(self.waiting, self.schema)
        return {
            "waiting": items.state(),
            "serial": self.serial,
            "first": self.first,
            "last_change": self.last_change,
        }

    def restore(self, state: Tree) -> None:
        if state["first"] is not None:
            self.anchor(state["first"])
        # Queries that have left may have read more columns.
        items = WaitingItems.from_state(state["waiting"])
        self.waiting = [replace(items, table=items.table.select(self.schema.names))]
        self.serial, self.last_change = state["serial"], state["last_change"]


class TimedInput(WindowInput):
    """A window that time decides: the lifetime of every item is known when it arrives."""

    def __init__(self, node: Windowed, boundary: Boundary, host: Host) -> None:
        super().__init__(node, boundary, host)
        self.leaving = Departures()

    @property
    def logical_window(self) -> LogicalWindow:
        return LogicalWindow.of(self.window)

    def advance(self, limit: int) -> RelationDelta:
        items = self._take_visible(limit)
        enter, leave = self._lifetimes(items)
        self._note_last_change(self._entry_instants(items, enter), leave)
        ready = (enter <= limit) & (enter < leave)
        later = (enter > limit) & (enter < leave)
        self.waiting[:0] = [items.where(later)] if later.any() else []
        mine, enter, leave = items.where(ready), enter[ready], leave[ready]
        expires = expiry_instants(self.window, mine.times, self.boundary)
        ids = self._next_ids(len(mine))
        self._note_lifetimes(enter, leave, limit)
        return RelationDelta(Spans(mine.table, enter, leave, ids, mine.times, mine.order, expires))

    def _entry_instants(self, items: WaitingItems, enter: Int64Array) -> Int64Array:
        """When items enter; a late item enters a landmark window that was closed before as if it had been in time."""
        return np.where(enter < FOREVER, enter, self.logical_window.lifetimes(items.times, self.boundary)[0])

    def _note_lifetimes(self, enter: Int64Array, leave: Int64Array, limit: int) -> None:
        """Note the instants at which the window changes."""
        if self.watched:
            ends = leave[leave < FOREVER]
            self.leaving.add(np.zeros(len(ends), np.int64), ends)
            self.changed_at = np.unique(np.concatenate((enter, self.leaving.pop_until(limit)[1])))

    def note_newest(self, newest: int) -> None:
        self._note_last_change(*self.logical_window.lifetimes(np.array([newest]), self.boundary))

    def _note_last_change(self, enter: Int64Array, leave: Int64Array) -> None:
        grid, inside = self.window.grid, enter < leave
        self._note_changes(enter[inside])
        ends = leave[inside & (leave < FOREVER)]
        self._note_changes(ends - grid[1] if grid else ends)

    def state(self) -> Tree:
        return super().state() | {"leaving": self.leaving.state()}

    def restore(self, state: Tree) -> None:
        super().restore(state)
        self.leaving.restore(state["leaving"])

    def _lifetimes(self, items: WaitingItems) -> tuple[Int64Array, Int64Array]:
        return visible_lifetimes(self.logical_window, items.times, items.visible, self.boundary)

    def record_late(self, late: WaitingItems, ledger: Ledger, readers: Readers) -> None:
        verdict = late_verdict(self.logical_window, self.boundary, late.order, late.times, late.visible)
        ledger.add(verdict, readers(self.node.window))


def expiry_instants(window: Window, times: Int64Array, boundary: Boundary) -> Int64Array:
    """The expiry of items in a window."""
    expires = window.expires_at(times, boundary)
    return np.full(len(times), NO_EXPIRY) if expires is None else expires


def columns_of(table: pa.Table, names: Sequence[str]) -> list[pa.Array]:
    """Some columns, in one piece each."""
    return [table.column(name).combine_chunks() for name in names]
