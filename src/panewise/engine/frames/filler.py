"""Frames filled from another stream: a join between their bounds and the times of its rows.

Rows wait until no frame can begin before them any more; frames wait until the rows they are filled with are there.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from panewise.aggregate import Longs
from panewise.algebra import Host
from panewise.engine.frames.contents import Contents
from panewise.engine.frames.ordering import Rows, rows_restored, rows_state, together
from panewise.engine.frames.reported import Bounds, Listed, Reported
from panewise.engine.keys import Keys
from panewise.engine.rowwise import passed
from panewise.engine.snapshot import Tree
from panewise.plan.framing import Framing
from panewise.time import LAST_TICK


class Filler:
    """The rows that may fill frames, and the frames that wait for them."""

    def __init__(self, plan: Framing, contents: Contents | None, groups: Keys, host: Host) -> None:
        assert plan.filled is not None
        self.plan, self.node, self.contents, self.groups, self.host = plan, plan.filled, contents, groups, host
        types = {c.name: c.type for c in self.node.right.columns}
        self.schema = pa.schema([(c.name, c.type) for c in self.node.right.columns])
        self.keys = Keys([types[right] for _, right in self.node.on])
        self.rows = together([], self.schema)
        self.codes: Longs = np.zeros(0, np.int64)
        self.waiting: list[Bounds] = []
        #: Where rows are listed, up to which time those of a frame have been, by group and number.
        self._listed: dict[tuple[int, int], int] = {}

    def add(self, rows: Rows) -> None:
        """Let rows in; one with a NULL key belongs to no frame."""
        columns = [rows.table.column(right).combine_chunks() for _, right in self.node.on]
        known = np.ones(len(rows), bool)
        for column in columns:
            known &= pc.is_valid(column).to_numpy(zero_copy_only=False)
        if not known.all():
            rows = rows.at(np.flatnonzero(known))
            columns = [rows.table.column(right).combine_chunks() for _, right in self.node.on]
        self.codes = np.concatenate((self.codes, self.keys.encode(columns, len(rows))))
        self.rows = together([self.rows, rows], self.schema)

    def fill(self, bounds: Bounds) -> None:
        """Let frames wait for what fills them."""
        self.waiting.append(bounds)

    def filled(self, upto: int) -> Iterator[Reported]:
        """Frames whose rows up to a time are all there, with these rows."""
        waiting, self.waiting = self.waiting, []
        for bounds in waiting:
            ready = bounds.ends + self.node.upper - self.node.offset <= upto
            if not ready.all():
                self.waiting.append(bounds.at(np.flatnonzero(~ready)))
            if ready.any():
                yield self._filled(bounds if ready.all() else bounds.at(np.flatnonzero(ready)))

    def _filled(self, bounds: Bounds) -> Reported:
        lows = bounds.starts + self.node.lower - self.node.offset
        highs = bounds.ends + self.node.upper - self.node.offset
        if self.contents is None:
            lows = self._unlisted(bounds, lows, highs)
        frames, places = self._matched(self._codes(bounds), lows, highs)
        rows = self.rows.at(places)
        table = self._beside(bounds, frames, rows.table)
        if self.contents is not None:
            cells = self.contents.cells_of(frames, table, rows.times, rows.order, len(bounds))
            return Reported(bounds, cells)
        table, kept = passed(self.plan.between, table, self.host)
        return Reported(bounds, Listed(frames if kept is None else frames[kept], table))

    def _unlisted(self, bounds: Bounds, lows: Longs, highs: Longs) -> Longs:
        """From where on the rows of each frame have not been listed yet."""
        found = lows.copy()
        for place, which in enumerate(zip(bounds.groups.tolist(), bounds.numbers.tolist(), strict=True)):
            if which in self._listed:
                found[place] = max(int(lows[place]), self._listed[which] + 1)
            self._listed[which] = int(highs[place])
            if bounds.final[place]:
                del self._listed[which]
        return found

    def _codes(self, bounds: Bounds) -> Longs:
        """The key by which each frame finds its rows; -1 where it is NULL."""
        names = self.plan.frame.partition_by
        columns = dict(zip(names, self.groups.take(bounds.groups), strict=True))
        wanted = [columns[left].cast(kind) for (left, _), kind in zip(self.node.on, self.keys.types, strict=True)]
        codes = self.keys.encode(wanted, len(bounds))
        for column in wanted:
            codes = np.where(pc.is_valid(column).to_numpy(zero_copy_only=False), codes, -1)
        return codes

    def _matched(self, codes: Longs, lows: Longs, highs: Longs) -> tuple[Longs, Longs]:
        """Pairs of a frame and the place of a row in it, by frame and then by time."""
        order = np.lexsort((self.rows.order, self.rows.times, self.codes))
        keys, times = self.codes[order], self.rows.times[order]
        first, last = np.searchsorted(keys, codes), np.searchsorted(keys, codes, side="right")
        starts = np.array([a + np.searchsorted(times[a:b], t) for a, b, t in zip(first, last, lows, strict=True)], int)
        stops = np.array(
            [a + np.searchsorted(times[a:b], t, side="right") for a, b, t in zip(first, last, highs, strict=True)], int
        )
        sizes = np.maximum(stops - starts, 0)
        frames = np.repeat(np.arange(len(codes)), sizes)
        inside = np.repeat(starts - (np.cumsum(sizes) - sizes), sizes) + np.arange(sizes.sum())
        return frames, order[inside]

    def _beside(self, bounds: Bounds, frames: Longs, table: pa.Table) -> pa.Table:
        """Rows with the group of the frame they are in."""
        names = self.plan.frame.partition_by
        groups = self.groups.take(bounds.groups[frames])
        return pa.table([*groups, *table.columns], names=[*names, *table.column_names])

    def forget(self, earliest: int) -> None:
        """No frame that is yet to come begins before a time."""
        pending = min((int(bounds.starts.min()) for bounds in self.waiting), default=LAST_TICK)
        oldest = min(earliest, pending) + self.node.lower - self.node.offset
        keep = np.flatnonzero(self.rows.times >= oldest)
        if len(keep) < len(self.rows):
            self.rows, self.codes = self.rows.at(keep), self.codes[keep]

    def state(self) -> Tree:
        return {
            "keys": self.keys.state(),
            "rows": rows_state(self.rows),
            "codes": pa.table({"code": self.codes}),
            "waiting": [bounds.state() for bounds in self.waiting],
            "listed": [[*which, time] for which, time in self._listed.items()],
        }

    def restore(self, state: Tree) -> None:
        self.keys.restore(state["keys"])
        self.rows = rows_restored(state["rows"])
        self.codes = np.array(state["codes"].column("code").to_numpy(), np.int64)
        self.waiting = [Bounds.restored(table) for table in state["waiting"]]
        self._listed = {(group, number): time for group, number, time in state["listed"]}
