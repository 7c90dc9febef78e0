"""Frames as they are reported: where they are, and what they hold."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from panewise.aggregate import Longs, Words


@dataclass(frozen=True, eq=False)
class Bounds:
    """Groups, numbers and extents of frames."""

    groups: Longs
    numbers: Longs
    starts: Longs
    ends: Longs
    counts: Longs
    missing: Longs
    final: npt.NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.groups)


@dataclass(frozen=True, eq=False)
class Cells:
    """What frames hold, by cell: which frame it belongs to, the group inside the frame, and the states there."""

    frames: Longs
    groups: Longs
    states: tuple[Words, ...]


@dataclass(frozen=True, eq=False)
class Reported:
    """Some frames with what they hold."""

    bounds: Bounds
    cells: Cells


NO_BOUNDS = Bounds(*(np.zeros(0, np.int64),) * 6, np.zeros(0, bool))
