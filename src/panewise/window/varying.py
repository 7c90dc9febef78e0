"""Sliding windows whose extent is a function of the instant: long at night, short at peak hours.

Paper: "Consistent results" section 3.2, time-varying extent.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from panewise.core.errors import WindowProblem
from panewise.core.time import Boundary, Domain, Ticks, duration_text, floor_to_grid, grid_between
from panewise.window.base import FOREVER, Contents, LogicalWindow, Pattern, WindowRetention, require_positive

#: Extents in ticks at the given instants; must be a pure function, called with ascending instants.
Extent = Callable[[Ticks], Ticks]


@dataclass(frozen=True)
class Varying(LogicalWindow):
    """`[RANGE extent(t) SLIDE slide]`: at instant t the last `extent(t)` ticks.

    Zero ticks is an empty window. An item may leave and come back when the extent grows faster than time, so the
    window keeps no first-in-first-out order, and no single time of expiry is announced.
    """

    extent: Extent
    slide: int

    items_return = True
    retention = WindowRetention.LOOKS_BACK

    def __post_init__(self) -> None:
        require_positive("slide", self.slide)

    @property
    def pattern(self) -> Pattern:
        return Pattern.WEAK

    @property
    def periodic(self) -> bool:
        return True

    @property
    def grid(self) -> tuple[int, int] | None:
        return 0, self.slide

    def scope(self, instants: Ticks, boundary: Boundary) -> tuple[Ticks, Ticks]:
        grid = floor_to_grid(instants, 0, self.slide)
        high = grid - boundary.shift
        return high - self._extents(grid) + 1, high

    def instants(self, contents: Contents, boundary: Boundary) -> Ticks:
        """Instants until the longest extent met so far has passed over the last item.

        Whether an extent grows later cannot be known; one that has grown after each of some extensions is refused.
        """
        if not len(contents):
            return np.empty(0, np.int64)
        first, last = contents.times[:1], contents.times[-1:]
        reach = 0
        for _ in range(16):
            grid = grid_between(first, last + boundary.shift + max(reach, self.slide - 1), 0, self.slide)
            longest = int(self._extents(grid).max(initial=0))
            if longest <= reach:
                return grid
            reach = longest
        raise WindowProblem("the varying RANGE keeps growing after the last item", fix="bound the extent")

    def lifetimes(self, times: Ticks, boundary: Boundary) -> tuple[Ticks, Ticks]:
        # It is not known whether the extent will include them again.
        return self.instants_from(times + boundary.shift), np.full_like(times, FOREVER)

    def next_instants(self, instants: Ticks) -> Ticks:
        return instants + self.slide

    def spans(self, instants: Ticks) -> tuple[Ticks | None, Ticks]:
        # Between its instants the state is that of the earlier one.
        ends = floor_to_grid(instants, 0, self.slide)
        return ends - self._extents(ends), ends

    def text(self, domain: Domain) -> str:
        return f"RANGE {self.extent} SLIDE {duration_text(self.slide, domain)}"

    def _extents(self, grid: Ticks) -> Ticks:
        extents = np.asarray(self.extent(grid), np.int64)
        if (extents < 0).any():
            raise WindowProblem(f"the varying RANGE gave {extents.min()} ticks", fix="return zero or more")
        return extents
