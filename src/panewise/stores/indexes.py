"""How any run of kept panes is answered: panes merged anew, or base intervals of panes.

"Resource sharing" section 3, with panes in the place of tuples. Indexes see the panes of an `Archive` by their place in
its list; each serves one column of states.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from typing import ClassVar, TypeAlias

import numpy as np

from panewise.aggregate import Columns, Longs, Words, placed, put
from panewise.stores.base_intervals import cover
from panewise.stores.pane import Pane, merged

#: Panes that are not kept yet, and the numbers of the runs that hold each.
Coming: TypeAlias = Sequence[tuple[Pane, Longs]]


def hits(held: Longs, asked: Longs) -> tuple[Longs, Longs]:
    """Which of some ascending codes are among others, and where they are there."""
    _, mine, places = np.intersect1d(held, asked, assume_unique=True, return_indices=True)
    return mine, places


class Index(ABC):
    """One column of states over a list of panes that grows at its end, loses its oldest, and changes in between."""

    name: ClassVar[str]

    def __init__(self, column: Columns, number: int, panes: Sequence[Pane]) -> None:
        self.column, self.number, self.panes = column, number, panes

    def lookup(self, firsts: Longs, stops: Longs, codes: Longs, size: int, coming: Coming = ()) -> Words:
        """The states of some groups, ascending, over each run `panes[first:stop]`, one run after the other.

        `coming` belongs to runs too, but is not among the panes yet.
        """
        words = self._found(firsts, stops, codes, size)
        for pane, runs in coming:
            mine, places = hits(pane.codes, codes)
            where = (runs[:, None] * len(codes) + places).ravel()
            more = placed(pane.states[self.number], np.tile(mine, len(runs)))
            put(words, where, self.column.combine(placed(words, where), more))
        return words

    def _found(self, firsts: Longs, stops: Longs, codes: Longs, size: int) -> Words:
        """What the panes themselves say."""
        if not len(firsts):
            return self.column.identity(0)
        runs = zip(firsts.tolist(), stops.tolist(), strict=True)
        found = [self._lookup(first, stop, codes, size) for first, stop in runs]
        return tuple(np.concatenate(words) for words in zip(*found, strict=True))

    @abstractmethod
    def _lookup(self, first: int, stop: int, codes: Longs, size: int) -> Words: ...

    @property
    def nbytes(self) -> int:
        """The memory of what is prepared beside the panes."""
        return 0

    @abstractmethod
    def dropped(self, count: int) -> None:
        """The oldest panes have left the list."""

    @abstractmethod
    def revised(self, place: int, late: Pane) -> None:
        """The pane at a place has taken a late one in."""

    def _sum(self, parts: Iterable[Pane], codes: Longs, size: int) -> Words:
        """States of some groups over panes with one column."""
        words = self.column.identity(len(codes))
        for part in parts:
            if len(codes) == size:
                where, mine = part.where, part.states[0]
            else:
                places = np.minimum(np.searchsorted(part.codes, codes), len(part.codes) - 1)
                hits = part.codes[places] == codes
                where, mine = np.flatnonzero(hits), placed(part.states[0], places[hits])
            put(words, where, self.column.combine(placed(words, where), mine))
        return words

    def _leaf(self, place: int) -> Pane:
        """A pane with this column alone."""
        return self._alone(self.panes[place])

    def _alone(self, pane: Pane) -> Pane:
        return Pane(pane.start, pane.end, pane.codes, (pane.states[self.number],))


class Merging(Index):
    """Nothing is prepared: every lookup merges its panes. Update O(0), lookup O(W)."""

    name = "recompute"

    def _lookup(self, first: int, stop: int, codes: Longs, size: int) -> Words:
        return self._sum(map(self._leaf, range(first, stop)), codes, size)

    def dropped(self, count: int) -> None:
        return

    def revised(self, place: int, late: Pane) -> None:
        return


class Tree(Index):
    """B-INT over sparse panes: base intervals are merged when a lookup first needs them, and kept.

    Lookup O(log W) merges. Intervals count panes from the first one ever kept.
    """

    name = "B-INT"

    def __init__(self, column: Columns, number: int, panes: Sequence[Pane]) -> None:
        super().__init__(column, number, panes)
        self._gone = 0
        self._intervals: dict[tuple[int, int], Pane] = {}

    def _lookup(self, first: int, stop: int, codes: Longs, size: int) -> Words:
        parts = (self._interval(end, width) for end, width in cover(self._gone + first + 1, self._gone + stop))
        return self._sum(parts, codes, size)

    def _interval(self, end: int, width: int) -> Pane:
        if width == 1:
            return self._leaf(end - self._gone - 1)
        if (end, width) not in self._intervals:
            halves = (self._interval(end - width // 2, width // 2), self._interval(end, width // 2))
            self._intervals[end, width] = merged([self.column], halves)
        return self._intervals[end, width]

    @property
    def nbytes(self) -> int:
        return sum(pane.nbytes for pane in self._intervals.values())

    def dropped(self, count: int) -> None:
        self._gone += count
        self._intervals = {key: pane for key, pane in self._intervals.items() if key[0] - key[1] >= self._gone}

    def revised(self, place: int, late: Pane) -> None:
        position, width = self._gone + place + 1, 2
        while width <= 2 * (self._gone + len(self.panes)):
            self._intervals.pop((-(-position // width) * width, width), None)
            width *= 2
