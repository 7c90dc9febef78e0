"""Session windows as relations: all items of a session are present at the one instant at which it ends."""

from __future__ import annotations

import numpy as np

from panewise import kernels
from panewise.aggregate import Int64Array
from panewise.algebra import Host, Windowed
from panewise.core.time import Boundary
from panewise.engine.keys import Keys
from panewise.engine.lateness import Ledger, Verdict
from panewise.engine.rows.inputs.timed import Readers, WaitingItems, WindowInput, columns_of, concat_waiting
from panewise.engine.rows.spans import EMPTY, RelationDelta, Spans
from panewise.engine.state.snapshot import Tree
from panewise.window import Session


class SessionInput(WindowInput):
    """Items wait until their session has ended; late ones join only sessions that were open when they came."""

    def __init__(self, node: Windowed, boundary: Boundary, host: Host) -> None:
        super().__init__(node, boundary, host)
        self.session = Session.of(node.window)
        #: If every session is reported on its own, each has an instant of its own: its number.
        self.apart = False
        self.number = 0
        #: The bounds of the sessions that ended in the last turn.
        self.spans = np.zeros((0, 2), np.int64)
        types = {column.name: column.type for column in node.columns}
        self.types = [types[name] for name in node.window.partition_by]

    def enter(self, items: WaitingItems) -> None:
        """Let items wait; sessions are found among all that do."""
        self.waiting.append(items)

    def advance(self, limit: int) -> RelationDelta:
        items = concat_waiting(self.waiting, self.schema)
        numbers, firsts, ends = self._assign_sessions(items)
        joined, over = numbers >= 0, ends <= limit
        ready = joined & over[numbers] if len(ends) else joined
        later = joined & ~ready
        self.waiting = [items.where(later)] if later.any() else []
        mine, sessions = items.where(ready), numbers[ready]
        self._note_changes(ends[over])
        at = self._session_instants(firsts, ends, np.flatnonzero(over))[sessions]
        ids = self._next_ids(len(mine))
        return RelationDelta(Spans(mine.table, at, at + 1, ids, mine.times, mine.order, ends[sessions] + 1))

    def _session_instants(self, firsts: Int64Array, ends: Int64Array, over: Int64Array) -> Int64Array:
        """The instant of each session; only that of sessions that are over counts."""
        if not self.apart:
            self.own_instants = np.unique(ends[over])
            return ends
        over = over[np.lexsort((firsts[over], ends[over]))]
        self.spans = np.stack((firsts[over], ends[over]), axis=1)
        first, self.number = self.number, self.number + len(over)
        self.own_instants = np.arange(first, self.number, dtype=np.int64)
        instants = np.zeros(len(ends), np.int64)
        instants[over] = self.own_instants
        return instants

    def bounds(self, instants: Int64Array) -> tuple[Int64Array | None, Int64Array]:
        if not self.apart:
            return super().bounds(instants)
        chosen = self.spans[instants - (self.number - len(self.spans))]
        return chosen[:, 0], chosen[:, 1]

    def _assign_sessions(self, items: WaitingItems) -> tuple[Int64Array, Int64Array, Int64Array]:
        """The session of each item, -1 where it came too late for any; first time and end of each session."""
        partitions = Keys(self.types)
        codes = partitions.encode(columns_of(items.table, self.session.partition_by), len(items))
        late = items.visible > items.times + self.boundary.shift
        # Streams have watermarks of their own: united ones are replayed as they arrived if there are late items.
        replayed = len({inlet.stream for inlet in self.inlets}) > 1 and late.any()
        order = np.lexsort((items.times, items.order) if replayed else (items.order, items.visible))
        numbers = np.empty(len(items), np.int64)
        words = (word[order] for word in (codes, items.times, np.where(late, items.visible, items.times)))
        numbers[order], _, (_, firsts, lasts) = kernels.session_numbers(
            *words, self.session.gap, len(partitions), (EMPTY, EMPTY, EMPTY)
        )
        return numbers, firsts, lasts + self.session.gap

    def note_newest(self, newest: int) -> None:
        self._note_changes(np.array([newest + self.session.gap]))

    def record_late(self, late: WaitingItems, ledger: Ledger, readers: Readers) -> None:
        """Record a late item as lost unless it joins a session that was open when it came."""
        numbers, *_ = self._assign_sessions(concat_waiting(self.waiting, self.schema))
        newest = self.waiting[-1].order
        seen = np.isin(late.order, newest[numbers[len(numbers) - len(newest) :] >= 0])
        ledger.add(Verdict(late.order, np.ones(len(late), bool), seen, ~seen), readers(self.node.window))

    def state(self) -> Tree:
        return super().state() | {"number": self.number}

    def restore(self, state: Tree) -> None:
        super().restore(state)
        self.number = state["number"]
