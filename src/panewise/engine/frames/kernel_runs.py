"""Cuts rows into runs, with one class for each frame kind: rows of one frame get the same slot."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Generic, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from panewise import kernels
from panewise.aggregate import Fold, Int64Array
from panewise.core.errors import SchemaProblem
from panewise.frame.frame import (
    BetweenFrames,
    BoundaryFrames,
    DeltaFrames,
    Direction,
    Frame,
    FrameKind,
    Missing,
    ReachFrames,
    Schedule,
    StartPolicy,
    TrendFrames,
    WhileFrames,
)
from panewise.kernels.frames import COUNT_ROWS, MAXIMUM, MEAN, MINIMUM, SUM

Flags = npt.NDArray[np.bool_]
Float64Array = npt.NDArray[np.float64]

_NOTHING = np.zeros(0, np.int64)
_UNMARKED = np.zeros(0, np.uint8)


@dataclass(frozen=True, eq=False)
class RowRuns:
    """Rows cut into runs: the slot of each row, the next free slot, and marks of rows that some kinds have."""

    slots: Int64Array
    free: int
    assumed: Int64Array = field(default_factory=lambda: _NOTHING)
    marks: npt.NDArray[np.uint8] = field(default_factory=lambda: _UNMARKED)


class Registers:
    """Arrays by name, each with the value that new groups have in it."""

    def __init__(self, fills: Mapping[str, int | float]) -> None:
        self._fills = dict(fills)
        self._arrays = {name: np.full(0, fill) for name, fill in fills.items()}

    def __getitem__(self, name: str) -> npt.NDArray[Any]:
        return self._arrays[name]

    def fit(self, groups: int) -> None:
        """Make room for `groups` groups."""
        for name, array in self._arrays.items():
            if len(array) < groups:
                more = np.full(max(groups, 2 * len(array)), self._fills[name], array.dtype)
                more[: len(array)] = array
                self._arrays[name] = more

    def recode(self, codes: Int64Array) -> None:
        """Replace the codes of groups; those with code -1 are dropped."""
        self.fit(len(codes))
        kept, before = np.flatnonzero(codes >= 0), self._arrays
        self._arrays = {name: np.full(0, fill) for name, fill in self._fills.items()}
        self.fit(int(codes.max(initial=-1)) + 1)
        for name, array in before.items():
            self._arrays[name][codes[kept]] = array[kept]

    def state(self) -> pa.Table:
        return pa.table({name: pa.array(array) for name, array in self._arrays.items()})

    def restore(self, state: pa.Table) -> None:
        self._arrays = {name: np.array(state.column(name).to_numpy()) for name in state.column_names}


Kind = TypeVar("Kind", bound=FrameKind)


@dataclass
class RunFinder(ABC, Generic[Kind]):
    """Cuts the rows of each group into runs, in the order of time."""

    frame: Frame
    kind: Kind
    #: The state of each group.
    fills: ClassVar[dict[str, int | float]] = {}

    @abstractmethod
    def find_runs(
        self, codes: Int64Array, times: Int64Array, values: Sequence[pa.ChunkedArray], at: Registers, free: int
    ) -> RowRuns:
        """The runs of some rows; `values` are those of the kind's expressions."""


class WhileRunFinder(RunFinder[WhileFrames]):
    def find_runs(
        self, codes: Int64Array, times: Int64Array, values: Sequence[pa.ChunkedArray], at: Registers, free: int
    ) -> RowRuns:
        flags = flags_of(values[0])
        if self.frame.schedule:
            return _find_reports(self.frame.schedule, codes, times, flags, at, free)
        return RowRuns(*kernels.frame_flags(codes, flags, at["current"], free))


def _find_reports(
    schedule: Schedule, codes: Int64Array, times: Int64Array, flags: Flags, at: Registers, free: int
) -> RowRuns:
    """Runs of reports that are expected at certain times."""
    policy = (Missing.FAILS, Missing.QUALIFIES, Missing.NEIGHBOURS).index(schedule.missing)
    every, seen = schedule.every, at["seen"]
    slots, assumed, free, off = kernels.frame_reports(codes, times, flags, seen, at["current"], free, every, policy)
    if off >= 0:
        earlier = np.flatnonzero(codes[:off] == codes[off])
        last = int(times[earlier[-1]]) if len(earlier) else int(seen[codes[off]])
        raise SchemaProblem(
            f"a report at {times[off]} contradicts EVERY {every}: the next was expected at {last + every}",
            fix="leave EVERY out, or give each group a schedule of its own",
        )
    return RowRuns(slots, free, assumed)


