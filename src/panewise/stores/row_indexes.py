"""How any run of kept rows is answered: the rows added anew, running totals, or base intervals of rows.

"Resource sharing" section 3 as it is written, over tuples. Rows of a group follow each other, so that a run of rows is
the part of a window that belongs to one group; each index serves one column of states and does not change.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import ClassVar

import numpy as np

from panewise.aggregate import Int64Array, Items, StateArrays, StateWords, bytes_of, put, states_at
from panewise.stores.arrays import ArrayStore, BaseArrays, RunningArrays

#: What a column looks at, of the rows at some places.
ItemsAt = Callable[[Int64Array], Items]


class RowIndex(ABC):
    """One column of states over `size` rows."""

    #: The paper's name.
    name: ClassVar[str]

    def __init__(self, column: StateArrays, items: ItemsAt, size: int) -> None:
        self.column, self.items, self.size = column, items, size

    @classmethod
    def accepts(cls, column: StateArrays) -> bool:
        """Whether it can keep these states."""
        return True

    @abstractmethod
    def lookup(self, firsts: Int64Array, stops: Int64Array) -> StateWords:
        """The states of runs of rows, from `first` up to, not including, `stop`."""

    @property
    def nbytes(self) -> int:
        """The memory of what is prepared beside the rows."""
        return 0


class RowRecomputeIndex(RowIndex):
    """Nothing is prepared: every lookup adds its rows. Update O(0), lookup O(W)."""

    name = "recompute"

    def lookup(self, firsts: Int64Array, stops: Int64Array) -> StateWords:
        sizes = stops - firsts
        places = np.arange(sizes.sum()) + np.repeat(firsts - (np.cumsum(sizes) - sizes), sizes)
        return self.column.gather(np.repeat(np.arange(len(sizes)), sizes), self.items(places), len(sizes))


class RowStoreIndex(RowIndex):
    """A state for each row, in one of the paper's structures."""

    store: type[ArrayStore]

    def __init__(self, column: StateArrays, items: ItemsAt, size: int) -> None:
        super().__init__(column, items, size)
        self._arrays = self.store(column, size)
        self._arrays.append(row_states(column, items, size))

    @classmethod
    def accepts(cls, column: StateArrays) -> bool:
        return cls.store.accepts(column) and not any(word.dtype.hasobject for word in column.identity(0))

    def lookup(self, firsts: Int64Array, stops: Int64Array) -> StateWords:
        return self._arrays.lookup(firsts + 1, stops)

    @property
    def nbytes(self) -> int:
        return self._arrays.nbytes


class RowRunningIndex(RowStoreIndex):
    """R-INT. Lookup O(1). Totals run on from group to group, which no difference within a group notices."""

    name = "R-INT"
    store = RunningArrays


class RowBaseIndex(RowStoreIndex):
    """B-INT in arrays. Lookup O(log W)."""

    name = "B-INT in arrays"
    store = BaseArrays


class RowLevelIndex(RowIndex):
    """B-INT for states of any kind: those of each level as they are. Lookup O(log W) combinations."""

    name = "B-INT"

    def __init__(self, column: StateArrays, items: ItemsAt, size: int) -> None:
        super().__init__(column, items, size)
        self._levels = [row_states(column, items, size)]
        while (half := len(self._levels[-1][0]) // 2) > 0:
            even, odd = (states_at(self._levels[-1], slice(side, 2 * half, 2)) for side in (0, 1))
            self._levels.append(column.combine(even, odd))

    def lookup(self, firsts: Int64Array, stops: Int64Array) -> StateWords:
        found, low, high = self.column.identity(len(firsts)), firsts, stops
        for level in self._levels:
            # What sticks out at either end of what the next level holds.
            for edge, inner in ((low, low), (high, high - 1)):
                where = np.flatnonzero((edge & 1 > 0) & (low < high))
                parts = states_at(level, inner[where])
                put(found, where, self.column.combine(states_at(found, where), parts))
            low, high = (low + 1) >> 1, high >> 1
        return found

    @property
    def nbytes(self) -> int:
        return sum(map(bytes_of, self._levels))


def row_states(column: StateArrays, items: ItemsAt, size: int) -> StateWords:
    """The state of each row."""
    places = np.arange(size)
    return column.gather(places, items(places), size)
