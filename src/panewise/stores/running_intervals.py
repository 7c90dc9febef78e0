"""R-INT: running totals, whose differences answer any interval ("Resource sharing" section 3.2)."""

from __future__ import annotations

from collections import deque
from typing import TypeVar, cast

from panewise.aggregate import Invertible, Laws
from panewise.stores.base import Store

S = TypeVar("S")


class RunningIntervals(Store[S]):
    """Requires an invertible aggregate with constant state. Update and lookup O(1), space O(reach).

    The constructor takes only `Invertible` aggregates, so that R-INT over MAX does not type-check.
    """

    name = "R-INT"
    requires = "an invertible"
    update_cost, lookup_cost = "O(1)", "O(1)"

    def __init__(self, aggregate: Invertible[S], reach: int) -> None:
        super().__init__(aggregate, reach)
        self._totals: deque[S] = deque([aggregate.identity()], maxlen=reach + 1)

    @classmethod
    def accepts(cls, laws: Laws) -> bool:
        return laws.invertible and laws.commutative and laws.bounded

    def _append(self, state: S) -> None:
        self._totals.append(self.aggregate.combine(self._totals[-1], state))

    def _lookup(self, first: int, last: int) -> S:
        start = self.length - len(self._totals) + 1
        invertible = cast(Invertible[S], self.aggregate)
        return invertible.invert(self._totals[last - start], self._totals[first - 1 - start])
