"""Frames filled from another stream: a join between their bounds and the times of its rows.

Rows wait until no frame can begin before them any more; frames wait until all rows that fill them have arrived.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from panewise.aggregate import Int64Array
from panewise.algebra import Host
from panewise.core.time import MAX_TICK
from panewise.engine.frames.contents import FrameContents
from panewise.engine.frames.order import TimedRows, concat_rows, restore_rows, rows_state
from panewise.engine.frames.report import FrameBounds, FrameCells, FrameReport, ListedRows
from panewise.engine.keys import Keys
from panewise.engine.row_steps import apply_steps
from panewise.engine.state.snapshot import Tree
from panewise.plan.frame_plan import FillPlan

Flags = npt.NDArray[np.bool_]


class Filler:
    """The rows of one stream that may fill frames."""

    def __init__(self, filling: FillPlan, groups: Keys, host: Host) -> None:
        self.filling, self.node, self.groups, self.host = filling, filling.node, groups, host
        self.names = self.node.framed_node.frame.partition_by
        self.contents = FrameContents(filling.asked, self.names, host) if filling.asked.group else None
        types = {c.name: c.type for c in self.node.right.columns}
        self.schema = pa.schema([(c.name, c.type) for c in self.node.right.columns])
        # Integers of different widths are compared as the widest.
        self.keys = Keys([pa.int64() if pa.types.is_integer(k) else k for k in (types[r] for _, r in self.node.on)])
        self.rows = concat_rows([], self.schema)
        self.codes: Int64Array = np.zeros(0, np.int64)
        #: For listed rows: the time up to which the rows of a frame have been listed, by group and number.
        self._listed: dict[tuple[int, int], int] = {}

    def add(self, rows: TimedRows) -> None:
        """Take rows in; a row with a NULL key belongs to no frame."""
        columns = self._keys_of(rows)
        known = np.ones(len(rows), bool)
        for column in columns:
            known &= pc.is_valid(column).to_numpy(zero_copy_only=False)
        if not known.all():
            rows = rows.at(np.flatnonzero(known))
            columns = self._keys_of(rows)
        self.codes = np.concatenate((self.codes, self.keys.encode(columns, len(rows))))
        self.rows = concat_rows([self.rows, rows], self.schema)

    def _keys_of(self, rows: TimedRows) -> list[pa.Array]:
        columns = (rows.table.column(right).combine_chunks() for _, right in self.node.on)
        return [column.cast(kind) for column, kind in zip(columns, self.keys.types, strict=True)]

    def ready_flags(self, bounds: FrameBounds, upto: int) -> Flags:
        """Which frames have all their rows, if all rows up to a time have arrived."""
        flags: Flags = bounds.ends + self.node.upper - self.node.offset <= upto
        return flags

    def fill(self, bounds: FrameBounds) -> FrameCells | ListedRows:
        """The cells or the listed rows of frames that are ready."""
        lows = bounds.starts + self.node.lower - self.node.offset
        highs = bounds.ends + self.node.upper - self.node.offset
        if self.contents is None:
            lows = self._unlisted_starts(bounds, lows, highs)
        frames, places = self._match_rows(self._frame_keys(bounds), lows, highs)
        rows = self.rows.at(places)
        table = self._with_group_columns(bounds, frames, rows.table)
        if self.contents is not None:
            return self.contents.cells_of(frames, table, rows.times, rows.order, len(bounds))
        table, kept = apply_steps(self.filling.asked.between, table, self.host)
        return ListedRows(frames if kept is None else frames[kept], table)

    def _unlisted_starts(self, bounds: FrameBounds, lows: Int64Array, highs: Int64Array) -> Int64Array:
        """For each frame, the time from which on its rows have not been listed yet."""
        found = lows.copy()
        for place, which in enumerate(zip(bounds.groups.tolist(), bounds.numbers.tolist(), strict=True)):
            if which in self._listed:
                found[place] = max(int(lows[place]), self._listed[which] + 1)
            self._listed[which] = int(highs[place])
            if bounds.final[place]:
                del self._listed[which]
        return found

    def _frame_keys(self, bounds: FrameBounds) -> Int64Array:
        """The key by which each frame finds its rows; -1 where it is NULL."""
        columns = dict(zip(self.names, self.groups.take(bounds.groups), strict=True))
        wanted = [columns[left].cast(kind) for (left, _), kind in zip(self.node.on, self.keys.types, strict=True)]
        codes = self.keys.encode(wanted, len(bounds))
        for column in wanted:
            codes = np.where(pc.is_valid(column).to_numpy(zero_copy_only=False), codes, -1)
        return codes

    def _match_rows(self, codes: Int64Array, lows: Int64Array, highs: Int64Array) -> tuple[Int64Array, Int64Array]:
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

    def _with_group_columns(self, bounds: FrameBounds, frames: Int64Array, table: pa.Table) -> pa.Table:
        """Rows with the group of the frame they are in."""
        groups = self.groups.take(bounds.groups[frames])
        return pa.table([*groups, *table.columns], names=[*self.names, *table.column_names])

    def forget(self, earliest: int) -> None:
        """Drop rows that no frame needs: every frame that is still to be filled begins at `earliest` or later."""
        oldest = earliest + self.node.lower - self.node.offset
        keep = np.flatnonzero(self.rows.times >= oldest)
        if len(keep) < len(self.rows):
            self.rows, self.codes = self.rows.at(keep), self.codes[keep]

    def drop_unused_keys(self) -> None:
        """Drop keys that no row has."""
        if kept := self.keys.shrink_to_live(lambda: [self.codes]):
            self.keys, self.codes = kept.keys, kept.codes[self.codes]

    def recode(self, groups: Keys, codes: Int64Array) -> None:
        """Replace the codes of the groups of frames."""
        self.groups = groups
        self._listed = {(int(codes[group]), number): time for (group, number), time in self._listed.items()}

    def state(self) -> Tree:
        return {
            "keys": self.keys.state(),
            "rows": rows_state(self.rows),
            "codes": pa.table({"code": self.codes}),
            "listed": [[*which, time] for which, time in self._listed.items()],
        }

    def restore(self, state: Tree) -> None:
        self.keys.restore(state["keys"])
        self.rows = restore_rows(state["rows"])
        self.codes = np.array(state["codes"].column("code").to_numpy(), np.int64)
        self._listed = {(group, number): time for group, number, time in state["listed"]}


class Fillers:
    """All streams that fill the frames of a query, and the frames that wait for them."""

    def __init__(self, fillings: Sequence[FillPlan], groups: Keys, host: Host) -> None:
        self.each = [Filler(filling, groups, host) for filling in fillings]
        self.waiting: list[FrameBounds] = []

    def fill_ready(self, upto: Sequence[int]) -> Iterator[FrameReport]:
        """Frames whose rows have all arrived, with what fills them; `upto` has the time reached in each stream."""
        waiting, self.waiting = self.waiting, []
        for bounds in waiting:
            ready = np.ones(len(bounds), bool)
            for filler, time in zip(self.each, upto, strict=True):
                ready &= filler.ready_flags(bounds, time)
            if not ready.all():
                self.waiting.append(bounds.at(np.flatnonzero(~ready)))
            if ready.any():
                certain = bounds if ready.all() else bounds.at(np.flatnonzero(ready))
                yield FrameReport(certain, tuple(filler.fill(certain) for filler in self.each))

    def forget(self, earliest: int) -> None:
        """Drop rows that no frame needs: frames that are still to come begin at `earliest` or later."""
        pending = min((int(bounds.starts.min()) for bounds in self.waiting), default=MAX_TICK)
        for filler in self.each:
            filler.forget(min(earliest, pending))

    def drop_unused_keys(self) -> None:
        for filler in self.each:
            filler.drop_unused_keys()

    def live_groups(self) -> Iterator[Int64Array]:
        """The groups of frames that wait, or whose rows have been listed in part."""
        yield from (bounds.groups for bounds in self.waiting)
        yield from (np.array([group for group, _ in filler._listed], np.int64) for filler in self.each)

    def recode(self, groups: Keys, codes: Int64Array) -> None:
        """Replace the codes of the groups of frames."""
        self.waiting = [replace(bounds, groups=codes[bounds.groups]) for bounds in self.waiting]
        for filler in self.each:
            filler.recode(groups, codes)

    def state(self) -> Tree:
        return {"waiting": [b.state() for b in self.waiting], "each": [filler.state() for filler in self.each]}

    def restore(self, state: Tree) -> None:
        self.waiting = [FrameBounds.from_state(table) for table in state["waiting"]]
        for filler, saved in zip(self.each, state["each"], strict=True):
            filler.restore(saved)
