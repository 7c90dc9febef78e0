"""COUNT(*) counts rows; COUNT(x) counts the values that are not NULL."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from panewise import kernels
from panewise.aggregate.base import Fold, Invertible, Laws
from panewise.aggregate.moving import MovingRanges
from panewise.aggregate.states import AddedStates, Int64Array, Items, StateArrays, StateWords


class Count(Invertible[int]):
    """Takes values of any type. O(1) time and space. "Consistent results" section 4.2, progressive."""

    names: ClassVar[tuple[str, ...]] = ("COUNT",)
    laws = Laws(invertible=True)
    fold = Fold.COUNT

    def result_type(self) -> pa.DataType:
        return pa.int64()

    def meaning(self, values: Sequence[Any]) -> int:
        return len(values)

    def identity(self) -> int:
        return 0

    def lift(self, value: Any) -> int:
        return 1

    def combine(self, left: int, right: int) -> int:
        return left + right

    def invert(self, whole: int, part: int) -> int:
        return whole - part

    def lower(self, state: int) -> int:
        return state

    def state_arrays(self) -> StateArrays:
        return CountStates()


class CountAll(Count):
    """COUNT(*) counts rows, also those with NULLs."""

    names = ("COUNT(*)",)  # no function can have this name: the language knows the star
    arity = 0
    skip_nulls = False
    counts_rows = True

    def text(self, arguments: Sequence[str]) -> str:
        return self.names[0]


class CountStates(AddedStates):
    """One word: how many values there are."""

    def identity(self, size: int) -> StateWords:
        return (np.zeros(size, np.int64),)

    def _gather(self, slots: Int64Array, items: Items, into: StateWords) -> None:
        kernels.count(slots, into[0])

    def moving_answers(self, items: Items, ranges: MovingRanges) -> tuple[StateArrays, StateWords] | None:
        return self, (ranges.counts(items),)

    def lower(self, words: StateWords) -> pa.Array:
        return pa.array(words[0])

    def spark_sql(self, value: str) -> list[str]:
        return [f"COUNT({value})"]
