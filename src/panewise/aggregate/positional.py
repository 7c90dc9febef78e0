"""Aggregates whose answer depends on where in the window items lie, not only on which items there are."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar

from panewise.aggregate.base import Aggregate, S
from panewise.aggregate.states.positional import PositionalStates
from panewise.aggregate.view import SINGLE_GRANULE, LevelView
from panewise.core.time import Domain


class Positional(Aggregate[S]):
    """An aggregate that is told the positions of its values and the view of the window they are seen through.

    States of panes are gathered and combined as usual, without knowing any view; the columns settle the states of all
    tiers into one answer. `meaning` and `lower` speak of items that all lie in one granule.
    """

    positional: ClassVar[bool] = True

    @abstractmethod
    def meaning_in_view(self, items: Sequence[tuple[int, Any]], view: LevelView) -> Any:
        """The answer by definition, from (position, value) of all items of the window, in time order."""

    def meaning(self, values: Sequence[Any]) -> Any:
        return self.meaning_in_view([(SINGLE_GRANULE.front, value) for value in values], SINGLE_GRANULE)

    def check(self, levels: int, domain: Domain) -> None:
        """Refuse a window with that many levels, or such a time, that the literal parameters do not fit."""

    def grain(self, domain: Domain) -> int | None:
        """How many ticks the instants have that it tells apart, where a pane must not span several."""
        return None

    @abstractmethod
    def state_arrays(self) -> PositionalStates: ...
