"""Groups: frames served together, as a sequence of nodes with other frames piggybacked on them.

Paper: "Subsuming windows" section 3.2.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from itertools import accumulate, pairwise
from math import gcd
from operator import attrgetter

from panewise.core.errors import PlanProblem
from panewise.plan.rules.group_windows.cost import Stairs, cost_of, merge_stairs, single_stair, stairs_of
from panewise.plan.rules.group_windows.shapes import WindowShape, by_size


class WindowRole(Enum):
    """What a frame is to its group: its narrowest node, a wider node, or a guest on a node of the same range."""

    SEED = "seed"
    ENCLOSING = "enclosing"
    PIGGYBACKED = "piggybacked"


@dataclass(frozen=True)
class GroupNode:
    """A frame of the sequence and the frames piggybacked on it: those of its range that slide less often."""

    frame: WindowShape
    piggybacked: tuple[WindowShape, ...] = ()


class WindowGroup:
    """Frames that one chain of stairs serves. Of each range, the frame with the shortest slide is a node.

    Only the manager changes a group; `number` stays the same as long as the group lives.
    """

    def __init__(self, number: int, frames: Iterable[WindowShape]) -> None:
        self.number = number
        self._levels: dict[int, list[WindowShape]] = {}
        for frame in sorted(frames, key=by_size):
            self._levels.setdefault(frame.range, []).append(frame)
        self._ranges = list(self._levels)
        self._own = {size: _granule(level) for size, level in self._levels.items()}
        self._stairs: Stairs | None = None
        self._cost: int | None = None

    # ---- what it holds ---------------------------------------------------------------------------------------------

    @property
    def shapes(self) -> tuple[WindowShape, ...]:
        """All frames, by range, then by slide."""
        return tuple(frame for size in self._ranges for frame in self._levels[size])

    @property
    def nodes(self) -> tuple[GroupNode, ...]:
        """The sequence, from the seed to the widest."""
        levels = (self._levels[size] for size in self._ranges)
        return tuple(GroupNode(level[0], tuple(level[1:])) for level in levels)

    @property
    def seed(self) -> WindowShape:
        return self._levels[self._ranges[0]][0]

    @property
    def base_slide(self) -> int:
        """The base slide: that of the seed."""
        return self.seed.slide

    @property
    def common_slide(self) -> int:
        """The greatest common divisor of all slides; the seed's slide in a group of the paper."""
        return gcd(*(frame.slide for frame in self.shapes))

    @property
    def ranges(self) -> tuple[int, ...]:
        """The range of each node, ascending."""
        return tuple(self._ranges)

    @property
    def granules(self) -> tuple[int, ...]:
        """The pane width of each node's level; each divides the next."""
        return tuple(self._granules())

    @property
    def stairs(self) -> Stairs:
        """The levels of one granule taken together."""
        if self._stairs is None:
            self._stairs = stairs_of(self._granules(), self._ranges)
        return self._stairs

    @property
    def cost(self) -> int:
        """Panes and buffers retained."""
        if self._cost is None:
            self._cost = cost_of(self.stairs)
        return self._cost

    def role(self, frame: WindowShape) -> WindowRole:
        host = self._node_shape(frame)
        if frame != host:
            return WindowRole.PIGGYBACKED
        return WindowRole.SEED if frame.range == self._ranges[0] else WindowRole.ENCLOSING

    def quotient(self, frame: WindowShape) -> int | None:
        """How many slides of its node a frame makes at once: the paper's q, one for the node itself.

        None where the slides do not divide, as may be in a group packed by cost: both are then read off the panes.
        """
        times, rest = divmod(frame.slide, self._node_shape(frame).slide)
        return None if rest else times

    def shapes_of_range(self, size: int) -> tuple[WindowShape, ...]:
        """The frames of one range: the node, then what rides on it by growing slide."""
        return tuple(self._levels.get(size, ()))

    def neighbours(self, size: int) -> tuple[WindowShape | None, WindowShape | None, WindowShape | None]:
        """The nodes next below a range, of exactly that range, and next above it."""
        at = bisect_left(self._ranges, size)
        above = at + (size in self._levels)
        return self._shape_at(at - 1), self._shape_at(at) if above > at else None, self._shape_at(above)

    def __len__(self) -> int:
        return sum(map(len, self._levels.values()))

    def __contains__(self, frame: WindowShape) -> bool:
        return frame in self._levels.get(frame.range, ())

    def __repr__(self) -> str:
        return f"Group({self.number}: {', '.join(map(str, self.shapes))})"

    def check_subsumption(self) -> None:
        """Refuse a group that breaks the paper's law: each node subsumable under the next and under its guests."""
        nodes = self.nodes
        steps = [(node.frame, guest) for node in nodes for guest in node.piggybacked]
        steps += [(inner.frame, outer.frame) for inner, outer in pairwise(nodes)]
        for inner, outer in steps:
            if not inner.subsumable_under(outer):
                raise PlanProblem(
                    f"{inner} is not subsumable under {outer} in group {self.number}",
                    fix="embed one of them in another group",
                )

    # ---- for the manager -------------------------------------------------------------------------------------------

    def add(self, frame: WindowShape) -> None:
        """Take in a frame that is not there yet."""
        if frame.range not in self._levels:
            insort(self._ranges, frame.range)
        level = self._levels.setdefault(frame.range, [])
        insort(level, frame, key=_slide)
        self._own[frame.range] = gcd(self._own.get(frame.range, 0), frame.granule)
        if self._stairs is not None:
            self._stairs = merge_stairs(self._stairs, single_stair(frame))
        self._cost = None

    def remove(self, frame: WindowShape) -> None:
        """Let a frame go; the next one of its range, if any, takes its place."""
        level = self._levels[frame.range]
        del level[bisect_left(level, frame.slide, key=_slide)]
        if level:
            self._own[frame.range] = _granule(level)
        else:
            del self._levels[frame.range], self._own[frame.range]
            del self._ranges[bisect_left(self._ranges, frame.range)]
        # Inside a stair, what is wider sets the granule already; only a frame at the end of one can have narrowed it.
        if self._stairs is not None and any(frame.range == reach for _, reach in self._stairs):
            self._stairs = self._cost = None

    def _granules(self) -> list[int]:
        own = map(self._own.__getitem__, reversed(self._ranges))
        return list(accumulate(own, gcd))[::-1]

    def _node_shape(self, frame: WindowShape) -> WindowShape:
        if frame not in self:
            raise PlanProblem(f"{frame} is not in group {self.number}", fix="ask the manager for its group")
        return self._levels[frame.range][0]

    def _shape_at(self, at: int) -> WindowShape | None:
        return self._levels[self._ranges[at]][0] if 0 <= at < len(self._ranges) else None


_slide = attrgetter("slide")


def _granule(level: list[WindowShape]) -> int:
    return gcd(level[0].range, *(frame.slide for frame in level))
