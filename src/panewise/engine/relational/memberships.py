"""Joins that differ in their windows only: each pair is found once and belongs to all windows wide enough for it.

"Subsuming windows" section 4: a tuple is probed once against the windows of the other stream, and a match at level k
is a result of the n - k windows from there on, with an expiry of its own in each.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from panewise.aggregate import Longs
from panewise.algebra import Host, Join, Node, Windowed
from panewise.engine.purge import Purge
from panewise.engine.relational.bands import Band, band
from panewise.engine.relational.joined import Joined
from panewise.engine.relational.leaves import Leaf, expiry, lifetimes
from panewise.engine.relational.operators import schema_of
from panewise.engine.relational.spans import Spans, Turn, no_spans
from panewise.engine.snapshot import Tree
from panewise.time import Boundary
from panewise.window import LogicalWindow


@dataclass(frozen=True, eq=False)
class Found:
    """The pairs of a turn, and how much later the right part of each is than the left."""

    pairs: Spans
    gaps: Longs

    @classmethod
    def of(cls, pairs: Spans) -> Found:
        left, _, right, _ = pairs.orders
        return cls(pairs, right - left)

    def within(self, left: int, right: int) -> Longs:
        """The places of pairs whose parts may be together in windows that hold them for so long."""
        return np.flatnonzero((self.gaps > -right) & (self.gaps < left))


class JoinKin:
    """The one join behind several."""

    def __init__(self, nodes: Iterable[Join], boundary: Boundary, host: Host, purge: Purge) -> None:
        some = list(nodes)
        self.boundary = boundary
        self.bands = [band(_sides(some, side), boundary, host) for side in (0, 1)]
        wide = replace(some[0], left=self.bands[0].node, right=self.bands[1].node)
        self.joined = Joined(wide, host, purge, Band.WORDS)
        self.members: dict[Node, Membership] = {node: Membership(node, boundary) for node in some}

    @property
    def leaves(self) -> Sequence[Leaf]:
        return self.bands

    def turn(self, limit: int, given: Sequence[Turn]) -> dict[Node, Turn]:
        """What every member hears."""
        found = Found.of(self.joined.turn(limit, given).opened)
        return {node: member.turn(limit, found) for node, member in self.members.items()}

    def leave(self, kept: Iterable[Node]) -> None:
        """Only these members stay; items are kept as long as these need them."""
        self.members = {node: self.members[node] for node in kept}
        for side, each in enumerate(self.bands):
            each.windows = dict.fromkeys(member.windows[side] for member in self.members.values())

    def state(self) -> Tree:
        return {"joined": self.joined.state(), "members": [member.state() for member in self.members.values()]}

    def restore(self, state: Tree) -> None:
        self.joined.restore(state["joined"])
        for member, saved in zip(self.members.values(), state["members"], strict=True):
            member.restore(saved)


class Membership:
    """One of the joins: the pairs that are in its windows, while they are."""

    def __init__(self, node: Join, boundary: Boundary) -> None:
        self.boundary = boundary
        left, right = (_windowed(side).window for side in node.children)
        assert isinstance(left, LogicalWindow)
        assert isinstance(right, LogicalWindow)
        self.windows = (left, right)
        self.schema = schema_of(node)
        #: Pairs that have been found and are not in the windows yet.
        self.waiting = no_spans(self.schema)

    def turn(self, limit: int, found: Found) -> Turn:
        left, right = self.windows
        pairs = Spans.together([self.waiting, self._mine(found, found.within(left.lasts, right.lasts))])
        ready = pairs.enter <= limit
        self.waiting = pairs.where(~ready)
        return Turn(pairs.where(ready))

    def _mine(self, found: Found, places: Longs) -> Spans:
        pairs = found.pairs
        times, visible = ([word[places] for word in pairs.orders[n::2]] for n in (0, 1))
        lives = [lifetimes(*each, self.boundary) for each in zip(self.windows, times, visible, strict=True)]
        enter, leave = np.maximum(lives[0][0], lives[1][0]), np.minimum(lives[0][1], lives[1][1])
        mine = enter < leave
        places, enter, leave = places[mine], enter[mine], leave[mine]
        first, second = (expiry(w, t[mine], self.boundary) for w, t in zip(self.windows, times, strict=True))
        rows = replace(pairs, table=pairs.table.select(self.schema.names), orders=()).at(places)
        return replace(rows, enter=enter, leave=leave, expires=np.minimum(first, second))

    def state(self) -> Tree:
        return {"waiting": self.waiting.state()}

    def restore(self, state: Tree) -> None:
        self.waiting = Spans.restored(state["waiting"])


def _sides(nodes: Iterable[Join], side: int) -> list[Windowed]:
    return [_windowed(node.children[side]) for node in nodes]


def _windowed(node: Node) -> Windowed:
    assert isinstance(node, Windowed)
    return node
