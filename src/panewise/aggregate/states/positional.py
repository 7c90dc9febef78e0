"""States that are settled by where they lie: from the panes of each tier to what an answer is made of."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Protocol

from panewise.aggregate.states.base import StateArrays, StateWords
from panewise.aggregate.view import LevelView


class TierStates(Protocol):
    """What one tier of a window holds for one aggregate."""

    def total(self) -> StateWords:
        """The states of all groups over the whole tier. Not to be changed."""

    def panes(self) -> Iterator[tuple[int, Any, StateWords]]:
        """Each pane, oldest first: its newest position, which groups it has, and their states.

        A pane lies in one granule of its tier, but a granule may be several panes.
        """


class PositionalStates(StateArrays):
    """Columns of a `Positional` aggregate."""

    #: Whether panes are asked for one by one, so that nobody need keep totals of tiers.
    apart: bool = False

    @property
    def oversized(self) -> bool:
        """Whether it remembers so much beside its states that it is worth looking what of it they need."""
        return False

    def forget(self, kept: Iterable[StateWords]) -> None:
        """Forget what no state needs: these are all there are."""

    @abstractmethod
    def combine_tiers(self, view: LevelView, tiers: Sequence[TierStates], size: int) -> StateWords:
        """The states of `size` groups as seen through a view, one `TierStates` for each of its tiers; for `lower`."""
