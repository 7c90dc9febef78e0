"""Collective indexes over kept panes: which groups may pass a threshold, without a lookup of each group.

"Resource sharing" section 4, with the state of a group in a pane as one element at the pane's end.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import nextafter
from typing import assert_never

import numpy as np
import pyarrow as pa

from panewise.aggregate import Aggregate, Fold, Int64Array, StateArrays
from panewise.aggregate.ordering import to_longs
from panewise.core.errors import AggregateProblem
from panewise.filters import CISum, Filter, MaxIndex, MinIndex
from panewise.plan.rules.narrow_having import Threshold
from panewise.stores.pane import Pane

#: An index is worth its upkeep once so many lookups could have used it.
MIN_LOOKUPS = 8


class HavingIndex:
    """The index of one aggregate. Elements must come in the order of time: after a late pane it is built again."""

    def __init__(self, aggregate: Aggregate[object], column: StateArrays, number: int) -> None:
        self.aggregate, self.column, self.number = aggregate, column, number
        self.lookups = 0
        self._filter: Filter | None = None
        self._panes_taken = 0
        #: Whether values came that the index cannot hold, so that it cannot be used.
        self.unfit = new_filter(aggregate) is None

    def candidates(
        self, threshold: Threshold, lows: Int64Array, highs: Int64Array, panes: Sequence[Pane]
    ) -> Int64Array | None:
        """A superset of the groups that pass over each `(low, high]`, all of which end no earlier than the panes do.

        None before there were enough lookups, or if the index cannot answer.
        """
        self.lookups += 1
        if self.unfit or self.lookups < MIN_LOOKUPS or (lows >= highs).any() or not self._catch_up(panes):
            return None
        assert self._filter is not None
        limit = self._limit(threshold)
        ask = self._filter.above_many if threshold.above else self._filter.below_many
        return np.unique(ask(highs, highs - lows, [limit])[1])

    def restart(self) -> None:
        """Start again, because panes other than the newest have changed."""
        self._filter, self._panes_taken = None, 0

    def drop_oldest(self, count: int, upto: int) -> None:
        """Drop the oldest panes."""
        self._panes_taken -= count
        if self._panes_taken < 0:
            self.restart()
        elif self._filter is not None:
            self._filter.forget(upto)

    def _catch_up(self, panes: Sequence[Pane]) -> bool:
        if self._filter is None:
            self._filter, self._panes_taken = new_filter(self.aggregate), 0
            assert self._filter is not None
        for pane in panes[self._panes_taken :]:
            answers = self.column.lower(pane.states[self.number])
            codes = pane.codes[answers.is_valid().to_numpy(zero_copy_only=False)]
            values = to_longs(answers.drop_null())
            if isinstance(self._filter, CISum) and len(values) and values.min() < 0:
                self.unfit = True
                return False
            try:
                self._filter.update(codes, np.full(len(codes), pane.end), values)
            except AggregateProblem:  # sums beyond what the index can hold
                self.unfit = True
                return False
            self._panes_taken += 1
        return True

    def _limit(self, threshold: Threshold) -> int | float:
        """The limit as a value of the index, such that groups beyond it are strictly beyond it."""
        limit = threshold.limit
        if pa.types.is_floating(self.aggregate.result):
            beside = nextafter(float(limit), float("-inf" if threshold.above else "inf"))
            value = beside if threshold.equal else float(limit)
            return int(to_longs(pa.array([value], pa.float64()))[0])
        if not threshold.equal:
            return limit
        return limit - 1 if threshold.above else limit + 1


def new_filter(aggregate: Aggregate[object]) -> Filter | None:
    """An empty index for an aggregate; None if no index supports it."""
    kind = aggregate.result
    # Hosts round a limit to the width of a narrower float before they compare, so that more groups may pass.
    numeric = kind == pa.float64() or (pa.types.is_integer(kind) and kind != pa.uint64())
    match aggregate.fold:
        case Fold.COUNT | Fold.SUM:
            return CISum() if pa.types.is_integer(kind) else None
        case Fold.GREATEST:
            return MaxIndex() if numeric else None
        case Fold.LEAST:
            return MinIndex() if numeric else None
        case Fold.MEAN | None:
            return None
        case unknown:
            assert_never(unknown)
