"""Exact answers: a collective index finds candidates, running totals check those that are not certain."""

from __future__ import annotations

from panewise.filters.base import Filter, Int64Array, LookupAnswers
from panewise.filters.levels import LevelIndex, least_of
from panewise.filters.running import RunningTotals


class Exact(Filter):
    """CI-COUNT or CI-SUM together with R-INT of each substream ("Resource sharing" sections 4.1 and 6.3).

    Of the candidates most are certain by a stricter level; only the others are looked up. More levels leave fewer of
    them and make updates dearer.

    >>> import numpy as np
    >>> from panewise.filters import CICount
    >>> index = Exact(CICount(p=1))
    >>> index.update(np.array([7, 7, 3, 7, 7]), np.array([1, 2, 3, 4, 5]))
    >>> index.above(now=5, length=5, threshold=3), index.below(now=5, length=5, threshold=4)
    (array([7]), array([3]))
    """

    def __init__(self, index: LevelIndex) -> None:
        super().__init__()
        self.index, self.running = index, RunningTotals(index.valued)
        self.name, self.valued = f"{index.name} with R-INT", index.valued

    @property
    def epsilon(self) -> float:
        return 0.0

    @property
    def epsilon_below(self) -> float:
        return 0.0

    @property
    def nbytes(self) -> int:
        return self.index.nbytes + self.running.nbytes

    def forget(self, before: int) -> None:
        super().forget(before)
        self.index.forget(before)

    def check_values(self, values: Int64Array) -> None:
        self.index.check_values(values)

    def take(self, codes: Int64Array, times: Int64Array, values: Int64Array | None) -> None:
        self.index.take(codes, times, values)
        self.running.update(codes, times, values, self.before)

    def lookup(self, cuts: Int64Array, limits: Int64Array, below: bool) -> LookupAnswers:
        least = least_of(limits, below)
        return self.running.confirm(self.index.candidates(cuts, least, below), cuts, least, below)
