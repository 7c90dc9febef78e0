"""Lookups over arrays of all groups and panes, in the structures of "Resource sharing" section 3."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from panewise.aggregate import Int64Array, StateArrays, StateWords, put
from panewise.stores.arrays import ArrayStore, BaseArrays, LandmarkArrays, RunningArrays
from panewise.stores.indexes import PaneIndex
from panewise.stores.pane import Pane, index_of


class DenseIndex(PaneIndex):
    """Arrays of all groups over all panes, in one of the paper's structures."""

    store: type[ArrayStore]

    def __init__(self, column: StateArrays, number: int, panes: Sequence[Pane]) -> None:
        super().__init__(column, number, panes)
        self._gone = self._stored = 0
        self._arrays: ArrayStore | None = None

    def _lookup_kept(self, firsts: Int64Array, stops: Int64Array, codes: Int64Array, size: int) -> StateWords:
        if not len(codes) or not len(firsts):
            return self.column.identity(0)
        arrays = self._catch_up(size)
        groups = None if len(codes) == arrays.groups else np.tile(codes, len(firsts))
        if groups is not None:
            firsts, stops = np.repeat(firsts, len(codes)), np.repeat(stops, len(codes))
        return arrays.lookup(firsts + self._gone + 1, stops + self._gone, groups)

    def _lookup(self, first: int, stop: int, codes: Int64Array, size: int) -> StateWords:
        return self._lookup_kept(np.array([first]), np.array([stop]), codes, size)

    def _catch_up(self, size: int) -> ArrayStore:
        """The arrays with all panes that have come since the last lookup, and room for all groups."""
        if self._arrays is None or len(self.panes) > self._arrays.reach:
            self._gone = self._stored = 0
            self._arrays = self.make_store(max(2 * len(self.panes), 64), size)
        if size > self._arrays.groups:
            self._arrays.grow(size)
        fresh = range(self._stored - self._gone, len(self.panes))
        if fresh:
            self._arrays.append(self._dense_rows(fresh, self._arrays.groups))
            self._stored += len(fresh)
        return self._arrays

    def make_store(self, reach: int, size: int) -> ArrayStore:
        return self.store(self.column, reach, size)

    def _dense_rows(self, places: range, size: int) -> StateWords:
        words = self.column.identity(len(places) * size)
        for row, place in enumerate(places):
            leaf = self._leaf(place)
            put(words, index_of(leaf.codes + row * size), leaf.states[0])
        return words

    @property
    def nbytes(self) -> int:
        return self._arrays.nbytes if self._arrays else 0

    def drop_oldest(self, count: int) -> None:
        self._gone += count
        if self._gone > self._stored:
            self._arrays = None  # some panes have gone before they were stored: start anew

    def revise(self, place: int, late: Pane) -> None:
        if self._arrays is None or place + self._gone >= self._stored:
            return
        if len(late.codes) and late.codes[-1] >= self._arrays.groups:
            self._arrays.grow(int(late.codes[-1]) + 1)
        words = self.column.identity(self._arrays.groups)
        put(words, late.where, late.states[self.number])
        self._arrays.revise(place + self._gone + 1, words)


class RunningIndex(DenseIndex):
    """R-INT: running totals; a window is the difference of two. For states that can be subtracted exactly."""

    name = "R-INT"
    store = RunningArrays


class BaseArrayIndex(DenseIndex):
    """B-INT in arrays: aligned intervals of every power of two."""

    name = "B-INT in arrays"
    store = BaseArrays


class LandmarkIndex(DenseIndex):
    """L-INT: intervals that begin or end at landmarks, for the widths that have been asked for so far."""

    name = "L-INT"

    def __init__(self, column: StateArrays, number: int, panes: Sequence[Pane]) -> None:
        super().__init__(column, number, panes)
        self._widths: set[int] = set()

    def _lookup_kept(self, firsts: Int64Array, stops: Int64Array, codes: Int64Array, size: int) -> StateWords:
        asked = set(np.unique(stops - firsts).tolist()) - {0}
        if not asked <= self._widths:
            self._widths |= asked
            self._arrays = None
        return super()._lookup_kept(firsts, stops, codes, size)

    def make_store(self, reach: int, size: int) -> ArrayStore:
        return LandmarkArrays(self.column, reach, size, widths=sorted(self._widths or {1}))
