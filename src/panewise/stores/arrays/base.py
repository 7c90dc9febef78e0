"""Where the states of consecutive positions are kept, for many groups, so that many windows are answered at once.

Positions count from one, as in "Resource sharing" section 3; window i covers positions `firsts[i]` to `lasts[i]`, both
included, and `first = last + 1` is an empty window.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from panewise import kernels
from panewise.aggregate import Int64Array, StateArrays, StateWords, bytes_of
from panewise.core.errors import PlanProblem
from panewise.stores.arrays.tables import identity_table, to_rows, widen_rows


class PositionStore(ABC):
    """The last `reach` of `length` positions of `groups` groups, and what may be asked of them."""

    #: The paper's name.
    name: ClassVar[str]

    def __init__(self, reach: int, groups: int = 1) -> None:
        if reach < 1:
            raise PlanProblem(f"a store over {reach} panes holds nothing", fix="use at least one")
        if groups < 1:
            raise PlanProblem(f"a store of {groups} groups holds nothing", fix="use at least one")
        self.reach, self.groups, self.length = reach, groups, 0

    @property
    def forgotten_until(self) -> int:
        """The newest position that is out of reach, or zero."""
        return max(self.length - self.reach, 0)

    @property
    @abstractmethod
    def nbytes(self) -> int:
        """The memory of all that is kept."""

    def _check_windows(self, firsts: npt.ArrayLike, lasts: npt.ArrayLike) -> tuple[Int64Array, Int64Array]:
        """Windows as arrays, all of them within reach."""
        starts, stops = broadcast(_int64_array(firsts), _int64_array(lasts))
        bad = kernels.interval_outside(starts, stops, self.forgotten_until, self.length)
        if bad >= 0:
            raise outside_problem(int(starts[bad]), int(stops[bad]), self.reach, self.length)
        return starts, stops

    def _check_groups(self, groups: npt.ArrayLike) -> Int64Array:
        """Groups as an array, all of them kept here."""
        asked = _int64_array(groups)
        if len(asked) and not 0 <= asked.min() <= asked.max() < self.groups:
            raise PlanProblem(
                f"groups {asked.min()} to {asked.max()} are not all among the {self.groups} that are kept",
                fix="grow the store before",
            )
        return asked

    def _check_window(self, first: int, last: int, group: int) -> None:
        """The same for one window of one group, without arrays."""
        if not (max(self.length - self.reach, 0) < first <= last + 1 and last <= self.length):
            raise outside_problem(first, last, self.reach, self.length)
        if not 0 <= group < self.groups:
            self._check_groups(group)

    def _check_position(self, position: int) -> None:
        if not self.forgotten_until < position <= self.length:
            raise PlanProblem(
                f"position {position} is not within the last {self.reach} of {self.length} panes",
                fix="keep more panes or leave out what comes too late",
            )


class ArrayStore(PositionStore):
    """The contract of a store of states, whatever the aggregate.

    Tables have `room` columns, which doubles when groups join, so that growing is cheap in the long run. Rows are
    allocated as positions come, so that a short stream in a store of long reach costs little.
    """

    #: What it needs of states, for refusals.
    requires: ClassVar[str]

    def __init__(self, column: StateArrays, reach: int, groups: int = 1) -> None:
        if not self.accepts(column):
            raise PlanProblem(
                f"{self.name} needs {self.requires}, which {type(column).__name__} are not",
                fix="choose a store that only combines",
            )
        super().__init__(reach, groups)
        self.column, self.room = column, groups

    @classmethod
    def accepts(cls, column: StateArrays) -> bool:
        """Whether these states can be kept here: each word must be one number or object."""
        return all(word.ndim == 1 for word in column.identity(0))

    @property
    def nbytes(self) -> int:
        return sum(map(bytes_of, self._tables()))

    @property
    def capacity(self) -> int:
        """How many states there is room for, of all groups."""
        return sum(table[0].size for table in self._tables())

    def append(self, words: StateWords) -> None:
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
            rows = to_rows(words, self.groups)
            self._append(rows if self.groups == self.room else widen_rows(self.column, rows, self.room), count)
            self.length += count

    def lookup(self, firsts: Int64Array, lasts: Int64Array, groups: Int64Array | None = None) -> StateWords:
        """The states over each window of every group, window by window; or over each pair of a window and a group."""
        firsts, lasts = self._check_windows(firsts, lasts)
        if groups is None and self.groups > 1:
            return self._lookup_all_groups(firsts, lasts)
        asked = np.zeros(1, np.int64) if groups is None else self._check_groups(groups)
        return self._lookup_pairs(*broadcast(firsts, lasts, asked))

    def lookup_one(self, first: int, last: int, group: int = 0) -> tuple[Any, ...]:
        """The state of one window of one group."""
        self._check_window(first, last, group)
        return tuple([word[0] for word in self._lookup_pairs(*np.array([[first], [last], [group]], np.int64))])

    def revise(self, position: int, words: StateWords) -> None:
        """Combine more states, one for each group, into those of a past position and all that depends on it."""
        self._check_position(position)
        row = identity_table(self.column, 1, self.room)
        for table, word in zip(row, words, strict=True):
            table[0, : self.groups] = word
        self._revise(position, row)

    def grow(self, groups: int) -> None:
        """Keep this many groups; those that join hold identities at all positions so far."""
        if groups > self.room:
            self.room = max(groups, 2 * self.room)
            self._widen()
        self.groups = max(self.groups, groups)

    def _skip(self, count: int) -> None:
        """Positions are passed over that nobody can ask for, since as many as the reach follow at once."""
        self.length += count

    @abstractmethod
    def _append(self, rows: StateWords, count: int) -> None:
        """Add rows of `room` groups after position `length`, no more than the reach, and leave them as they are."""

    @abstractmethod
    def _lookup_pairs(self, firsts: Int64Array, lasts: Int64Array, groups: Int64Array) -> StateWords: ...

    @abstractmethod
    def _lookup_all_groups(self, firsts: Int64Array, lasts: Int64Array) -> StateWords: ...

    @abstractmethod
    def _revise(self, position: int, row: StateWords) -> None: ...

    @abstractmethod
    def _widen(self) -> None:
        """Make room for `room` groups."""

    @abstractmethod
    def _tables(self) -> list[StateWords]:
        """All states that are kept."""


def outside_problem(first: int, last: int, reach: int, length: int) -> PlanProblem:
    return PlanProblem(
        f"interval ({first}, {last}) is not within the last {reach} of {length} panes",
        fix="keep more panes or ask for newer ones",
    )


def _int64_array(numbers: npt.ArrayLike) -> Int64Array:
    return np.atleast_1d(np.asarray(numbers, np.int64))


def broadcast(*numbers: Int64Array) -> list[Int64Array]:
    """Windows and groups, each as long as the longest; one goes with all."""
    size = max(map(len, numbers)) if all(map(len, numbers)) else 0
    return [contiguous(each) if len(each) == size else np.broadcast_to(each, size).copy() for each in numbers]


def contiguous(numbers: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """An array as kernels expect it; for one that cannot be written or has gaps they would be compiled once more."""
    flags = numbers.flags
    return numbers if flags.c_contiguous and flags.writeable else numbers.copy()
