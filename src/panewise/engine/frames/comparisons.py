"""What decides where a frame ends that begins with an item, in the form that kernels take."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from panewise import kernels
from panewise.aggregate import (
    CountDistinct,
    First,
    Last,
    Median,
    Quantile,
    VarSamp,
)
from panewise.aggregate.dictionary import ValueCodes
from panewise.engine.frames.kept_items import GroupPlaces
from panewise.engine.frames.kernel_runs import FOLD_OPERATIONS, Float64Array, boundary_labels, doubles_of, reach_values
from panewise.frame.frame import BoundaryFrames, DeltaFrames, FrameKind, ReachFrames
from panewise.kernels.frame_comparisons import DISTINCT, RANKED, SPREAD, Comparison, Material
from panewise.kernels.frames import LABEL, NEWEST, OLDEST, WIDTH

_NOTHING = np.zeros(0, np.int64)
_NO_ROOM = np.zeros(0, np.int32)
_OPERATORS = (">", ">=", "<", "<=")
#: Shares of values are computed in int64 if denominators are below this.
_SMALL = 2**31


class FrameComparison(ABC):
    """A comparison that ends frames: what is compared, and what kernels need of the items for that."""

    words: Comparison

    @abstractmethod
    def material(self, groups: GroupPlaces, values: Sequence[pa.Array], size: int) -> Material:
        """What kernels need of so many items to follow some groups."""


@dataclass
class FoldComparison(FrameComparison):
    """A comparison of what a few numbers tell."""

    kind: BoundaryFrames | DeltaFrames | ReachFrames
    words: Comparison

    def material(self, groups: GroupPlaces, values: Sequence[pa.Array], size: int) -> Material:
        return self._numbers(values, size), _NOTHING, _NO_ROOM

    def _numbers(self, values: Sequence[pa.Array], size: int) -> Float64Array:
        if isinstance(self.kind, ReachFrames):
            return reach_values(self.kind, pa.chunked_array(values[:1])) if self.kind.argument else np.zeros(size)
        numbers = doubles_of(pa.chunked_array(values[:1]))
        return boundary_labels(self.kind, numbers) if isinstance(self.kind, BoundaryFrames) else numbers


@dataclass
class DistinctComparison(FrameComparison):
    """A comparison of the number of different values."""

    words: Comparison

    def material(self, groups: GroupPlaces, values: Sequence[pa.Array], size: int) -> Material:
        found = ValueCodes(values[0].type)
        of_values = found.encode(values[0])
        missing = values[0].is_null(nan_is_null=pa.types.is_floating(values[0].type))
        of_values = np.where(missing.to_numpy(zero_copy_only=False), -1, of_values)
        return np.zeros(0), of_values, np.zeros(int(of_values.max(initial=-1)) + 1, np.int32)


@dataclass
class RankComparison(FrameComparison):
    """A comparison of the value at some rank."""

    words: Comparison

    def material(self, groups: GroupPlaces, values: Sequence[pa.Array], size: int) -> Material:
        numbers = doubles_of(pa.chunked_array(values[:1]))
        return *kernels.frame_ranks(groups.begins, groups.stops, numbers), np.zeros(size, np.int32)


def comparison_of(kind: FrameKind) -> FrameComparison | None:
    """What ends the frames of a kind that divides the stream; None if no kernel computes it."""
    match kind:
        case BoundaryFrames():
            return FoldComparison(kind, (LABEL, 3, 0.0, 0, 0))
        case DeltaFrames(limit=limit, open=strict):
            return FoldComparison(kind, (WIDTH, 2 if strict else 3, float(limit), 0, 0))
        case ReachFrames():
            return _reach_comparison(kind)
    return None


def _reach_comparison(kind: ReachFrames) -> FrameComparison | None:
    def words(operation: int, one: int = 0, other: int = 0) -> Comparison:
        return operation, _OPERATORS.index(kind.operator), float(kind.limit), one, other

    aggregate = kind.aggregate
    if aggregate.fold is not None:
        return FoldComparison(kind, words(FOLD_OPERATIONS[aggregate.fold]))
    if type(aggregate) is CountDistinct:
        return DistinctComparison(words(DISTINCT))
    if not (pa.types.is_integer(aggregate.types[0]) or pa.types.is_floating(aggregate.types[0])):
        return None
    if type(aggregate) in (First, Last):
        return FoldComparison(kind, words(OLDEST if type(aggregate) is First else NEWEST))
    if isinstance(aggregate, VarSamp):
        return FoldComparison(kind, words(SPREAD, aggregate.freedom, int(aggregate.root)))
    if type(aggregate) is Median:
        return RankComparison(words(RANKED))
    if type(aggregate) is Quantile and aggregate.phi.denominator < _SMALL:
        return RankComparison(words(RANKED, aggregate.phi.numerator, aggregate.phi.denominator))
    return None
