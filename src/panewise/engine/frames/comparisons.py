"""What decides where a frame ends that begins with an item, in the form that kernels take."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from panewise import kernels
from panewise.aggregate import (
    CountDistinct,
    First,
    Int64Array,
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
from panewise.kernels.frames import COUNT_ROWS, LABEL, MEAN, NEWEST, OLDEST, SUM, WIDTH

_NOTHING, _NO_LEVELS = np.zeros(0, np.int64), np.zeros((0, 0))
_OPERATORS = (">", ">=", "<", "<=")
#: Shares of values are computed in int64 if denominators are below this.
_SMALL = 2**31


@dataclass
class FrameComparison:
    """A comparison that ends frames: what is compared, and what kernels need of the items for that."""

    kind: BoundaryFrames | DeltaFrames | ReachFrames
    words: Comparison

    def material(self, groups: GroupPlaces, start: Int64Array, values: Sequence[pa.Array], size: int) -> Material:
        """What kernels need of so many items to follow some groups, whose next frames begin at `start` or later."""
        places, fresh = (groups.begins, groups.stops), (start, groups.stops)
        if self.words[0] == DISTINCT:
            numbers = np.zeros(0)
            return numbers, kernels.frame_growing(*fresh, numbers, _codes(values[0]), self.words), _NO_LEVELS
        numbers = self._numbers(values, size)
        if self.words[0] in (SUM, MEAN, COUNT_ROWS):
            return numbers, _NOTHING, kernels.frame_sum_levels(*places, numbers, self.words)
        if self.words[0] == RANKED:
            return numbers, *kernels.frame_rank_levels(*places, numbers, self.words)
        if self.words[0] == SPREAD:
            return numbers, _NOTHING, kernels.frame_spread_levels(*places, numbers)
        if self.words[0] == WIDTH:
            return numbers, kernels.frame_growing(*fresh, numbers, np.full(size, -1), self.words), _NO_LEVELS
        return numbers, kernels.frame_picked(*fresh, numbers, self.words), _NO_LEVELS

    def _numbers(self, values: Sequence[pa.Array], size: int) -> Float64Array:
        if isinstance(self.kind, ReachFrames):
            return reach_values(self.kind, pa.chunked_array(values[:1])) if self.kind.argument else np.zeros(size)
        numbers = doubles_of(pa.chunked_array(values[:1]))
        return boundary_labels(self.kind, numbers) if isinstance(self.kind, BoundaryFrames) else numbers


def _codes(values: pa.Array) -> Int64Array:
    """Numbers of different values, -1 for those that are unknown."""
    codes = ValueCodes(values.type).encode(values)
    missing = values.is_null(nan_is_null=pa.types.is_floating(values.type))
    return np.where(missing.to_numpy(zero_copy_only=False), -1, codes)


def comparison_of(kind: FrameKind) -> FrameComparison | None:
    """What ends the frames of a kind that divides the stream; None if no kernel computes it."""
    match kind:
        case BoundaryFrames():
            return FrameComparison(kind, (LABEL, 3, 0.0, 0, 0))
        case DeltaFrames(limit=limit, open=strict):
            return FrameComparison(kind, (WIDTH, 2 if strict else 3, float(limit), 0, 0))
        case ReachFrames():
            return _reach_comparison(kind)
    return None


def _reach_comparison(kind: ReachFrames) -> FrameComparison | None:
    def words(operation: int, one: int = 0, other: int = 0) -> Comparison:
        return operation, _OPERATORS.index(kind.operator), float(kind.limit), one, other

    aggregate = kind.aggregate
    if aggregate.fold is not None:
        return FrameComparison(kind, words(FOLD_OPERATIONS[aggregate.fold]))
    if type(aggregate) is CountDistinct:
        return FrameComparison(kind, words(DISTINCT))
    if not (pa.types.is_integer(aggregate.types[0]) or pa.types.is_floating(aggregate.types[0])):
        return None
    if type(aggregate) in (First, Last):
        return FrameComparison(kind, words(OLDEST if type(aggregate) is First else NEWEST))
    if isinstance(aggregate, VarSamp):
        return FrameComparison(kind, words(SPREAD, aggregate.freedom, int(aggregate.root)))
    if type(aggregate) is Median:
        return FrameComparison(kind, words(RANKED))
    if type(aggregate) is Quantile and aggregate.phi.denominator < _SMALL:
        return FrameComparison(kind, words(RANKED, aggregate.phi.numerator, aggregate.phi.denominator))
    return None
