"""Where the states of consecutive positions are kept, for many groups, so that many windows are answered at once.

The vectorised twin of `stores.base`, over the states of `aggregate.columns`. Positions count from one; window i covers
positions `firsts[i]` to `lasts[i]`, both included, and `first = last + 1` is an empty window.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from panewise.aggregate import Columns, Longs, Words, bytes_of
from panewise.errors import PlanProblem
from panewise.stores.arrays.tables import blank, shaped


class ArrayStore(ABC):
    """The contract of a store over the last `reach` positions of `groups` groups.

    Tables have `room` columns, which doubles when groups join, so that growing is cheap in the long run. Rows are
    allocated as positions come, so that a short stream in a store of long reach costs little.
    """

    #: The paper's name.
    name: ClassVar[str]
    #: What it needs of states, for refusals.
    requires: ClassVar[str]
    update_cost: ClassVar[str]
    lookup_cost: ClassVar[str]

    def __init__(self, column: Columns, reach: int, groups: int = 1) -> None:
        if not self.accepts(column):
            raise PlanProblem(
                f"{self.name} needs {self.requires}, which {type(column).__name__} are not",
                fix="choose a store that only combines",
            )
        if reach < 1:
            raise PlanProblem(f"a store over {reach} panes holds nothing", fix="use at least one")
        if groups < 1:
            raise PlanProblem(f"a store of {groups} groups holds nothing", fix="use at least one")
        self.column, self.reach, self.groups, self.room, self.length = column, reach, groups, groups, 0

    @classmethod
    @abstractmethod
    def accepts(cls, column: Columns) -> bool:
        """Whether these states can be kept here."""

    @property
    def forgotten(self) -> int:
        """The newest position that is out of reach, or zero."""
        return max(self.length - self.reach, 0)

    @property
    def nbytes(self) -> int:
        """The memory of all states that are kept."""
        return sum(map(bytes_of, self._tables()))

    def append(self, words: Words) -> None:
        """Add the states of the next positions, oldest first, each with the states of all groups."""
        count, rest = divmod(len(words[0]), self.groups)
        if rest:
            raise PlanProblem(
                f"{len(words[0])} states are no whole number of positions of {self.groups} groups",
                fix="append one state for each group of each position",
            )
        if count > self.reach:
            self._skip(count - self.reach)
            words, count = tuple(word[-self.reach * self.groups :] for word in words), self.reach
        if count:
            rows = shaped(words, self.groups)
            self._append(rows if self.groups == self.room else self._widened(rows), count)
            self.length += count

    def lookup(self, firsts: Longs, lasts: Longs, groups: Longs | None = None) -> Words:
        """The states over each window of every group, window by window; or over each pair of a window and a group."""
        firsts, lasts = _longs(firsts), _longs(lasts)
        self._must_reach(firsts, lasts)
        if groups is None and self.groups > 1:
            return self._every(*_paired(firsts, lasts))
        asked = np.zeros(1, np.int64) if groups is None else _longs(groups)
        if len(asked) and not 0 <= asked.min() <= asked.max() < self.groups:
            raise PlanProblem(
                f"groups {asked.min()} to {asked.max()} are not all among the {self.groups} that are kept",
                fix="grow the store before",
            )
        return self._pairs(*_paired(firsts, lasts, asked))

    def one(self, first: int, last: int, group: int = 0) -> tuple[Any, ...]:
        """The state of one window of one group."""
        found = self.lookup(*(np.array([number], np.int64) for number in (first, last, group)))
        return tuple(word[0] for word in found)

    def revise(self, position: int, words: Words) -> None:
        """Combine more states, one for each group, into those of a past position and all that depends on it."""
        if not self.forgotten < position <= self.length:
            raise PlanProblem(
                f"position {position} is not within the last {self.reach} of {self.length} panes",
                fix="keep more panes or leave out what comes too late",
            )
        row = blank(self.column, 1, self.room)
        for table, word in zip(row, words, strict=True):
            table[0, : self.groups] = word
        self._revise(position, row)

    def grow(self, groups: int) -> None:
        """Keep this many groups; those that join hold identities at all positions so far."""
        if groups > self.room:
            self.room = max(groups, 2 * self.room)
            self._widen()
        self.groups = max(self.groups, groups)

    def _widened(self, table: Words) -> Words:
        """The same rows with `room` groups."""
        wide = blank(self.column, len(table[0]), self.room)
        for new, old in zip(wide, table, strict=True):
            new[:, : old.shape[1]] = old
        return wide

    def _must_reach(self, firsts: Longs, lasts: Longs) -> None:
        if len(firsts) and len(lasts):
            widths = lasts - firsts
            if not (firsts.min() > self.forgotten and lasts.max() <= self.length and widths.min() >= -1):
                bad = int(np.argmax((firsts <= self.forgotten) | (lasts > self.length) | (widths < -1)))
                pairs = np.broadcast_arrays(firsts, lasts)
                raise outside(int(pairs[0][bad]), int(pairs[1][bad]), self.reach, self.length)

    def _skip(self, count: int) -> None:
        """Positions are passed over that nobody can ask for, since as many as the reach follow at once."""
        self.length += count

    @abstractmethod
    def _append(self, rows: Words, count: int) -> None:
        """Add rows of `room` groups after position `length`, no more than the reach, and leave them as they are."""

    @abstractmethod
    def _pairs(self, firsts: Longs, lasts: Longs, groups: Longs) -> Words: ...

    @abstractmethod
    def _every(self, firsts: Longs, lasts: Longs) -> Words: ...

    @abstractmethod
    def _revise(self, position: int, row: Words) -> None: ...

    @abstractmethod
    def _widen(self) -> None:
        """Make room for `room` groups."""

    @abstractmethod
    def _tables(self) -> list[Words]:
        """All states that are kept."""


def outside(first: int, last: int, reach: int, length: int) -> PlanProblem:
    return PlanProblem(
        f"interval ({first}, {last}) is not within the last {reach} of {length} panes",
        fix="keep more panes or ask for newer ones",
    )


def _longs(numbers: npt.ArrayLike) -> Longs:
    return np.atleast_1d(np.asarray(numbers, np.int64))


def _paired(*numbers: Longs) -> list[Longs]:
    """Windows and groups, each as long as the longest."""
    return [np.ascontiguousarray(each) for each in np.broadcast_arrays(*numbers)]
