"""MIN and MAX of anything that can be ordered. NaN is the largest number, as in Spark."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from panewise.aggregate.base import Laws, orderable_type
from panewise.aggregate.multiset import order_key
from panewise.aggregate.pick import PickAggregate
from panewise.aggregate.states import StateArrays
from panewise.aggregate.states.integers import fits_int64
from panewise.aggregate.states.pick import MinMaxStates


class Max(PickAggregate):
    """Idempotent and not invertible: once the maximum leaves, only the rest can say what follows it.

    "Consistent results" section 4.2, retrospective.
    """

    names = ("MAX",)
    laws = Laws(idempotent=True)

    def result_type(self) -> pa.DataType:
        return orderable_type(self)

    def meaning(self, values: Sequence[Any]) -> Any:
        return max(values, key=order_key, default=None)

    def state_arrays(self) -> StateArrays:
        return (
            MinMaxStates(self.result, least=self.names == Min.names)
            if fits_int64(self.result)
            else super().state_arrays()
        )


class Min(Max):
    """The mirror of MAX."""

    names = ("MIN",)

    def meaning(self, values: Sequence[Any]) -> Any:
        return min(values, key=order_key, default=None)
