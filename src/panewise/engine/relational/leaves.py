"""Windows over streams: items come in, and go out as rows that know when they are in the window."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from panewise.aggregate import Longs
from panewise.algebra import Host, Windowed
from panewise.engine.intake import Arrivals
from panewise.engine.lateness import Ledger, judged
from panewise.engine.relational.departures import Departures
from panewise.engine.relational.spans import NEVER_SAID, NONE, OPEN, Spans, Turn
from panewise.engine.rowwise import passed
from panewise.engine.snapshot import Tree
from panewise.plan.aggregation import Rowwise
from panewise.plan.relation import Inlet, inlets
from panewise.time import Boundary
from panewise.window import FOREVER, LogicalWindow, Window

Flags = np.ndarray[tuple[int], np.dtype[np.bool_]]
#: The queries that look at a leaf through a window.
Readers = Callable[[Window], Sequence[str]]


@dataclass(frozen=True, eq=False)
class Waiting:
    """Items that have come: when each can be seen first, and the watermark that late ones met."""

    table: pa.Table
    times: Longs
    order: Longs
    visible: Longs

    def __len__(self) -> int:
        return len(self.times)

    def at(self, places: Longs) -> Waiting:
        return Waiting(self.table.take(pa.array(places)), self.times[places], self.order[places], self.visible[places])

    def where(self, keep: Flags) -> Waiting:
        return self if keep.all() else self.at(np.flatnonzero(keep))

    def state(self) -> pa.Table:
        words = {"#0": self.times, "#1": self.order, "#2": self.visible}
        return pa.table([*self.table.columns, *map(pa.array, words.values())], names=[*self.table.column_names, *words])

    @classmethod
    def restored(cls, table: pa.Table) -> Waiting:
        words = (np.array(table.column(name).to_numpy(), np.int64) for name in ("#0", "#1", "#2"))
        return cls(table.drop_columns(["#0", "#1", "#2"]), *words)


def all_waiting(parts: Sequence[Waiting], schema: pa.Schema) -> Waiting:
    if len(parts) == 1:
        return parts[0]
    if not parts:
        return Waiting(schema.empty_table(), NONE, NONE, NONE)
    words = (np.concatenate([getattr(p, n) for p in parts]) for n in ("times", "order", "visible"))
    return Waiting(pa.concat_tables([p.table for p in parts]).combine_chunks(), *words)


@dataclass(frozen=True, eq=False)
class Reading:
    """Items that a window is about to take in, and those that come late for it."""

    leaf: Leaf
    items: Waiting
    late: Waiting | None
    readers: Readers

    def enter(self, ledger: Ledger) -> None:
        """From here on nothing can fail."""
        if len(self.items):
            self.leaf.enter(self.items)
        if self.late is not None and len(self.late):
            self.leaf.judge(self.late, ledger, self.readers)


class View:
    """What a query sees of one of its windows: when it speaks, and of which stretch of time."""

    def __init__(self, window: Window) -> None:
        self.window = window
        #: The last instant at which the items seen so far change anything.
        self.last_change = -OPEN
        #: The instants at which the window changed in the last turn, for queries that repeat themselves at each.
        self.watched = False
        self.heard = NONE

    def bounds(self, instants: Longs) -> tuple[Longs | None, Longs]:
        """`w_start` and `w_end` at some instants."""
        return self.window.spans(instants)


class Leaf(View, ABC):
    """A window over one stream, or over several that are united below it."""

    def __init__(self, node: Windowed, boundary: Boundary, host: Host) -> None:
        super().__init__(node.window)
        self.node, self.boundary, self.host = node, boundary, host
        self.inlets: tuple[Inlet, ...] = inlets(node)
        self.schema = pa.schema([(column.name, column.type) for column in node.columns])
        #: Times of day wait for the first item to tell the day.
        self.anchored = node.window.anchored(0) == node.window.anchored(86_400_000_000)
        self.first: int | None = None
        self.waiting: list[Waiting] = []
        self.serial = 0

    def anchor(self, first: int) -> None:
        """The first item of a stream says which day times of day are on."""
        if not self.anchored:
            self.window, self.anchored, self.first = self.window.anchored(first), True, first

    def read(self, stream: str, arrivals: Arrivals, alias: str | None, readers: Readers) -> Iterator[Reading]:
        """The items of a stream, wherever it is read below the window, or where it has an alias."""
        late = arrivals.late()
        for inlet in self.inlets:
            if inlet.stream == stream and alias in (None, inlet.source.alias):
                items = self._items(inlet.steps, inlet, arrivals)
                behind = None if late is None else arrivals.chosen(np.flatnonzero(late))
                missed = None if behind is None else self._items(inlet.own, inlet, behind)
                yield Reading(self, replace(items, table=self._named(items.table)), missed, readers)

    def _items(self, steps: Sequence[Rowwise], inlet: Inlet, arrivals: Arrivals) -> Waiting:
        """The items that are left of arrivals after some steps."""
        table = arrivals.table.rename_columns([column.name for column in inlet.source.columns])
        table, kept = passed(steps, table, self.host)
        rows = arrivals if kept is None else arrivals.chosen(kept)
        visible = rows.times + self.boundary.shift
        late = rows.late()
        if late is not None and rows.marks is not None:
            visible = np.where(late, rows.marks + self.boundary.shift, visible)
        return Waiting(table, rows.times, rows.order, visible)

    def derive(self, inlet: Inlet, items: Waiting) -> None:
        """Take in the results of another query."""
        table, kept = passed(inlet.steps, items.table, self.host)
        if len(items):
            self.anchor(int(items.times[0]))
        items = items if kept is None else items.at(kept)
        self.enter(Waiting(self._named(table), items.times, items.order, items.visible))

    def _named(self, table: pa.Table) -> pa.Table:
        names = [column.name for column in self.node.columns]
        return table.select(range(len(names))).rename_columns(names) if names else table.select([])

    def enter(self, items: Waiting) -> None:
        """Items wait until they can be seen."""
        self.waiting.append(items)

    @abstractmethod
    def reach(self, newest: int) -> None:
        """An item of this time is in the window, here or elsewhere."""

    def _changed(self, instants: Longs) -> None:
        if len(instants):
            self.last_change = max(self.last_change, int(instants.max()))

    @abstractmethod
    def turn(self, limit: int) -> Turn:
        """What became known up to an instant, which is final."""

    @abstractmethod
    def judge(self, late: Waiting, ledger: Ledger, readers: Readers) -> None:
        """Whether late items, which have just entered, missed instants at which they would have been in."""

    def _numbered(self, count: int) -> Longs:
        first, self.serial = self.serial, self.serial + count
        return np.arange(first, self.serial, dtype=np.int64)

    def state(self) -> Tree:
        items = all_waiting(self.waiting, self.schema)
        return {
            "waiting": items.state(),
            "serial": self.serial,
            "first": self.first,
            "last_change": self.last_change,
        }

    def restore(self, state: Tree) -> None:
        if state["first"] is not None:
            self.anchor(state["first"])
        # Queries that have left may have looked at more columns.
        items = Waiting.restored(state["waiting"])
        self.waiting = [replace(items, table=items.table.select(self.schema.names))]
        self.serial, self.last_change = state["serial"], state["last_change"]


class TimeLeaf(Leaf):
    """A window that time decides: every item knows its lifetime when it comes."""

    def __init__(self, node: Windowed, boundary: Boundary, host: Host) -> None:
        super().__init__(node, boundary, host)
        self.leaving = Departures()

    def turn(self, limit: int) -> Turn:
        items = all_waiting(self.waiting, self.schema)
        enter, leave = self._lifetimes(items)
        self._last(self._spoken_of(items, enter), leave)
        ready = (enter <= limit) & (enter < leave)
        later = (enter > limit) & (enter < leave)
        self.waiting = [items.where(later)] if later.any() else []
        mine, enter, leave = items.where(ready), enter[ready], leave[ready]
        expires = expiry(self.window, mine.times, self.boundary)
        ids = self._numbered(len(mine))
        self._note(enter, leave, limit)
        return Turn(Spans(mine.table, enter, leave, ids, mine.times, mine.order, expires))

    def _spoken_of(self, items: Waiting, enter: Longs) -> Longs:
        """When items enter; a landmark that was closed before a late one came speaks as if it had been in time."""
        assert isinstance(self.window, LogicalWindow)
        return np.where(enter < FOREVER, enter, self.window.lifetimes(items.times, self.boundary)[0])

    def _note(self, enter: Longs, leave: Longs, limit: int) -> None:
        """Remember when the window changes."""
        if self.watched:
            ends = leave[leave < FOREVER]
            self.leaving.add(np.zeros(len(ends), np.int64), ends)
            self.heard = np.unique(np.concatenate((enter, self.leaving.upto(limit)[1])))

    def reach(self, newest: int) -> None:
        assert isinstance(self.window, LogicalWindow)
        self._last(*self.window.lifetimes(np.array([newest]), self.boundary))

    def _last(self, enter: Longs, leave: Longs) -> None:
        grid, inside = self.window.grid, enter < leave
        self._changed(enter[inside])
        ends = leave[inside & (leave < FOREVER)]
        self._changed(ends - grid[1] if grid else ends)

    def state(self) -> Tree:
        return super().state() | {"leaving": self.leaving.state()}

    def restore(self, state: Tree) -> None:
        super().restore(state)
        self.leaving.restore(state["leaving"])

    def _lifetimes(self, items: Waiting) -> tuple[Longs, Longs]:
        assert isinstance(self.window, LogicalWindow)
        return lifetimes(self.window, items.times, items.visible, self.boundary)

    def judge(self, late: Waiting, ledger: Ledger, readers: Readers) -> None:
        assert isinstance(self.window, LogicalWindow)
        verdict = judged(self.window, self.boundary, late.order, late.times, late.visible)
        ledger.add(verdict, readers(self.node.window))


def lifetimes(window: LogicalWindow, times: Longs, visible: Longs, boundary: Boundary) -> tuple[Longs, Longs]:
    """When items enter a window and leave it; late ones enter with the first of its instants that sees them."""
    enter, leave = window.lifetimes(times, boundary)
    late = visible > times + boundary.shift
    return np.where(late, np.maximum(enter, window.following(visible)), enter), leave


def expiry(window: Window, times: Longs, boundary: Boundary) -> Longs:
    """When items say they will leave a window."""
    expires = window.expires_at(times, boundary)
    return np.full(len(times), NEVER_SAID) if expires is None else expires


def columns_of(table: pa.Table, names: Sequence[str]) -> list[pa.Array]:
    """Some columns, in one piece each."""
    return [table.column(name).combine_chunks() for name in names]
