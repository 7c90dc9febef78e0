"""The index of extremes: which substreams had a maximum or minimum beyond a threshold (decision 20)."""

from __future__ import annotations

import numpy as np

from panewise import kernels
from panewise.filters.base import Filter, Int64Array, LookupAnswers

_ROOM = 64


class MaxIndex(Filter):
    """Exact. With N points: space O(N log N), update O(log^2 N) amortised, lookup O(log^2 N + answers).

    A point is an element that no later one of its substream reaches: only these can be the greatest of a window that
    ends now. Values are whole numbers of 64 bits, others as numbers that sort like them.

    >>> import numpy as np
    >>> index = MaxIndex()
    >>> index.update(np.array([0, 1, 0, 1]), np.array([1, 2, 3, 4]), np.array([9, 2, 5, 3]))
    >>> index.above(now=4, length=4, threshold=8), index.above(now=4, length=3, threshold=3)
    (array([0]), array([0]))
    >>> index.below(now=4, length=3, threshold=5)
    array([1])
    """

    name = "MAX index"
    valued = True

    #: The times of slots, how many slots are used, and the trees as `kernels.max_index` describes them.
    _slots: Int64Array
    _used: int
    _links: Int64Array
    _values: Int64Array
    _codes: Int64Array
    _ranks: Int64Array
    _free: Int64Array
    _unused_entries: Int64Array

    def __init__(self) -> None:
        super().__init__()
        self._work = np.zeros(2, np.int64)
        self._random = np.random.default_rng(20)
        self._newest = np.full(_ROOM, -1, np.int64)
        self._place, self._value, self._older, self._spare = np.zeros((4, 0), np.int64)
        self._unused_points = np.zeros(1, np.int64)
        self._more_points()
        self._clear_trees(_ROOM)

    @property
    def epsilon(self) -> float:
        return 0.0

    @property
    def epsilon_below(self) -> float:
        return 0.0

    @property
    def nbytes(self) -> int:
        return sum(array.nbytes for array in (self._slots, *self._points, *self._trees))

    @property
    def entries(self) -> int:
        """How many values the trees hold."""
        return len(self._values) - int(self._unused_entries[0])

    @property
    def work(self) -> tuple[int, int]:
        """The numbers of entries read so far by updates, and by lookups."""
        changed, visited = self._work.tolist()
        return changed, visited

    def take(self, codes: Int64Array, times: Int64Array, values: Int64Array | None) -> None:
        needed = int(codes.max()) + 1
        if needed > len(self._newest):
            more = max(needed, 2 * len(self._newest)) - len(self._newest)
            self._newest = np.append(self._newest, np.full(more, -1, np.int64))
        start, ordered = 0, self._as_maxima(values)
        while True:
            state = (self._slots, self._used, self._points, self._trees, self._entries_per_point, self._work)
            start, self._used = kernels.peak_update(codes, times, ordered, start, *state)
            if start == len(codes):
                return
            if not self._unused_points[0]:
                self._more_points()
            elif self._unused_entries[0] < self._entries_per_point:
                self._more_entries(len(self._values))
            else:
                self._rebuild()

    def lookup(self, cuts: Int64Array, limits: Int64Array, below: bool) -> LookupAnswers:
        firsts = np.searchsorted(self._slots[: self._used], cuts, side="right")
        place = (self._used, len(self._slots), len(self._newest))
        offsets, codes = kernels.peak_lookup(firsts, limits, below, *place, self._trees, self._work)
        return offsets, codes

    def forget(self, before: int) -> None:
        super().forget(before)
        gone = np.searchsorted(self._slots[: self._used], self.before, side="right")
        if 2 * gone > len(self._slots):
            self._rebuild()

    def _as_maxima(self, values: Int64Array | None) -> Int64Array:
        """The values in a form in which the greatest is the one to find."""
        return np.zeros(0, np.int64) if values is None else values

    @property
    def _points(self) -> tuple[Int64Array, ...]:
        return self._place, self._value, self._older, self._newest, self._spare, self._unused_points

    @property
    def _trees(self) -> tuple[Int64Array, ...]:
        return self._links, self._values, self._codes, self._ranks, self._free, self._unused_entries

    @property
    def _entries_per_point(self) -> int:
        """The most entries that one point takes: two base intervals of each size."""
        return 2 * len(self._slots).bit_length()

    def _more_points(self) -> None:
        """Double the room for points; the new places are spare."""
        have = len(self._place)
        more = np.zeros(max(have, _ROOM), np.int64)
        self._place, self._value = np.append(self._place, more), np.append(self._value, more)
        self._older, self._spare = np.append(self._older, more), np.append(self._spare, more)
        self._spare[: len(more)] = np.arange(have, have + len(more))
        self._unused_points[0] = len(more)

    def _more_entries(self, more: int) -> None:
        """Make room for more entries."""
        have, unused = len(self._values), int(self._unused_entries[0])
        blank = np.zeros(more, np.int64)
        self._links = np.append(self._links, np.full(2 * more, -1, np.int64))
        self._values, self._codes = np.append(self._values, blank), np.append(self._codes, blank)
        self._ranks = np.append(self._ranks, self._random.integers(2**62, size=more))
        self._free = np.append(self._free, blank)
        self._free[unused : unused + more] = np.arange(have, have + more)
        self._unused_entries[0] = unused + more

    def _clear_trees(self, room: int) -> None:
        """Begin again with a number of unused slots and no tree."""
        self._slots, self._used = np.zeros(room, np.int64), 0
        self._links = np.full(2 * room, -1, np.int64)
        self._values, self._codes, self._ranks, self._free = np.zeros((4, 0), np.int64)
        self._unused_entries = np.zeros(1, np.int64)
        self._more_entries(4 * self._entries_per_point)

    def _rebuild(self) -> None:
        """Drop the slots of forgotten points, and make as many spare slots as there are points."""
        times, used = self._slots, self._used
        points = self._keep_points_from(int(np.searchsorted(times[:used], self.before, side="right")))
        slots = np.unique(self._place[points])
        self._clear_trees(max(_ROOM, 1 << (2 * len(slots)).bit_length()))
        self._slots[: len(slots)], self._used = times[slots], len(slots)
        self._place[points] = np.searchsorted(slots, self._place[points])
        codes = np.flatnonzero(self._newest >= 0)
        while len(codes):
            place = (self._points, len(self._slots), self._trees, self._entries_per_point, self._work)
            codes = codes[kernels.peak_build(codes, *place) :]
            if len(codes):
                self._more_entries(len(self._values))

    def _keep_points_from(self, first: int) -> Int64Array:
        """The points in slots from `first` on; the places of all others become spare."""
        used = np.ones(len(self._place), bool)
        used[self._spare[: int(self._unused_points[0])]] = False
        gone = used & (self._place < first)
        points = np.flatnonzero(used & ~gone)
        self._older[points[gone[self._older[points]] & (self._older[points] >= 0)]] = -1
        has = np.flatnonzero(self._newest >= 0)
        self._newest[has[gone[self._newest[has]]]] = -1
        spare = np.flatnonzero(gone)
        unused = int(self._unused_points[0])
        self._spare[unused : unused + len(spare)] = spare
        self._unused_points[0] = unused + len(spare)
        return points


class MinIndex(MaxIndex):
    """The same for minima: the greatest of all values with inverted bits, which sort in the opposite order."""

    name = "MIN index"

    def lookup(self, cuts: Int64Array, limits: Int64Array, below: bool) -> LookupAnswers:
        return super().lookup(cuts, ~limits, not below)

    def _as_maxima(self, values: Int64Array | None) -> Int64Array:
        return ~super()._as_maxima(values)
