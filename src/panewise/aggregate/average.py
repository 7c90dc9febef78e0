"""AVG: the sum over the count."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import ROUND_HALF_UP, Decimal, localcontext
from typing import Any

import pyarrow as pa

from panewise.aggregate import pairs
from panewise.aggregate.base import numeric_type
from panewise.aggregate.states import ObjectStates, StateArrays
from panewise.aggregate.states.sums import FloatAvgStates, IntegerAvgStates
from panewise.aggregate.sum import State, Sum, exact_sum, float_sum, is_int64


class Avg(Sum):
    """Algebraic: carries the state of SUM with its count. Decimals keep four more digits, as in Spark."""

    names = ("AVG", "MEAN")

    def result_type(self) -> pa.DataType:
        kind = numeric_type(self)
        return pa.decimal128(38, min(kind.scale + 4, 38)) if pa.types.is_decimal(kind) else pa.float64()

    def meaning(self, values: Sequence[Any]) -> Any:
        if not values:
            return None
        total = float_sum(values) if self.floating else exact_sum(values)
        return self._divide(total, len(values))

    def lower(self, state: State) -> Any:
        count, total = state
        return self._divide(pairs.value(total) if self.floating else total, count) if count else None

    def state_arrays(self) -> StateArrays:
        if self.floating:
            return FloatAvgStates(self)
        return IntegerAvgStates(self) if is_int64(self.types[0]) else ObjectStates(self)

    def _divide(self, total: Any, count: int) -> Any:
        if not isinstance(total, Decimal):
            return total / count
        with localcontext(prec=200):
            return (total / count).quantize(Decimal(1).scaleb(-self.result.scale), ROUND_HALF_UP)
