"""CI-COUNT: which substreams had more elements than a threshold, or fewer ("Resource sharing" section 4.1)."""

from __future__ import annotations

from panewise import kernels
from panewise.filters.base import Int64Array
from panewise.filters.levels import LevelIndex


class CICount(LevelIndex):
    """With p levels of each size `epsilon` is 3/4 for p=1, 1/2 for p=2, and 2 / (p + 2) from there on.

    >>> import numpy as np
    >>> index = CICount(p=2)
    >>> index.update(np.array([7, 7, 3, 7, 7]), np.array([1, 2, 3, 4, 5]))
    >>> index.above(now=5, length=5, threshold=3)
    array([7])
    """

    name = "CI-COUNT"
    valued = False
    _first = 0

    def _enter(self, codes: Int64Array, times: Int64Array, values: Int64Array | None, start: int) -> int:
        state = (self._stamps, *self._changes)
        place = (self._counts, state, self.rows, self.p, self.before, self._work)
        return int(kernels.level_count(codes, times, start, *place))
