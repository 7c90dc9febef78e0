"""The collective index that CI-COUNT and CI-SUM share ("Resource sharing" section 4.1): timestamps by level.

An element's distance from the end of its substream is 1 for the newest. Distances fall into levels: `p` of one
element, `p` of two, `p` of four and so on. Of each level the index keeps the time of one element. Whether a
substream has n elements after an instant is whether the n-th from its end came later: a level that ends at n or before
answers yes for all that have, and one that begins at n or after answers no for all that have not.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from math import ceil
from typing import ClassVar, TypeAlias

import numpy as np
import numpy.typing as npt

from panewise import kernels
from panewise.core.errors import PlanProblem
from panewise.filters.base import NO_TIME, Filter, Int64Array, LookupAnswers

#: For each lookup where its codes, and its doubtful codes, begin and end; all codes; the places of doubtful codes.
Candidates: TypeAlias = tuple[Int64Array, npt.NDArray[np.int32], npt.NDArray[np.int32]]

_LARGEST_P = 1024
_KEYS = 64
#: Counts and sums stay below.
MAX_TOTAL = 2**62


def epsilon_of(p: int) -> float:
    """What p levels of each size guarantee: an answer is above `threshold * (1 - epsilon)`."""
    return max(2 / (p + 2), 3 / (2 * p + 2))


def epsilon_below_of(p: int) -> float:
    """The same for answers below a threshold, which may be further away from it: by a factor of 1 / (1 - epsilon)."""
    return max(2 / p, 3 / (2 * p - 1))


def levels_for(p: int | None, epsilon: float | None, default: int) -> int:
    """The number of levels of each size, from `p` or from `epsilon`."""
    if p is not None and epsilon is not None:
        raise PlanProblem(f"p={p} and epsilon={epsilon} say the same twice", fix="give one of them")
    if epsilon is not None:
        if not 2 / _LARGEST_P <= epsilon < 1:
            raise PlanProblem(f"epsilon={epsilon} is not between {2 / _LARGEST_P:.4f} and 1", fix="use 0.25, say")
        fewest = ceil(2 / epsilon)
        return fewest if epsilon_below_of(fewest) <= epsilon else fewest + 1
    if p is None:
        return default
    if isinstance(p, bool) or not isinstance(p, int) or not 1 <= p <= _LARGEST_P:
        raise PlanProblem(f"p={p!r} is no number of levels", fix=f"use a whole number from 1 to {_LARGEST_P}")
    return p


def least_of(limits: Int64Array, below: bool) -> Int64Array:
    """The least total above a limit, where answers are at most the limit; otherwise the limit itself."""
    least: Int64Array = np.minimum(limits, MAX_TOTAL) + below
    return least


@dataclass(frozen=True)
class IndexWork:
    """The steps that an index has done so far, for tests that count steps instead of measuring time."""

    stamps_set: int
    heap_steps: int
    keys_visited: int


class LevelIndex(Filter):
    """Space O(keys * p * log N), update O(p + log keys) amortised, lookup O(answers).

    The timestamps of a level lie in a heap, the latest on top. `below` goes through all substreams that the window has.
    """

    #: The row of the first level: CI-SUM has one before, with the time of the last element of a substream.
    _first: ClassVar[int]

    def __init__(self, p: int | None = None, *, epsilon: float | None = None) -> None:
        super().__init__()
        self.p = levels_for(p, epsilon, default=8)
        sizes = np.arange(61 - self.p.bit_length(), dtype=np.int64)[:, None]
        first = self.p * ((1 << sizes) - 1) + (np.arange(self.p, dtype=np.int64) << sizes) + 1
        self._starts, self._ends = first.ravel(), (first + (1 << sizes) - 1).ravel()
        self._work, self._expected = np.zeros(3, np.int64), 1
        self._keys, self._sizes = 0, 0
        self._stamps = np.full((0, self._first + 1), NO_TIME, np.int64)
        self._counts = np.zeros(0, np.int64)
        self._resize(_KEYS, 1)

    @property
    def epsilon(self) -> float:
        return epsilon_of(self.p)

    @property
    def epsilon_below(self) -> float:
        return epsilon_below_of(self.p)

    @property
    def work(self) -> IndexWork:
        return IndexWork(*self._work.tolist())

    @property
    def rows(self) -> int:
        """How many timestamps are kept of each substream."""
        return self._first + self._sizes * self.p

    @property
    def nbytes(self) -> int:
        arrays = (self._counts, self._stamps, *self._changes, *self._heaps)
        return sum(array.nbytes for array in arrays)

    def lookup(self, cuts: Int64Array, limits: Int64Array, below: bool) -> LookupAnswers:
        parts, codes, _ = self.candidates(cuts, least_of(limits, below), below)
        begins, counts = parts[:, 0], parts[:, 1] - parts[:, 0]
        offsets = np.append(0, np.cumsum(counts))
        places = np.arange(offsets[-1]) - np.repeat(offsets[:-1] - begins, counts)
        return offsets, codes[places].astype(np.int64)

    def candidates(self, cuts: Int64Array, least: Int64Array, below: bool) -> Candidates:
        """The substreams that may have `least` or more after the cut, or less, and which of them are not certain."""
        # Row 0 finds everything that came after the cut: each has an element at least, or a sum of at least zero.
        given = least <= 1 - self._first
        low = np.where(given, 0, np.searchsorted(self._ends, least, side="right") - 1 + self._first)
        high = np.where(given, 0, np.searchsorted(self._starts, least) + self._first)
        state, place = (self._stamps, *self._changes), (self.rows, self._first, self.p)
        asked, order = (low, high, cuts), np.lexsort((cuts, high, low))
        how = (order, below, self._expected, self._work)
        found: Candidates = kernels.level_lookup(state, self._heaps, *place, asked, *how)
        self._expected = len(found[1]) + 1
        return found

    def forget(self, before: int) -> None:
        super().forget(before)
        # One size that no substream has reached is kept, so that it need not be made again at once.
        while self._sizes > 2 and self._stamps[:, self.rows - 2 * self.p].max() <= self.before:
            self._resize(self._keys, self._sizes - 1)

    def take(self, codes: Int64Array, times: Int64Array, values: Int64Array | None) -> None:
        needed = int(codes.max()) + 1
        if needed > self._keys:
            self._resize(max(needed, 2 * self._keys), self._sizes)
        start = self._enter(codes, times, values, 0)
        while start < len(codes):
            self._resize(self._keys, self._sizes + 1)
            start = self._enter(codes, times, values, start)

    @abstractmethod
    def _enter(self, codes: Int64Array, times: Int64Array, values: Int64Array | None, start: int) -> int:
        """Take elements in until there are too few levels; returns the place of the first that was not taken in."""

    def _resize(self, keys: int, sizes: int) -> None:
        """Make room for substreams and for sizes of levels. The column after the last level is always empty."""
        rows = self._first + sizes * self.p
        kept, both = len(self._stamps), min(self.rows, rows)
        stamps = np.full((keys, rows + 1), NO_TIME, np.int64)
        stamps[:kept, :both] = self._stamps[:, :both]
        self._stamps = stamps
        self._counts = np.concatenate([self._counts, np.zeros(keys - kept, np.int64)])
        # Heaps are built again at their next use: the places up to which they have read lie before the new log.
        room = 1 << max(keys - 1, 1).bit_length()
        self._changes = np.zeros((sizes, room), np.int32), np.zeros(sizes, np.int64)
        self._heaps = (
            np.full((rows, keys), NO_TIME, np.int64),
            np.zeros((rows, keys), np.int32),
            np.full((rows, keys), -1, np.int32),
            np.zeros(rows, np.int64),
            np.full(rows, -room - 1, np.int64),
        )
        self._keys, self._sizes = keys, sizes
