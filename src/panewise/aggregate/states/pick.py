"""MIN, MAX, FIRST and LAST in arrays."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from panewise import kernels
from panewise.aggregate.states.base import FusedOperation, Int64Array, Items, StateArrays, StateWords
from panewise.aggregate.states.integers import fits_int64, from_longs, to_longs
from panewise.core.values import to_arrow, to_python

_LEAST = np.iinfo(np.int64).min


class MinMaxStates(StateArrays):
    """The greatest value and whether there is any. The least is the greatest of the complements.

    Requires a type that int64 can carry.
    """

    fused = FusedOperation.GREATEST

    def __init__(self, kind: pa.DataType, least: bool) -> None:
        self.kind, self.flip = kind, np.int64(-1 if least else 0)

    def identity(self, size: int) -> StateWords:
        return np.full(size, _LEAST, np.int64), np.zeros(size, bool)

    def _gather(self, slots: Int64Array, items: Items, into: StateWords) -> None:
        values = items.arguments[0]
        if values.type == pa.float64():
            bits = values.to_numpy(zero_copy_only=False).view(np.int64)
            kernels.take_greatest_floats(slots, bits, self.flip, *into)
        else:
            longs = to_longs(values)
            kernels.take_greatest(slots, longs ^ self.flip if self.flip else longs, *into)

    def combine(self, left: StateWords, right: StateWords) -> StateWords:
        return np.maximum(left[0], right[0]), left[1] | right[1]

    def lower(self, words: StateWords) -> pa.Array:
        return from_longs(words[0] ^ self.flip, ~words[1], self.kind)


class FirstLastStates(StateArrays):
    """The value of the item with the greatest (time, arrival). The first is the last of the mirrored times."""

    def __init__(self, kind: pa.DataType, first: bool) -> None:
        self.kind, self.sign, self.carried = kind, -1 if first else 1, fits_int64(kind)

    def identity(self, size: int) -> StateWords:
        values = np.zeros(size, np.int64) if self.carried else np.full(size, None, object)
        return np.full(size, _LEAST, np.int64), np.full(size, _LEAST, np.int64), values

    def _gather(self, slots: Int64Array, items: Items, into: StateWords) -> None:
        times, order, values = into
        rows = np.zeros(len(times), np.int64)
        numbers = np.arange(len(items), dtype=np.int64)
        kernels.take_latest(slots, items.times * self.sign, items.order * self.sign, numbers, (times, order, rows))
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

    def lower(self, words: StateWords) -> pa.Array:
        times, _, values = words
        return from_longs(values, times == _LEAST, self.kind) if self.carried else to_arrow(list(values), self.kind)
