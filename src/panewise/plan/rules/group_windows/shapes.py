"""Frames: the range and slide of a sliding window, all that grouping looks at.

Paper: "Subsuming windows" section 3.1.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import gcd
from operator import attrgetter

import numpy as np

from panewise.core.errors import WindowProblem
from panewise.core.time import MAX_TICK


@dataclass(frozen=True, order=True, slots=True)
class WindowShape:
    """The paper's window of range omega and slide beta, ordered by range, then by slide.

    Any two positive lengths will do: the range need not be a multiple of the slide, and may be shorter than it.
    Frames that share a group are taken to share their initiation time as well.

    >>> str(WindowShape(21, 3))
    '<21, 3>'
    """

    range: int
    slide: int

    def __post_init__(self) -> None:
        _require_length("range", self.range)
        _require_length("slide", self.slide)

    @property
    def granule(self) -> int:
        """The width of the widest panes that make up every state of this frame."""
        return gcd(self.range, self.slide)

    def subsumable_under(self, other: WindowShape) -> bool:
        """Definition 1: the other is at least as wide, and whenever it slides, so does this one."""
        return other.slide % self.slide == 0 and other.range >= self.range

    def __str__(self) -> str:
        return f"<{self.range}, {self.slide}>"


#: The order of frames as a sort key, which is faster than comparing them.
by_size = attrgetter("range", "slide")


def _require_length(name: str, value: int) -> None:
    if not isinstance(value, int | np.integer):
        raise WindowProblem(f"{name} {value!r} is not a whole number", fix="count ticks")
    if value <= 0:
        raise WindowProblem(f"{name} {value} is not positive", fix="use at least 1")
    if value >= MAX_TICK:
        raise WindowProblem(f"{name} {value} is longer than time itself", fix="use a shorter one")
