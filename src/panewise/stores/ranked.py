"""Quantiles over kept panes: B-INT-QNT, sorted values for base intervals ("Resource sharing" section 3.3)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np

from panewise.aggregate import Columns, Longs, Median, Objects, Quantile, Words
from panewise.aggregate.columns.longs import fits, from_longs, to_longs
from panewise.stores.arrays import QuantileArrays
from panewise.stores.indexes import Index
from panewise.stores.pane import Pane
from panewise.values import to_arrow, to_python


class Ranked(Index):
    """For QUANTILE and MEDIAN, whose states are multisets. A window's state is said by its middle values alone.

    That is enough, since nothing is combined with it any more: the quantile of one value is that value.
    """

    name = "B-INT-QNT"

    def __init__(self, column: Columns, number: int, panes: Sequence[Pane]) -> None:
        super().__init__(column, number, panes)
        assert isinstance(column, Objects)
        self.aggregate = column.aggregate
        self._gone = self._stored = 0
        self._arrays: QuantileArrays | None = None

    @staticmethod
    def accepts(column: Columns) -> bool:
        """Whether states are multisets of values that int64 carries in their order."""
        ranked = isinstance(column, Objects) and isinstance(column.aggregate, Quantile | Median)
        return ranked and isinstance(column, Objects) and fits(column.aggregate.types[0])

    @property
    def nbytes(self) -> int:
        return self._arrays.nbytes if self._arrays else 0

    def lookup(self, firsts: Longs, stops: Longs, codes: Longs, size: int) -> Words:
        if not len(codes) or not len(firsts):
            return self.column.identity(0)
        arrays = self._caught_up(size)
        begins, ends = (np.repeat(each + self._gone, len(codes)) for each in (firsts + 1, stops))
        groups = np.tile(codes, len(firsts))
        states = np.full(len(groups), None, object)
        for values, found in self._middles(arrays, begins, ends, groups):
            each = to_python(from_longs(values, ~found, self.aggregate.types[0]))
            for place in np.flatnonzero(found).tolist():
                states[place] = (states[place] or Counter()) + Counter([each[place]])
        return (states,)

    def _lookup(self, first: int, stop: int, codes: Longs, size: int) -> Words:
        return self.lookup(np.array([first]), np.array([stop]), codes, size)

    def _middles(self, arrays: QuantileArrays, begins: Longs, ends: Longs, groups: Longs) -> list[Words]:
        """The values that decide the answer, and where there are any: one for a quantile, two for a median."""
        if isinstance(self.aggregate, Quantile):
            return [arrays.lookup(begins, ends, self.aggregate.phi, groups)]
        sizes = arrays.sizes(begins, ends, groups)
        return [arrays.select(begins, ends, ranks, groups) for ranks in ((sizes + 1) // 2, sizes // 2 + 1)]

    def _caught_up(self, size: int) -> QuantileArrays:
        """The arrays with all panes that have come since the last lookup, and room for all groups."""
        if self._arrays is None or len(self.panes) > self._arrays.reach:
            self._gone = self._stored = 0
            self._arrays = QuantileArrays(max(2 * len(self.panes), 64), max(size, 2))
        self._arrays.grow(size)
        for place in range(self._stored - self._gone, len(self.panes)):
            values, codes = self._values(self._leaf(place))
            self._arrays.append(np.array([len(values)]), values, codes)
            self._stored += 1
        return self._arrays

    def _values(self, leaf: Pane) -> tuple[Longs, Longs]:
        """The values of a pane and the group of each."""
        counters = [state or Counter() for state in leaf.states[0][0]]
        values = to_arrow([value for counter in counters for value in counter.elements()], self.aggregate.types[0])
        return to_longs(values), np.repeat(leaf.codes, [counter.total() for counter in counters])

    def dropped(self, count: int) -> None:
        self._gone += count
        if self._gone > self._stored:
            self._arrays = None

    def revised(self, place: int, late: Pane) -> None:
        if self._arrays is not None and place + self._gone < self._stored:
            alone = Pane(late.start, late.end, late.codes, (late.states[self.number],))
            if len(late.codes):
                self._arrays.grow(int(late.codes[-1]) + 1)
            self._arrays.revise(place + self._gone + 1, *self._values(alone))
