"""What families hand over to be reported: states of groups at one instant, or of one group after the other."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from panewise.aggregate import Int64Array, StateWords
from panewise.engine.group_steps import GroupSteps


@dataclass(frozen=True, eq=False)
class Chunk:
    """The groups and states that some subscriptions report at an instant.

    For whole states these are the groups with items. For changes they are all groups that may have changed, also those
    that have no items any more. A revision reports the states of an instant again.
    """

    at: int
    subscriptions: tuple[int, ...]
    codes: Int64Array
    states: Sequence[StateWords]
    revised: bool = False
    #: Later instants at which the same states are reported.
    again: Int64Array = field(default_factory=lambda: np.zeros(0, np.int64))

    def part_of(self, subscriptions: Collection[int]) -> Chunk | None:
        """The same for some subscriptions only; None if it is for none of them."""
        mine = tuple(number for number in self.subscriptions if number in subscriptions)
        return replace(self, subscriptions=mine) if mine else None


@dataclass(frozen=True, eq=False)
class ChangeRun:
    """States that subscriptions report at many instants, group by group, and the subscription of each."""

    subscriptions: Int64Array
    steps: GroupSteps
    #: The start of the window of each state, if its items decide it.
    starts: Int64Array | None = None

    def part_of(self, subscriptions: Collection[int]) -> ChangeRun | None:
        """The same for some subscriptions only; None if it is for none of them."""
        mine = np.flatnonzero(np.isin(self.subscriptions, list(subscriptions)))
        if not len(mine):
            return None
        starts = None if self.starts is None else self.starts[mine]
        return ChangeRun(self.subscriptions[mine], self.steps.at_places(mine), starts)