class BoundaryRunFinder(RunFinder[BoundaryFrames]):
    fills = {"label": 0.0}

    def find_runs(
        self, codes: Int64Array, times: Int64Array, values: Sequence[pa.ChunkedArray], at: Registers, free: int
    ) -> RowRuns:
        labels = boundary_labels(self.kind, doubles_of(values[0]))
        return RowRuns(*kernels.frame_labels(codes, labels, at["label"], at["current"], free))


class DeltaRunFinder(RunFinder[DeltaFrames]):
    fills = {"low": 0.0, "high": 0.0}

    def find_runs(
        self, codes: Int64Array, times: Int64Array, values: Sequence[pa.ChunkedArray], at: Registers, free: int
    ) -> RowRuns:
        low, high, current = at["low"], at["high"], at["current"]
        limit, strict = self.kind.limit, self.kind.open
        return RowRuns(*kernels.frame_delta(codes, doubles_of(values[0]), low, high, current, free, limit, strict))


class TrendRunFinder(RunFinder[TrendFrames]):
    fills = {"value": 0.0}

    def find_runs(
        self, codes: Int64Array, times: Int64Array, values: Sequence[pa.ChunkedArray], at: Registers, free: int
    ) -> RowRuns:
        direction = {Direction.RISING: 1, Direction.FALLING: -1, Direction.FLAT: 0}[self.kind.direction]
        numbers, tolerance = doubles_of(values[0]), self.kind.tolerance
        return RowRuns(*kernels.frame_trend(codes, numbers, at["value"], at["current"], free, direction, tolerance))


#: The operation of the kernel for each fold.
FOLD_OPERATIONS = {
    Fold.SUM: SUM,
    Fold.COUNT: COUNT_ROWS,
    Fold.LEAST: MINIMUM,
    Fold.GREATEST: MAXIMUM,
    Fold.MEAN: MEAN,
}


class ReachRunFinder(RunFinder[ReachFrames]):
    fills = {"total": 0.0, "error": 0.0, "count": 0}

    def find_runs(
        self, codes: Int64Array, times: Int64Array, values: Sequence[pa.ChunkedArray], at: Registers, free: int
    ) -> RowRuns:
        assert self.kind.aggregate.fold is not None, "frames of other aggregates keep their items"
        numbers = reach_values(self.kind, values[0]) if self.kind.argument else np.zeros(len(codes))
        slots, marks, free = kernels.frame_reach(
            codes,
            numbers,
            at["total"],
            at["error"],
            at["count"],
            at["current"],
            free,
            FOLD_OPERATIONS[self.kind.aggregate.fold],
            self.kind.limit,
            (">", ">=", "<", "<=").index(self.kind.operator),
        )
        return RowRuns(slots, free, marks=marks)


class BetweenRunFinder(RunFinder[BetweenFrames]):
    def find_runs(
        self, codes: Int64Array, times: Int64Array, values: Sequence[pa.ChunkedArray], at: Registers, free: int
    ) -> RowRuns:
        starts, ends = flags_of(values[0]), flags_of(values[1])
        drops = self.kind.policy is StartPolicy.DROP
        slots, marks, free = kernels.frame_between(codes, starts, ends, at["current"], free, drops)
        return RowRuns(slots, free, marks=marks)


#: The run finder of each kind whose frames kernels can find.
RUN_FINDERS: dict[type[FrameKind], type[RunFinder[Any]]] = {
    WhileFrames: WhileRunFinder,
    BoundaryFrames: BoundaryRunFinder,
    DeltaFrames: DeltaRunFinder,
    TrendFrames: TrendRunFinder,
    ReachFrames: ReachRunFinder,
    BetweenFrames: BetweenRunFinder,
}


def boundary_labels(kind: BoundaryFrames, numbers: Float64Array) -> Float64Array:
    """A label for each number, the same for numbers between the same two boundaries; NaN for NaN."""
    if kind.step is not None:
        with np.errstate(over="ignore"):
            stepped: Float64Array = np.floor(numbers / kind.step)
            return stepped
    labels = np.searchsorted(np.array(kind.marks), numbers, side="right").astype(np.float64)
    labels[np.isnan(numbers)] = np.nan
    return labels


def reach_values(kind: ReachFrames, values: pa.ChunkedArray) -> Float64Array:
    """The values of an aggregate's argument as numbers; COUNT needs only which of them are not NULL."""
    if kind.aggregate.fold is not Fold.COUNT:
        return doubles_of(values)
    return np.where(pc.is_valid(values).to_numpy(), 0.0, np.nan)


def flags_of(values: pa.ChunkedArray) -> Flags:
    """Whether each condition holds; NULL counts as false."""
    known = pc.fill_null(values, False) if values.null_count else values
    return np.asarray(known.to_numpy(), np.bool_)


def doubles_of(values: pa.ChunkedArray) -> Float64Array:
    """Values as doubles, with NaN for NULL."""
    return np.asarray(values.cast(pa.float64(), safe=False).to_numpy(), np.float64)
