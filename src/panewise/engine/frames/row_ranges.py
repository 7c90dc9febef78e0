"""Frames as ranges of rows, which may overlap."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from panewise import kernels
from panewise.aggregate import Int64Array, MovingRanges
from panewise.algebra import Host
from panewise.engine.frames.order import TimedRows
from panewise.engine.row_steps import apply_steps
from panewise.plan.pane_plan import RowStep

#: Rows that are copied at a time, once for each frame that holds them.
PORTION = 1 << 22
#: If a row is in fewer frames on average, it is copied for each of them.
FEW_FRAMES = 2


@dataclass(frozen=True, eq=False)
class RowRanges:
    """Ranges of rows, each from `low` to before `high`, ordered by where they begin; every row is in one.

    The rows of a group follow each other, in the order of time. `starts` is where groups begin, and the end of all.
    """

    rows: TimedRows
    starts: Int64Array
    low: Int64Array
    high: Int64Array

    @classmethod
    def of(cls, rows: TimedRows, low: Int64Array, high: Int64Array, groups: Int64Array) -> RowRanges:
        """Ranges of rows of some groups, one for each range."""
        size = len(rows) + 1
        depth = np.cumsum(np.bincount(low, minlength=size) - np.bincount(high, minlength=size))
        begins = np.flatnonzero(np.diff(groups, prepend=-1))
        whole = cls(rows, np.append(low[begins], len(rows)), low, high)
        inside = np.flatnonzero(depth > 0)
        return whole if len(inside) == len(rows) else whole._among(inside, rows.at(inside))

    def _among(self, places: Int64Array, rows: TimedRows) -> RowRanges:
        """The ranges of the rows at some places, which are given."""
        flags = np.zeros(len(self.rows) + 1, np.int64)
        flags[places + 1] = 1
        before = np.cumsum(flags)
        return RowRanges(rows, before[self.starts], before[self.low], before[self.high])

    def after_steps(self, steps: Sequence[RowStep], host: Host) -> RowRanges:
        """The ranges of the rows that have passed some steps, and of their new columns."""
        rows = self.rows
        table, kept = apply_steps(steps, rows.table, host)
        if kept is None:
            return replace(self, rows=TimedRows(table, rows.times, rows.order))
        return self._among(kept, TimedRows(table, rows.times[kept], rows.order[kept]))

    @property
    def are_moving(self) -> bool:
        """Whether rows are in many ranges, each of which ends where the one before does, or later."""
        copies = int((self.high - self.low).sum())
        return copies > FEW_FRAMES * len(self.rows) and bool((np.diff(self.high) >= 0).all())

    def moving_ranges(self) -> MovingRanges:
        """The same ranges in the form in which states over them are computed without copies."""
        starts = np.unique(self.starts)  # groups without rows have no place of their own
        groups = np.minimum(np.searchsorted(starts, self.low, side="right"), len(starts) - 1) - 1
        middle, cuts = kernels.frame_blocks(groups, self.low, self.high, len(self.rows))
        return MovingRanges(starts, groups, np.zeros_like(groups), self.low, self.high, middle, cuts)

    def portions(self) -> Iterator[tuple[int, int, Int64Array, Int64Array]]:
        """Portions of ranges: from which to before which, the range of each row among these, and its place."""
        sizes = self.high - self.low
        ends = np.cumsum(sizes)
        start = 0
        while True:
            before = int(ends[start - 1]) if start else 0
            stop = max(int(np.searchsorted(ends, before + PORTION, side="right")), start + 1)
            mine = sizes[start:stop]
            shifts = self.low[start:stop] - (np.cumsum(mine) - mine)
            yield start, stop, np.repeat(np.arange(len(mine)), mine), np.repeat(shifts, mine) + np.arange(mine.sum())
            start = stop
            if start >= len(sizes):
                return
