"""Finds frames as they begin and end: takes rows, and keeps a table with one row for each frame."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from panewise import kernels
from panewise.aggregate import Int64Array, runs
from panewise.core.time import MAX_TICK
from panewise.engine.frames.kernel_runs import RUN_FINDERS, Registers, flags_of
from panewise.engine.frames.report import FrameBounds
from panewise.engine.state.snapshot import Tree
from panewise.frame.frame import Frame, FrameLength, Missing, Span
from panewise.kernels import NO_TIME
from panewise.kernels.frames import (
    AFTER,
    BEFORE,
    COUNT,
    FIELDS,
    FIRST,
    GROUP,
    LAST,
    MISSING,
    NUMBER,
    SOME,
    WHOLE,
)

Flags = npt.NDArray[np.bool_]
#: Frames, a row each, with the fields of `kernels.frames`.
Frames = npt.NDArray[np.int64]

_NO_FLAGS = np.zeros(0, np.bool_)


@dataclass(frozen=True, eq=False)
class FrameAssignment:
    """The frame of each row, and its piece of the frame where fragments of long frames are reported.

    `fragments` has a row for each fragment: the frame, the last piece of it so far, its end, rows and missing reports.
    """

    slots: Int64Array
    frames: Frames
    pieces: Int64Array
    owners: Int64Array
    fragments: Int64Array

    def spread(self, owner: Int64Array) -> FrameAssignment:
        """The same assignment for rows of which several belong to one item."""
        pieces = self.pieces[owner] if len(self.pieces) else self.pieces
        return FrameAssignment(self.slots[owner], self.frames, pieces, self.owners, self.fragments)


class Framer:
    """Finds the frames of all groups. Frames that are open, or wait for the row after them, keep their slots."""

    def __init__(self, frame: Frame) -> None:
        self.frame = frame
        self.run_finder = RUN_FINDERS[type(frame.kind)](frame, frame.kind)
        base: dict[str, int | float] = {"current": -1, "previous": -1, "seen": NO_TIME, "numbered": NO_TIME}
        self.at = Registers(base | self.run_finder.fills)
        self.open: Frames = np.zeros((0, FIELDS), np.int64)
        self._growth = _growth(frame)

    def take(
        self, codes: Int64Array, times: Int64Array, values: Sequence[pa.ChunkedArray], groups: int
    ) -> FrameAssignment:
        """Take in rows of `groups` groups, ordered by time in each group."""
        self.at.fit(groups)
        cut = self.run_finder.find_runs(codes, times, values, self.at, len(self.open))
        frames = np.zeros((cut.free, FIELDS), np.int64)
        frames[: len(self.open)] = self.open
        some = flags_of(values[-1]) if self.frame.some else _NO_FLAGS
        every = self.frame.schedule.every if self.frame.schedule else 0
        previous, seen = self.at["previous"], self.at["seen"]
        pieces, owners, fragments = kernels.frame_extents(
            codes, times, cut.slots, some, cut.assumed, cut.marks, every, frames, previous, seen, self._growth
        )
        self.open = frames
        return FrameAssignment(cut.slots, frames, pieces, owners, fragments)

    def end_silent_frames(self, last: int) -> None:
        """End the frames of which a report up to a time is missing, if a missing report ends a frame."""
        schedule = self.frame.schedule
        if schedule is None or schedule.missing is not Missing.FAILS or not len(self.open):
            return
        current = self.at["current"]
        silent = np.flatnonzero(self.open[:, LAST] + schedule.every <= last)
        groups = self.open[silent, GROUP]
        current[groups[current[groups] == silent]] = -1

    def closed_flags(self, finishing: bool) -> Flags:
        """The frames that no row can change any more."""
        frames = self.open
        ended: Flags = self.at["current"][frames[:, GROUP]] != np.arange(len(frames))
        if self.frame.liberal or self.frame.lasting:
            ended &= frames[:, AFTER] != NO_TIME
        return np.ones(len(frames), bool) if finishing else ended

    def qualified_flags(self) -> Flags:
        """The frames that would satisfy all local conditions if they ended now."""
        frames = self.open
        starts, ends = self.extents(frames)
        rows = frames[:, COUNT] + frames[:, MISSING]
        kind = self.frame.kind
        good = frames[:, WHOLE] == 1 if kind.certain_at_end else frames[:, COUNT] >= kind.fewest_items
        if self.frame.some:
            good &= frames[:, SOME] > 0
        if (least := self.frame.least) is not None:
            good &= (rows if least.rows else ends - starts) >= least.amount
        if (most := self.frame.most) is not None:
            good &= (rows if most.rows else ends - starts) <= most.amount
        return good

    def extents(self, frames: Frames) -> tuple[Int64Array, Int64Array]:
        """Where frames start and end, as they are reported."""
        starts, ends = frames[:, FIRST], frames[:, LAST]
        if self.frame.liberal and not self.frame.lasting:
            starts = np.where(frames[:, BEFORE] == NO_TIME, starts, frames[:, BEFORE])
        if self.frame.liberal or self.frame.lasting:
            ends = np.where(frames[:, AFTER] == NO_TIME, ends, frames[:, AFTER])
        return starts, ends

    def number_frames(self, slots: Int64Array) -> None:
        """Give numbers to the frames of some slots, ascending, that have none yet."""
        slots = slots[self.open[slots, NUMBER] == NO_TIME]
        frames = self.open[slots]
        self.open[slots, NUMBER] = kernels.frame_numbers(frames[:, GROUP], frames[:, FIRST], self.at["numbered"])

    def longest(self, slots: Int64Array) -> Int64Array:
        """Of frames that have ended, the longest of each group; of equally long ones the earliest."""
        frames = self.open[slots]
        starts, ends = self.extents(frames)
        order = np.lexsort((starts, -(frames[:, COUNT] + frames[:, MISSING]), starts - ends, frames[:, GROUP]))
        firsts, _ = runs(frames[order, GROUP])
        return np.sort(slots[order[firsts]])

    def bounds(self, slots: Int64Array) -> FrameBounds:
        """Frames that have ended, as they are reported."""
        frames = self.open[slots]
        starts, ends = self.extents(frames)
        columns = frames[:, GROUP], frames[:, NUMBER], starts, ends, frames[:, COUNT], frames[:, MISSING]
        return FrameBounds(*columns, np.ones(len(frames), bool))

    def fragment_bounds(self, fragments: Int64Array) -> FrameBounds:
        """The bounds of frames that are still open, as fragments report them."""
        frames = self.open[fragments[:, 0]]
        starts = frames[:, FIRST]
        if self.frame.liberal and not self.frame.lasting:
            starts = np.where(frames[:, BEFORE] == NO_TIME, starts, frames[:, BEFORE])
        columns = frames[:, GROUP], frames[:, NUMBER], starts, fragments[:, 2], fragments[:, 3], fragments[:, 4]
        return FrameBounds(*columns, np.zeros(len(frames), bool))

    def earliest_start(self) -> int:
        """The earliest start of a frame that is open, or that may begin with an item that has arrived."""
        liberal = self.frame.liberal and not self.frame.lasting
        starts = self.extents(self.open)[0]
        if liberal:
            seen = self.at["seen"]
            starts = np.concatenate((starts, seen[seen != NO_TIME]))
        return int(starts.min()) if len(starts) else MAX_TICK

    def forget(self, keep: Flags) -> Int64Array:
        """Drop frames; returns the new number of each slot, or -1."""
        fresh = np.where(keep, np.cumsum(keep) - 1, -1)
        self.open = self.open[keep]
        for name in ("current", "previous"):
            slots = self.at[name]
            held = slots >= 0
            slots[held] = fresh[slots[held]]
        return fresh

    def live_groups(self, last: int) -> Int64Array:
        """The groups with state: a frame, a number, or the item before the next frame.

        Frames that have not begun will begin after the time `last`, so that smaller numbers are not needed for them.
        """
        at = self.at
        marks = (at["current"] >= 0) | (at["previous"] >= 0) | (at["numbered"] > last)
        if self.frame.liberal or self.frame.schedule:
            marks |= at["seen"] != NO_TIME
        marks[self.open[:, GROUP]] = True
        return np.flatnonzero(marks)

    def recode(self, codes: Int64Array) -> None:
        """Replace the codes of groups; those with code -1 are dropped."""
        self.open[:, GROUP] = codes[self.open[:, GROUP]]
        self.at.recode(codes)

    @property
    def reports_at_end(self) -> bool:
        """Whether no frame can be reported before the stream has ended."""
        return self.frame.effective_span is Span.MAXIMUM

    def state(self) -> Tree:
        frames = {str(field): pa.array(self.open[:, field]) for field in range(FIELDS)}
        return {"at": self.at.state(), "open": pa.table(frames)}

    def restore(self, state: Tree) -> None:
        self.at.restore(state["at"])
        columns = [state["open"].column(str(field)).to_numpy() for field in range(FIELDS)]
        self.open = np.stack(columns, axis=1).astype(np.int64)


def _growth(frame: Frame) -> Int64Array:
    """When fragments of long frames are reported, in the form that `frame_extents` takes."""
    if frame.fragments is None:
        return np.zeros(6, np.int64)
    least = frame.least or FrameLength(0)
    fewest = max(least.amount if least.rows else 0, frame.kind.fewest_items)
    shortest = 0 if least.rows else least.amount
    liberal = frame.liberal and not frame.lasting
    return np.array([1, shortest, fewest, frame.fragments.amount, frame.fragments.rows, liberal], np.int64)
