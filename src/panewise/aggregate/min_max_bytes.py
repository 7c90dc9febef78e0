"""MIN and MAX of texts, bytes and decimals: states are the bytes of a value, which sort as the values do."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from panewise import kernels
from panewise.aggregate.byte_order import from_bytes, sorted_places, to_bytes
from panewise.aggregate.moving import MovingRanges, PickedValues
from panewise.aggregate.ragged import RaggedArray, ragged_word
from panewise.aggregate.states import Int64Array, Items, StateArrays, StateWords

_LEAST = np.iinfo(np.int64).min


class MinMaxBytesStates(StateArrays):
    """The bytes of the greatest value, or of the least, and whether there is any."""

    needs_time = False

    def __init__(self, kind: pa.DataType, least: bool) -> None:
        self.kind, self.flip = kind, int(least)

    def identity(self, size: int) -> StateWords:
        return RaggedArray.empty(size, np.uint8), np.zeros(size, bool)

    def _gather(self, slots: Int64Array, items: Items, into: StateWords) -> None:
        runs, data = to_bytes(items.arguments[0])
        best = np.full(len(into[1]), -1, np.int64)
        kernels.runs_greatest(slots, runs, data, self.flip, best)
        found = np.flatnonzero(best >= 0)
        chosen = np.zeros((len(best), 2), np.int64)
        chosen[found] = runs[best[found]]
        into[0][:] = RaggedArray.of(chosen, (data,)).compact()
        into[1][found] = True

    def combine(self, left: StateWords, right: StateWords) -> StateWords:
        if not right[1].any():
            return left[0][:], left[1].copy()
        runs, data = kernels.runs_greater(*self._parts(left), *self._parts(right), self.flip)
        return RaggedArray.of(runs, (data,)), left[1] | right[1]

    def moving_answers(self, items: Items, ranges: MovingRanges) -> tuple[StateArrays, StateWords] | None:
        """The greatest of the places of values among sorted ones, which are numbers."""
        known, values = items.present_values()
        places, in_order = sorted_places(values)
        word, seen = np.full(len(items), _LEAST), np.zeros(len(items), bool)
        word[known], seen[known] = places ^ -self.flip, True
        best, there = kernels.range_greatest(word, seen, ranges.low, ranges.high, ranges.middle)
        return PickedValues(in_order), (np.where(there, best ^ -self.flip, -1),)

    def as_items(self, words: StateWords) -> Items | None:
        return _items_of(self.lower(words))

    def _parts(self, words: StateWords) -> tuple[Any, ...]:
        runs = ragged_word(words)
        return runs.runs, *runs.entries, words[1]

    def lower(self, words: StateWords) -> pa.Array:
        return from_bytes(ragged_word(words), words[1], self.kind)

    def write(self, words: StateWords) -> list[pa.Array]:
        return [self.lower(words)]

    def read(self, arrays: Sequence[pa.Array]) -> StateWords:
        (values,) = arrays
        return self.gather(np.arange(len(values)), _items_of(values), len(values))

    def spark_sql(self, value: str) -> list[str]:
        return [f"{'MIN' if self.flip else 'MAX'}({value})"]

    def from_spark(self, found: Sequence[pa.Array]) -> StateWords:
        return self.read(found)


def _items_of(values: pa.Array) -> Items:
    none = np.zeros(len(values), np.int64)
    return Items((values,), none, none)
