"""One store for windows of many widths over the same items: each item stays as long as the widest of them has it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from panewise.algebra import Host, Project, Windowed
from panewise.engine.lateness import Ledger
from panewise.engine.relational.leaves import Leaf, Waiting, all_waiting, judged
from panewise.engine.relational.spans import NEVER_SAID, Spans, Turn
from panewise.plan.kinship import bare
from panewise.scalar import column
from panewise.time import Boundary
from panewise.window import LogicalWindow


class Band(Leaf):
    """Items with their time and the instant at which they are first seen: from these each window knows its own."""

    #: The words that travel with a row: its time, and when it was first seen.
    WORDS = 2

    def __init__(self, node: Windowed, windows: Iterable[LogicalWindow], boundary: Boundary, host: Host) -> None:
        super().__init__(node, boundary, host)
        self.windows: dict[LogicalWindow, None] = dict.fromkeys(windows)

    @property
    def lasts(self) -> int:
        return max(window.lasts for window in self.windows)

    def turn(self, limit: int) -> Turn:
        items = all_waiting(self.waiting, self.schema)
        ready = items.visible <= limit
        self.waiting = [items.where(~ready)] if not ready.all() else []
        leave = items.times + self.boundary.shift + self.lasts
        seen = ready & (items.visible < leave)
        mine, leave = items.where(seen), leave[seen]
        unsaid = np.full(len(mine), NEVER_SAID)
        words = (mine.visible, leave, self._numbered(len(mine)), mine.times, mine.order, unsaid)
        return Turn(Spans(mine.table, *words, (mine.times, mine.visible)))

    def reach(self, newest: int) -> None:
        """Whoever looks at this band does not ask when the last change was."""

    def _judge(self, late: Waiting, ledger: Ledger) -> None:
        for window in self.windows:
            ledger.add(judged(window, late, self.boundary))


def band(nodes: Iterable[Windowed], boundary: Boundary, host: Host) -> Band:
    """One band for windows over the same stream, with all the columns that any of them looks at."""
    some = list(nodes)
    names = {c.name: c.type for node in some for c in node.columns}
    items = tuple((name, column(name, kind)) for name, kind in names.items())
    windows = [node.window for node in some if isinstance(node.window, LogicalWindow)]
    return Band(replace(some[0], child=Project(bare(some[0].child), items)), windows, boundary, host)
