"""R-INT: running totals, whose differences answer any interval ("Resource sharing" section 3.2)."""

from __future__ import annotations

from typing import TypeVar, cast

from panewise.aggregate import Invertible, Laws
from panewise.stores.base import Store
from panewise.stores.ring import Ring

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
        self._totals: Ring[S] = Ring(reach + 1)
        self._totals.append(aggregate.identity())

    @classmethod
    def accepts(cls, laws: Laws) -> bool:
        return laws.invertible and laws.commutative and laws.bounded

    def _append(self, state: S) -> None:
        self._totals.append(self.aggregate.combine(self._totals[self.length - 1], state))

    def _lookup(self, first: int, last: int) -> S:
        invertible = cast(Invertible[S], self.aggregate)
        return invertible.invert(self._totals[last], self._totals[first - 1])
