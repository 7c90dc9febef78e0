"""Which values the granules of a window hold, by code: what RECURRING and RECURRING_COUNTS have in common.

Paper: "Multi-granular windows" section IV.C. Granules that coalesce are united, tiers are intersected. The paper has a
word over all granules for each value; here each granule has one over all values: a shift moves it from tier to tier,
and one operation serves all values.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from sys import getsizeof
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from panewise.aggregate.states.base import Int64Array, Items, StateWords, runs
from panewise.aggregate.states.positional import PositionalStates, TierStates
from panewise.aggregate.states.value_dictionary import ValueDictionary

if TYPE_CHECKING:
    from panewise.aggregate.view import LevelView

#: A lexicon with fewer values is never too large.
SMALL_DICTIONARY = 1 << 16
#: Values of a group that are fewer than one in so many are listed instead of marked.
SPARSE_RATIO = 64


class Occurrence:
    """What is known of the values of one group: `what`, in the codes of a lexicon. Never changed."""

    __slots__ = ("lexicon", "what")

    def __init__(self, lexicon: ValueDictionary, what: Any) -> None:
        self.lexicon, self.what = lexicon, what

    def __sizeof__(self) -> int:
        return object.__sizeof__(self) + (self.what.nbytes if hasattr(self.what, "nbytes") else getsizeof(self.what))


class OccurrenceStates(PositionalStates):
    """One word of `Occurrence`s; None is the identity, so that empty groups cost nothing."""

    def __init__(self, kind: pa.DataType) -> None:
        self.kind = kind
        self.lexicon = ValueDictionary(kind)
        self.room = SMALL_DICTIONARY

    def identity(self, size: int) -> StateWords:
        return (np.full(size, None, object),)

    def _gather(self, slots: Int64Array, items: Items, into: StateWords) -> None:
        codes = self.lexicon.encode(items.arguments[0])
        for slot, found, counts in _codes_by_slot(slots, codes, len(into[0]), len(self.lexicon)):
            into[0][slot] = Occurrence(self.lexicon, self._from_codes(found, counts))

    def combine(self, left: StateWords, right: StateWords) -> StateWords:
        return (map_states(self._combine_two, left[0], right[0]),)

    def combine_tiers(self, view: LevelView, tiers: Sequence[TierStates], size: int) -> StateWords:
        return (map_states(self._in_every_tier, *(tier.total()[0] for tier in tiers)),)

    def _combine_two(self, left: Occurrence | None, right: Occurrence | None) -> Occurrence | None:
        if left is None or right is None:
            return left if right is None else right
        if left.lexicon is not right.lexicon:
            left, right = self._in_one_dictionary((left, right))
        return Occurrence(left.lexicon, self._unite(left.what, right.what))

    def _in_every_tier(self, *states: Occurrence | None) -> Occurrence | None:
        """What occurs in every tier."""
        present = [state for state in states if state is not None]
        if len(present) < len(states):
            return None
        alike = self._in_one_dictionary(present)
        return Occurrence(alike[0].lexicon, self._intersect([state.what for state in alike]))

    def _in_one_dictionary(self, states: Sequence[Occurrence]) -> Sequence[Occurrence]:
        """The same states, all in the codes of the youngest of their lexicons."""
        if len({id(state.lexicon) for state in states}) < 2:
            return states
        lexicon = max((state.lexicon for state in states), key=lambda each: each.generation)
        return [self._recode(state, lexicon) for state in states]

    def _recode(self, state: Occurrence, lexicon: ValueDictionary) -> Occurrence:
        if state.lexicon is lexicon:
            return state
        codes, counts = self._to_codes(state.what)
        fresh = lexicon.encode(state.lexicon.take(codes))
        order = np.argsort(fresh)
        return Occurrence(lexicon, self._from_codes(fresh[order], counts[order]))

    @property
    def oversized(self) -> bool:
        return len(self.lexicon) > self.room

    def forget(self, kept: Iterable[StateWords]) -> None:
        """Begin another lexicon if most values of this one are in no state any more."""
        live = np.zeros(len(self.lexicon), bool)
        for state in (state for words in kept for state in words[0]):
            if state is not None and state.lexicon is self.lexicon:
                live[self._to_codes(state.what)[0]] = True
        alive = int(live.sum())
        if 2 * alive <= len(self.lexicon):
            self.lexicon = ValueDictionary(self.kind, self.lexicon.generation + 1)
        self.room = max(SMALL_DICTIONARY, 4 * alive)

    def _values_by_group(self, words: StateWords) -> tuple[list[Any], ValueDictionary]:
        """What is known of each group, None where that is nothing, and the lexicon it is all told in."""
        states = self._in_one_dictionary([state for state in words[0] if state is not None])
        known = iter(states)
        found = [None if state is None else next(known).what for state in words[0]]
        return found, states[0].lexicon if states else self.lexicon

    # ---- crossing and restarts: values travel, since codes mean nothing elsewhere ------------------------------------

    def write(self, words: StateWords) -> list[pa.Array]:
        found = [None if state is None else self._to_codes(state.what) for state in words[0]]
        sizes = [0 if each is None else len(each[0]) for each in found]
        offsets = pa.array(np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64))
        missing = pa.array([state is None for state in words[0]], pa.bool_())
        values = [state.lexicon.take(each[0]) for state, each in zip(words[0], found, strict=True) if each is not None]
        counts = [each[1] for each in found if each is not None]
        every = pa.concat_arrays(values) if values else pa.array([], self.kind)
        tallies = pa.array(np.concatenate([np.zeros(0, np.int64), *counts]))
        return [pa.LargeListArray.from_arrays(offsets, each, mask=missing) for each in (every, tallies)]

    def read(self, arrays: Sequence[pa.Array]) -> StateWords:
        values, tallies = arrays
        offsets = values.offsets.to_numpy()
        codes, counts = self.lexicon.encode(values.values), tallies.values.to_numpy()
        (out,) = self.identity(len(values))
        for place, valid in enumerate(values.is_valid().to_pylist()):
            if valid:
                mine = codes[offsets[place] : offsets[place + 1]]
                order = np.argsort(mine)
                what = self._from_codes(mine[order], counts[offsets[place] : offsets[place + 1]][order])
                out[place] = Occurrence(self.lexicon, what)
        return (out,)

    # ---- what a granule is ------------------------------------------------------------------------------------------

    def _is_sparse(self, count: int) -> bool:
        """Whether so many values are better listed than marked."""
        return count * SPARSE_RATIO < len(self.lexicon)

    @abstractmethod
    def _from_codes(self, codes: Int64Array, counts: Int64Array) -> Any:
        """From different codes, ascending, and how often each occurs."""

    @abstractmethod
    def _to_codes(self, what: Any) -> tuple[Int64Array, Int64Array]:
        """Back again."""

    @abstractmethod
    def _unite(self, left: Any, right: Any) -> Any:
        """Of two granules that coalesce."""

    @abstractmethod
    def _intersect(self, tiers: list[Any]) -> Any:
        """Of the values that are in all tiers."""


def _codes_by_slot(
    slots: Int64Array, codes: Int64Array, size: int, values: int
) -> Iterator[tuple[int, Int64Array, Int64Array]]:
    """For each slot with items its different codes, ascending, and how often each occurs."""
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
    """A function of the states at each place."""
    out = np.empty(len(columns[0]), object)
    for place, states in enumerate(zip(*columns, strict=True)):
        out[place] = function(*states)
    return out
