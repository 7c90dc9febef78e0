"""FIRST and LAST value by time, ties by arrival."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from panewise import kernels
from panewise.aggregate.base import Laws, PickAggregate
from panewise.aggregate.byte_order import fits_bytes, from_bytes, to_bytes
from panewise.aggregate.moving import MovingRanges, PickedValues
from panewise.aggregate.ordering import fits_int64, from_longs, to_longs
from panewise.aggregate.ragged import RaggedArray, ragged_word
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
        first = self.place == 0
        if fits_int64(self.result):
            return FirstLastStates(self.result, first)
        kind = FirstLastByteStates if fits_bytes(self.result) else FirstLastObjectStates
        return kind(self.result, first)


class Last(First):
    """The newest value."""

    names = ("LAST", "LAST_VALUE")
    place = -1


class FirstLastStates(StateArrays):
    """The value of the item with the greatest (time, arrival); for FIRST, both are negated."""

    def __init__(self, kind: pa.DataType, first: bool) -> None:
        self.kind, self.sign = kind, -1 if first else 1

    def identity(self, size: int) -> StateWords:
        return np.full(size, _LEAST, np.int64), np.full(size, _LEAST, np.int64), self._no_values(size)

    def _no_values(self, size: int) -> Any:
        return np.zeros(size, np.int64)

    def _gather(self, slots: Int64Array, items: Items, into: StateWords) -> None:
        times, order, values = into
        rows = np.zeros(len(times), np.int64)
        numbers = np.arange(len(items), dtype=np.int64)
        arrived = (items.times, items.order) if self.sign > 0 else (-items.times, -items.order)
        kernels.take_latest(slots, *arrived, numbers, (times, order, rows))
        found = np.flatnonzero(times > _LEAST)
        values[found] = self._hold(items.arguments[0].take(pa.array(rows[found])) if len(items) else items.arguments[0])

    def _hold(self, values: pa.Array) -> Any:
        """Values as a word holds them."""
        return to_longs(values)

    def combine(self, left: StateWords, right: StateWords) -> StateWords:
        later = self._is_later(right, left)
        return tuple(np.where(later, b, a) for a, b in zip(left, right, strict=True))

    def _is_later(self, words: StateWords, others: StateWords) -> Any:
        return (words[0] > others[0]) | ((words[0] == others[0]) & (words[1] > others[1]))

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

    def as_items(self, words: StateWords) -> Items | None:
        return Items((self.lower(words),), self.sign * words[0], self.sign * words[1])

    def lower(self, words: StateWords) -> pa.Array:
        return from_longs(words[2], words[0] == _LEAST, self.kind)


class FirstLastByteStates(FirstLastStates):
    """The same for values that int64 does not hold: their bytes are a run."""

    def _no_values(self, size: int) -> Any:
        return RaggedArray.empty(size, np.uint8)

    def _hold(self, values: pa.Array) -> Any:
        runs, data = to_bytes(values)
        return RaggedArray.of(runs, (data,)).compact()

    def combine(self, left: StateWords, right: StateWords) -> StateWords:
        later, values = self._is_later(right, left), left[2][:]
        values[later] = right[2][later]
        return np.where(later, right[0], left[0]), np.where(later, right[1], left[1]), values

    def lower(self, words: StateWords) -> pa.Array:
        return from_bytes(ragged_word(words[2:]), words[0] > _LEAST, self.kind)

    def write(self, words: StateWords) -> list[pa.Array]:
        return [pa.array(words[0]), pa.array(words[1]), self.lower(words)]

    def read(self, arrays: Sequence[pa.Array]) -> StateWords:
        times, order = (np.array(each.to_numpy()) for each in arrays[:2])
        values = self._no_values(len(times))
        values[np.flatnonzero(times > _LEAST)] = self._hold(arrays[2].drop_null())
        return times, order, values


class FirstLastObjectStates(FirstLastStates):
    """The same for values of any other type, as Python objects."""

    def _no_values(self, size: int) -> Any:
        return np.full(size, None, object)

    def _hold(self, values: pa.Array) -> Any:
        held = np.empty(len(values), object)
        for place, value in enumerate(to_python(values)):
            held[place] = value
        return held

    def lower(self, words: StateWords) -> pa.Array:
        return to_arrow(list(words[2]), self.kind)
