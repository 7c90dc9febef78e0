"""The window manager: keeps frames in groups while queries come and go.

Paper: "Subsuming windows" sections 3.2 and 3.3.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from enum import Enum
from itertools import chain

from panewise.core.errors import PlanProblem
from panewise.plan.rules.group_windows import packing, subsuming
from panewise.plan.rules.group_windows.groups import WindowGroup
from panewise.plan.rules.group_windows.shapes import WindowShape, by_size


class GroupingPolicy(Enum):
    """How windows are grouped: by the paper's Algorithm 1, so that least is retained, or each alone."""

    PAPER = "paper"
    COST = "cost"
    ALONE = "alone"


#: A grouping is degraded when it costs more than this many percent of a fresh one.
TOLERATED_PERCENT = 125


class WindowManager:
    """The groups of one family of queries: every frame is in exactly one group, however many queries ask for it.

    The groups depend on the frames and on the order of changes alone, so that a replay leads to the same groups. Group
    numbers count up from zero and are never given twice.
    """

    def __init__(self, policy: GroupingPolicy, frames: Iterable[WindowShape] = ()) -> None:
        self.policy = policy
        self._counts = Counter(frames)
        members = _grouped_shapes(policy, self._counts)
        self._groups = {number: WindowGroup(number, part) for number, part in enumerate(members)}
        self._homes = {frame: self._groups[number] for number, part in enumerate(members) for frame in part}
        self._next = len(members)
        self._checked = len(self._counts)
        self._changes = 0
        self._degraded = False

    @classmethod
    def subsume(cls, frames: Iterable[WindowShape]) -> WindowManager:
        """Groups by Algorithm 1; a repeated frame is one more query that asks for it."""
        return cls(GroupingPolicy.PAPER, frames)

    @classmethod
    def pack(cls, frames: Iterable[WindowShape]) -> WindowManager:
        """Groups by cost, never dearer than those of Algorithm 1."""
        return cls(GroupingPolicy.COST, frames)

    @classmethod
    def restore(
        cls, policy: GroupingPolicy, groups: Mapping[int, Iterable[WindowShape]], asked: Counter[WindowShape]
    ) -> WindowManager:
        """A manager as it was: its groups by number, and how many queries ask for each frame."""
        manager = cls(policy)
        manager._counts = Counter(asked)
        manager._groups = {number: WindowGroup(number, frames) for number, frames in groups.items()}
        manager._homes = {frame: group for group in manager._groups.values() for frame in group.shapes}
        manager._next = max(manager._groups, default=-1) + 1
        manager._checked = len(manager._counts)
        return manager

    # ---- what it holds ---------------------------------------------------------------------------------------------

    @property
    def groups(self) -> tuple[WindowGroup, ...]:
        """All groups by number."""
        return tuple(self._groups.values())

    @property
    def shapes(self) -> tuple[WindowShape, ...]:
        """All distinct frames, by range, then by slide."""
        return tuple(sorted(self._homes, key=by_size))

    @property
    def cost(self) -> int:
        """Panes and buffers retained by all groups."""
        return sum(group.cost for group in self._groups.values())

    def multiplicity(self, frame: WindowShape) -> int:
        """How many queries ask for a frame."""
        return self._counts[frame]

    def group_of(self, frame: WindowShape) -> WindowGroup:
        if frame not in self._homes:
            raise PlanProblem(f"no query asks for the window {frame}", fix="embed it first")
        return self._homes[frame]

    # ---- changes ---------------------------------------------------------------------------------------------------

    def embed(self, frame: WindowShape) -> WindowGroup:
        """Take in the frame of one more query; the group it is in now. Frames that are there stay where they are."""
        self._counts[frame] += 1
        if frame not in self._homes:
            self._changes += 1
            self._place(frame)
        return self._homes[frame]

    def revoke(self, frame: WindowShape) -> tuple[WindowShape, ...]:
        """Let one query go. A frame leaves with its last query; returns the frames that changed groups because of it.

        Only frames that rode on it may have to: those that neither can take its place nor ride on the one that does.
        """
        group = self.group_of(frame)
        self._counts[frame] -= 1
        if self._counts[frame]:
            return ()
        del self._counts[frame]
        self._changes += 1
        self._remove(frame)
        if self.policy is not GroupingPolicy.PAPER or group.number not in self._groups:
            return ()
        orphans = subsuming.misfits(group, frame.range)
        for orphan in orphans:
            self._remove(orphan)
        for orphan in orphans:
            self._place(orphan)
        return tuple(orphans)

    def _place(self, frame: WindowShape) -> None:
        match self.policy:
            case GroupingPolicy.PAPER:
                group = subsuming.find_group(self._groups.values(), frame)
            case GroupingPolicy.COST:
                group = packing.cheapest_group(self._groups.values(), frame)
            case GroupingPolicy.ALONE:
                group = None
        if group is None:
            group = self._groups[self._next] = WindowGroup(self._next, [frame])
            self._next += 1
        else:
            group.add(frame)
        self._homes[frame] = group

    def _remove(self, frame: WindowShape) -> None:
        group = self._homes.pop(frame)
        group.remove(frame)
        if not group.ranges:
            del self._groups[group.number]

    # ---- degradation -----------------------------------------------------------------------------------------------

    def is_degraded(self) -> bool:
        """Whether the groups cost over a quarter more than fresh ones of the same frames would.

        Fresh groups are made for comparison only when more than a quarter of the frames has changed since the last
        time; until then the last answer stands.
        """
        if 4 * self._changes > self._checked:
            self._degraded = 100 * self.cost > TOLERATED_PERCENT * self.repack().cost
            self._checked, self._changes = len(self._homes), 0
        return self._degraded

    def repack(self, more: Iterable[WindowShape] = ()) -> WindowManager:
        """A fresh manager for the same queries, and for some more, under the same policy."""
        return WindowManager(self.policy, chain(self._counts.elements(), more))


def _grouped_shapes(policy: GroupingPolicy, shapes: Collection[WindowShape]) -> list[list[WindowShape]]:
    """The groups of a fresh manager."""
    if len(shapes) <= 1:
        return [[shape] for shape in shapes]
    match policy:
        case GroupingPolicy.PAPER:
            return subsuming.subsume(shapes)
        case GroupingPolicy.COST:
            return packing.pack(subsuming.subsume(shapes))
        case GroupingPolicy.ALONE:
            return [[shape] for shape in sorted(shapes, key=by_size)]
