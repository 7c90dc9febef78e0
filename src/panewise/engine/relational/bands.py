"""One store for windows of many widths over the same items: each item stays as long as the widest of them has it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import numpy as np
import pyarrow as pa

from panewise.algebra import Host, Project, Windowed
from panewise.engine.lateness import Ledger, judged
from panewise.engine.relational.leaves import Leaf, Readers, Waiting, all_waiting
from panewise.engine.relational.spans import NEVER_SAID, Spans, Turn
from panewise.engine.snapshot import Tree
from panewise.plan.kinship import bare
from panewise.scalar import column
from panewise.time import Boundary
from panewise.window import LogicalWindow

#: The column of waiting items that says how many queries had joined when they came.
BORN = "#born"


class Band(Leaf):
    """Items with their time and the instant at which they are first seen: from these each window knows its own."""

    #: The words that travel with a row: its time, when it is first seen, and how many had joined when it came.
    WORDS = 3

    def __init__(self, node: Windowed, windows: Iterable[LogicalWindow], boundary: Boundary, host: Host) -> None:
        super().__init__(node, boundary, host)
        self.schema = self.schema.append(pa.field(BORN, pa.int64()))
        self.windows: dict[LogicalWindow, None] = dict.fromkeys(windows)
        #: How many queries have joined while the stream ran.
        self.joined = 0

    @property
    def lasts(self) -> int:
        return max(window.lasts for window in self.windows)

    def enter(self, items: Waiting) -> None:
        born = pa.array(np.full(len(items), self.joined))
        super().enter(replace(items, table=items.table.append_column(BORN, born)))

    def turn(self, limit: int) -> Turn:
        items = all_waiting(self.waiting, self.schema)
        ready = items.visible <= limit
        self.waiting = [items.where(~ready)] if not ready.all() else []
        leave = items.times + self.boundary.shift + self.lasts
        seen = ready & (items.visible < leave)
        mine, leave = items.where(seen), leave[seen]
        unsaid = np.full(len(mine), NEVER_SAID)
        words = (mine.visible, leave, self._numbered(len(mine)), mine.times, mine.order, unsaid)
        born = np.array(mine.table.column(BORN).to_numpy(), np.int64)
        return Turn(Spans(mine.table.drop_columns([BORN]), *words, (mine.times, mine.visible, born)))

    def reach(self, newest: int) -> None:
        """Whoever looks at this band does not ask when the last change was."""

    def state(self) -> Tree:
        return super().state() | {"joined": self.joined}

    def restore(self, state: Tree) -> None:
        super().restore(state)
        self.joined = state["joined"]

    def judge(self, late: Waiting, ledger: Ledger, readers: Readers) -> None:
        for window in self.windows:
            ledger.add(judged(window, self.boundary, late.order, late.times, late.visible), readers(window))


def band(nodes: Iterable[Windowed], boundary: Boundary, host: Host) -> Band:
    """One band for windows over the same stream, with all the columns that any of them looks at."""
    some = list(nodes)
    names = {c.name: c.type for node in some for c in node.columns}
    items = tuple((name, column(name, kind)) for name, kind in names.items())
    windows = [node.window for node in some if isinstance(node.window, LogicalWindow)]
    return Band(replace(some[0], child=Project(bare(some[0].child), items)), windows, boundary, host)
