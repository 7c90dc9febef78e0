"""RECURRING and RECURRING_COUNTS: the values that occur in every tier of the window.

Paper: "Multi-granular windows" section IV.C, and its variant with counts for ranking.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import reduce
from typing import Any, ClassVar

import pyarrow as pa

from panewise import kernels
from panewise.aggregate.base import Multiset, orderable_type
from panewise.aggregate.multisets import MultisetStates
from panewise.aggregate.ordering import order_key, sort_values
from panewise.aggregate.positional import LevelView, Positional, PositionalStates, TierStates
from panewise.aggregate.ragged import RaggedArray, consecutive_runs, in_one_dictionary, ragged_word
from panewise.aggregate.states import StateWords
from panewise.core.errors import AggregateProblem


class Recurring(Positional["Counter[Any]"], Multiset):
    """The values that occur in every tier, ascending; at the finest level all of the window."""

    names: ClassVar[tuple[str, ...]] = ("RECURRING",)

    def result_type(self) -> pa.DataType:
        return pa.list_(orderable_type(self))

    def meaning_in_view(self, items: Sequence[tuple[int, Any]], view: LevelView) -> tuple[Any, ...]:
        return tuple(sort_values(list(values_in_every_tier(items, view))))

    def lower(self, state: Counter[Any]) -> tuple[Any, ...]:
        return tuple(sort_values(list(state)))

    def state_arrays(self) -> RecurringStates:
        return RecurringStates(self.types[0], self.result)


class RecurringCounts(Recurring):
    """The same values with how often each occurs in the window, most frequent first, ties by value.

    `most` limits their number.
    """

    names = ("RECURRING_COUNTS",)
    options: ClassVar[tuple[str, ...]] = ("most",)

    def __init__(self, *types: pa.DataType, most: str | int | None = None) -> None:
        super().__init__(*types)
        if most is not None and not (str(most).isdigit() and int(most) > 0):
            raise AggregateProblem(
                f"{most!r} of RECURRING_COUNTS is not a number of entries", fix="use a whole number such as 10"
            )
        self.most = None if most is None else int(most)

    def result_type(self) -> pa.DataType:
        return pa.list_(pa.struct([("item", orderable_type(self)), ("count", pa.int64())]))

    def meaning_in_view(self, items: Sequence[tuple[int, Any]], view: LevelView) -> tuple[Any, ...]:
        counts, common = Counter(value for _, value in items), values_in_every_tier(items, view)
        return self._rank_entries({value: count for value, count in counts.items() if value in common})

    def lower(self, state: Counter[Any]) -> tuple[Any, ...]:
        return self._rank_entries(state)

    def state_arrays(self) -> RecurringStates:
        return RecurringCountStates(self.types[0], self.result, self.most)

    def text(self, arguments: Sequence[str]) -> str:
        given = [] if self.most is None else [str(self.most)]
        return f"{self.names[0]}({', '.join([*arguments, *given])})"

    def _rank_entries(self, counts: dict[Any, int]) -> tuple[Any, ...]:
        ranked = sorted(counts.items(), key=lambda entry: (-entry[1], order_key(entry[0])))
        return tuple((("item", value), ("count", count)) for value, count in ranked[: self.most])

    def _key(self) -> tuple[Any, ...]:
        return (*super()._key(), self.most)


def values_in_every_tier(items: Sequence[tuple[int, Any]], view: LevelView) -> set[Any]:
    """The values that occur at least once in every tier."""
    tiers: list[set[Any]] = [set() for _ in view.edges]
    for position, value in items:
        tiers[view.tier(position)].add(value)
    return set.intersection(*tiers)


class RecurringStates(MultisetStates, PositionalStates):
    """The multisets of granules: those that coalesce are added, and tiers keep the keys that all of them have.

    In the paper a value has a bit for every granule. Here a granule lists its values, so that it moves from tier to
    tier as a whole.
    """

    def __init__(self, kind: pa.DataType, result: pa.DataType) -> None:
        super().__init__(kind)
        self.result = result

    def combine_tiers(self, view: LevelView, tiers: Sequence[TierStates], size: int) -> StateWords:
        return (reduce(_common, in_one_dictionary([ragged_word(tier.total()) for tier in tiers])),)

    def settle(self, words: StateWords) -> StateWords:
        return (ragged_word(words).compact(),)

    def lower(self, words: StateWords) -> pa.Array:
        held = ragged_word(words)
        keys, _ = held.own_entries()
        dictionary = held.block.dictionary
        if dictionary is not None:
            keys, places = keys.copy(), dictionary.places(keys)[0].copy()
            kernels.runs_sort(consecutive_runs(held.sizes), places, keys)
        return held.to_lists(self.values_of(keys, dictionary), self.result)


class RecurringCountStates(RecurringStates):
    """The same with counts. A settled state has the values that are listed."""

    def __init__(self, kind: pa.DataType, result: pa.DataType, most: int | None) -> None:
        super().__init__(kind, result)
        self.most = most

    def settle(self, words: StateWords) -> StateWords:
        return (self.settle_heaviest(ragged_word(words), self.most),)

    def lower(self, words: StateWords) -> pa.Array:
        listed = self.heaviest(ragged_word(words), self.most)
        return self.to_entries(listed, listed.own_entries()[1], self.result)


def _common(left: RaggedArray, right: RaggedArray) -> RaggedArray:
    """The keys that both multisets have, place by place, with how often they occur in both."""
    runs, *entries = kernels.runs_common(left.runs, *left.entries, right.runs, *right.entries)
    return RaggedArray.of(runs, tuple(entries), left.block.dictionary or right.block.dictionary)
