"""Grouping by cost: groups are merged as long as their common chain retains no more than their separate ones.

Goes beyond "Subsuming windows", whose section 6 asks for fewer groups and for a score of alternative subsumptions.
Frames of one group need not divide each other's slides here; see `stairs` for why they can be served together.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from heapq import heappop, heappush

import numpy as np

from panewise.plan.rules.group_windows.cost import Stairs, cost_of, least_merged_cost, merge_stairs, single_stair
from panewise.plan.rules.group_windows.groups import WindowGroup
from panewise.plan.rules.group_windows.shapes import WindowShape, by_size

ShapeList = list[WindowShape]


def pack(groups: Iterable[ShapeList]) -> list[ShapeList]:
    """The groups, merged: in total never dearer than those given.

    First groups that would add nothing to a wider one join it. Then, again and again, the two groups whose merger
    saves most become one, also if it saves nothing, until every merger costs. Takes time quadratic in the number of
    groups that are left after the first step.
    """
    kept = _absorb_free_groups([(WindowGroup(0, frames).stairs, frames) for frames in groups])
    merging = _GroupMerger([stairs for stairs, _ in kept])
    members = dict(enumerate(frames for _, frames in kept))
    while pair := merging.take_best():
        one, other = pair
        members[len(merging.stairs)] = members.pop(one) + members.pop(other)
        merging.add(merge_stairs(merging.stairs[one], merging.stairs[other]))
    return sorted(members.values(), key=lambda frames: min(map(by_size, frames)))


def _absorb_free_groups(groups: list[tuple[Stairs, ShapeList]]) -> list[tuple[Stairs, ShapeList]]:
    """The groups left when each that leaves the stairs of another as they are has gone there, where it is free."""
    kept: list[tuple[Stairs, ShapeList]] = []
    # A host reaches at least as far as its guests; of those that reach equally far, it has the most panes.
    for stairs, frames in sorted(groups, key=lambda group: (-group[0][-1][1], -cost_of(group[0]))):
        # Comparing the lowest granules first spares most of the joining.
        fine = (group for group in kept if stairs[0][0] % group[0][0][0] == 0)
        hosts = (members for host, members in fine if merge_stairs(host, stairs) == host)
        members = next(hosts, None)
        if members is None:
            kept.append((stairs, list(frames)))
        else:
            members += frames
    return kept


class _GroupMerger:
    """Groups being merged, by number: what is known of each, and which two of them save most together."""

    def __init__(self, stairs: Sequence[Stairs]) -> None:
        self.stairs: list[Stairs] = []
        # Every merger makes one group of two, so that there never are twice as many as in the beginning.
        self._alive, self._cost, self._granule, self._reach = np.zeros((4, 2 * len(stairs)), np.int64)
        self._offers: list[tuple[int, int, int]] = []
        for steps in stairs:
            self.add(steps)

    def add(self, stairs: Stairs) -> None:
        """One more group, and what it adds to the cost to merge it with each of the others, unless that is positive."""
        key = len(self.stairs)
        self._cost[key] = cost_of(stairs)
        self._granule[key], self._reach[key] = stairs[0]
        for other in self._merge_candidates(key):
            added = cost_of(merge_stairs(self.stairs[other], stairs)) - int(self._cost[other] + self._cost[key])
            if added <= 0:
                heappush(self._offers, (added, other, key))
        self._alive[key] = 1
        self.stairs.append(stairs)

    def _merge_candidates(self, key: int) -> list[int]:
        """Groups whose merger may pay: the panes of the lowest common stair alone are no more than both cost now."""
        granules = np.gcd(self._granule[:key], self._granule[key])
        panes = np.minimum(self._reach[:key], self._reach[key]) // granules
        found = (self._alive[:key] == 1) & (panes <= self._cost[:key] + self._cost[key])
        return [int(other) for other in np.flatnonzero(found)]

    def take_best(self) -> tuple[int, int] | None:
        """Take out the two groups whose merger saves most, the oldest of equals; None if every merger costs."""
        while self._offers:
            _, one, other = heappop(self._offers)
            if self._alive[one] and self._alive[other]:
                self._alive[one] = self._alive[other] = 0
                return one, other
        return None


def cheapest_group(groups: Iterable[WindowGroup], frame: WindowShape) -> WindowGroup | None:
    """The group to which a new frame adds least, or None if it adds less on its own.

    Of equals the first group is taken, and any of them rather than a new one.
    """
    alone = single_stair(frame)
    best, least = None, cost_of(alone) + 1
    for group in groups:
        if least_merged_cost(group.stairs, alone) - group.cost < least:
            added = cost_of(merge_stairs(group.stairs, alone)) - group.cost
            if added < least:
                best, least = group, added
    return best
