"""VAR and STDDEV, of a sample or of a population.

The meaning is computed with exact rationals. Answers from states in arrays are rounded once for integers and decimals,
and are within 1 ulp for floats.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Sequence
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from panewise import kernels
from panewise.aggregate.base import Invertible, Laws, numeric_type
from panewise.aggregate.moving import MovingRanges
from panewise.aggregate.ordering import decimal_words, fits_int64, to_longs
from panewise.aggregate.states import AddedStates, Int64Array, Items, SolvedStates, StateArrays, StateWords
from panewise.aggregate.sum import greatest_distance, nearest_double

_LOW = (1 << 32) - 1

#: Count, sum and sum of squares of the finite values, and how many were not finite.
State = tuple[int, Fraction, Fraction, int]


class VarSamp(Invertible[State]):
    """Algebraic. Sums are exact rationals, so that no rounding error is left when values are taken out again."""

    names: ClassVar[tuple[str, ...]] = ("VAR_SAMP", "VARIANCE", "VAR")
    laws = Laws(invertible=True)
    #: By how much the divisor is less than the number of values.
    freedom: ClassVar[int] = 1
    #: Whether the answer is the square root of the variance.
    root: ClassVar[bool] = False

    def result_type(self) -> pa.DataType:
        numeric_type(self)
        return pa.float64()

    def meaning(self, values: Sequence[Any]) -> float | None:
        if len(values) <= self.freedom:
            return None
        if not all(map(math.isfinite, values)):
            return math.nan
        exact = [Fraction(v) for v in values]
        mean = sum(exact, Fraction(0)) / len(exact)
        return self._answer_from(sum(((v - mean) ** 2 for v in exact), Fraction(0)) / (len(exact) - self.freedom))

    def identity(self) -> State:
        return 0, Fraction(0), Fraction(0), 0

    def lift(self, value: Any) -> State:
        if not math.isfinite(value):
            return 1, Fraction(0), Fraction(0), 1
        exact = Fraction(value)
        return 1, exact, exact * exact, 0

    def combine(self, left: State, right: State) -> State:
        return left[0] + right[0], left[1] + right[1], left[2] + right[2], left[3] + right[3]

    def invert(self, whole: State, part: State) -> State:
        return whole[0] - part[0], whole[1] - part[1], whole[2] - part[2], whole[3] - part[3]

    def lower(self, state: State) -> float | None:
        count, total, squares, odd = state
        if count <= self.freedom:
            return None
        return math.nan if odd else self._answer_from((squares - total * total / count) / (count - self.freedom))

    def state_arrays(self) -> StateArrays:
        kind = self.types[0]
        if pa.types.is_integer(kind):
            return IntegerVarianceStates(self.freedom, self.root, kind.bit_width)
        if pa.types.is_decimal(kind) and fits_int64(kind):
            return IntegerVarianceStates(self.freedom, self.root, 64, kind.scale)
        if pa.types.is_decimal128(kind):
            return DecimalVarianceStates(self.freedom, self.root, kind.scale)
        return FloatVarianceStates(self.freedom, self.root) if pa.types.is_floating(kind) else super().state_arrays()

    def _answer_from(self, variance: Fraction) -> float:
        return nearest_double(variance)


class VarPop(VarSamp):
    """The variance of the whole population."""

    names = ("VAR_POP",)
    freedom = 0


class StddevSamp(VarSamp):
    """The square root of VAR_SAMP."""

    names: ClassVar[tuple[str, ...]] = ("STDDEV_SAMP", "STDDEV", "STD")
    root = True

    def _answer_from(self, variance: Fraction) -> float:
        # The variance is scaled by a power of four, because the square of a large double does not fit into a double.
        half = (variance.numerator.bit_length() - variance.denominator.bit_length()) // 2
        return nearest_double(Fraction(math.sqrt(variance / Fraction(4) ** half)) * Fraction(2) ** half)


class StddevPop(StddevSamp):
    """The square root of VAR_POP."""

    names = ("STDDEV_POP",)
    freedom = 0


class VarianceStates(SolvedStates):
    """States in arrays; the first word is the number of values."""

    def __init__(self, freedom: int, root: bool) -> None:
        self.freedom, self.root = freedom, root

    def solve(self, words: StateWords) -> StateWords:
        return self._answers(words), words[0] <= self.freedom

    @abstractmethod
    def _answers(self, words: StateWords) -> npt.NDArray[np.float64]:
        """The variances, or their roots; any number where there are too few values."""


class IntegerVarianceStates(VarianceStates, AddedStates):
    """How many values, and digits to the base of 2**32 of their sum and of the sum of their squares.

    A group may have 2**29 values in a window before a digit could overflow. The variance is rounded once, and so is its
    root. Values of 32 bits or less need four words, others seven. Decimals are integers, and `scale` of their digits
    stand behind the point.
    """

    def __init__(self, freedom: int, root: bool, bits: int, scale: int = 0) -> None:
        super().__init__(freedom, root)
        self.short, self.unit = bits <= 32, _square_unit(scale)

    def identity(self, size: int) -> StateWords:
        return tuple(np.zeros(size, np.int64) for _ in range(4 if self.short else 7))

    def _gather(self, slots: Int64Array, items: Items, into: StateWords) -> None:
        values = _signed_numbers(items.arguments[0])
        if self.short or not len(values) or (values.max() <= 2**31 and values.min() >= -(2**31)):
            kernels.variance_add_near(slots, values, into[:4])
        else:
            kernels.variance_add_integers(slots, values, into)

    def moving_answers(self, items: Items, ranges: MovingRanges) -> tuple[StateArrays, StateWords] | None:
        present, values = items.present(), items.arguments[0]
        longs = _signed_numbers(values if present is None else values.drop_null())
        if present is not None:
            known, longs = longs, np.zeros(len(values), np.int64)
            longs[present] = known
        if len(longs) * greatest_distance(longs) ** 2 >= 2**62:
            return None
        totals, squares = (kernels.range_sums(each, ranges.low, ranges.high) for each in (longs, longs * longs))
        nothing = np.zeros(len(totals), np.int64)
        digits = totals, squares & _LOW, squares >> 32
        return self, (ranges.counts(items), *digits, *[nothing] * (0 if self.short else 3))

    def _answers(self, words: StateWords) -> npt.NDArray[np.float64]:
        missing = (np.zeros(len(words[0]), np.int64),) * (7 - len(words))
        found: npt.NDArray[np.float64] = kernels.variance_answers_integers(
            (*words, *missing), self.freedom, self.root, self.unit
        )
        return found


def _signed_numbers(values: pa.Array) -> Int64Array:
    """Values without NULLs as int64 with the same variance."""
    if pa.types.is_decimal(values.type):
        return to_longs(values)
    numbers = values.to_numpy(zero_copy_only=False)
    if numbers.dtype in (np.uint32, np.uint64):
        # Less half of their range they are signed numbers of as many bits.
        bits = 8 * numbers.itemsize
        numbers = (numbers ^ numbers.dtype.type(1 << (bits - 1))).view(f"int{bits}")
    longs: Int64Array = numbers.astype(np.int64, copy=False)
    return longs


def _square_unit(scale: int) -> tuple[float, float]:
    """The square of the unit that has so many digits before the point, as a double and what rounding lost of it."""
    unit = 10 ** (2 * scale)
    return float(unit), float(unit - int(float(unit)))


class DecimalVarianceStates(VarianceStates, AddedStates):
    """Decimals of more than 18 digits: how many, and digits of their sum and of the sum of their squares, as words.

    A group may have 2**28 values in a window. The variance is rounded once, and so is its root.
    """

    def __init__(self, freedom: int, root: bool, scale: int) -> None:
        super().__init__(freedom, root)
        self.unit = _square_unit(scale)

    def identity(self, size: int) -> StateWords:
        return tuple(np.zeros(size, np.int64) for _ in range(13))

    def _gather(self, slots: Int64Array, items: Items, into: StateWords) -> None:
        rows = np.zeros((len(into[0]), len(into)), np.int64)
        kernels.variance_add_wide(slots, decimal_words(items.arguments[0]), rows)
        for number, word in enumerate(into):
            word += rows[:, number]

    def _answers(self, words: StateWords) -> npt.NDArray[np.float64]:
        rows = np.stack(words, axis=1)
        found: npt.NDArray[np.float64] = kernels.variance_answers_wide(rows, self.freedom, self.root, self.unit)
        return found


class FloatVarianceStates(VarianceStates):
    """How many values, the band of their differences from one of them, that value, and the sums of differences.

    The sums, of differences and of their squares, are compensated pairs: an accumulator that is exact for squares of
    all doubles would need more than 500 bytes for each group. Because the differences are those from one of the values,
    n values lose no more than about n**2 * 2**-104 of their variance before it is rounded: the answer is within 1 ulp
    for up to 2**24 values.

    Sums are never subtracted: after 1e300 has left, a running total has lost what was added beside it.
    """

    needs_time = False

    def identity(self, size: int) -> StateWords:
        return np.zeros(size, np.int64), np.zeros(size, np.uint8), *(np.zeros(size) for _ in range(5))

    def _gather(self, slots: Int64Array, items: Items, into: StateWords) -> None:
        values = items.arguments[0].to_numpy(zero_copy_only=False).astype(np.float64, copy=False)
        kernels.variance_add_floats(slots, values, into)

    def combine(self, left: StateWords, right: StateWords) -> StateWords:
        words: StateWords = kernels.variance_combine_floats(left, right)
        return words

    def moving_answers(self, items: Items, ranges: MovingRanges) -> tuple[StateArrays, StateWords] | None:
        rows = self.gather(np.arange(len(items)), items, len(items))
        return self, kernels.variance_ranges_floats(rows, ranges.low, ranges.high, ranges.middle)

    def _answers(self, words: StateWords) -> npt.NDArray[np.float64]:
        found: npt.NDArray[np.float64] = kernels.variance_answers_floats(words, self.freedom, self.root)
        return found
