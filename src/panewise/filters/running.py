"""R-INT for every substream: what it takes to check a candidate ("Resource sharing" sections 3.2 and 4.1)."""

from __future__ import annotations

import numpy as np

from panewise import kernels
from panewise.filters.base import NONE, Answers, Flags, Longs

_LEAST_ROOM = 8


class RunningTotals:
    """Counts or sums of any window that ends now, of any substream. Space O(N), update O(1) amortised.

    A count is compared with a threshold in O(1), a sum in O(log N). Each substream has a ring in one pool. A ring that
    is full first loses what is forgotten and then moves to one twice as large; when the pool has no room for that, all
    rings are packed anew.
    """

    def __init__(self, summed: bool) -> None:
        self._summed = summed
        self._pool, self._sums = np.zeros(0, np.int64), np.zeros(0, np.int64)
        self._starts, self._rooms, self._oldest, self._following, self._totals = np.zeros((5, 0), np.int64)
        self._used = 0

    @property
    def nbytes(self) -> int:
        return sum(array.nbytes for array in self._rings)

    def update(self, codes: Longs, times: Longs, values: Longs | None, before: int) -> None:
        """Add elements in the order of time; those at `before` or earlier may go."""
        if not len(codes):
            return
        self._know(int(codes.max()) + 1)
        amounts = np.zeros(0, np.int64) if values is None else values
        start = kernels.running_append(codes, times, amounts, 0, self._rings, before)
        while start < len(codes):
            self._grow(int(codes[start]), before)
            start = kernels.running_append(codes, times, amounts, start, self._rings, before)

    def confirm(self, candidates: tuple[Longs, Longs, Flags], cuts: Longs, least: Longs, below: bool) -> Answers:
        """Of the candidates of each lookup those that have `least` or more after the cut, or less."""
        kept, codes = kernels.running_confirm(self._rings, *candidates, cuts, least, below)
        return kept, codes

    @property
    def _rings(self) -> tuple[Longs, ...]:
        by_code = (self._starts, self._rooms, self._oldest, self._following, self._totals)
        return (self._pool, self._sums, *by_code)

    def _know(self, keys: int) -> None:
        """Room for the numbers of so many substreams, which have no rings yet."""
        if keys > len(self._starts):
            more = np.zeros(max(keys, 2 * len(self._starts)) - len(self._starts), np.int64)
            self._starts, self._rooms = np.append(self._starts, more), np.append(self._rooms, more)
            self._oldest, self._following = np.append(self._oldest, more), np.append(self._following, more)
            self._totals = np.append(self._totals, more)

    def _grow(self, code: int, before: int) -> None:
        """A larger ring for a substream whose ring is full."""
        room = max(2 * int(self._rooms[code]), _LEAST_ROOM)
        if self._used + room > len(self._pool):
            self._pack(code, room, before)
            return
        self._move(np.array([code]), np.array([self._used]), np.array([room]), self._pool, self._sums)
        self._used += room

    def _pack(self, code: int, room: int, before: int) -> None:
        """All rings without what is forgotten, in a pool that is half full then; one of them with more room."""
        codes = np.arange(len(self._starts))
        owner, places = self._places(codes, self._starts, self._rooms)
        gone = owner[self._pool[places] <= before] if before > NONE else owner[:0]
        self._oldest = self._oldest + np.bincount(gone, minlength=len(codes))
        kept = self._following - self._oldest
        rooms = np.where(kept > 0, np.maximum(2 ** np.ceil(np.log2(np.maximum(kept, 1))), _LEAST_ROOM), 0)
        rooms = rooms.astype(np.int64)
        rooms[code] = max(room, int(rooms[code]))
        ends = np.cumsum(rooms)
        self._used = int(ends[-1])
        pool = np.zeros(2 * self._used, np.int64)
        sums = np.zeros(len(pool) if self._summed else 0, np.int64)
        self._move(codes, ends - rooms, rooms, pool, sums)

    def _move(self, codes: Longs, starts: Longs, rooms: Longs, pool: Longs, sums: Longs) -> None:
        """The elements of some substreams to other rings, all others being there already."""
        _, source = self._places(codes, self._starts[codes], self._rooms[codes])
        _, target = self._places(codes, starts, rooms)
        pool[target] = self._pool[source]
        if self._summed:
            sums[target] = self._sums[source]
        self._pool, self._sums = pool, sums
        self._starts[codes], self._rooms[codes] = starts, rooms

    def _places(self, codes: Longs, starts: Longs, rooms: Longs) -> tuple[Longs, Longs]:
        """Each kept element of some substreams: its code, and its place in a pool where their rings lie like that."""
        kept = self._following[codes] - self._oldest[codes]
        which = np.repeat(np.arange(len(codes)), kept)
        numbers = np.arange(len(which)) - np.repeat(np.cumsum(kept) - kept - self._oldest[codes], kept)
        return codes[which], starts[which] + (numbers & (rooms[which] - 1))
