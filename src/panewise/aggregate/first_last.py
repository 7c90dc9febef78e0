"""FIRST and LAST value by time, ties by arrival."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from panewise.aggregate.base import Laws
from panewise.aggregate.pick import PickAggregate
from panewise.aggregate.states import StateArrays
from panewise.aggregate.states.pick import FirstLastStates


class First(PickAggregate):
    """Ordered: parts must be combined in time order. NULLs are skipped like everywhere else."""

    names = ("FIRST", "FIRST_VALUE")
    laws = Laws(commutative=False, idempotent=True)
    place = 0

    def result_type(self) -> pa.DataType:
        return self.types[0]

    def meaning(self, values: Sequence[Any]) -> Any:
        return values[self.place] if values else None

    def state_arrays(self) -> StateArrays:
        return FirstLastStates(self.result, first=self.place == 0)


class Last(First):
    """The newest value."""

    names = ("LAST", "LAST_VALUE")
    place = -1
