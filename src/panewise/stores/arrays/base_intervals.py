"""B-INT in arrays: aligned intervals of every power of two ("Resource sharing" sections 3.1.1 and 5)."""

from __future__ import annotations

from typing import Any

import numpy as np

from panewise import kernels
from panewise.aggregate import FusedOperation, Int64Array, StateArrays, StateWords, concat_states
from panewise.stores.arrays.base import ArrayStore
from panewise.stores.arrays.tables import (
    capacity_for,
    combine_rows,
    flatten,
    fold_into,
    identity_table,
    pieces,
    widen_rows,
)


class BaseArrays(ArrayStore):
    """Requires states that combine. Update O(1) amortised, lookup O(log W), space O(reach).

    A circle for each level, all in one table: with room for `size` positions, level l has its `size >> l` intervals in
    the rows from `size >> l` on, so that row n holds what rows 2n and 2n + 1 hold. Interval i of level l covers
    positions `(i << l) + 1` to `(i + 1) << l` and is built once it is complete.
    """

    name = "B-INT"
    requires = "states that combine"

    def __init__(self, column: StateArrays, reach: int, groups: int = 1) -> None:
        super().__init__(column, reach, groups)
        self._size = 1
        self._tree = identity_table(column, 2, groups)

    def _append(self, rows: StateWords, count: int) -> None:
        before, now = self.length, self.length + count
        self._make_room(min(now, self.reach))
        for start, row, some in pieces(before, now, self._size):
            for word, fresh in zip(self._tree, rows, strict=True):
                word[self._size + row : self._size + row + some] = fresh[start - before : start - before + some]
        # What begins before the reach is no longer asked for, and its parts may be gone.
        self._complete(before, now, max(now - self.reach, 0))

    def _complete(self, before: int, now: int, oldest: int) -> None:
        """Build all intervals that are complete since there are `now` positions and begin after the `oldest`."""
        if self.column.fused is FusedOperation.ADDED:
            for word in self._tree:
                kernels.interval_add(word, before, now, oldest)
            return
        if self.column.fused is FusedOperation.GREATEST:
            kernels.interval_choose(*self._tree, before, now, oldest)
            return
        level = 1
        while before >> level < now >> level:
            first = max(before >> level, -(-oldest >> level))
            for _, row, some in pieces(first, now >> level, self._size >> level):
                self._build((self._size >> level) + row, some)
            level += 1

    def _build(self, row: int, count: int) -> None:
        """Some intervals next to each other from their halves."""
        halves = [tuple(word[2 * row + half : 2 * (row + count) : 2] for word in self._tree) for half in (0, 1)]
        for word, whole in zip(self._tree, self.column.combine(*map(flatten, halves)), strict=True):
            word[row : row + count] = whole.reshape(count, self.room)

    def _make_room(self, positions: int) -> None:
        if positions <= self._size:
            return
        # Nothing has been overwritten yet: at each level, an interval stands where its number says.
        size, tree = capacity_for(positions), identity_table(self.column, 2 * capacity_for(positions), self.room)
        for level in range(self._size.bit_length()):
            held, start = self._size >> level, size >> level
            for new, old in zip(tree, self._tree, strict=True):
                new[start : start + held] = old[held : 2 * held]
        self._size, self._tree = size, tree

    def _lookup_pairs(self, firsts: Int64Array, lasts: Int64Array, groups: Int64Array) -> StateWords:
        if self.column.fused is FusedOperation.ADDED:
            return tuple(kernels.interval_sums(word, firsts, lasts, groups) for word in self._tree)
        if self.column.fused is FusedOperation.GREATEST:
            found: StateWords = kernels.interval_greatest(*self._tree, firsts, lasts, groups)
            return found
        return self._lookup_by_level(firsts, lasts, groups)

    def _lookup_all_groups(self, firsts: Int64Array, lasts: Int64Array) -> StateWords:
        if self.column.fused is FusedOperation.ADDED:
            return tuple(kernels.interval_sums_of_all(word, firsts, lasts, self.groups) for word in self._tree)
        if self.column.fused is FusedOperation.GREATEST:
            found: StateWords = kernels.interval_greatest_of_all(*self._tree, firsts, lasts, self.groups)
            return found
        if 0 < len(firsts) <= self.groups:
            windows, kept = zip(firsts.tolist(), lasts.tolist(), strict=True), slice(0, self.groups)
            return concat_states([flatten(self._lookup_window(*window, kept)) for window in windows])
        groups = np.tile(np.arange(self.groups), len(firsts))
        return self._lookup_by_level(np.repeat(firsts, self.groups), np.repeat(lasts, self.groups), groups)

    def lookup_one(self, first: int, last: int, group: int = 0) -> tuple[Any, ...]:
        if self.column.fused:
            return super().lookup_one(first, last, group)
        self._check_window(first, last, group)
        return tuple([word[0, 0] for word in self._lookup_window(first, last, slice(group, group + 1))])

    def _lookup_window(self, first: int, last: int, groups: slice) -> StateWords:
        """The states over one window of some groups next to each other."""
        rows = [self._row(width.bit_length() - 1, (end - 1) // width) for end, width in cover(first, last)]
        if not rows:
            return identity_table(self.column, 1, groups.stop - groups.start)
        return combine_rows(self.column, tuple(word[rows, groups] for word in self._tree))

    def _row(self, level: int, number: int) -> int:
        room = self._size >> level
        return room + (number & (room - 1))

    def _lookup_by_level(self, firsts: Int64Array, lasts: Int64Array, groups: Int64Array) -> StateWords:
        """Level by level for all windows, what sticks out at either end."""
        low, high, size = firsts - 1, lasts, self._size
        answers = self.column.identity(len(firsts))
        while (low < high).any():
            for end, inner in ((low, low), (high, high - 1)):
                where = np.flatnonzero((end & 1 > 0) & (low < high))
                rows = size + (inner[where] & (size - 1))
                parts = tuple(word[rows, groups[where]] for word in self._tree)
                both = self.column.combine(tuple(word[where] for word in answers), parts)
                for answer, word in zip(answers, both, strict=True):
                    answer[where] = word
            low, high, size = (low + 1) >> 1, high >> 1, size >> 1
        return answers

    def _revise(self, position: int, row: StateWords) -> None:
        """Into each complete interval around the position, from the narrowest to the widest within reach."""
        level = 0
        while (number := (position - 1) >> level) < self.length >> level and number << level >= self.forgotten_until:
            place = self._row(level, number)
            fold_into(self.column, self._tree, slice(place, place + 1), row)
            level += 1

    def _widen(self) -> None:
        self._tree = widen_rows(self.column, self._tree, self.room)

    def _tables(self) -> list[StateWords]:
        return [self._tree]


def cover(first: int, last: int) -> list[tuple[int, int]]:
    """The interval `(first, last)` as few base intervals, oldest first, each as (last position, width). O(log W).

    >>> [(end - width + 1, end) for end, width in cover(1, 43)]
    [(1, 32), (33, 40), (41, 42), (43, 43)]
    """
    found = []
    while first <= last:
        fitting = 1 << (last - first + 1).bit_length() - 1
        aligned = (first - 1) & -(first - 1)  # the lowest bit that is set: the largest power of two that divides it
        width = min(aligned, fitting) if aligned else fitting
        found.append((first + width - 1, width))
        first += width
    return found
