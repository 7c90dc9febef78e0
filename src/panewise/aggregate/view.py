"""Where items lie in a window, seen from one of its instants: its tiers and their granules.

Paper: "Multi-granular windows" sections III.B and IV.C. Tier i holds what the rear bound of level i lets in and no
finer level does, so that the tiers of a window share nothing and leave nothing out.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from panewise.core.time import Domain


@dataclass(frozen=True)
class LevelView:
    """A window of level k at an instant: the ranges and slides of its levels 0 to k, and the newest position it holds.

    Positions are those of the engine: an item's time, one tick later under the boundary `[)`. Levels move on the grids
    `origin + n * slide`; between two of its grid points a level stands where it stood at the first.
    """

    front: int
    ranges: tuple[int, ...]
    slides: tuple[int, ...]
    origin: int = 0
    domain: Domain = Domain.INTEGER
    #: How many ticks positions are later than times.
    shift: int = 0

    @cached_property
    def edges(self) -> tuple[int, ...]:
        """The rear bound of each level, itself excluded."""
        return tuple(
            self.front - (self.front - self.origin) % slide - length
            for length, slide in zip(self.ranges, self.slides, strict=True)
        )

    def tier(self, position: int) -> int:
        """The finest level that an item of the window belongs to."""
        return next(number for number, edge in enumerate(self.edges) if position > edge)

    def age(self, position: int, tier: int) -> int:
        """Ticks from the end of the granule that a position lies in to the newest position."""
        slide = self.slides[tier]
        return max(self.front - (position - (position - self.origin) % -slide), 0)


#: A window of one granule, which everything lies in: what an aggregate means where nothing is said about places.
SINGLE_GRANULE = LevelView(0, (1,), (1,))
