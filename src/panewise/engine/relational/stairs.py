"""Distinct rows of nested windows: every stair looks only at what left the one below it.

"Subsuming windows" section 4: a row that leaves a window without a younger equal goes on in the next wider one; equals
of it that are there already are phantoms, which are counted and dropped when they leave. So each stair but the first
hears of the changes of the one below instead of all items.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np

from panewise.algebra import Distinct, Host, Node, Project, Select, Windowed
from panewise.engine.relational.bands import band
from panewise.engine.relational.leaves import Leaf, expiry
from panewise.engine.relational.manner import Key
from panewise.engine.relational.multisets import Once
from panewise.engine.relational.operators import Rowwise
from panewise.engine.relational.spans import OPEN, Spans, Turn
from panewise.engine.snapshot import Tree
from panewise.time import Boundary
from panewise.window import Sliding


class DistinctKin:
    """The one chain behind several distincts, which look at it through windows of their own."""

    def __init__(self, keys: Sequence[Key], boundary: Boundary, host: Host) -> None:
        (node, _), self.boundary = keys[0], boundary
        assert isinstance(node, Distinct)
        self.node = node
        self.steps = [Rowwise(step, host) for step in _steps(node)]
        self.members = {key: _window(key[0]) for key in keys}
        self.band = band((_leaf(node) for node, _ in keys), boundary, host)
        self.stairs = self._built(window.range for window in self.members.values())

    def _built(self, ranges: Iterable[int]) -> dict[int, Once]:
        return {length: Once(self.node) for length in sorted(set(ranges))}

    @property
    def leaves(self) -> Sequence[Leaf]:
        return [self.band]

    def turn(self, limit: int, given: Sequence[Turn]) -> dict[Key, Turn]:
        """What every member hears."""
        (turn,) = given
        for step in self.steps:
            turn = step.turn(limit, [turn])
        said = self._climbed(limit, turn.opened)
        return {key: self._seen(said[window.range], window) for key, window in self.members.items()}

    def _climbed(self, limit: int, rows: Spans) -> dict[int, Turn]:
        """What each stair says, from the narrowest window on."""
        said: dict[int, Turn] = {}
        below: tuple[int, Turn] | None = None
        for length, once in self.stairs.items():
            given = Turn(self._entering(rows, below[0] if below else None, length))
            if below:
                lower = _longer(below[1], length - below[0])
                given = replace(lower, opened=Spans.together([lower.opened, given.opened]))
            said[length] = once.turn(limit, [given])
            below = length, said[length]
        return said

    def _entering(self, rows: Spans, lower: int | None, length: int) -> Spans:
        """Rows that enter a window without having been in the one below, which late ones may be too old for."""
        times, visible, _ = rows.orders
        since = times + self.boundary.shift
        mine = visible < since + length
        if lower is not None:
            mine &= visible >= since + lower
        return replace(rows, leave=since + length, orders=()).where(mine)

    def _seen(self, turn: Turn, window: Sliding) -> Turn:
        opened = turn.opened
        return replace(turn, opened=replace(opened, expires=expiry(window, opened.time, self.boundary)))

    def leave(self, kept: Iterable[Key]) -> None:
        """Only these members stay; stairs below them stay too, since they are climbed."""
        self.members = {key: self.members[key] for key in kept}
        highest = max(window.range for window in self.members.values())
        self.stairs = {length: once for length, once in self.stairs.items() if length <= highest}
        self.band.windows = dict.fromkeys(self.members.values())

    def state(self) -> Tree:
        return {"ranges": list(self.stairs), "stairs": [once.state() for once in self.stairs.values()]}

    def restore(self, state: Tree) -> None:
        self.stairs = self._built(state["ranges"])
        for once, saved in zip(self.stairs.values(), state["stairs"], strict=True):
            once.restore(saved)


def _longer(turn: Turn, by: int) -> Turn:
    """The same rows, each of which stays a little longer."""
    opened = turn.opened
    leave = np.where(opened.leave < OPEN, opened.leave + by, opened.leave)
    return Turn(replace(opened, leave=leave), turn.closed, turn.closed_at + by)


def _leaf(node: Node) -> Windowed:
    (found,) = (below for below in node.walk() if isinstance(below, Windowed))
    return found


def _window(node: Node) -> Sliding:
    window = _leaf(node).window
    assert isinstance(window, Sliding)
    return window


def _steps(node: Node) -> list[Select | Project]:
    """The row-wise operators between the window and its distinct rows, as rows pass them."""
    return [step for step in node.walk() if isinstance(step, Select | Project)][: _depth(node)][::-1]


def _depth(node: Node) -> int:
    """How many operators stand between a distinct and its window."""
    return [isinstance(below, Windowed) for below in node.walk()].index(True) - 1
