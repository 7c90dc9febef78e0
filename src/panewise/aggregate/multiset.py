"""The state of holistic aggregates: how often each value occurs. Invertible, but as large as its input."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from panewise.aggregate.base import Invertible, Laws


class Multiset(Invertible["Counter[Any]"]):
    """Base of the aggregates that must remember every value. Space O(distinct values)."""

    laws = Laws(invertible=True, bounded=False)

    def identity(self) -> Counter[Any]:
        return Counter()

    def lift(self, value: Any) -> Counter[Any]:
        return Counter([value])

    def gather(self, values: Sequence[Any]) -> Counter[Any]:
        return Counter(values)

    def combine(self, left: Counter[Any], right: Counter[Any]) -> Counter[Any]:
        return left + right

    def invert(self, whole: Counter[Any], part: Counter[Any]) -> Counter[Any]:
        return whole - part

    def lower(self, state: Counter[Any]) -> Any:
        return self.meaning(list(state.elements()))


def sort_values(values: Sequence[Any]) -> list[Any]:
    """Values in SQL order: NaN is the largest number, as in Spark."""
    return sorted(values, key=order_key)


def order_key(value: Any) -> tuple[bool, Any]:
    return (True, 0) if value != value else (False, value)
