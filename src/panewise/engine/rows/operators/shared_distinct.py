"""Distinct rows of nested windows: every stair takes only the rows that left the stair below it.

"Subsuming windows" section 4: a row that leaves a window without a younger equal goes on in the next wider one; equals
of it that are there already are phantoms, which are counted and dropped when they leave. So each stair but the first
receives the changes of the one below instead of all items.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np

from panewise.algebra import Distinct, Host, Node, Project, Select, Windowed
from panewise.core.time import Boundary
from panewise.engine.rows.inputs.timed import WindowInput, expiry_instants
from panewise.engine.rows.operators.base import OperatorKey, RowwiseOperator
from panewise.engine.rows.operators.distinct import DistinctOperator
from panewise.engine.rows.shared_items import shared_input
from panewise.engine.rows.spans import RelationDelta, Spans
from panewise.engine.state.snapshot import Tree
from panewise.kernels.ranges import OPEN
from panewise.window import Sliding


class SharedDistinct:
    """The one chain that serves several distincts with different windows."""

    def __init__(self, keys: Sequence[OperatorKey], boundary: Boundary, host: Host) -> None:
        (node, _), self.boundary = keys[0], boundary
        assert isinstance(node, Distinct)
        self.node = node
        self.steps = [RowwiseOperator(step, host) for step in _steps(node)]
        self.members = {key: _window(key[0]) for key in keys}
        self.shared_input = shared_input((_windowed_below(node) for node, _ in keys), boundary, host)
        self.levels = self._new_levels(window.range for window in self.members.values())

    def _new_levels(self, ranges: Iterable[int]) -> dict[int, DistinctOperator]:
        return {length: DistinctOperator(self.node) for length in sorted(set(ranges))}

    @property
    def inputs(self) -> Sequence[WindowInput]:
        return [self.shared_input]

    def advance(self, limit: int, given: Sequence[RelationDelta]) -> dict[OperatorKey, RelationDelta]:
        """The delta of every member."""
        (delta,) = given
        for step in self.steps:
            delta = step.advance(limit, [delta])
        deltas = self._advance_levels(limit, delta.opened)
        return {key: self._delta_in_window(deltas[window.range], window) for key, window in self.members.items()}

    def _advance_levels(self, limit: int, rows: Spans) -> dict[int, RelationDelta]:
        """The delta of each stair, from the narrowest window on."""
        deltas: dict[int, RelationDelta] = {}
        below: tuple[int, RelationDelta] | None = None
        for length, operator in self.levels.items():
            given = RelationDelta(self._rows_entering(rows, below[0] if below else None, length))
            if below:
                lower = _extend_lifetimes(below[1], length - below[0])
                given = replace(lower, opened=Spans.concat([lower.opened, given.opened]))
            deltas[length] = operator.advance(limit, [given])
            below = length, deltas[length]
        return deltas

    def _rows_entering(self, rows: Spans, lower: int | None, length: int) -> Spans:
        """Rows that enter a window directly: late rows that are too old for the window below."""
        times, visible, _ = rows.orders
        since = times + self.boundary.shift
        mine = visible < since + length
        if lower is not None:
            mine &= visible >= since + lower
        return replace(rows, leave=since + length, orders=()).where(mine)

    def _delta_in_window(self, delta: RelationDelta, window: Sliding) -> RelationDelta:
        opened = delta.opened
        return replace(delta, opened=replace(opened, expires=expiry_instants(window, opened.time, self.boundary)))

    def keep_only(self, kept: Iterable[OperatorKey]) -> None:
        """Keep only these members, and the stairs below them, through which their rows pass."""
        self.members = {key: self.members[key] for key in kept}
        highest = max(window.range for window in self.members.values())
        self.levels = {length: operator for length, operator in self.levels.items() if length <= highest}
        self.shared_input.windows = dict.fromkeys(self.members.values())

    def state(self) -> Tree:
        return {"ranges": list(self.levels), "stairs": [operator.state() for operator in self.levels.values()]}

    def restore(self, state: Tree) -> None:
        self.levels = self._new_levels(state["ranges"])
        for operator, saved in zip(self.levels.values(), state["stairs"], strict=True):
            operator.restore(saved)


def _extend_lifetimes(delta: RelationDelta, by: int) -> RelationDelta:
    """The same rows, each of which stays longer by some ticks."""
    opened = delta.opened
    leave = np.where(opened.leave < OPEN, opened.leave + by, opened.leave)
    return RelationDelta(replace(opened, leave=leave), delta.closed, delta.closed_at + by)


def _windowed_below(node: Node) -> Windowed:
    (found,) = (below for below in node.walk() if isinstance(below, Windowed))
    return found


def _window(node: Node) -> Sliding:
    return Sliding.of(_windowed_below(node).window)


def _steps(node: Node) -> list[Select | Project]:
    """The row-wise operators between the window and the distinct, in the order in which rows pass them."""
    return [step for step in node.walk() if isinstance(step, Select | Project)][: _depth(node)][::-1]


def _depth(node: Node) -> int:
    """How many operators stand between a distinct and its window."""
    return [isinstance(below, Windowed) for below in node.walk()].index(True) - 1
