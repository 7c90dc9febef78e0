"""SUM and AVG: exact on integers and decimals, compensated on floats.

Paper: "Consistent results" section 4.2, progressive.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from decimal import ROUND_HALF_UP, Decimal, localcontext
from fractions import Fraction
from functools import reduce
from typing import Any, ClassVar, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from panewise import kernels
from panewise.aggregate.base import Fold, Invertible, Laws, numeric_type
from panewise.aggregate.moving import MovingRanges
from panewise.aggregate.ordering import decimal_words, fits_int64, to_longs
from panewise.aggregate.states import AddedStates, Int64Array, Items, StateArrays, StateWords, nullable_array
from panewise.core.errors import AggregateProblem
from panewise.core.values import to_arrow

#: A count of values and their sum; the sum is an int, a Decimal or a Pair.
State = tuple[int, Any]

_LOW = (1 << 32) - 1
#: If a double times this is subtracted from itself again, the lower half of the double is lost (Dekker).
_SPLIT = 134_217_729
#: Beyond this the product would overflow.
_HUGE = "1e290D"


class Pair(NamedTuple):
    """A compensated sum of floats: `high + low` is the sum of the finite values, NaN and infinities are counted.

    The error of a pair does not grow with the number of additions or subtractions, and NaN or infinity can leave again.
    """

    high: float = 0.0
    low: float = 0.0
    nans: int = 0
    ups: int = 0
    downs: int = 0

    @staticmethod
    def of(value: float) -> Pair:
        if math.isfinite(value):
            return Pair(value)
        return Pair(nans=1) if math.isnan(value) else Pair(ups=1) if value > 0 else Pair(downs=1)

    def plus(self, other: Pair) -> Pair:
        finite = self._plus(other.high, other.low)
        return Pair(*finite, self.nans + other.nans, self.ups + other.ups, self.downs + other.downs)

    def minus(self, other: Pair) -> Pair:
        finite = self._plus(-other.high, -other.low)
        return Pair(*finite, self.nans - other.nans, self.ups - other.ups, self.downs - other.downs)

    @property
    def value(self) -> float:
        if self.nans or (self.ups and self.downs):
            return math.nan
        if self.ups or self.downs:
            return math.inf if self.ups else -math.inf
        return self.high + self.low

    def _plus(self, high: float, low: float) -> tuple[float, float]:
        """Accurate double-double addition; an overflow stays infinite instead of turning into NaN."""
        s, e = _two_sum(self.high, high)
        if math.isinf(s):
            return s, 0.0
        t, f = _two_sum(self.low, low)
        s, e = _two_sum(s, e + t)
        return _two_sum(s, e + f)


class Sum(Invertible[State]):
    """Requires numbers. O(1) time and space."""

    names: ClassVar[tuple[str, ...]] = ("SUM",)
    laws = Laws(invertible=True)
    fold: ClassVar[Fold | None] = Fold.SUM

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
        return 0, Pair() if self.floating else 0

    def lift(self, value: Any) -> State:
        return 1, Pair.of(value) if self.floating else value

    def combine(self, left: State, right: State) -> State:
        total = left[1].plus(right[1]) if self.floating else exact_sum((left[1], right[1]))
        return left[0] + right[0], total

    def invert(self, whole: State, part: State) -> State:
        rest = whole[1].minus(part[1]) if self.floating else exact_sum((whole[1], -part[1]))
        return whole[0] - part[0], rest

    def lower(self, state: State) -> Any:
        if not state[0]:
            return None
        return state[1].value if self.floating else self._check_range(state[1])

    @property
    def exact(self) -> bool:
        return not self.floating

    def state_arrays(self) -> StateArrays:
        if self.floating:
            return FloatSumStates()
        if pa.types.is_decimal128(self.types[0]):
            return DecimalStates(self)
        return IntegerSumStates(self) if pa.types.is_integer(self.types[0]) else super().state_arrays()

    def _check_range(self, total: Any) -> Any:
        """The sum, if it fits into BIGINT or DECIMAL(38), to which sums are widened."""
        if isinstance(total, int) and pa.types.is_integer(self.types[0]) and not -(2**63) <= total < 2**63:
            raise AggregateProblem(f"SUM overflows BIGINT with {total}", fix="cast the argument to DECIMAL(38, 0)")
        if isinstance(total, Decimal) and len(total.as_tuple().digits) > 38:
            raise AggregateProblem("SUM overflows DECIMAL(38)", fix="cast the argument to DOUBLE")
        return total


class Avg(Sum):
    """Algebraic: the sum divided by the count, from the state of SUM. Decimals have four more digits, as in Spark."""

    names = ("AVG", "MEAN")
    fold = Fold.MEAN

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
        return self._divide(total.value if self.floating else total, count) if count else None

    def state_arrays(self) -> StateArrays:
        if self.floating:
            return FloatAvgStates()
        return IntegerAvgStates(self) if pa.types.is_integer(self.types[0]) else super().state_arrays()

    def _divide(self, total: Any, count: int) -> Any:
        if not isinstance(total, Decimal):
            return total / count
        with localcontext(prec=200):
            return (total / count).quantize(Decimal(1).scaleb(-self.result.scale), ROUND_HALF_UP)


class IntegerSumStates(AddedStates):
    """How many values, and their sum as `high * 2**32 + low`."""

    def __init__(self, aggregate: Sum) -> None:
        self.aggregate = aggregate

    def identity(self, size: int) -> StateWords:
        return tuple(np.zeros(size, np.int64) for _ in range(3))

    def _gather(self, slots: Int64Array, items: Items, into: StateWords) -> None:
        values = to_longs(items.arguments[0])
        counts = np.zeros_like(into[0])
        kernels.count(slots, counts)
        into[0][:] += counts
        if self.aggregate.types[0] == pa.uint64():
            # As int64 they are less by 2**63.
            into[1][:] += counts << 31
        kernels.add_integers(slots, values, into[1], into[2])

    def moving_answers(self, items: Items, ranges: MovingRanges) -> tuple[StateArrays, StateWords] | None:
        if self.aggregate.types[0] == pa.uint64():
            return None
        longs = _numbers_or_zero(items.arguments[0]).astype(np.int64, copy=False)
        if len(longs) * greatest_distance(longs) >= 2**62:
            return None
        totals = kernels.range_sums(longs, ranges.low, ranges.high)
        return self, (ranges.counts(items), totals >> 32, totals & _LOW)

    def lower(self, words: StateWords) -> pa.Array:
        count, high, low = words
        high, low = high + (low >> 32), low & _LOW
        fits = (high >= -(2**31)) & (high < 2**31)
        return self._answers(count, (high << 32) | low, fits, (high, low))

    def _answers(self, count: Int64Array, totals: Int64Array, fits: Any, words: StateWords) -> pa.Array:
        for place in np.flatnonzero(~fits & (count > 0)).tolist():
            self.aggregate.lower((1, _whole(words, place)))  # raises the error of the overflow, which has the sum
        return nullable_array(totals, count == 0)

    def spark_sql(self, value: str) -> list[str] | None:
        if self.aggregate.types[0] == pa.uint64():
            return None
        whole = f"CAST({value} AS BIGINT)"
        return [f"COUNT({value})", f"SUM(SHIFTRIGHT({whole}, 32))", f"SUM({whole} & {_LOW})"]


class IntegerAvgStates(IntegerSumStates):
    """AVG of integers: rounded once, as Python divides integers."""

    def _answers(self, count: Int64Array, totals: Int64Array, fits: Any, words: StateWords) -> pa.Array:
        means = totals / np.maximum(count, 1)
        # Beyond 2**53 a double does not hold the sum, and the mean would be rounded twice.
        for place in np.flatnonzero(~fits | (np.abs(totals) > 2**53)).tolist():
            means[place] = _whole(words, place) / max(int(count[place]), 1)
        return nullable_array(means, count == 0)


def _whole(words: StateWords, place: int) -> int:
    return (int(words[0][place]) << 32) + int(words[1][place])


class DecimalStates(AddedStates):
    """SUM and AVG of decimals: how many values, and the digits of their sum to the base of 2**32, the highest first.

    Only the highest digit has a sign. Up to 18 decimal digits a value has two digits, else four.
    """

    def __init__(self, aggregate: Sum) -> None:
        self.aggregate, self.kind = aggregate, aggregate.types[0]
        self.digits = 2 if fits_int64(self.kind) else 4

    def identity(self, size: int) -> StateWords:
        return tuple(np.zeros(size, np.int64) for _ in range(1 + self.digits))

    def _gather(self, slots: Int64Array, items: Items, into: StateWords) -> None:
        kernels.count(slots, into[0])
        if self.digits == 2:
            kernels.add_integers(slots, to_longs(items.arguments[0]), into[1], into[2])
        else:
            kernels.decimal_add(slots, decimal_words(items.arguments[0]), into[1:])

    def lower(self, words: StateWords) -> pa.Array:
        result, count = self.aggregate.result, words[0]
        divisor = count if self.aggregate.fold is Fold.MEAN else np.ones_like(count)
        found, fits = kernels.decimal_answers(words[1:], 10 ** (result.scale - self.kind.scale), divisor)
        for place in np.flatnonzero(~fits & (count > 0)).tolist():
            self._raise_overflow(int(count[place]), [int(word[place]) for word in words[1:]])
        answers = pa.Array.from_buffers(result, len(count), [None, pa.py_buffer(found)])
        return pc.if_else(pa.array(count > 0), answers, None)

    def _raise_overflow(self, count: int, digits: Sequence[int]) -> None:
        """Raise the error of an answer that has too many digits."""
        total = reduce(lambda high, low: (high << 32) + low, digits)
        with localcontext(prec=200):
            to_arrow([self.aggregate.lower((count, Decimal(total).scaleb(-self.kind.scale)))], self.aggregate.result)


class FloatSumStates(StateArrays):
    """How many values, a compensated pair, and whether there were NaN, infinity or minus infinity.

    Never subtracted: after 1e300 has left, a running total has lost what was added beside it.
    """

    needs_time = False

    def identity(self, size: int) -> StateWords:
        return np.zeros(size, np.int64), np.zeros(size), np.zeros(size), np.zeros(size, np.uint8)

    def _gather(self, slots: Int64Array, items: Items, into: StateWords) -> None:
        values = items.arguments[0].to_numpy(zero_copy_only=False).astype(np.float64, copy=False)
        kernels.count(slots, into[0])
        kernels.add_floats(slots, values, *into[1:])

    def combine(self, left: StateWords, right: StateWords) -> StateWords:
        high, low = kernels.add_pairs(left[1], left[2], right[1], right[2])
        return left[0] + right[0], high, low, left[3] | right[3]

    def moving_answers(self, items: Items, ranges: MovingRanges) -> tuple[StateArrays, StateWords] | None:
        floats = _numbers_or_zero(items.arguments[0]).astype(np.float64, copy=False)
        sums = kernels.range_float_sums(floats, ranges.low, ranges.high, ranges.middle)
        return self, (ranges.counts(items), *sums)

    def lower(self, words: StateWords) -> pa.Array:
        count = words[0]
        return nullable_array(self._answers(float_totals(*words[1:]), count), count == 0)

    def _answers(self, totals: Any, count: Int64Array) -> Any:
        return totals

    def spark_sql(self, value: str) -> list[str]:
        """The sums of both halves of each double, which are exact unless magnitudes differ by more than about 2**17.

        NaN and the infinities are beyond any bound, as in Spark, and are only marked.
        """
        v, infinite = f"CAST({value} AS DOUBLE)", "DOUBLE('inf')"
        plain = f"IF(ABS({v}) < {_HUGE}, {v}, 0D)"
        upper = f"({_SPLIT} * {plain} - ({_SPLIT} * {plain} - {plain}))"
        lower = f"IF(ABS({v}) < {_HUGE}, {v} - {upper}, IF(ABS({v}) < {infinite}, {v}, 0D))"
        odd = f"CASE WHEN ISNAN({v}) THEN 1 WHEN {v} = {infinite} THEN 2 WHEN {v} = -{infinite} THEN 4 ELSE 0 END"
        return [f"COUNT({v})", f"SUM({upper})", f"SUM({lower})", f"BIT_OR({odd})"]

    def from_spark(self, found: Sequence[pa.Array]) -> StateWords:
        count, upper, lower, odd = (array.fill_null(0).to_numpy(zero_copy_only=False) for array in found)
        zeros = np.zeros(len(count))
        high, low = kernels.add_pairs(upper.astype(np.float64), zeros, lower.astype(np.float64), zeros)
        return count.astype(np.int64), high, low, odd.astype(np.uint8)


class FloatAvgStates(FloatSumStates):
    """AVG of floats."""

    def _answers(self, totals: Any, count: Int64Array) -> Any:
        return totals / np.maximum(count, 1)


def float_totals(high: Any, low: Any, odd: Any) -> Any:
    """The sums that pairs and marks of NaN (1), infinity (2) and minus infinity (4) represent."""
    totals = high + low + 0.0
    if odd.any():
        totals[odd == 2] = np.inf
        totals[odd == 4] = -np.inf
        totals[(odd & 1 > 0) | (odd == 6)] = np.nan
    return totals


def _numbers_or_zero(values: pa.Array) -> Any:
    """Numbers, zero where there is none."""
    return (values.fill_null(0) if values.null_count else values).to_numpy()


def greatest_distance(longs: Int64Array) -> int:
    """How far the values are from zero at most."""
    return max(int(longs.max(initial=0)), -int(longs.min(initial=0)))


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
    """The nearest double; infinite if the number is too large for one."""
    try:
        return float(exact)
    except OverflowError:
        return math.inf if exact > 0 else -math.inf


def _has_both_infinities(values: Sequence[float]) -> bool:
    return math.inf in values and -math.inf in values


def _two_sum(a: float, b: float) -> tuple[float, float]:
    """The rounded sum and its rounding error."""
    s = a + b
    if math.isinf(s):
        return s, 0.0
    shadow = s - a
    return s, (a - (s - shadow)) + (b - shadow)
