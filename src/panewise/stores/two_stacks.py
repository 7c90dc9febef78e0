"""Two-stacks: a queue that knows the state of all it holds, for one window that slides."""

from __future__ import annotations

from itertools import accumulate
from typing import TypeVar

from panewise.aggregate import Aggregate, Laws
from panewise.core.errors import PlanProblem
from panewise.stores.base import LookupKind, Store

S = TypeVar("S")


class TwoStacks(Store[S]):
    """Requires associativity, also of ordered aggregates. Append, evict and total O(1) amortised, space O(reach).

    New states go on the back, whose running total is known. Old ones leave from the front, where each is stored as the
    state from it to the end of the front. An empty front takes over the back: each state moves once in its life.
    As a store it answers the panes from `first` to the newest one, and forgets those before `first`.
    """

    name = "two-stacks"
    requires = "an associative"
    answers = LookupKind.SLIDING
    update_cost, lookup_cost = "O(1)", "O(1)"

    def __init__(self, aggregate: Aggregate[S], reach: int) -> None:
        super().__init__(aggregate, reach)
        self._front: list[S] = []
        self._back: list[S] = []
        self._back_total = aggregate.identity()

    @classmethod
    def accepts(cls, laws: Laws) -> bool:
        return laws.bounded

    def __len__(self) -> int:
        """How many positions are held."""
        return len(self._front) + len(self._back)

    @property
    def oldest(self) -> int:
        """The first position that is still held."""
        return self.length - len(self) + 1

    def evict(self) -> None:
        """Forget the oldest position."""
        if not self._front:
            if not self._back:
                raise PlanProblem("two-stacks holds no pane that could be evicted", fix="append one before")
            self._front = list(
                accumulate(reversed(self._back), lambda later, older: self.aggregate.combine(older, later))
            )
            self._back, self._back_total = [], self.aggregate.identity()
        self._front.pop()

    def total(self) -> S:
        """The combined state of all positions that are held."""
        return self.aggregate.combine(self._front[-1], self._back_total) if self._front else self._back_total

    def _append(self, state: S) -> None:
        self._back.append(state)
        self._back_total = self.aggregate.combine(self._back_total, state)
        if len(self) > self.reach:
            self.evict()

    def _lookup(self, first: int, last: int) -> S:
        self._must_be_suffix(first, last)
        if first < self.oldest:
            raise PlanProblem(
                f"interval ({first}, {last}) begins before {self.oldest}, where two-stacks was asked to begin before",
                fix="give each window two-stacks of its own, or choose a store for several windows",
            )
        while self.oldest < first:
            self.evict()
        return self.total()
