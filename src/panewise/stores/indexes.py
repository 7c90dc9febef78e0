"""How any run of kept panes is answered: panes merged anew, or base intervals of panes.

"Resource sharing" section 3, with panes in the place of tuples. Indexes see the panes of an `Archive` by their place in
its list; each serves one column of states.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from typing import ClassVar, TypeAlias

import numpy as np

from panewise.aggregate import Int64Array, StateArrays, StateWords, put, states_at
from panewise.stores.arrays.base_intervals import cover
from panewise.stores.pane import Pane, merge_panes

#: Panes that are not kept yet, and the numbers of the runs that hold each.
PendingPanes: TypeAlias = Sequence[tuple[Pane, Int64Array]]


def common_codes(held: Int64Array, asked: Int64Array) -> tuple[Int64Array, Int64Array]:
    """Which of some ascending codes are among others, and where they are there."""
    _, mine, places = np.intersect1d(held, asked, assume_unique=True, return_indices=True)
    return mine, places


class PaneIndex(ABC):
    """One column of states over a list of panes that grows at its end, loses its oldest, and changes in between."""

    name: ClassVar[str]

    def __init__(self, column: StateArrays, number: int, panes: Sequence[Pane]) -> None:
        self.column, self.number, self.panes = column, number, panes

    def lookup(
        self, firsts: Int64Array, stops: Int64Array, codes: Int64Array, size: int, coming: PendingPanes = ()
    ) -> StateWords:
        """The states of some groups, ascending, over each run `panes[first:stop]`, one run after the other.

        `coming` belongs to runs too, but is not among the panes yet.
        """
        words = self._lookup_kept(firsts, stops, codes, size)
        for pane, runs in coming:
            mine, places = common_codes(pane.codes, codes)
            where = (runs[:, None] * len(codes) + places).ravel()
            more = states_at(pane.states[self.number], np.tile(mine, len(runs)))
            put(words, where, self.column.combine(states_at(words, where), more))
        return words

    def _lookup_kept(self, firsts: Int64Array, stops: Int64Array, codes: Int64Array, size: int) -> StateWords:
        """What the panes themselves say."""
        if not len(firsts):
            return self.column.identity(0)
        runs = zip(firsts.tolist(), stops.tolist(), strict=True)
        found = [self._lookup(first, stop, codes, size) for first, stop in runs]
        return tuple(np.concatenate(words) for words in zip(*found, strict=True))

    @abstractmethod
    def _lookup(self, first: int, stop: int, codes: Int64Array, size: int) -> StateWords: ...

    @property
    def nbytes(self) -> int:
        """The memory of what is prepared beside the panes."""
        return 0

    @abstractmethod
    def drop_oldest(self, count: int) -> None:
        """The oldest panes have left the list."""

    @abstractmethod
    def revise(self, place: int, late: Pane) -> None:
        """The pane at a place has taken a late one in."""

    def _combine_parts(self, parts: Iterable[Pane], codes: Int64Array, size: int) -> StateWords:
        """States of some groups over panes with one column."""
        words = self.column.identity(len(codes))
        for part in parts:
            if len(codes) == size:
                where, mine = part.where, part.states[0]
            else:
                places = np.minimum(np.searchsorted(part.codes, codes), len(part.codes) - 1)
                hits = part.codes[places] == codes
                where, mine = np.flatnonzero(hits), states_at(part.states[0], places[hits])
            put(words, where, self.column.combine(states_at(words, where), mine))
        return words

    def _leaf(self, place: int) -> Pane:
        """A pane with this column alone."""
        return self._single_column(self.panes[place])

    def _single_column(self, pane: Pane) -> Pane:
        return Pane(pane.start, pane.end, pane.codes, (pane.states[self.number],))


class RecomputeIndex(PaneIndex):
    """Nothing is prepared: every lookup merges its panes. Update O(0), lookup O(W)."""

    name = "recompute"

    def _lookup(self, first: int, stop: int, codes: Int64Array, size: int) -> StateWords:
        return self._combine_parts(map(self._leaf, range(first, stop)), codes, size)

    def drop_oldest(self, count: int) -> None:
        return

    def revise(self, place: int, late: Pane) -> None:
        return


class BaseIntervalIndex(PaneIndex):
    """B-INT over sparse panes: base intervals are merged when a lookup first needs them, and kept.

    Lookup O(log W) merges. Intervals count panes from the first one ever kept.
    """

    name = "B-INT"

    def __init__(self, column: StateArrays, number: int, panes: Sequence[Pane]) -> None:
        super().__init__(column, number, panes)
        self._gone = 0
        self._intervals: dict[tuple[int, int], Pane] = {}

    def _lookup(self, first: int, stop: int, codes: Int64Array, size: int) -> StateWords:
        parts = (self._interval(end, width) for end, width in cover(self._gone + first + 1, self._gone + stop))
        return self._combine_parts(parts, codes, size)

    def _interval(self, end: int, width: int) -> Pane:
        if width == 1:
            return self._leaf(end - self._gone - 1)
        if (end, width) not in self._intervals:
            halves = (self._interval(end - width // 2, width // 2), self._interval(end, width // 2))
            self._intervals[end, width] = merge_panes([self.column], halves)
        return self._intervals[end, width]

    @property
    def nbytes(self) -> int:
        return sum(pane.nbytes for pane in self._intervals.values())

    def drop_oldest(self, count: int) -> None:
        self._gone += count
        self._intervals = {key: pane for key, pane in self._intervals.items() if key[0] - key[1] >= self._gone}

    def revise(self, place: int, late: Pane) -> None:
        position, width = self._gone + place + 1, 2
        while width <= 2 * (self._gone + len(self.panes)):
            self._intervals.pop((-(-position // width) * width, width), None)
            width *= 2
