"""Multisets in arrays: for each group a run of different keys, ascending, and how often each value occurs.

Keys are the values themselves where int64 holds them in their order, and else codes of a dictionary.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from panewise import kernels
from panewise.aggregate.byte_order import sorted_places
from panewise.aggregate.count import CountStates
from panewise.aggregate.dictionary import ValueCodes, ValueDictionary
from panewise.aggregate.moving import MovingRanges, PickedValues
from panewise.aggregate.ordering import fits_int64, from_longs, to_longs
from panewise.aggregate.ragged import RaggedArray, consecutive_runs, in_one_dictionary, ragged_word
from panewise.aggregate.states import Int64Array, Items, RankedValues, StateArrays, StateWords

#: Up to so many of the heaviest entries are found by insertion, more by sorting.
MOST_INSERTED = 512


class MultisetStates(StateArrays):
    """One word of multisets, from which parts can be taken out again."""

    exact = True
    needs_time = False

    def __init__(self, kind: pa.DataType) -> None:
        self.kind = kind
        self.dictionary = None if fits_int64(kind) else ValueDictionary(kind)

    def identity(self, size: int) -> StateWords:
        return (RaggedArray.empty(size, np.int64, np.int64),)

    def _gather(self, slots: Int64Array, items: Items, into: StateWords) -> None:
        runs, *entries = kernels.runs_gather(slots, self._keys(items.arguments[0]), len(into[0]))
        into[0][:] = RaggedArray.of(runs, tuple(entries), self.dictionary)

    def combine(self, left: StateWords, right: StateWords) -> StateWords:
        for one, other in ((left, right), (right, left)):
            if not ragged_word(other).sizes.any():
                return (one[0][:],)
        return self._merge(left, right, 1)

    def invert(self, whole: StateWords, part: StateWords) -> StateWords:
        return self._merge(whole, part, -1)

    def _merge(self, left: StateWords, right: StateWords, sign: int) -> StateWords:
        one, other = in_one_dictionary([ragged_word(left), ragged_word(right)])
        runs, *entries = kernels.runs_merge(one.runs, *one.entries, other.runs, *other.entries, sign)
        return (RaggedArray.of(runs, tuple(entries), one.block.dictionary or other.block.dictionary),)

    def _keys(self, values: pa.Array) -> Int64Array:
        return to_longs(values) if self.dictionary is None else self.dictionary.encode(values)

    def values_of(
        self, keys: Int64Array, dictionary: ValueDictionary | None, missing: npt.NDArray[np.bool_] | None = None
    ) -> pa.Array:
        """The values of keys; NULL where they are missing."""
        if dictionary is None:
            return from_longs(keys, missing, self.kind) if self.dictionary is None else pa.nulls(len(keys), self.kind)
        return dictionary.take(keys if missing is None else np.where(missing, 0, keys))

    def heaviest(self, held: RaggedArray, most: int | None) -> RaggedArray:
        """The entries with the greatest counts of each run, at most so many: heaviest first, equals by value."""
        dictionary, sizes = held.block.dictionary, held.sizes
        longest = int(sizes.max(initial=0))
        limit = longest if most is None else min(most, longest)
        runs, (keys, counts) = held.runs, held.entries
        if dictionary is not None or limit > MOST_INSERTED:
            runs, (keys, counts) = consecutive_runs(sizes), held.own_entries()
        order = keys if dictionary is None else dictionary.places(keys)[0]
        if limit <= MOST_INSERTED:
            runs, keys, counts = kernels.sketch_heaviest(runs, order, keys, counts, limit)
            return RaggedArray.of(runs, (keys, counts), dictionary)
        owners = np.repeat(np.arange(len(sizes)), sizes)
        places = np.lexsort((order, -counts, owners))
        places = places[np.arange(len(places)) - (np.cumsum(sizes) - sizes)[owners] < limit]
        runs = consecutive_runs(np.minimum(sizes, limit))
        return RaggedArray.of(runs, (keys[places], counts[places]), dictionary)

    def settle_heaviest(self, held: RaggedArray, most: int | None) -> RaggedArray:
        """Runs with the same heaviest entries, shorter ones where that can be: those of many states cost less."""
        long = most is not None and int(held.sizes.sum()) > most * len(held)
        return self.heaviest(held, most) if long else held.compact()

    def to_entries(self, held: RaggedArray, counts: Int64Array, result: pa.DataType) -> pa.Array:
        """Runs as lists of values and counts."""
        keys, _ = held.own_entries()
        items = self.values_of(keys, held.block.dictionary)
        entries = pa.StructArray.from_arrays([items, pa.array(counts)], fields=list(result.value_type))
        return held.to_lists(entries, result)

    # ---- states for other processes: they have values, since codes mean nothing there --------------------------------

    def write(self, words: StateWords) -> list[pa.Array]:
        runs = ragged_word(words)
        keys, counts = runs.own_entries()
        values = self.values_of(keys, runs.block.dictionary)
        offsets = pa.array(np.concatenate([[0], np.cumsum(runs.sizes)]).astype(np.int64))
        return [pa.LargeListArray.from_arrays(offsets, each) for each in (values, pa.array(counts))]

    def read(self, arrays: Sequence[pa.Array]) -> StateWords:
        values, counts = arrays
        runs = consecutive_runs(values.value_lengths().to_numpy(zero_copy_only=False).astype(np.int64))
        keys, counts = np.array(self._keys(values.flatten())), np.array(counts.flatten().to_numpy())
        kernels.runs_sort(runs, keys, counts)
        return (RaggedArray.of(runs, (keys, counts), self.dictionary),)

    # ---- forgetting --------------------------------------------------------------------------------------------

    @property
    def oversized(self) -> bool:
        return self.dictionary is not None and self.dictionary.oversized

    def forget(self, kept: Iterable[StateWords]) -> None:
        assert self.dictionary is not None
        mine = [runs for runs in map(ragged_word, kept) if runs.block.dictionary is self.dictionary]
        self.dictionary = self.dictionary.forget(runs.own_entries()[0] for runs in mine)


class DistinctStates(MultisetStates):
    """For COUNT(DISTINCT). A settled state is the number of its values."""

    def settle(self, words: StateWords) -> StateWords:
        return (ragged_word(words).sizes.copy(),)

    def moving_answers(self, items: Items, ranges: MovingRanges) -> tuple[StateArrays, StateWords] | None:
        codes = np.full(len(items), -1)
        known, values = items.present_values()
        codes[known] = ValueCodes(self.kind).encode(values)
        return CountStates(), (kernels.range_distinct(codes, ranges.low, ranges.high),)

    def lower(self, words: StateWords) -> pa.Array:
        (settled,) = self.settle(words) if isinstance(words[0], RaggedArray) else words
        return pa.array(settled)


class RankedStates(MultisetStates):
    """For aggregates of which the values at some ranks decide the answer. A settled state has only these."""

    def __init__(self, ranked_values: RankedValues) -> None:
        super().__init__(ranked_values.kind)
        self.ranked_values = ranked_values
        self.ranks = ranked_values.ranks

    def moving_answers(self, items: Items, ranges: MovingRanges) -> tuple[StateArrays, StateWords] | None:
        known, values = items.present_values()
        keys = to_longs(values) if self.dictionary is None else sorted_places(values)[0]
        groups = np.searchsorted(ranges.starts, known, side="right") - 1
        order = np.lexsort((keys, groups))
        sorted_rows = np.full(len(items), -1)
        counts = np.bincount(groups, minlength=len(ranges.starts) - 1)
        begins = np.repeat(ranges.starts[:-1] - (np.cumsum(counts) - counts), counts)
        sorted_rows[begins + np.arange(len(order))] = known[order]
        before = np.searchsorted(known, np.arange(len(items) + 1))
        sizes = before[ranges.high] - before[ranges.low]
        ranks = np.stack([np.where(sizes > 0, rank, 0) for rank in self.ranks(sizes)])
        found = kernels.range_ranked(ranges.starts, sorted_rows, ranges.low, ranges.high, ranges.groups, ranks)
        return PickedRankValues(self, items.arguments[0]), tuple(found)

    def settle(self, words: StateWords) -> StateWords:
        runs = ragged_word(words)
        found, present = self._select(runs)
        return ranked_states(found, present, runs.block.dictionary)

    def lower(self, words: StateWords) -> pa.Array:
        runs = ragged_word(words)
        found, present = self._select(runs)
        return self.answer([self.values_of(keys, runs.block.dictionary, ~present) for keys in found])

    @abstractmethod
    def answer(self, found: Sequence[pa.Array]) -> pa.Array:
        """The answers from the values at each of the ranks."""

    def _select(self, words: RaggedArray) -> tuple[list[Int64Array], npt.NDArray[np.bool_]]:
        """The keys at each of the ranks, and whether there are any."""
        runs, (keys, counts) = words.runs, words.entries
        if words.block.dictionary is not None:
            runs = consecutive_runs(words.sizes)
            keys, counts = words.own_entries()
            places, order = words.block.dictionary.places(keys)[0].copy(), np.arange(len(keys))
            kernels.runs_sort(runs, places, order)
            keys, counts = keys[order], counts[order]
        present = words.sizes > 0
        wanted = self.ranks(kernels.runs_weigh(runs, counts))
        if not len(keys):
            return [np.zeros(len(runs), np.int64) for _ in wanted], present
        return [keys[kernels.runs_select(runs, counts, ranks)] for ranks in wanted], present


def ranked_states(
    found: Sequence[Int64Array], present: npt.NDArray[np.bool_], dictionary: ValueDictionary | None = None
) -> StateWords:
    """Settled states of the keys at each of the ranks, in ascending order of ranks; none where there are no values."""
    keys = np.stack(found, axis=1)[present].ravel()
    runs = consecutive_runs(np.where(present, len(found), 0))
    return (RaggedArray.of(runs, (keys, np.ones(len(keys), np.int64)), dictionary),)


class PickedRankValues(PickedValues):
    """States that are the places of the values at some ranks."""

    def __init__(self, ranked: RankedStates, values: pa.Array) -> None:
        super().__init__(values)
        self.ranked = ranked

    def lower(self, words: StateWords) -> pa.Array:
        return self.ranked.answer([super(PickedRankValues, self).lower((word,)) for word in words])
