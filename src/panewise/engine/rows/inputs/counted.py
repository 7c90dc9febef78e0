"""Counted windows as relations: an item enters when it is one of the last, and leaves when enough others have come.

That instant is not known beforehand, so rows are OPEN until then. They leave in the order in which they came, and
their end is reported by their numbers.
"""

from __future__ import annotations

from bisect import insort
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from panewise.aggregate import Int64Array, runs
from panewise.algebra import Host, Windowed
from panewise.core.time import Boundary
from panewise.engine.keys import Keys
from panewise.engine.lateness import Ledger, Verdict
from panewise.engine.rows.inputs.timed import Readers, WaitingItems, WindowInput, columns_of, concat_waiting
from panewise.engine.rows.spans import EMPTY, NO_EXPIRY, RelationDelta, Spans, empty_spans
from panewise.engine.state.snapshot import Tree
from panewise.kernels.ranges import OPEN
from panewise.window import Rows


@dataclass
class _Transitions:
    """The result of a turn: which items enter and when, and which leave."""

    places: list[Int64Array] = field(default_factory=list)
    enter: list[Int64Array] = field(default_factory=list)
    leave: list[Int64Array] = field(default_factory=list)
    numbers: list[Int64Array] = field(default_factory=list)
    closed: list[Int64Array] = field(default_factory=list)
    closed_at: list[Int64Array] = field(default_factory=list)


