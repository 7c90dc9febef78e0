"""SUM: exact on integers and decimals, compensated on floats."""

from __future__ import annotations

import math
from collections.abc import Sequence
from decimal import Decimal, localcontext
from fractions import Fraction
from typing import Any, ClassVar

import pyarrow as pa

from panewise.aggregate import pairs
from panewise.aggregate.base import Invertible, Laws, numeric_type
from panewise.aggregate.states import StateArrays
from panewise.aggregate.states.sums import FloatSumStates, IntegerSumStates
from panewise.core.errors import AggregateProblem

#: A count of values and their sum; the sum is an int, a Decimal or a compensated Pair.
State = tuple[int, Any]


class Sum(Invertible[State]):
    """Requires numbers. O(1) time and space. "Consistent results" section 4.2, progressive."""

    names: ClassVar[tuple[str, ...]] = ("SUM",)
    laws = Laws(invertible=True)

    def result_type(self) -> pa.DataType:
        kind = numeric_type(self)
        if pa.types.is_integer(kind):
            return pa.int64()
        return pa.decimal128(38, kind.scale) if pa.types.is_decimal(kind) else pa.float64()

    @property
    def floating(self) -> bool:
        return bool(pa.types.is_floating(self.types[0]))

    def meaning(self, values: Sequence[Any]) -> Any:
        if not values:
            return None
        return float_sum(values) if self.floating else self._check_range(exact_sum(values))

    def identity(self) -> State:
        return 0, pairs.Pair() if self.floating else 0

    def lift(self, value: Any) -> State:
        return 1, pairs.lift(value) if self.floating else value

    def combine(self, left: State, right: State) -> State:
        return left[0] + right[0], self._add(left[1], right[1])

    def invert(self, whole: State, part: State) -> State:
        rest = pairs.subtract(whole[1], part[1]) if self.floating else exact_sum((whole[1], -part[1]))
        return whole[0] - part[0], rest

    def lower(self, state: State) -> Any:
        if not state[0]:
            return None
        return pairs.value(state[1]) if self.floating else self._check_range(state[1])

    @property
    def exact(self) -> bool:
        return not self.floating

    def state_arrays(self) -> StateArrays:
        if self.floating:
            return FloatSumStates(self)
        return IntegerSumStates(self) if is_int64(self.types[0]) else super().state_arrays()

    def _add(self, left: Any, right: Any) -> Any:
        return pairs.add(left, right) if self.floating else exact_sum((left, right))

    def _check_range(self, total: Any) -> Any:
        """Sums widen to BIGINT or DECIMAL(38); past that there is no honest answer."""
        if isinstance(total, int) and pa.types.is_integer(self.types[0]) and not -(2**63) <= total < 2**63:
            raise AggregateProblem(f"SUM overflows BIGINT with {total}", fix="cast the argument to DECIMAL(38, 0)")
        if isinstance(total, Decimal) and len(total.as_tuple().digits) > 38:
            raise AggregateProblem("SUM overflows DECIMAL(38)", fix="cast the argument to DOUBLE")
        return total


def is_int64(kind: pa.DataType) -> bool:
    """Whether values are int64 as they stand."""
    return bool(pa.types.is_integer(kind) and kind != pa.uint64())


def exact_sum(values: Sequence[Any]) -> Any:
    """The sum of ints or Decimals without rounding."""
    if values and isinstance(values[0], Decimal):
        with localcontext(prec=200):
            return sum(values)
    return sum(values)


def float_sum(values: Sequence[float]) -> float:
    """The sum of floats, rounded once."""
    finite = [v for v in values if math.isfinite(v)]
    if len(finite) < len(values):
        return math.fsum(v for v in values if not math.isfinite(v)) if not _has_both_infinities(values) else math.nan
    try:
        return math.fsum(finite)
    except OverflowError:
        return nearest_double(sum(map(Fraction, finite), Fraction(0)))


def nearest_double(exact: Fraction) -> float:
    """The nearest double; what is too large for one is infinite."""
    try:
        return float(exact)
    except OverflowError:
        return math.inf if exact > 0 else -math.inf


def _has_both_infinities(values: Sequence[float]) -> bool:
    return math.inf in values and -math.inf in values
