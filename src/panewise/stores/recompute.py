"""Recompute: keep the states, combine them again at every lookup."""

from __future__ import annotations

from typing import TypeVar

from panewise.aggregate import Aggregate, Laws
from panewise.stores.base import Store
from panewise.stores.ring import Ring

S = TypeVar("S")


class Recompute(Store[S]):
    """Requires nothing. Update O(1), lookup O(width), space O(reach). The store that needs no proof."""

    name = "recompute"
    requires = "any"
    update_cost, lookup_cost = "O(1)", "O(W)"

    def __init__(self, aggregate: Aggregate[S], reach: int) -> None:
        super().__init__(aggregate, reach)
        self._states: Ring[S] = Ring(reach)

    @classmethod
    def accepts(cls, laws: Laws) -> bool:
        return True

    def _append(self, state: S) -> None:
        self._states.append(state)

    def _lookup(self, first: int, last: int) -> S:
        answer = self.aggregate.identity()
        for position in range(first, last + 1):
            answer = self.aggregate.combine(answer, self._states[position - 1])
        return answer
