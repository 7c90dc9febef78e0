"""RECURRING and RECURRING_COUNTS: values that occur again and again, in every tier of the window.

Paper: "Multi-granular windows" section IV.C, and its variant with counts for ranking.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any, ClassVar

import pyarrow as pa

from panewise.aggregate.base import Laws, orderable_type
from panewise.aggregate.multiset import Multiset, order_key, sort_values
from panewise.aggregate.positional import Positional
from panewise.aggregate.states.bitmaps import ValueBitmaps
from panewise.aggregate.states.value_counts import ValueCounts
from panewise.aggregate.view import LevelView
from panewise.core.errors import AggregateProblem


class Recurring(Positional["frozenset[Any]"]):
    """The values that every tier holds, ascending; at the finest level all of the window. Space O(distinct values)."""

    names = ("RECURRING",)
    laws = Laws(idempotent=True, bounded=False)

    def result_type(self) -> pa.DataType:
        return pa.list_(orderable_type(self))

    def meaning_in_view(self, items: Sequence[tuple[int, Any]], view: LevelView) -> tuple[Any, ...]:
        return tuple(sort_values(list(values_in_every_tier(items, view))))

    def identity(self) -> frozenset[Any]:
        return frozenset()

    def lift(self, value: Any) -> frozenset[Any]:
        return frozenset([value])

    def gather(self, values: Sequence[Any]) -> frozenset[Any]:
        return frozenset(values)

    def combine(self, left: frozenset[Any], right: frozenset[Any]) -> frozenset[Any]:
        return left | right

    def lower(self, state: frozenset[Any]) -> tuple[Any, ...]:
        return tuple(sort_values(list(state)))

    def state_arrays(self) -> ValueBitmaps:
        return ValueBitmaps(self.types[0])


class RecurringCounts(Positional["Counter[Any]"], Multiset):
    """The same values with how often each occurs in the window, most frequent first, equals by value.

    Optionally not more than so many.
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

    def state_arrays(self) -> ValueCounts:
        return ValueCounts(self.types[0], self.most)

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
