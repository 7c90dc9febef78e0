"""Subscriptions of a family: one for each different window and way of reporting, shared by all queries that need it."""

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
    """The groups and states that some subscriptions report at an instant.

    For whole states these are the groups with items. For changes they are all groups that may have changed, also those
    that have no items any more. A revision reports the states of an instant again.
    """

    at: int
    feeds: tuple[int, ...]
    codes: Int64Array
    states: Sequence[StateWords]
    revised: bool = False
    #: The start of the window, if its items decide it.
    start: int | None = None
    #: Later instants at which the same states are reported.
    again: Int64Array = field(default_factory=lambda: np.zeros(0, np.int64))


@dataclass
class TouchedGroups:
    """Groups that may have changed since a subscription last reported."""

    codes: list[Int64Array] = field(default_factory=list)

    def add(self, codes: Int64Array) -> None:
        self.codes.append(codes)

    def sorted_codes(self) -> Int64Array:
        """The codes of all these groups, ascending."""
        return np.unique(np.concatenate(self.codes)) if self.codes else np.zeros(0, np.int64)

    def take(self) -> Int64Array:
        """Return all these groups and clear the set."""
        found = self.sorted_codes()
        self.codes = []
        return found
