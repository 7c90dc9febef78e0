"""Frames that do not overlap, found by kernels; their rows are aggregated as they arrive."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from panewise.aggregate import Int64Array
from panewise.engine.frames.contents import FrameContents
from panewise.engine.frames.framer import Framer
from panewise.engine.frames.order import OrderedItems
from panewise.engine.frames.report import FrameReport
from panewise.engine.state.snapshot import Tree
from panewise.plan.frame_plan import FramePlan

_NO_FRAGMENTS = np.zeros((0, 5), np.int64)


class KernelFrames:
    """All groups of a query whose frames do not overlap."""

    def __init__(self, plan: FramePlan, contents: FrameContents | None) -> None:
        self.framer, self.contents = Framer(plan.frame), contents
        self._fragments = _NO_FRAGMENTS

    def last_times(self, groups: int) -> Int64Array:
        """The time of the last item of each group."""
        self.framer.at.fit(groups)
        return self.framer.at["seen"]

    def earliest_start(self) -> int:
        """The earliest start of a frame that is still to be reported and whose first item has arrived."""
        return self.framer.earliest_start()

    def take(self, items: OrderedItems, groups: int) -> None:
        """Take in items of `groups` groups."""
        step, rows, owner = self.framer.take(items.codes, items.times, items.values, groups), items.rows, items.owner
        if self.contents is not None:
            self.contents.take(step if owner is None else step.spread(owner), rows.table, rows.times, rows.order)
        self._fragments = step.fragments

    def report(self, last: int, finishing: bool) -> Iterator[FrameReport]:
        """Fragments, and frames that have ended and qualify; all frames that have ended are dropped.

        No more items up to the time `last` are expected.
        """
        fragments, self._fragments = self._fragments, _NO_FRAGMENTS
        self.framer.end_silent_frames(last)
        closed = self.framer.closed_flags(finishing)
        if not (len(fragments) or closed.any()):
            return
        ended = np.flatnonzero(closed & self.framer.qualified_flags())
        if self.framer.reports_at_end:
            ended = self.framer.longest(ended)
            closed[ended] = finishing
            ended = ended[closed[ended]]
        # Together, since it may be certain only after a fragment of the next frame that a frame is one.
        self.framer.number_frames(np.union1d(fragments[:, 0], ended))
        if len(fragments):
            yield FrameReport(
                self.framer.fragment_bounds(fragments), (self.contents.fragment_cells(),) if self.contents else ()
            )
        if len(ended):
            yield FrameReport(
                self.framer.bounds(ended), (self.contents.cells_in_slots(ended),) if self.contents else ()
            )
        if closed.any():
            fresh = self.framer.forget(~closed)
            if self.contents is not None:
                self.contents.forget(fresh)

    def live_groups(self, last: int) -> Int64Array:
        """The groups that have state, if no more items up to the time `last` are expected."""
        return self.framer.live_groups(last)

    def recode(self, codes: Int64Array) -> None:
        """Replace the codes of groups; those with code -1 are dropped."""
        self.framer.recode(codes)

    def state(self) -> Tree:
        return {"framer": self.framer.state(), "contents": self.contents and self.contents.state()}

    def restore(self, state: Tree) -> None:
        self.framer.restore(state["framer"])
        if self.contents is not None:
            self.contents.restore(state["contents"])
