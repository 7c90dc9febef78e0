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
from panewise.engine.relational.manner import Key
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
        left, right = pairs.orders[0], pairs.orders[Band.WORDS]
        return cls(pairs, right - left)

    def within(self, left: int, right: int) -> Longs:
        """The places of pairs whose parts may be together in windows that hold them for so long."""
        return np.flatnonzero((self.gaps > -right) & (self.gaps < left))


class JoinKin:
    """The one join behind several."""

    def __init__(self, keys: Sequence[Key], boundary: Boundary, host: Host, purge: Purge) -> None:
        self.boundary = boundary
        self.bands = [band((_windows(node)[side] for node, _ in keys), boundary, host) for side in (0, 1)]
        left, right = (each.node for each in self.bands)
        self.joined = Joined(replace(_join(keys[0][0]), left=left, right=right), host, purge, Band.WORDS)
        self.members = {key: Membership(key, boundary) for key in keys}

    def has_room(self, node: Node) -> bool:
        """Whether rows have all the columns that another join looks at, and come from outside.

        A query below, whose results are joined, has seen rows that a newcomer must not hear of.
        """
        mine = {column.name for column in self.joined.node.columns}
        outside = all(inlet.stream for leaf in self.leaves for inlet in leaf.inlets)
        return outside and mine.issuperset(column.name for column in node.columns)

    def join(self, key: Key) -> None:
        """Let a join in, for which only counts what comes from now on."""
        self.members[key] = Membership(key, self.boundary)
        for each, window in zip(self.bands, self.members[key].windows, strict=True):
            each.windows[window] = None
            each.joined = self.members[key].since

    @property
    def leaves(self) -> Sequence[Leaf]:
        return self.bands

    def turn(self, limit: int, given: Sequence[Turn]) -> dict[Key, Turn]:
        """What every member hears."""
        found = Found.of(self.joined.turn(limit, given).opened)
        return {key: member.turn(limit, found) for key, member in self.members.items()}

    def leave(self, kept: Iterable[Key]) -> None:
        """Only these members stay; items are kept as long as these need them."""
        self.members = {key: self.members[key] for key in kept}
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

    def __init__(self, key: Key, boundary: Boundary) -> None:
        node, manner = key
        self.boundary = boundary
        self.since = manner.kin or 0
        self.windows = [side.window for side in _windows(node) if isinstance(side.window, LogicalWindow)]
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
        times, visible, born = ([word[places] for word in pairs.orders[n :: Band.WORDS]] for n in range(Band.WORDS))
        lives = [lifetimes(*each, self.boundary) for each in zip(self.windows, times, visible, strict=True)]
        enter, leave = np.maximum(lives[0][0], lives[1][0]), np.minimum(lives[0][1], lives[1][1])
        mine = (enter < leave) & (np.minimum(born[0], born[1]) >= self.since)
        places, enter, leave = places[mine], enter[mine], leave[mine]
        first, second = (expiry(w, t[mine], self.boundary) for w, t in zip(self.windows, times, strict=True))
        rows = replace(pairs, table=pairs.table.select(self.schema.names), orders=()).at(places)
        return replace(rows, enter=enter, leave=leave, expires=np.minimum(first, second))

    def state(self) -> Tree:
        return {"waiting": self.waiting.state()}

    def restore(self, state: Tree) -> None:
        self.waiting = Spans.restored(state["waiting"])


def _join(node: Node) -> Join:
    assert isinstance(node, Join)
    return node


def _windows(node: Node) -> tuple[Windowed, ...]:
    """The two windows that a join looks through."""
    return tuple(side for side in node.children if isinstance(side, Windowed))
