"""FIRST and LAST value by time, ties by arrival."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from panewise import kernels
from panewise.aggregate.base import Laws, PickAggregate
from panewise.aggregate.moving import MovingRanges, PickedValues
from panewise.aggregate.ordering import fits_int64, from_longs, to_longs
from panewise.aggregate.states import Int64Array, Items, StateArrays, StateWords
from panewise.core.values import to_arrow, to_python

_LEAST = np.iinfo(np.int64).min


class First(PickAggregate):
    """The oldest value. Ordered: parts must be combined in the order of time. NULLs are skipped."""

    names = ("FIRST", "FIRST_VALUE")
    laws = Laws(commutative=False, idempotent=True)
    place = 0

    def result_type(self) -> pa.DataType:
        return self.types[0]

    def meaning(self, values: Sequence[Any]) -> Any:
        return values[self.place] if values else None

    def state_arrays(self) -> StateArrays:
        return FirstLastStates(self.result, first=self.place == 0)


class Last(First):
    """The newest value."""

    names = ("LAST", "LAST_VALUE")
    place = -1


class FirstLastStates(StateArrays):
    """The value of the item with the greatest (time, arrival); for FIRST, both are negated."""

    def __init__(self, kind: pa.DataType, first: bool) -> None:
        self.kind, self.sign, self.carried = kind, -1 if first else 1, fits_int64(kind)

    def identity(self, size: int) -> StateWords:
        values = np.zeros(size, np.int64) if self.carried else np.full(size, None, object)
        return np.full(size, _LEAST, np.int64), np.full(size, _LEAST, np.int64), values

    def _gather(self, slots: Int64Array, items: Items, into: StateWords) -> None:
        times, order, values = into
        rows = np.zeros(len(times), np.int64)
        numbers = np.arange(len(items), dtype=np.int64)
        arrived = (items.times, items.order) if self.sign > 0 else (-items.times, -items.order)
        kernels.take_latest(slots, *arrived, numbers, (times, order, rows))
        found = np.flatnonzero(times > _LEAST)
        chosen = items.arguments[0].take(pa.array(rows[found])) if len(items) else items.arguments[0]
        if self.carried:
            values[found] = to_longs(chosen)
        else:
            for place, value in zip(found, to_python(chosen), strict=True):
                values[place] = value

    def combine(self, left: StateWords, right: StateWords) -> StateWords:
        later: Any = (right[0] > left[0]) | ((right[0] == left[0]) & (right[1] > left[1]))
        return tuple(np.where(later, b, a) for a, b in zip(left, right, strict=True))

    def moving_answers(self, items: Items, ranges: MovingRanges) -> tuple[StateArrays, StateWords] | None:
        if not ranges.are_in_order(items):
            return None
        places, present = np.arange(len(items)), items.present()
        known = places if present is None else np.where(present, places, len(items) if self.sign < 0 else -1)
        # The first value from each row on, or the last one up to it.
        if self.sign < 0:
            nearest = np.append(np.minimum.accumulate(known[::-1])[::-1], len(items))[ranges.low]
            found = nearest < ranges.high
        else:
            nearest = np.append(np.maximum.accumulate(known), -1)[ranges.high - 1]
            found = nearest >= ranges.low
        return PickedValues(items.arguments[0]), (np.where(found, nearest, -1),)

    def lower(self, words: StateWords) -> pa.Array:
        times, _, values = words
        return from_longs(values, times == _LEAST, self.kind) if self.carried else to_arrow(list(values), self.kind)
