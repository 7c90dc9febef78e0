"""R-INT for every substream, with which candidates are checked ("Resource sharing" sections 3.2 and 4.1)."""

from __future__ import annotations

import numpy as np

from panewise import kernels
from panewise.filters.base import NO_TIME, Int64Array, LookupAnswers
from panewise.filters.levels import Candidates
from panewise.kernels.running import FIELDS, NEXT, OLDEST, ROOM, START

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
        self._known = np.zeros((0, FIELDS), np.int64)
        self._used = 0

    @property
    def nbytes(self) -> int:
        return sum(array.nbytes for array in self.rings)

    def update(self, codes: Int64Array, times: Int64Array, values: Int64Array | None, before: int) -> None:
        """Add elements in the order of time; those at `before` or earlier may be dropped."""
        if not len(codes):
            return
        self._make_room(int(codes.max()) + 1)
        amounts = np.zeros(0, np.int64) if values is None else values
        start = kernels.running_append(codes, times, amounts, 0, self.rings, before)
        while start < len(codes):
            self._grow(int(codes[start]), before)
            start = kernels.running_append(codes, times, amounts, start, self.rings, before)

    def confirm(self, candidates: Candidates, cuts: Int64Array, least: Int64Array, below: bool) -> LookupAnswers:
        """The candidates of each lookup that have `least` or more after the cut, or less."""
        offsets, codes = kernels.running_confirm(self.rings, *candidates, cuts, least, below)
        return offsets, codes

    @property
    def rings(self) -> tuple[Int64Array, Int64Array, Int64Array]:
        """The arrays, as `kernels.running` describes them."""
        return self._pool, self._sums, self._known

    def _make_room(self, keys: int) -> None:
        """Make room for the numbers of more substreams, which have no rings yet."""
        have = len(self._known)
        if keys > have:
            self._known = np.concatenate([self._known, np.zeros((max(keys, 2 * have) - have, FIELDS), np.int64)])

    def _grow(self, code: int, before: int) -> None:
        """Give a substream whose ring is full a larger one."""
        room = max(2 * int(self._known[code, ROOM]), _LEAST_ROOM)
        if self._used + room > len(self._pool):
            self._pack(code, room, before)
            return
        self._move(np.array([code]), np.array([self._used]), np.array([room]), self._pool, self._sums)
        self._used += room

    def _pack(self, code: int, room: int, before: int) -> None:
        """Copy all rings without forgotten elements to a pool that is then half full; one of them gets more room."""
        codes = np.arange(len(self._known))
        owner, places = self._places(codes, self._known[:, START], self._known[:, ROOM])
        gone = owner[self._pool[places] <= before] if before > NO_TIME else owner[:0]
        self._known[:, OLDEST] += np.bincount(gone, minlength=len(codes))
        kept = self._known[:, NEXT] - self._known[:, OLDEST]
        rooms = np.where(kept > 0, np.maximum(2 ** np.ceil(np.log2(np.maximum(kept, 1))), _LEAST_ROOM), 0)
        rooms = rooms.astype(np.int64)
        rooms[code] = max(room, int(rooms[code]))
        ends = np.cumsum(rooms)
        self._used = int(ends[-1])
        pool = np.zeros(2 * self._used, np.int64)
        sums = np.zeros(len(pool) if self._summed else 0, np.int64)
        self._move(codes, ends - rooms, rooms, pool, sums)

    def _move(
        self, codes: Int64Array, starts: Int64Array, rooms: Int64Array, pool: Int64Array, sums: Int64Array
    ) -> None:
        """Copy the elements of some substreams to other rings of a pool, in which the others are already."""
        _, source = self._places(codes, self._known[codes, START], self._known[codes, ROOM])
        _, target = self._places(codes, starts, rooms)
        pool[target] = self._pool[source]
        if self._summed:
            sums[target] = self._sums[source]
        self._pool, self._sums = pool, sums
        self._known[codes, START], self._known[codes, ROOM] = starts, rooms

    def _places(self, codes: Int64Array, starts: Int64Array, rooms: Int64Array) -> tuple[Int64Array, Int64Array]:
        """The code of each kept element of some substreams, and its place where rings have these starts and rooms."""
        oldest = self._known[codes, OLDEST]
        kept = self._known[codes, NEXT] - oldest
        which = np.repeat(np.arange(len(codes)), kept)
        numbers = np.arange(len(which)) - np.repeat(np.cumsum(kept) - kept - oldest, kept)
        return codes[which], starts[which] + (numbers & (rooms[which] - 1))
