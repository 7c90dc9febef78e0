"""TOP_K: the most frequent values, from a sketch of bounded size, with a stated error."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any, ClassVar, TypeAlias

import numpy as np
import pyarrow as pa

from panewise import kernels
from panewise.aggregate.base import Aggregate, Laws, orderable_type, whole_literal
from panewise.aggregate.byte_order import sorted_places
from panewise.aggregate.moving import MovingRanges, PickedValues
from panewise.aggregate.multisets import MultisetStates
from panewise.aggregate.ordering import from_longs, order_key, to_longs
from panewise.aggregate.ragged import RaggedArray, ragged_word
from panewise.aggregate.states import Int64Array, Items, StateArrays, StateWords

#: How often each value occurs at least, and how often at most a value occurs more than that.
HeavyCounts: TypeAlias = "tuple[Counter[Any], int]"


class TopK(Aggregate[HeavyCounts]):
    """The k most frequent values with how often each occurs, most frequent first, equals by value. O(1) space.

    The summary of Misra and Gries with room for 0.75 * 2**lg_size values; up to so many different ones, counts are
    exact. Otherwise each is at most e too large, where e is 1.34 / 2**lg_size of all items (by default 0.13 %), and no
    value that is missing occurs more often than a listed one by more than e. Paper: "Mergeable summaries" section 3.
    """

    names: ClassVar[tuple[str, ...]] = ("TOP_K",)
    parameters = ("k",)
    options = ("lg_size",)
    laws = Laws(approximate=True)

    def __init__(self, *types: pa.DataType, k: str | int, lg_size: str | int = 10) -> None:
        self.lg_size = whole_literal("TOP_K", "lg_size", lg_size, 3, 20)
        self.room = 3 * 2**self.lg_size // 4
        self.k = whole_literal("TOP_K", "k", k, 1, self.room)
        super().__init__(*types)

    def result_type(self) -> pa.DataType:
        return pa.list_(pa.struct([("item", orderable_type(self)), ("count", pa.int64())]))

    def meaning(self, values: Sequence[Any]) -> tuple[Any, ...]:
        return self._rank_entries(Counter(values))

    def identity(self) -> HeavyCounts:
        return Counter(), 0

    def lift(self, value: Any) -> HeavyCounts:
        return Counter([value]), 0

    def gather(self, values: Sequence[Any]) -> HeavyCounts:
        return self._trim(Counter(values), 0)

    def combine(self, left: HeavyCounts, right: HeavyCounts) -> HeavyCounts:
        return self._trim(left[0] + right[0], left[1] + right[1])

    def lower(self, state: HeavyCounts) -> tuple[Any, ...]:
        counts, error = state
        return self._rank_entries(Counter({value: count + error for value, count in counts.items()}))

    def state_arrays(self) -> StateArrays:
        return TopKStates(self.types[0], self.result, self.k, self.room)

    def _trim(self, counts: Counter[Any], error: int) -> HeavyCounts:
        """Where there are too many values, all lose the count of the heaviest of those too many."""
        if len(counts) <= self.room:
            return counts, error
        light = sorted(counts.values(), reverse=True)[self.room]
        return Counter({value: count - light for value, count in counts.items() if count > light}), error + light

    def _rank_entries(self, counts: Counter[Any]) -> tuple[Any, ...]:
        ranked = sorted(counts.items(), key=lambda entry: (-entry[1], order_key(entry[0])))
        return tuple((("item", value), ("count", count)) for value, count in ranked[: self.k])

    def text(self, arguments: Sequence[str]) -> str:
        size = [str(self.lg_size)] if self.lg_size != 10 else []
        return f"TOP_K({', '.join([*arguments, str(self.k), *size])})"

    def _key(self) -> tuple[Any, ...]:
        return (*super()._key(), self.k, self.lg_size)


class TopKStates(MultisetStates):
    """The heavy values of each group, and how often at most a value occurs more than is counted.

    A settled state has the values that are listed.
    """

    exact = False

    def __init__(self, kind: pa.DataType, result: pa.DataType, k: int, room: int) -> None:
        super().__init__(kind)
        self.result, self.k, self.heavy = result, k, room

    def identity(self, size: int) -> StateWords:
        return *super().identity(size), np.zeros(size, np.int64)

    def _gather(self, slots: Int64Array, items: Items, into: StateWords) -> None:
        super()._gather(slots, items, into)
        into[0][:], into[1][:] = self._trim(ragged_word(into), into[1])

    def combine(self, left: StateWords, right: StateWords) -> StateWords:
        (both,) = super().combine(left, right)
        return self._trim(both, left[1] + right[1])

    def _trim(self, held: Any, errors: Int64Array) -> StateWords:
        if held.sizes.max(initial=0) <= self.heavy:
            return held, errors
        runs, *entries = kernels.sketch_trim(held.runs, *held.entries, self.heavy, errors)
        return RaggedArray.of(runs, tuple(entries), held.block.dictionary), errors

    def moving_answers(self, items: Items, ranges: MovingRanges) -> tuple[StateArrays, StateWords] | None:
        """Rows of windows are held, so that their values are counted exactly."""
        return self._list_heaviest(items, ranges, self.identity(len(ranges.starts) - 1))

    def running_answers(
        self, items: Items, ranges: MovingRanges, before: StateWords
    ) -> tuple[StateArrays, StateWords] | None:
        moved, order = ranges.after(ragged_word(before).sizes)
        return self._list_heaviest(items, moved, before, order)

    def _list_heaviest(
        self, items: Items, ranges: MovingRanges, before: StateWords, order: Int64Array | None = None
    ) -> tuple[StateArrays, StateWords]:
        """The heaviest values of ranges, together with what groups had; `order` is that of its entries and of items."""
        held, (known, values) = ragged_word(before), items.present_values()
        codes, counts = held.own_entries()
        weights, keys = (np.zeros(len(codes) + len(items), np.int64) for _ in range(2))
        weights[: len(codes)], weights[len(codes) + known] = counts, 1
        if len(codes):
            values = pa.concat_arrays([self.values_of(codes, held.block.dictionary), values])
        found, in_order = (to_longs(values), None) if self.dictionary is None else sorted_places(values)
        keys[weights > 0] = found
        if order is not None:
            keys, weights = keys[order], weights[order]
        runs, different, _ = kernels.runs_gather(ranges.row_groups[weights > 0], keys[weights > 0], len(held))
        listed, places, often = kernels.range_heaviest(
            (runs, different), (keys, weights), ranges.low, ranges.high, ranges.groups, self.k
        )
        return ListedStates(self, in_order), (
            RaggedArray.of(listed, (different[places], often)),
            before[1][ranges.groups],
        )

    def settle(self, words: StateWords) -> StateWords:
        return self.settle_heaviest(ragged_word(words), self.k), words[1]

    def lower(self, words: StateWords) -> pa.Array:
        listed = self.heaviest(ragged_word(words), self.k)
        return self.to_entries(listed, _with_errors(listed, words[1]), self.result)

    def write(self, words: StateWords) -> list[pa.Array]:
        return [*super().write(words[:1]), pa.array(words[1])]

    def read(self, arrays: Sequence[pa.Array]) -> StateWords:
        return *super().read(arrays[:2]), np.array(arrays[2].to_numpy())


class ListedStates(PickedValues):
    """Runs of listed values, as numbers or as places in an array, and of how often each occurs; and errors."""

    def __init__(self, states: TopKStates, values: pa.Array | None) -> None:
        self.states, self.in_order = states, values

    def lower(self, words: StateWords) -> pa.Array:
        listed = ragged_word(words)
        keys, _ = listed.own_entries()
        kind, result = self.states.kind, self.states.result
        items = from_longs(keys, None, kind) if self.in_order is None else self.in_order.take(pa.array(keys))
        counts = pa.array(_with_errors(listed, words[1]))
        entries = pa.StructArray.from_arrays([items, counts], fields=list(result.value_type))
        return listed.to_lists(entries, result)


def _with_errors(listed: RaggedArray, errors: Int64Array) -> Int64Array:
    """How often values occur at most."""
    counts: Int64Array = listed.own_entries()[1]
    return counts + np.repeat(errors, listed.sizes) if errors.any() else counts
