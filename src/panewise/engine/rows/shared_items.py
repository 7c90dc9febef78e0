"""One store for windows of many widths over the same items: each item stays as long as the widest of them has it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import numpy as np
import pyarrow as pa

from panewise.algebra import Host, Project, Windowed
from panewise.core.scalar import column
from panewise.core.time import Boundary
from panewise.engine.lateness import Ledger, late_verdict
from panewise.engine.rows.inputs.timed import Readers, WaitingItems, WindowInput
from panewise.engine.rows.spans import NO_EXPIRY, RelationDelta, Spans
from panewise.engine.state.snapshot import Tree
from panewise.plan.rules.share_operators import without_projections
from panewise.window import LogicalWindow

#: The column of waiting items that says how many queries had joined when they came.
JOINED_BEFORE = "#born"


class SharedInput(WindowInput):
    """Items with their time and the instant at which they become visible, from which each window computes lifetimes."""

    #: The words that travel with a row: its time, when it is first seen, and how many had joined when it came.
    WORDS = 3

    def __init__(self, node: Windowed, windows: Iterable[LogicalWindow], boundary: Boundary, host: Host) -> None:
        super().__init__(node, boundary, host)
        self.schema = self.schema.append(pa.field(JOINED_BEFORE, pa.int64()))
        self.windows: dict[LogicalWindow, None] = dict.fromkeys(windows)
        #: How many queries have joined while the stream ran.
        self.joined_while_running = 0

    @property
    def longest_stay(self) -> int:
        return max(window.max_lifetime for window in self.windows)

    def enter(self, items: WaitingItems) -> None:
        born = pa.array(np.full(len(items), self.joined_while_running))
        super().enter(replace(items, table=items.table.append_column(JOINED_BEFORE, born)))

    def advance(self, limit: int) -> RelationDelta:
        items = self._take_visible(limit)
        ready = items.visible <= limit
        self.waiting[:0] = [items.where(~ready)] if not ready.all() else []
        leave = items.times + self.boundary.shift + self.longest_stay
        seen = ready & (items.visible < leave)
        mine, leave = items.where(seen), leave[seen]
        unsaid = np.full(len(mine), NO_EXPIRY)
        words = (mine.visible, leave, self._next_ids(len(mine)), mine.times, mine.order, unsaid)
        born = np.array(mine.table.column(JOINED_BEFORE).to_numpy(), np.int64)
        return RelationDelta(Spans(mine.table.drop_columns([JOINED_BEFORE]), *words, (mine.times, mine.visible, born)))

    def note_newest(self, newest: int) -> None:
        """Do nothing: queries that share this input do not depend on the last change."""

    def state(self) -> Tree:
        return super().state() | {"joined": self.joined_while_running}

    def restore(self, state: Tree) -> None:
        super().restore(state)
        self.joined_while_running = state["joined"]

    def record_late(self, late: WaitingItems, ledger: Ledger, readers: Readers) -> None:
        for window in self.windows:
            ledger.add(late_verdict(window, self.boundary, late.order, late.times, late.visible), readers(window))


def shared_input(nodes: Iterable[Windowed], boundary: Boundary, host: Host) -> SharedInput:
    """One input for windows over the same stream, with all the columns that any of them reads."""
    some = list(nodes)
    names = {c.name: c.type for node in some for c in node.columns}
    items = tuple((name, column(name, kind)) for name, kind in names.items())
    windows = [LogicalWindow.of(node.window) for node in some]
    return SharedInput(
        replace(some[0], child=Project(without_projections(some[0].child), items)), windows, boundary, host
    )
