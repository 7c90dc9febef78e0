"""The total of a queue of panes, for every group at once, while panes join at one end and leave at the other."""

from __future__ import annotations

from collections import deque
from typing import Any

import numpy as np

from panewise.aggregate import StateWords, TotalStates, bytes_of, put, states_at


class PaneTotal:
    """What joins is added. On its own this is the total of a window that nothing leaves; subclasses let panes leave.

    `where` says which groups a pane holds; panes leave in the order in which they came.
    """

    #: The name `explain` gives it.
    name = "running total"

    def __init__(self, columns: TotalStates) -> None:
        self.columns = columns
        self.size = 0
        self._total = columns.identity(0)

    def grow(self, size: int) -> None:
        """Make room for groups 0 to `size` - 1."""
        self.size = max(self.size, size)
        self._total = self._with_room(self._total)

    def push(self, where: Any, words: StateWords) -> None:
        self._add(where, self.columns.of_pane(words))

    def _add(self, where: Any, words: StateWords) -> None:
        put(self._total, where, self.columns.combine(states_at(self._total, where), words))

    def pop(self, where: Any, words: StateWords) -> None:
        """Take the oldest pane out."""
        raise TypeError("nothing leaves a running total")

    def total(self) -> StateWords:
        """The states of all groups over all panes in the queue."""
        return states_at(self._total, slice(0, self.size))

    @property
    def nbytes(self) -> int:
        return bytes_of(self._total)

    def _with_room(self, words: StateWords) -> StateWords:
        """The same states with room for `size` groups; capacity doubles, so that growing is cheap in the long run."""
        have = len(words[0])
        if have >= self.size:
            return words
        more = self.columns.identity(max(self.size, 2 * have) - have)
        return tuple(np.concatenate(pair) for pair in zip(words, more, strict=True))


class SubtractingTotal(PaneTotal):
    """Subtracts what leaves: the difference of two running intervals, O(1) a pane.

    Requires states out of which a part can be taken without loss.
    """

    name = "R-INT"

    def pop(self, where: Any, words: StateWords) -> None:
        put(self._total, where, self.columns.invert(states_at(self._total, where), self.columns.of_pane(words)))


class TwoStackTotal(PaneTotal):
    """Requires associativity only: MIN and MAX without rescans, floats without subtraction. O(1) a pane, amortised.

    `back` is the total of the older panes. When a pane leaves, the groups it holds get the states back that they
    had without it: each pane remembers just those, so that sparse panes stay sparse. The running total is that of
    the younger panes; when `back` runs out, they become the older ones.
    """

    name = "two-stacks"

    def __init__(self, columns: TotalStates) -> None:
        super().__init__(columns)
        self._back = columns.identity(0)
        self._undo: list[tuple[Any, StateWords]] = []
        self._young: deque[tuple[Any, StateWords]] = deque()

    def grow(self, size: int) -> None:
        super().grow(size)
        self._back = self._with_room(self._back)

    def _add(self, where: Any, words: StateWords) -> None:
        super()._add(where, words)
        self._young.append((where, words))

    def pop(self, where: Any, words: StateWords) -> None:
        if not self._undo:
            self._move_young_panes()
        put(self._back, *self._undo.pop())

    def total(self) -> StateWords:
        older = states_at(self._back, slice(0, self.size))
        return self.columns.combine(older, super().total()) if self._young else older

    @property
    def nbytes(self) -> int:
        return super().nbytes + bytes_of(self._back) + sum(bytes_of(words) for _, words in self._undo)

    def _move_young_panes(self) -> None:
        """The young panes become the older ones, from the youngest to the oldest."""
        for where, words in reversed(self._young):
            without = tuple(word.copy() for word in states_at(self._back, where))
            self._undo.append((where, without))
            put(self._back, where, self.columns.combine(words, without))
        self._young.clear()
        self._total = self.columns.identity(len(self._total[0]))
