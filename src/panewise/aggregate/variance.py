"""VAR and STDDEV, of a sample or of a population, from exact power sums."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any, ClassVar

import pyarrow as pa

from panewise.aggregate.base import Invertible, Laws, numeric_type
from panewise.aggregate.sum import nearest_double

#: Count, sum and sum of squares of the finite values, and how many were not finite.
State = tuple[int, Fraction, Fraction, int]


class VarSamp(Invertible[State]):
    """Algebraic. Sums are exact rationals, so that no rounding error is left when values are taken out again."""

    names: ClassVar[tuple[str, ...]] = ("VAR_SAMP", "VARIANCE", "VAR")
    laws = Laws(invertible=True)
    freedom = 1

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

    def _answer_from(self, variance: Fraction) -> float:
        return nearest_double(variance)


class VarPop(VarSamp):
    """The variance of the whole population."""

    names = ("VAR_POP",)
    freedom = 0


class StddevSamp(VarSamp):
    """The square root of VAR_SAMP."""

    names: ClassVar[tuple[str, ...]] = ("STDDEV_SAMP", "STDDEV", "STD")

    def _answer_from(self, variance: Fraction) -> float:
        # The variance is scaled by a power of four, because the square of a large double does not fit into a double.
        half = (variance.numerator.bit_length() - variance.denominator.bit_length()) // 2
        return nearest_double(Fraction(math.sqrt(variance / Fraction(4) ** half)) * Fraction(2) ** half)


class StddevPop(StddevSamp):
    """The square root of VAR_POP."""

    names = ("STDDEV_POP",)
    freedom = 0
