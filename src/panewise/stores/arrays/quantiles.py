"""B-INT-QNT: sorted arrays for base intervals, of which any element is found ("Resource sharing" section 3.3)."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from panewise import kernels
from panewise.aggregate import Int64Array, StateWords
from panewise.aggregate.quantile import Phi, quantile_ranks, shares_of
from panewise.core.errors import PlanProblem
from panewise.stores.arrays.base import PositionStore, broadcast
from panewise.stores.arrays.tables import capacity_for, pieces


class QuantileArrays(PositionStore):
    """Requires values that int64 carries in their order (`aggregate.ordering`). Any number of them a position.

    Update O(log reach) a value; lookup O(log W) sorted runs, each searched O(log W) times at most on average; space
    O(N log reach) for N values. Groups share the runs, sorted by group and value.
    """

    name = "B-INT-QNT"

    def __init__(self, reach: int, groups: int = 1) -> None:
        super().__init__(reach, groups)
        #: How many values there are up to each position, modulo their number.
        self._ends = np.zeros(1, np.int64)
        #: By level, the values, and the codes of their groups where there are several.
        self._values = np.zeros((1, 1), np.int64)
        self._codes = np.zeros(self._values.shape if groups > 1 else (0, 0), np.int64)

    @property
    def nbytes(self) -> int:
        return self._ends.nbytes + self._values.nbytes + self._codes.nbytes

    @property
    def capacity(self) -> int:
        """How many values there is room for, on all levels."""
        return self._values.size

    def append(self, sizes: Int64Array, values: Int64Array, codes: Int64Array | None = None) -> None:
        """Add the next positions, oldest first: how many values each has, the values, and the group of each."""
        sizes, values = np.asarray(sizes, np.int64), np.asarray(values, np.int64)
        codes = np.zeros(len(values), np.int64) if codes is None else self._check_groups(codes)
        if sizes.sum() != len(values) or len(codes) != len(values) or (sizes < 0).any():
            raise PlanProblem(
                f"{len(values)} values of {len(codes)} groups do not fill positions of {sizes.sum()} values",
                fix="give as many values and groups as the sizes say",
            )
        if len(sizes) > self.reach:
            skipped = len(sizes) - self.reach
            gone = int(sizes[:skipped].sum())
            self._skip(skipped)
            sizes, values, codes = sizes[skipped:], values[gone:], codes[gone:]
        now, before = self.length + len(sizes), int(self._end(self.length))
        oldest = max(now - self.reach, 0)
        self._make_room(min(now, self.reach), before + len(values) - int(self._end(oldest)))
        ends = before + np.cumsum(sizes)
        for start, row, count in pieces(self.length + 1, now + 1, len(self._ends)):
            self._ends[row : row + count] = ends[start - self.length - 1 :][:count]
        if len(sizes) and sizes.max() > 1:
            order = np.lexsort((values, codes, np.repeat(np.arange(len(sizes)), sizes)))
            values, codes = values[order], codes[order]
        for table, fresh in ((self._values, values), (self._codes, codes)):
            if table.size:
                for start, row, count in pieces(before, before + len(values), table.shape[1]):
                    table[0, row : row + count] = fresh[start - before :][:count]
        kernels.quantile_merge(self._values, self._codes, self._ends, self.length, now, oldest)
        self.length = now

    def lookup(self, firsts: Int64Array, lasts: Int64Array, phi: Phi, groups: Int64Array | None = None) -> StateWords:
        """The element at position floor(phi * N), at least the first, of each window, and whether there is any.

        Of every group, window by window; or of each pair of a window and a group. `phi` goes with the windows.
        """
        asked = self._window_group_pairs(firsts, lasts, groups)
        sizes = self._sizes(*asked)
        each = 1 if groups is not None else self.groups
        shares = tuple(part if len(part) == 1 else np.repeat(part, each) for part in shares_of(phi))
        found: StateWords = kernels.quantile_select(*self._tables(), *asked, quantile_ranks(sizes, *shares))
        return found

    def select(
        self, firsts: Int64Array, lasts: Int64Array, ranks: Int64Array, groups: Int64Array | None = None
    ) -> StateWords:
        """The element at a rank, counted from one, of each window, and whether there is one; see `lookup`."""
        asked = self._window_group_pairs(firsts, lasts, groups)
        each = np.atleast_1d(np.asarray(ranks, np.int64))
        if groups is None and len(each) > 1:
            each = np.repeat(each, self.groups)
        found: StateWords = kernels.quantile_select(*self._tables(), *broadcast(*asked, each))
        return found

    def sizes(self, firsts: Int64Array, lasts: Int64Array, groups: Int64Array | None = None) -> Int64Array:
        """How many values each window has; see `lookup`."""
        return self._sizes(*self._window_group_pairs(firsts, lasts, groups))

    def lookup_one(self, first: int, last: int, phi: Fraction, group: int = 0) -> int | None:
        """The element of one window of one group, or None where there is none."""
        values, found = self.lookup(np.array([first]), np.array([last]), phi, np.array([group]))
        return int(values[0]) if found[0] else None

    def revise(self, position: int, values: Int64Array, codes: Int64Array | None = None) -> None:
        """Add values to a past position: everything from there on is sorted again."""
        self._check_position(position)
        codes = np.zeros(len(values), np.int64) if codes is None else self._check_groups(codes)
        start, middle, stop = (int(self._end(p)) for p in (position - 1, position, self.length))
        places = np.arange(start, stop) & (self._values.shape[1] - 1)
        sizes = np.diff(self._end(np.arange(position - 1, self.length + 1)))
        sizes[0] += len(values)
        later = self._values[0, places]
        kept = self._codes[0, places] if self._codes.size else np.zeros(len(places), np.int64)
        self.length = position - 1
        at = middle - start
        self.append(sizes, np.insert(later, at, values), np.insert(kept, at, codes))

    def truncate(self, length: int) -> None:
        """Take the newest positions away, down to one that is still within reach."""
        if length:
            self._check_position(length)
        self.length = length

    def grow(self, groups: int) -> None:
        """Keep this many groups; those that join have no values so far."""
        if groups > 1 and not self._codes.size:
            self._codes = np.zeros(self._values.shape, np.int64)
        self.groups = max(self.groups, groups)

    def _window_group_pairs(self, firsts: Int64Array, lasts: Int64Array, groups: Int64Array | None) -> list[Int64Array]:
        """Windows and groups as pairs."""
        starts, stops = self._check_windows(firsts, lasts)
        if groups is not None:
            return broadcast(starts, stops, self._check_groups(groups))
        starts, stops = (np.repeat(each, self.groups) for each in (starts, stops))
        return [starts, stops, np.tile(np.arange(self.groups), len(starts) // self.groups)]

    def _sizes(self, firsts: Int64Array, lasts: Int64Array, groups: Int64Array) -> Int64Array:
        if self._codes.size:
            counted: Int64Array = kernels.quantile_sizes(*self._tables(), firsts, lasts, groups)
            return counted
        return self._end(lasts) - self._end(firsts - 1)

    def _end(self, position: int | Int64Array) -> Int64Array:
        """How many values there are up to a position."""
        held: Int64Array = self._ends[position & (len(self._ends) - 1)]
        return held

    def _tables(self) -> tuple[Int64Array, Int64Array, Int64Array]:
        return self._values, self._codes, self._ends

    def _skip(self, count: int) -> None:
        """Positions are passed over; what follows is numbered as if they had been empty."""
        self._make_room(self.reach, 0)
        self._ends[(self.length + count) & (len(self._ends) - 1)] = self._end(self.length)
        self.length += count

    def _make_room(self, positions: int, values: int) -> None:
        """For so many positions and values at the least. Neither circle has been overwritten in part before."""
        if positions + 1 > len(self._ends):
            ends = np.zeros(capacity_for(positions + 1), np.int64)
            ends[: len(self._ends)] = self._ends
            self._ends = ends
        levels, size = self._values.shape
        if values > size or positions.bit_length() > levels:
            places = np.arange(int(self._end(self.forgotten_until)), int(self._end(self.length)))
            shape = max(positions.bit_length(), levels), max(capacity_for(max(values, 1)), size)
            self._values = _move_to_larger(self._values, places, shape)
            self._codes = _move_to_larger(self._codes, places, shape) if self._codes.size else self._codes


def _move_to_larger(table: Int64Array, places: Int64Array, shape: tuple[int, int]) -> Int64Array:
    """The same values, each at its place in a larger circle."""
    larger, levels = np.zeros(shape, np.int64), len(table)
    larger[:levels, places & (shape[1] - 1)] = table[:, places & (table.shape[1] - 1)]
    return larger
