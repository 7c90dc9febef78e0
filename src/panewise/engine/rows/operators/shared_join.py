"""Joins that differ in their windows only: each pair is found once and belongs to all windows wide enough for it.

"Subsuming windows" section 4: a tuple is probed once against the windows of the other stream, and a match at level k
is a result of the n - k windows from there on, with an expiry of its own in each.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from panewise.aggregate import Int64Array
from panewise.algebra import Host, Join, Node, Windowed
from panewise.core.time import Boundary
from panewise.engine.lateness import visible_lifetimes
from panewise.engine.purge import Purge
from panewise.engine.rows.inputs.timed import WindowInput, expiry_instants
from panewise.engine.rows.operators.base import OperatorKey, schema_of
from panewise.engine.rows.operators.join import JoinOperator
from panewise.engine.rows.shared_items import SharedInput, shared_input
from panewise.engine.rows.spans import RelationDelta, Spans, empty_spans
from panewise.engine.state.snapshot import Tree
from panewise.window import LogicalWindow


@dataclass(frozen=True, eq=False)
class CandidatePairs:
    """The pairs of a turn, and how much later the right part of each is than the left."""

    pairs: Spans
    gaps: Int64Array

    @classmethod
    def of(cls, pairs: Spans) -> CandidatePairs:
        left, right = pairs.orders[0], pairs.orders[SharedInput.WORDS]
        return cls(pairs, right - left)

    def within(self, left: int, right: int) -> Int64Array:
        """The places of pairs whose parts may be together in windows that hold them for so long."""
        return np.flatnonzero((self.gaps > -right) & (self.gaps < left))


class SharedJoin:
    """One join that serves several members."""

    def __init__(self, keys: Sequence[OperatorKey], boundary: Boundary, host: Host, purge: Purge) -> None:
        self.boundary = boundary
        self.shared_inputs = [
            shared_input((_windows(node)[side] for node, _ in keys), boundary, host) for side in (0, 1)
        ]
        left, right = (each.node for each in self.shared_inputs)
        self.operator = JoinOperator(replace(_join(keys[0][0]), left=left, right=right), host, purge, SharedInput.WORDS)
        self.members = {key: SharedJoinMember(key, boundary) for key in keys}

    def can_admit(self, node: Node) -> bool:
        """Whether rows have all the columns that another join reads, and come from declared streams.

        Results of a query below the join may depend on rows that do not count for the new member.
        """
        mine = {column.name for column in self.operator.node.columns}
        outside = all(inlet.stream for leaf in self.inputs for inlet in leaf.inlets)
        return outside and mine.issuperset(column.name for column in node.columns)

    def admit(self, key: OperatorKey) -> None:
        """Add a member for which only rows from now on count."""
        self.members[key] = SharedJoinMember(key, self.boundary)
        for each, window in zip(self.shared_inputs, self.members[key].windows, strict=True):
            each.windows[window] = None
            each.joined_while_running = self.members[key].since

    @property
    def inputs(self) -> Sequence[WindowInput]:
        return self.shared_inputs

    def advance(self, limit: int, given: Sequence[RelationDelta]) -> dict[OperatorKey, RelationDelta]:
        """The delta of every member."""
        found = CandidatePairs.of(self.operator.advance(limit, given).opened)
        return {key: member.advance(limit, found) for key, member in self.members.items()}

    def keep_only(self, kept: Iterable[OperatorKey]) -> None:
        """Keep only these members; items are kept as long as these need them."""
        self.members = {key: self.members[key] for key in kept}
        for side, each in enumerate(self.shared_inputs):
            each.windows = dict.fromkeys(member.windows[side] for member in self.members.values())

    def state(self) -> Tree:
        return {"joined": self.operator.state(), "members": [member.state() for member in self.members.values()]}

    def restore(self, state: Tree) -> None:
        self.operator.restore(state["joined"])
        for member, saved in zip(self.members.values(), state["members"], strict=True):
            member.restore(saved)


class SharedJoinMember:
    """One of the joins: the pairs that are in its windows."""

    def __init__(self, key: OperatorKey, boundary: Boundary) -> None:
        node, variant = key
        self.boundary = boundary
        self.since = variant.since or 0
        self.windows = [LogicalWindow.of(side.window) for side in _windows(node)]
        self.schema = schema_of(node)
        #: Pairs that have been found and are not in the windows yet.
        self.waiting = empty_spans(self.schema)

    def advance(self, limit: int, found: CandidatePairs) -> RelationDelta:
        left, right = self.windows
        pairs = Spans.concat(
            [self.waiting, self._own_pairs(found, found.within(left.max_lifetime, right.max_lifetime))]
        )
        ready = pairs.enter <= limit
        self.waiting = pairs.where(~ready)
        return RelationDelta(pairs.where(ready))

    def _own_pairs(self, found: CandidatePairs, places: Int64Array) -> Spans:
        pairs = found.pairs
        times, visible, born = (
            [word[places] for word in pairs.orders[n :: SharedInput.WORDS]] for n in range(SharedInput.WORDS)
        )
        lives = [visible_lifetimes(*each, self.boundary) for each in zip(self.windows, times, visible, strict=True)]
        enter, leave = np.maximum(lives[0][0], lives[1][0]), np.minimum(lives[0][1], lives[1][1])
        mine = (enter < leave) & (np.minimum(born[0], born[1]) >= self.since)
        places, enter, leave = places[mine], enter[mine], leave[mine]
        first, second = (expiry_instants(w, t[mine], self.boundary) for w, t in zip(self.windows, times, strict=True))
        rows = replace(pairs, table=pairs.table.select(self.schema.names), orders=()).at(places)
        return replace(rows, enter=enter, leave=leave, expires=np.minimum(first, second))

    def state(self) -> Tree:
        return {"waiting": self.waiting.state()}

    def restore(self, state: Tree) -> None:
        self.waiting = Spans.from_state(state["waiting"])


def _join(node: Node) -> Join:
    assert isinstance(node, Join)
    return node


def _windows(node: Node) -> tuple[Windowed, ...]:
    """The two windows of a join."""
    return tuple(side for side in node.children if isinstance(side, Windowed))
