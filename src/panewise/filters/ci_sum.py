"""CI-SUM: which substreams had a sum above or below a threshold ("Resource sharing" section 4.2)."""

from __future__ import annotations

import numpy as np

from panewise import kernels
from panewise.core.errors import AggregateProblem
from panewise.filters.base import Int64Array
from panewise.filters.levels import MAX_TOTAL, LevelIndex


class CISum(LevelIndex):
    """CI-COUNT of a stream in which the value of an element is how often it occurs: whole numbers, not negative.

    All copies enter at once, in O(p * log value) steps amortised. A sum of zero is one, if there was an element.

    >>> import numpy as np
    >>> index = CISum(p=4)
    >>> index.update(np.array([0, 1, 0]), np.array([1, 1, 2]), np.array([10**9, 5, 10**9]))
    >>> index.above(now=2, length=2, threshold=10**9), index.below(now=2, length=2, threshold=100)
    (array([0]), array([1]))
    """

    name = "CI-SUM"
    valued = True
    _first = 1

    def __init__(self, p: int | None = None, *, epsilon: float | None = None) -> None:
        super().__init__(p, epsilon=epsilon)
        self._total = 0.0

    def check_values(self, values: Int64Array) -> None:
        if values.min() < 0:
            raise AggregateProblem(
                f"{self.name} cannot take the value {values.min()}", fix="use it for values that are never negative"
            )
        # A double holds the sum nearly exactly, and the limit leaves room for the difference.
        if self._total + float(values.sum(dtype=np.float64)) >= MAX_TOTAL / 2:
            raise AggregateProblem(f"all sums of {self.name} together exceed 2**61", fix="use a coarser unit")

    def take(self, codes: Int64Array, times: Int64Array, values: Int64Array | None) -> None:
        super().take(codes, times, values)
        self._total += 0.0 if values is None else float(values.sum(dtype=np.float64))

    def _enter(self, codes: Int64Array, times: Int64Array, values: Int64Array | None, start: int) -> int:
        state = (self._stamps, *self._changes)
        place = (self._counts, state, self.rows, self.p, self.before, self._work)
        return int(kernels.level_add(codes, times, values, start, *place))
