"""Quantiles over kept panes or rows: B-INT-QNT, sorted values for base intervals ("Resource sharing" section 3.3)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, Protocol

import numpy as np

from panewise.aggregate import Int64Array, StateArrays, StateWords
from panewise.aggregate.multisets import ranked_states
from panewise.aggregate.ordering import fits_int64
from panewise.aggregate.ragged import ragged_word
from panewise.stores.arrays import QuantileArrays
from panewise.stores.indexes import PaneIndex, PendingPanes
from panewise.stores.pane import Pane


@dataclass(frozen=True, eq=False)
class QuantileWindows:
    """Questions about windows of groups whose values lie on two sides: in arrays, and beside them, ascending."""

    arrays: QuantileArrays
    begins: Int64Array
    ends: Int64Array
    groups: Int64Array
    values: Int64Array
    #: Where the values beside the arrays begin for each question, and where those of the last one end.
    starts: Int64Array

    @cached_property
    def stored_sizes(self) -> Int64Array:
        """How many values the arrays have for each question."""
        return self.arrays.sizes(self.begins, self.ends, self.groups)

    @cached_property
    def sizes(self) -> Int64Array:
        return self.stored_sizes + np.diff(self.starts)

    def select(self, ranks: Int64Array) -> Int64Array:
        """The values at some ranks, counted from one; anything where a question has no value.

        The least number of values beside the arrays is sought for which the last one that is then taken from the
        arrays is not greater than the next one beside them.
        """
        low, high = np.maximum(ranks - self.stored_sizes, 0), np.minimum(ranks, np.diff(self.starts))
        low = np.minimum(low, high)
        while len(seeking := np.flatnonzero(low < high)):
            middle = (low[seeking] + high[seeking]) // 2
            fits = self._select_stored(seeking, ranks[seeking] - middle) <= self.values[self.starts[seeking] + middle]
            high[seeking] = np.where(fits, middle, high[seeking])
            low[seeking] = np.where(fits, low[seeking], middle + 1)
        found = np.full(len(ranks), np.iinfo(np.int64).min)
        beside, inside = np.flatnonzero(low), np.flatnonzero((ranks > low) & (ranks - low <= self.stored_sizes))
        found[beside] = self.values[self.starts[beside] + low[beside] - 1]
        found[inside] = np.maximum(found[inside], self._select_stored(inside, ranks[inside] - low[inside]))
        return found

    def _select_stored(self, questions: Int64Array, ranks: Int64Array) -> Int64Array:
        begins, ends, groups = self.begins[questions], self.ends[questions], self.groups[questions]
        values: Int64Array = self.arrays.select(begins, ends, ranks, groups)[0]
        return values


class QuantileIndex(PaneIndex):
    """For QUANTILE and MEDIAN, whose states are multisets. The state of a window has only the values that decide.

    It is settled. Therefore the values of coming panes are taken into account before the deciding values are chosen.
    """

    name = "B-INT-QNT"

    def __init__(self, column: StateArrays, number: int, panes: Sequence[Pane]) -> None:
        super().__init__(column, number, panes)
        assert column.ranked_values is not None
        self.ranked_values = column.ranked_values
        self._gone = self._stored = 0
        self._arrays: QuantileArrays | None = None

    @staticmethod
    def accepts(column: StateArrays) -> bool:
        """Whether states are multisets of values that int64 holds in their order, and ranks decide the answer."""
        return column.ranked_values is not None and fits_int64(column.ranked_values.kind)

    @property
    def nbytes(self) -> int:
        return self._arrays.nbytes if self._arrays else 0

    def lookup(
        self, firsts: Int64Array, stops: Int64Array, codes: Int64Array, size: int, coming: PendingPanes = ()
    ) -> StateWords:
        if not len(codes) or not len(firsts):
            return self.column.identity(0)
        arrays = self._catch_up(size)
        begins, ends = (np.repeat(each + self._gone, len(codes)) for each in (firsts + 1, stops))
        both = QuantileWindows(
            arrays, begins, ends, np.tile(codes, len(firsts)), *self._pending_values(coming, codes, len(firsts))
        )
        found = [both.select(ranks) for ranks in self.ranked_values.ranks(both.sizes)]
        return ranked_states(found, both.sizes > 0)

    def _lookup(self, first: int, stop: int, codes: Int64Array, size: int) -> StateWords:
        return self.lookup(np.array([first]), np.array([stop]), codes, size)

    def _pending_values(self, coming: PendingPanes, codes: Int64Array, runs: int) -> tuple[Int64Array, Int64Array]:
        """The values of coming panes for each run and group, ascending, and where those of each begin and end."""
        values, places = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
        for pane, mine in coming:
            some, groups = self._values(self._single_column(pane))
            place = np.minimum(np.searchsorted(codes, groups), len(codes) - 1)
            asked = codes[place] == groups
            places.append((mine[:, None] * len(codes) + place[asked]).ravel())
            values.append(np.tile(some[asked], len(mine)))
        whole, where = np.concatenate(values), np.concatenate(places)
        order = np.lexsort((whole, where))
        return whole[order], np.searchsorted(where[order], np.arange(runs * len(codes) + 1))

    def _catch_up(self, size: int) -> QuantileArrays:
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

    def _values(self, leaf: Pane) -> tuple[Int64Array, Int64Array]:
        """The values of a pane and the group of each."""
        runs = ragged_word(leaf.states[0])
        keys, counts = runs.own_entries()
        return np.repeat(keys, counts), np.repeat(np.repeat(leaf.codes, runs.sizes), counts)

    def drop_oldest(self, count: int) -> None:
        self._gone += count
        if self._gone > self._stored:
            self._arrays = None

    def revise(self, place: int, late: Pane) -> None:
        if self._arrays is not None and place + self._gone < self._stored:
            if len(late.codes):
                self._arrays.grow(int(late.codes[-1]) + 1)
            self._arrays.revise(place + self._gone + 1, *self._values(self._single_column(late)))


class RankedRows(Protocol):
    """Rows that follow each other and do not change."""

    def __len__(self) -> int: ...

    def ranked_values(self, number: int, column: StateArrays) -> tuple[Int64Array, Int64Array, Int64Array]:
        """How many values each row has for a column of multisets, the values, and the group of each."""


class RowQuantileIndex:
    """For QUANTILE and MEDIAN over rows in the order of a stream, which come in parts; the last parts may change."""

    name: ClassVar[str] = QuantileIndex.name

    def __init__(self, column: StateArrays, number: int) -> None:
        assert column.ranked_values is not None
        self.column, self.number, self.ranked_values = column, number, column.ranked_values
        self._arrays = QuantileArrays(1)
        self._parts: list[RankedRows] = []

    @property
    def nbytes(self) -> int:
        return self._arrays.nbytes

    def lookup(self, parts: Sequence[RankedRows], lows: Int64Array, highs: Int64Array, codes: Int64Array) -> StateWords:
        """The settled states of some groups over rows `(low, high]` of all parts, window by window."""
        if not len(codes) or not len(lows):
            return self.column.identity(0)
        self._catch_up(parts)
        self._arrays.grow(int(codes[-1]) + 1)
        begins, ends = (np.repeat(side, len(codes)) for side in (lows + 1, np.maximum(lows, highs)))
        groups = np.tile(codes, len(lows))
        sizes = self._arrays.sizes(begins, ends, groups)
        found = [self._arrays.select(begins, ends, ranks, groups)[0] for ranks in self.ranked_values.ranks(sizes)]
        return ranked_states(found, sizes > 0)

    def _catch_up(self, parts: Sequence[RankedRows]) -> None:
        """Keep the parts that are the same as before, and append the others."""
        total, known = sum(map(len, parts)), 0
        while known < min(len(parts), len(self._parts)) and parts[known] is self._parts[known]:
            known += 1
        if not known or total > self._arrays.reach:
            self._arrays, known = QuantileArrays(max(2 * total, 64), 2), 0
        self._arrays.truncate(sum(map(len, parts[:known])))
        for part in parts[known:]:
            sizes, values, codes = part.ranked_values(self.number, self.column)
            self._arrays.grow(int(codes.max(initial=0)) + 1)
            self._arrays.append(sizes, values, codes)
        self._parts = list(parts)
