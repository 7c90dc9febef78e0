"""Which values occur in the granules of a window, by code: the common part of RECURRING and RECURRING_COUNTS.

Paper: "Multi-granular windows" section IV.C. Granules that coalesce are united, tiers are intersected. In the paper a
value has a bit for every granule; here a granule has a bit for every value, so that it moves from tier to tier as a
whole and one operation serves all values.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from sys import getsizeof
from typing import Any

import numpy as np
import pyarrow as pa

from panewise.aggregate.dictionary import ValueDictionary
from panewise.aggregate.positional import LevelView, PositionalStates, TierStates
from panewise.aggregate.states import Int64Array, Items, StateWords, runs

#: If a group has fewer than one in this many of all values, its values are listed instead of marked.
SPARSE_RATIO = 64


class Occurrence:
    """The values of one group: `content` has their codes in a dictionary. Never changed."""

    __slots__ = ("content", "dictionary")

    def __init__(self, dictionary: ValueDictionary, content: Any) -> None:
        self.dictionary, self.content = dictionary, content

    def __sizeof__(self) -> int:
        size = self.content.nbytes if hasattr(self.content, "nbytes") else getsizeof(self.content)
        return object.__sizeof__(self) + size


class OccurrenceStates(PositionalStates):
    """One word of `Occurrence` objects; None is the identity, so that empty groups cost nothing."""

    def __init__(self, kind: pa.DataType) -> None:
        self.kind = kind
        self.dictionary = ValueDictionary(kind)

    def identity(self, size: int) -> StateWords:
        return (np.full(size, None, object),)

    def _gather(self, slots: Int64Array, items: Items, into: StateWords) -> None:
        codes = self.dictionary.encode(items.arguments[0])
        for slot, found, counts in _codes_by_slot(slots, codes, len(into[0]), len(self.dictionary)):
            into[0][slot] = Occurrence(self.dictionary, self._from_codes(found, counts))

    def combine(self, left: StateWords, right: StateWords) -> StateWords:
        return (map_states(self._combine_two, left[0], right[0]),)

    def combine_tiers(self, view: LevelView, tiers: Sequence[TierStates], size: int) -> StateWords:
        return (map_states(self._in_every_tier, *(tier.total()[0] for tier in tiers)),)

    def _combine_two(self, left: Occurrence | None, right: Occurrence | None) -> Occurrence | None:
        if left is None or right is None:
            return left if right is None else right
        if left.dictionary is not right.dictionary:
            left, right = self._in_one_dictionary((left, right))
        return Occurrence(left.dictionary, self._unite(left.content, right.content))

    def _in_every_tier(self, *states: Occurrence | None) -> Occurrence | None:
        """The values that occur in every tier."""
        present = [state for state in states if state is not None]
        if len(present) < len(states):
            return None
        alike = self._in_one_dictionary(present)
        return Occurrence(alike[0].dictionary, self._intersect([state.content for state in alike]))

    def _in_one_dictionary(self, states: Sequence[Occurrence]) -> Sequence[Occurrence]:
        """The same states, all in the codes of the newest of their dictionaries."""
        if len({id(state.dictionary) for state in states}) < 2:
            return states
        dictionary = max((state.dictionary for state in states), key=lambda each: each.generation)
        return [self._recode(state, dictionary) for state in states]

    def _recode(self, state: Occurrence, dictionary: ValueDictionary) -> Occurrence:
        if state.dictionary is dictionary:
            return state
        codes, counts = self._to_codes(state.content)
        fresh = dictionary.encode(state.dictionary.take(codes))
        order = np.argsort(fresh)
        return Occurrence(dictionary, self._from_codes(fresh[order], counts[order]))

    @property
    def oversized(self) -> bool:
        return self.dictionary.oversized

    def forget(self, kept: Iterable[StateWords]) -> None:
        states = (state for words in kept for state in words[0])
        mine = [state for state in states if state is not None and state.dictionary is self.dictionary]
        self.dictionary = self.dictionary.forget(self._to_codes(state.content)[0] for state in mine)

    def _values_by_group(self, words: StateWords) -> tuple[list[Any], ValueDictionary]:
        """The content of each group, None where it has no values, and the dictionary of all codes."""
        states = self._in_one_dictionary([state for state in words[0] if state is not None])
        known = iter(states)
        found = [None if state is None else next(known).content for state in words[0]]
        return found, states[0].dictionary if states else self.dictionary

    # ---- states for other processes: they have values, since codes mean nothing there --------------------------------

    def write(self, words: StateWords) -> list[pa.Array]:
        found = [None if state is None else self._to_codes(state.content) for state in words[0]]
        sizes = [0 if each is None else len(each[0]) for each in found]
        offsets = pa.array(np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64))
        missing = pa.array([state is None for state in words[0]], pa.bool_())
        values = [
            state.dictionary.take(each[0]) for state, each in zip(words[0], found, strict=True) if each is not None
        ]
        counts = [each[1] for each in found if each is not None]
        every = pa.concat_arrays(values) if values else pa.array([], self.kind)
        every_count = pa.array(np.concatenate([np.zeros(0, np.int64), *counts]))
        return [pa.LargeListArray.from_arrays(offsets, each, mask=missing) for each in (every, every_count)]

    def read(self, arrays: Sequence[pa.Array]) -> StateWords:
        values, all_counts = arrays
        offsets = values.offsets.to_numpy()
        codes, counts = self.dictionary.encode(values.values), all_counts.values.to_numpy()
        (out,) = self.identity(len(values))
        for place, valid in enumerate(values.is_valid().to_pylist()):
            if valid:
                mine = codes[offsets[place] : offsets[place + 1]]
                order = np.argsort(mine)
                content = self._from_codes(mine[order], counts[offsets[place] : offsets[place + 1]][order])
                out[place] = Occurrence(self.dictionary, content)
        return (out,)

    # ---- the content of a granule -----------------------------------------------------------------------------------

    def _is_sparse(self, count: int) -> bool:
        """Whether this number of values is listed rather than marked."""
        return count * SPARSE_RATIO < len(self.dictionary)

    @abstractmethod
    def _from_codes(self, codes: Int64Array, counts: Int64Array) -> Any:
        """The content with these codes, different and ascending, and how often each occurs."""

    @abstractmethod
    def _to_codes(self, content: Any) -> tuple[Int64Array, Int64Array]:
        """The codes of a content, ascending, and how often each occurs."""

    @abstractmethod
    def _unite(self, left: Any, right: Any) -> Any:
        """The content of two granules that coalesce."""

    @abstractmethod
    def _intersect(self, tiers: list[Any]) -> Any:
        """The content with those values that occur in all tiers."""


def _codes_by_slot(
    slots: Int64Array, codes: Int64Array, size: int, values: int
) -> Iterator[tuple[int, Int64Array, Int64Array]]:
    """For each slot with items, its different codes, ascending, and how often each occurs."""
    if not len(codes):
        return
    pairs = slots * values + codes
    if size * values <= 4 * len(pairs) + 65536:
        counts = np.bincount(pairs, minlength=size * values).reshape(size, values)
        for slot in range(size):
            found = np.flatnonzero(counts[slot])
            if len(found):
                yield slot, found, counts[slot][found]
        return
    different, counts = np.unique(pairs, return_counts=True)
    owners = different // values
    for start, stop in zip(*runs(owners), strict=True):
        yield int(owners[start]), different[start:stop] % values, counts[start:stop]


def map_states(function: Callable[..., Any], *columns: Any) -> Any:
    """The results of a function of the states at each place."""
    out = np.empty(len(columns[0]), object)
    for place, states in enumerate(zip(*columns, strict=True)):
        out[place] = function(*states)
    return out
