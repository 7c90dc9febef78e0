"""Any aggregate in arrays: its own states as Python objects. What an aggregate uses that brings nothing faster."""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import pyarrow as pa

from panewise.aggregate.states.base import Int64Array, Items, StateArrays, StateWords, runs
from panewise.core.values import normalize_float, to_arrow, to_python

if TYPE_CHECKING:
    from panewise.aggregate.base import Aggregate, Invertible


class ObjectStates(StateArrays):
    """One word of states; None is the identity, so that empty groups cost nothing."""

    def __init__(self, aggregate: Aggregate[Any]) -> None:
        self.aggregate = aggregate
        self.exact = aggregate.laws.invertible and aggregate.exact

    def identity(self, size: int) -> StateWords:
        return (np.full(size, None, object),)

    def _gather(self, slots: Int64Array, items: Items, into: StateWords) -> None:
        # In time order, so that ordered aggregates see their items as they happened.
        ranks = np.lexsort((items.order, items.times, slots))
        ordered = slots[ranks]
        columns = [to_python(a.take(pa.array(ranks))) for a in items.arguments]
        values = columns[0] if len(columns) == 1 else list(zip(*columns, strict=True))
        for start, stop in zip(*runs(ordered), strict=True):
            into[0][ordered[start]] = self.aggregate.gather(values[start:stop])

    def combine(self, left: StateWords, right: StateWords) -> StateWords:
        return (_pairwise(self._combine_two, left[0], right[0]),)

    def invert(self, whole: StateWords, part: StateWords) -> StateWords:
        return (_pairwise(self._subtract, whole[0], part[0]),)

    def lower(self, words: StateWords) -> pa.Array:
        empty = self.aggregate.identity()
        states = (empty if state is None else state for state in words[0])
        return to_arrow([normalize_float(self.aggregate.lower(state)) for state in states], self.aggregate.result)

    def _combine_two(self, left: Any, right: Any) -> Any:
        if left is None or right is None:
            return left if right is None else right
        return self.aggregate.combine(left, right)

    def _subtract(self, whole: Any, part: Any) -> Any:
        # Only `exact` columns are asked, and those belong to an `Invertible` aggregate.
        return whole if part is None else cast("Invertible[Any]", self.aggregate).invert(whole, part)


def _pairwise(function: Any, left: Any, right: Any) -> Any:
    out = np.empty(len(left), object)
    for i in range(len(left)):
        out[i] = function(left[i], right[i])
    return out


def fold_values(aggregate: Aggregate[Any], values: Any) -> Any:
    """The state of many values: each lifted, all combined."""
    return reduce(aggregate.combine, map(aggregate.lift, values), aggregate.identity())
