"""Session windows as relations: all items of a session are present at the one instant at which it ends."""

from __future__ import annotations

import numpy as np

from panewise.aggregate import Int64Array, runs
from panewise.algebra import Host, Windowed
from panewise.core.time import Boundary
from panewise.engine.keys import Keys
from panewise.engine.lateness import Ledger, Verdict
from panewise.engine.rows.inputs.timed import Readers, WaitingItems, WindowInput, columns_of, concat_waiting
from panewise.engine.rows.spans import EMPTY, RelationDelta, Spans
from panewise.engine.state.snapshot import Tree
from panewise.window import Contents, Session

NO_MARK = int(np.iinfo(np.int64).min)


class SessionInput(WindowInput):
    """Items wait until their session has ended; late ones join only sessions that were open when they came."""

    def __init__(self, node: Windowed, boundary: Boundary, host: Host) -> None:
        super().__init__(node, boundary, host)
        self.session = Session.of(node.window)
        #: If every session is reported on its own, each has an instant of its own: its number.
        self.apart = False
        self.number = 0
        #: The instants at which sessions ended in the last turn, and in which bounds.
        self.ended_at, self.spans = EMPTY, np.zeros((0, 2), np.int64)
        types = {column.name: column.type for column in node.columns}
        self.types = [types[name] for name in node.window.partition_by]

    def advance(self, limit: int) -> RelationDelta:
        items = concat_waiting(self.waiting, self.schema)
        codes, firsts, ends, joined = self._assign_sessions(items)
        ready, later = joined & (ends <= limit), joined & (ends > limit)
        self.waiting = [items.where(later)] if later.any() else []
        mine, firsts, ends = items.where(ready), firsts[ready], ends[ready]
        self._note_changes(ends)
        at = self._session_instants(codes[ready], firsts, ends)
        ids = self._next_ids(len(mine))
        return RelationDelta(Spans(mine.table, at, at + 1, ids, mine.times, mine.order, ends + 1))

    def _session_instants(self, codes: Int64Array, firsts: Int64Array, ends: Int64Array) -> Int64Array:
        """The instant of each item's session."""
        if not self.apart:
            self.ended_at = np.unique(ends)
            return ends
        both = np.stack((ends, firsts, codes), axis=1)
        sessions, where = np.unique(both, axis=0, return_inverse=True)
        self.spans = np.stack((sessions[:, 1], sessions[:, 0]), axis=1)
        first, self.number = self.number, self.number + len(sessions)
        self.ended_at = np.arange(first, self.number, dtype=np.int64)
        return first + where.ravel()

    def bounds(self, instants: Int64Array) -> tuple[Int64Array | None, Int64Array]:
        if not self.apart:
            return super().bounds(instants)
        chosen = self.spans[instants - (self.number - len(self.spans))]
        return chosen[:, 0], chosen[:, 1]

    def _assign_sessions(
        self, items: WaitingItems
    ) -> tuple[Int64Array, Int64Array, Int64Array, np.ndarray[tuple[int], np.dtype[np.bool_]]]:
        """The partition of each item, first time and end of its session, and which items were in time for one."""
        codes = Keys(self.types).encode(columns_of(items.table, self.session.partition_by), len(items))
        order = np.lexsort((items.order, items.times, codes))
        firsts, ends = np.zeros(len(items), np.int64), np.zeros(len(items), np.int64)
        joined = np.zeros(len(items), bool)
        late = items.visible > items.times + self.boundary.shift
        marks = np.where(late, items.visible - self.boundary.shift, NO_MARK)
        for start, stop in zip(*runs(codes[order]), strict=True):
            mine = order[start:stop]
            contents = Contents(items.times[mine], items.order[mine], marks[mine])
            firsts[mine], ends[mine], joined[mine] = self.session.assign(contents, self.boundary)
        return codes, firsts, ends, joined

    def note_newest(self, newest: int) -> None:
        self._note_changes(np.array([newest + self.session.gap]))

    def record_late(self, late: WaitingItems, ledger: Ledger, readers: Readers) -> None:
        """Record a late item as lost unless it joins a session that was open when it came."""
        joined = self._assign_sessions(concat_waiting(self.waiting, self.schema))[-1]
        newest = self.waiting[-1].order
        seen = np.isin(late.order, newest[joined[len(joined) - len(newest) :]])
        ledger.add(Verdict(late.order, np.ones(len(late), bool), seen, ~seen), readers(self.node.window))

    def state(self) -> Tree:
        return super().state() | {"number": self.number}

    def restore(self, state: Tree) -> None:
        super().restore(state)
        self.number = state["number"]
