"""COUNT(*) counts tuples; COUNT(x) counts the values that are not NULL."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import pyarrow as pa

from panewise.aggregate.base import Invertible, Laws
from panewise.aggregate.states import StateArrays
from panewise.aggregate.states.counts import CountStates


class Count(Invertible[int]):
    """Requires a group. O(1) time and space. "Consistent results" section 4.2, progressive."""

    names: ClassVar[tuple[str, ...]] = ("COUNT",)
    laws = Laws(invertible=True)

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
    """COUNT(*): NULLs count too, because no column is looked at."""

    names = ("COUNT(*)",)  # no function can be called by this name: the language knows the star
    arity = 0
    skip_nulls = False

    def text(self, arguments: Sequence[str]) -> str:
        return self.names[0]