class CountedInput(WindowInput):
    """The last so many items of every partition, by time and arrival."""

    def __init__(self, node: Windowed, boundary: Boundary, host: Host) -> None:
        super().__init__(node, boundary, host)
        window = Rows.of(node.window)
        self.count, self.lag = window.count, window.lag
        types = {column.name: column.type for column in node.columns}
        self.partitions = Keys([types[name] for name in node.window.partition_by])
        #: The items that are in the window or will be, with the instant at which each entered, OPEN before it has.
        self.kept = empty_spans(self.schema, orders=1)
        #: How many items of each partition have come.
        self.admitted = EMPTY

    def advance(self, limit: int) -> RelationDelta:
        items = concat_waiting(self.waiting, self.schema)
        self._note_changes(items.visible)
        ready = items.visible <= limit
        self.waiting = [items.where(~ready)] if not ready.all() else []
        items = items.where(ready)
        if self.watched:
            self.changed_at = np.unique(items.visible)
        if not len(items):
            return RelationDelta(empty_spans(self.schema, orders=1))
        fresh = Spans(
            items.table,
            np.full(len(items), OPEN),
            np.full(len(items), OPEN),
            self._next_ids(len(items)),
            items.times,
            items.order,
            np.full(len(items), NO_EXPIRY),
            (np.zeros(len(items), np.int64),),
        )
        visible = np.concatenate((np.full(len(self.kept), -OPEN), items.visible))
        return self._advance_rows(Spans.concat([self.kept, fresh]), visible, len(self.kept))

    def _advance_rows(self, rows: Spans, visible: Int64Array, known: int) -> RelationDelta:
        """The delta of rows, of which the first `known` were there before."""
        codes = self.partitions.encode(columns_of(rows.table, self.node.window.partition_by), len(rows))
        if len(self.partitions) > len(self.admitted):
            grown = np.zeros(len(self.partitions), np.int64)
            grown[: len(self.admitted)] = self.admitted
            self.admitted = grown
        order = np.lexsort((rows.order, rows.time, codes))
        late = visible > rows.time + self.boundary.shift
        found, kept = _Transitions(), []
        for start, stop in self._partition_slices(codes[order], late[order]):
            mine = order[start:stop]
            if late[mine].any():
                kept.append(self._one_by_one(rows, mine, visible, known, int(codes[mine[0]]), found))
            else:
                kept.append(self._in_order(rows, mine, visible, codes, known, found))
        self.admitted += np.bincount(codes[known:], minlength=len(self.admitted))
        return self._delta(rows, found, np.concatenate(kept))

    def _partition_slices(
        self, codes: Int64Array, late: np.ndarray[tuple[int], np.dtype[np.bool_]]
    ) -> list[tuple[int, int]]:
        """All partitions at once if no item is late, otherwise each on its own."""
        if not late.any():
            return [(0, len(codes))]
        return list(zip(*(edge.tolist() for edge in runs(codes)), strict=True))

    def _in_order(
        self, rows: Spans, mine: Int64Array, visible: Int64Array, codes: Int64Array, known: int, found: _Transitions
    ) -> Int64Array:
        """Items of some partitions in order: each one is pushed out by those after it."""
        starts, stops = runs(codes[mine])
        ends = np.repeat(stops, stops - starts)
        places = np.arange(len(mine))
        fresh = mine >= known
        enter, leave = (
            self._pushed_out_at(visible[mine], places, ends, by) for by in (self.lag, self.lag + self.count)
        )
        before = self.admitted[codes[mine]] - np.repeat(np.add.reduceat(~fresh, starts), stops - starts)
        numbers = before + places - np.repeat(starts, stops - starts) + 1 + self.count + self.lag
        waits = rows.enter[mine] == OPEN
        opened = waits & (enter < OPEN) & (enter < leave)
        gone = ~waits & (leave < OPEN)
        found.places.append(mine[opened])
        found.enter.append(enter[opened])
        found.leave.append(leave[opened])
        found.numbers.append(numbers[opened])
        found.closed.append(rows.ids[mine[gone]])
        found.closed_at.append(leave[gone])
        rows.enter[mine[opened]] = enter[opened]
        kept: Int64Array = mine[leave == OPEN]
        return kept

    def _pushed_out_at(self, visible: Int64Array, places: Int64Array, ends: Int64Array, by: int) -> Int64Array:
        """The instant at which the item `by` places after each one came; OPEN if it has not come."""
        behind = np.minimum(places + by, len(visible) - 1)
        pushed: Int64Array = np.where(places + by < ends, visible[behind], OPEN)
        return pushed

    def _one_by_one(
        self, rows: Spans, mine: Int64Array, visible: Int64Array, known: int, code: int, found: _Transitions
    ) -> Int64Array:
        """Items of one partition in which late ones are inserted between others."""
        total = int(self.admitted[code])
        line = [(int(rows.time[p]), int(rows.order[p]), int(p)) for p in mine if p < known]
        inside = {p for _, _, p in line if rows.enter[p] != OPEN}
        leaving: dict[int, int] = {}
        fresh = sorted((int(visible[p]), int(rows.time[p]), int(rows.order[p]), int(p)) for p in mine if p >= known)
        at = 0
        while at < len(fresh):
            instant = fresh[at][0]
            while at < len(fresh) and fresh[at][0] == instant:
                insort(line, fresh[at][1:])
                total += 1
                at += 1
            line = line[-(self.count + self.lag) :]
            members = line[max(len(line) - self.lag - self.count, 0) : len(line) - self.lag]
            first = total - len(line) + 1 + self.count + self.lag
            for offset, (_, _, place) in enumerate(members):
                if place not in inside and rows.enter[place] == OPEN:
                    rows.enter[place] = instant
                    inside.add(place)
                    found.places.append(np.array([place]))
                    found.enter.append(np.array([instant]))
                    found.numbers.append(np.array([first + offset]))
            now = {place for _, _, place in members}
            for place in inside - now:
                leaving[place] = instant
            inside = now
        opened = [int(p[0]) for p in found.places[len(found.leave) :]]
        found.leave += [np.array([leaving.get(place, OPEN)]) for place in opened]
        gone = [place for place in leaving if place not in opened]
        found.closed.append(rows.ids[np.array(gone, np.int64)])
        found.closed_at.append(np.array([leaving[place] for place in gone], np.int64))
        return np.array([place for _, _, place in line], np.int64)

    def _delta(self, rows: Spans, found: _Transitions, kept: Int64Array) -> RelationDelta:
        places, enter, leave, numbers = (
            np.concatenate([EMPTY, *each]) for each in (found.places, found.enter, found.leave, found.numbers)
        )
        opened = rows.at(places)
        opened = Spans(
            opened.table, enter, leave, opened.ids, opened.time, opened.order, opened.expires, (numbers,)
        ).where(enter < leave)
        self.kept = rows.at(np.sort(kept))
        closed, closed_at = (np.concatenate([EMPTY, *each]) for each in (found.closed, found.closed_at))
        return RelationDelta(opened, closed, closed_at)

    def note_newest(self, newest: int) -> None:
        self._note_changes(np.array([newest + self.boundary.shift]))

    def record_late(self, late: WaitingItems, ledger: Ledger, readers: Readers) -> None:
        """Record late items as seen: whether they are among the last items is known only later."""
        yes = np.ones(len(late), bool)
        ledger.add(Verdict(late.order, yes, yes, yes), readers(self.node.window))

    def state(self) -> Tree:
        return super().state() | {
            "kept": self.kept.state(),
            "partitions": self.partitions.state(),
            "admitted": pa.table({"admitted": self.admitted}),
        }

    def restore(self, state: Tree) -> None:
        super().restore(state)
        self.kept = Spans.from_state(state["kept"])
        self.partitions.restore(state["partitions"])
        self.admitted = np.array(state["admitted"].column(0).to_numpy(), np.int64)
