"""Frames as they are reported: where they are, and what they hold."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from panewise import kernels
from panewise.aggregate import Int64Array, StateArrays, StateWords, concat_states, states_at


@dataclass(frozen=True, eq=False)
class FrameBounds:
    """Groups, numbers and extents of frames."""

    groups: Int64Array
    numbers: Int64Array
    starts: Int64Array
    ends: Int64Array
    counts: Int64Array
    missing: Int64Array
    final: npt.NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.groups)

    def at(self, places: Int64Array) -> FrameBounds:
        return FrameBounds(*(getattr(self, each.name)[places] for each in fields(self)))

    def state(self) -> pa.Table:
        return pa.table({each.name: pa.array(getattr(self, each.name)) for each in fields(self)})

    @classmethod
    def from_state(cls, state: pa.Table) -> FrameBounds:
        return cls(*(np.array(column.to_numpy()) for column in state.columns))


@dataclass(frozen=True, eq=False)
class FrameCells:
    """What frames hold, by cell: the frame of the cell, its inner group, and its states.

    `columns` says how states are lowered where that is not as usual.
    """

    frames: Int64Array
    groups: Int64Array
    states: tuple[StateWords, ...]
    columns: tuple[StateArrays, ...] = ()

    def in_order(self, order: Int64Array) -> FrameCells:
        """The same cells, where frames are put into another order."""
        ranks = np.empty(len(order), np.int64)
        ranks[order] = np.arange(len(order))
        frames = ranks[self.frames]
        places = kernels.bucket_order(frames, len(order))
        states = tuple(states_at(words, places) for words in self.states)
        return FrameCells(frames[places], self.groups[places], states, self.columns)

    def shift(self, by: int) -> FrameCells:
        """The same cells of frames that stand so many places later."""
        return FrameCells(self.frames + by, self.groups, self.states, self.columns)


def concat_cells(parts: Sequence[FrameCells]) -> FrameCells:
    """Several cells as one table."""
    return FrameCells(
        np.concatenate([each.frames for each in parts]),
        np.concatenate([each.groups for each in parts]),
        tuple(concat_states(words) for words in zip(*(each.states for each in parts), strict=True)),
    )


@dataclass(frozen=True, eq=False)
class ListedRows:
    """The rows that fill frames, and which frame each is in."""

    frames: Int64Array
    table: pa.Table


@dataclass(frozen=True, eq=False)
class FrameReport:
    """The bounds of some frames, and what they hold of each filling; empty before they are filled."""

    bounds: FrameBounds
    held: tuple[FrameCells | ListedRows, ...] = ()
