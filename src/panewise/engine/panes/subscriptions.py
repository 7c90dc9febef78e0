"""Who listens to a family: one feed for each different window and way of reporting, however many queries want it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from panewise.aggregate import Int64Array, StateWords
from panewise.stores.chain import MIN_POSITION
from panewise.window import Window


@dataclass(frozen=True)
class Subscription:
    """One window of a family and how it is reported."""

    number: int
    window: Window
    changes: bool
    empty: bool
    revise: int | None
    #: Items up to this position do not count: a query that starts now does not look back.
    since: int = MIN_POSITION

    @property
    def periodic(self) -> bool:
        return self.window.periodic


@dataclass(frozen=True, eq=False)
class Chunk:
    """What some feeds have to say at an instant: groups and their states.

    Whole states hold the groups with items. For changes they hold every group that may have changed, also one that has
    no items any more. A revision says again what an instant held.
    """

    at: int
    feeds: tuple[int, ...]
    codes: Int64Array
    states: Sequence[StateWords]
    revised: bool = False
    #: Where the window begins, if the items decide it.
    start: int | None = None
    #: Later instants at which the same is to be said.
    again: Int64Array = field(default_factory=lambda: np.zeros(0, np.int64))


@dataclass
class TouchedGroups:
    """Groups that may have changed since a feed last spoke."""

    codes: list[Int64Array] = field(default_factory=list)

    def add(self, codes: Int64Array) -> None:
        self.codes.append(codes)

    def sorted_codes(self) -> Int64Array:
        """All of them, ascending."""
        return np.unique(np.concatenate(self.codes)) if self.codes else np.zeros(0, np.int64)

    def take(self) -> Int64Array:
        """All of them; from now on others count."""
        found = self.sorted_codes()
        self.codes = []
        return found
