"""Frames as they are reported: where they are, and what they hold."""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np
import numpy.typing as npt
import pyarrow as pa

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

    def at(self, places: Longs) -> Bounds:
        return Bounds(*(getattr(self, each.name)[places] for each in fields(self)))

    def state(self) -> pa.Table:
        return pa.table({each.name: pa.array(getattr(self, each.name)) for each in fields(self)})

    @classmethod
    def restored(cls, state: pa.Table) -> Bounds:
        return cls(*(np.array(column.to_numpy()) for column in state.columns))


@dataclass(frozen=True, eq=False)
class Cells:
    """What frames hold, by cell: which frame it belongs to, the group inside the frame, and the states there."""

    frames: Longs
    groups: Longs
    states: tuple[Words, ...]


@dataclass(frozen=True, eq=False)
class Listed:
    """The rows that fill frames, and which frame each is in."""

    frames: Longs
    table: pa.Table


@dataclass(frozen=True, eq=False)
class Reported:
    """Some frames with what they hold, of each filling; nothing where nobody asked yet."""

    bounds: Bounds
    held: tuple[Cells | Listed, ...] = ()


NO_BOUNDS = Bounds(*(np.zeros(0, np.int64),) * 6, np.zeros(0, bool))
