"""Aggregates whose answer depends on where in the window items lie, not only on which items there are.

Paper: "Multi-granular windows" sections III.B and IV.C. Tier i of a window has the items that belong to level i and to
no finer level, so that every item of the window belongs to exactly one tier.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Protocol

from panewise.aggregate.base import Aggregate, S
from panewise.aggregate.states import StateArrays, StateWords, TotalStates
from panewise.core.time import Domain


@dataclass(frozen=True)
class LevelView:
    """A window of level k at an instant: the ranges and slides of its levels 0 to k, and the newest position it holds.

    Positions are those of the engine: an item's time, one tick later under the boundary `[)`. Levels move on the grids
    `origin + n * slide`; between two of its grid points a level stays where it was at the first.
    """

    front: int
    ranges: tuple[int, ...]
    slides: tuple[int, ...]
    origin: int = 0
    domain: Domain = Domain.INTEGER
    #: How many ticks positions are later than times.
    shift: int = 0

    @cached_property
    def edges(self) -> tuple[int, ...]:
        """The rear bound of each level, which does not belong to the level itself."""
        return tuple(
            self.front - (self.front - self.origin) % slide - length
            for length, slide in zip(self.ranges, self.slides, strict=True)
        )

    def tier(self, position: int) -> int:
        """The finest level that an item of the window belongs to."""
        return next(number for number, edge in enumerate(self.edges) if position > edge)

    def age(self, position: int, tier: int) -> int:
        """Ticks from the end of the granule in which a position lies to the newest position."""
        slide = self.slides[tier]
        return max(self.front - (position - (position - self.origin) % -slide), 0)


#: A window of one granule, in which all items lie: what an aggregate means if the places of its items are not known.
SINGLE_GRANULE = LevelView(0, (1,), (1,))


class TierStates(Protocol):
    """The states of one aggregate in one tier of a window."""

    def total(self) -> StateWords:
        """The states of all groups over the whole tier, as `tier_totals` keeps them. Callers do not change them."""

    def panes(self) -> Iterator[tuple[int, Any, StateWords]]:
        """Each pane, oldest first: its newest position, which groups it has, and their states.

        A pane lies in one granule of its tier, but a granule may be several panes.
        """


class PositionalStates(StateArrays):
    """The states of a `Positional` aggregate in arrays."""

    def tier_totals(self, shift: int) -> TotalStates:
        """How the totals of tiers are kept, whose positions are so many ticks later than times."""
        return self

    @abstractmethod
    def combine_tiers(self, view: LevelView, tiers: Sequence[TierStates], size: int) -> StateWords:
        """The states of `size` groups as seen through a view, one `TierStates` for each of its tiers; for `lower`."""


class Positional(Aggregate[S]):
    """An aggregate whose meaning depends on the positions of its values and on the view of the window.

    States of panes are gathered and combined without any view; `PositionalStates.combine_tiers` makes one state of
    those of all tiers. `meaning` and `lower` are about items that all lie in one granule.
    """

    positional: ClassVar[bool] = True

    @abstractmethod
    def meaning_in_view(self, items: Sequence[tuple[int, Any]], view: LevelView) -> Any:
        """The answer by definition, from (position, value) of all items of the window, in time order."""

    def meaning(self, values: Sequence[Any]) -> Any:
        return self.meaning_in_view([(SINGLE_GRANULE.front, value) for value in values], SINGLE_GRANULE)

    def check(self, levels: int, domain: Domain) -> None:
        """Refuse a window whose number of levels, or whose time, does not fit the literal parameters."""

    @abstractmethod
    def state_arrays(self) -> PositionalStates: ...
