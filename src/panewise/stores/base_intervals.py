"""B-INT: aligned intervals of every power of two ("Resource sharing" section 3.1.1)."""

from __future__ import annotations

from typing import TypeVar

from panewise.aggregate import Aggregate, Laws
from panewise.stores.base import Store

S = TypeVar("S")


class BaseIntervals(Store[S]):
    """Requires associativity, which every aggregate has. Update O(1) amortised, lookup O(log W), space O(reach)."""

    name = "B-INT"
    requires = "an associative"
    update_cost, lookup_cost = "O(1)", "O(log W)"

    def __init__(self, aggregate: Aggregate[S], reach: int) -> None:
        super().__init__(aggregate, reach)
        self._intervals: dict[tuple[int, int], S] = {}

    @classmethod
    def accepts(cls, laws: Laws) -> bool:
        return laws.bounded

    def _append(self, state: S) -> None:
        """The base intervals that end here: one of each width that divides the position, built from two halves."""
        position, width = self.length, 1
        self._intervals[position, 1] = state
        while position % (2 * width) == 0 and (position - width, width) in self._intervals:
            earlier, later = self._intervals[position - width, width], self._intervals[position, width]
            width *= 2
            self._intervals[position, width] = self.aggregate.combine(earlier, later)
        self._forget(position - self.reach)

    def _forget(self, oldest: int) -> None:
        """Drop the intervals whose first position is the one that has just gone out of reach."""
        width = 1
        while self._intervals.pop((oldest + width - 1, width), None) is not None:
            width *= 2

    def _lookup(self, first: int, last: int) -> S:
        answer = self.aggregate.identity()
        for end, width in cover(first, last):
            answer = self.aggregate.combine(answer, self._intervals[end, width])
        return answer


def cover(first: int, last: int) -> list[tuple[int, int]]:
    """The interval `(first, last)` as few base intervals, oldest first, each as (last position, width). O(log W).

    >>> [(end - width + 1, end) for end, width in cover(1, 43)]
    [(1, 32), (33, 40), (41, 42), (43, 43)]
    """
    found = []
    while first <= last:
        fitting = 1 << (last - first + 1).bit_length() - 1
        aligned = (first - 1) & -(first - 1)  # the lowest bit that is set: the largest power of two that divides it
        width = min(aligned, fitting) if aligned else fitting
        found.append((first + width - 1, width))
        first += width
    return found
