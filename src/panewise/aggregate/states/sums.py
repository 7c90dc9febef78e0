"""SUM and AVG in arrays: exact words for integers, compensated pairs for floats."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from panewise import kernels
from panewise.aggregate.states.base import FusedOperation, Int64Array, Items, StateArrays, StateWords

if TYPE_CHECKING:
    from panewise.aggregate.sum import Sum

_LOW = 0xFFFFFFFF


class IntegerSumStates(StateArrays):
    """How many values, and their sum as `high * 2**32 + low`. Wrapping around 2**64 cancels out in differences."""

    exact = True
    fused = FusedOperation.ADDED

    def __init__(self, aggregate: Sum) -> None:
        self.aggregate = aggregate

    def identity(self, size: int) -> StateWords:
        return tuple(np.zeros(size, np.int64) for _ in range(3))

    def _gather(self, slots: Int64Array, items: Items, into: StateWords) -> None:
        values = items.arguments[0].to_numpy(zero_copy_only=False).astype(np.int64, copy=False)
        kernels.count(slots, into[0])
        kernels.add_integers(slots, values, into[1], into[2])

    def combine(self, left: StateWords, right: StateWords) -> StateWords:
        return tuple(a + b for a, b in zip(left, right, strict=True))

    def invert(self, whole: StateWords, part: StateWords) -> StateWords:
        return tuple(a - b for a, b in zip(whole, part, strict=True))

    def lower(self, words: StateWords) -> pa.Array:
        count, high, low = words
        high, low = high + (low >> 32), low & _LOW
        fits = (high >= -(2**31)) & (high < 2**31)
        return self._answers(count, (high << 32) | low, fits, (high, low))

    def _answers(self, count: Int64Array, totals: Int64Array, fits: Any, words: StateWords) -> pa.Array:
        for place in np.flatnonzero(~fits & (count > 0)).tolist():
            self.aggregate.lower((1, _whole(words, place)))  # raises the overflow, with the sum in it
        return pa.array(totals, mask=count == 0)


class IntegerAvgStates(IntegerSumStates):
    """AVG of integers: the rounding of one division, as Python divides integers."""

    def _answers(self, count: Int64Array, totals: Int64Array, fits: Any, words: StateWords) -> pa.Array:
        means = totals / np.maximum(count, 1)
        # Beyond 2**53 a double no longer holds the sum, and dividing would round twice.
        for place in np.flatnonzero(~fits | (np.abs(totals) > 2**53)).tolist():
            means[place] = _whole(words, place) / max(int(count[place]), 1)
        return pa.array(means, mask=count == 0)


def _whole(words: StateWords, place: int) -> int:
    return (int(words[0][place]) << 32) + int(words[1][place])


class FloatSumStates(StateArrays):
    """How many values, a compensated pair, and whether there were NaN, infinity or minus infinity.

    Never subtracted: after 1e300 has left, a running total has lost what was added beside it.
    """

    def __init__(self, aggregate: Sum) -> None:
        self.aggregate = aggregate

    def identity(self, size: int) -> StateWords:
        return np.zeros(size, np.int64), np.zeros(size), np.zeros(size), np.zeros(size, np.uint8)

    def _gather(self, slots: Int64Array, items: Items, into: StateWords) -> None:
        values = items.arguments[0].to_numpy(zero_copy_only=False).astype(np.float64, copy=False)
        kernels.count(slots, into[0])
        kernels.add_floats(slots, values, *into[1:])

    def combine(self, left: StateWords, right: StateWords) -> StateWords:
        high, low = kernels.add_pairs(left[1], left[2], right[1], right[2])
        return left[0] + right[0], high, low, left[3] | right[3]

    def lower(self, words: StateWords) -> pa.Array:
        count, high, low, odd = words
        totals = high + low + 0.0
        if odd.any():
            totals[odd == 2] = np.inf
            totals[odd == 4] = -np.inf
            totals[(odd & 1 > 0) | (odd == 6)] = np.nan
        return pa.array(self._answers(totals, count), mask=count == 0)

    def _answers(self, totals: Any, count: Int64Array) -> Any:
        return totals


class FloatAvgStates(FloatSumStates):
    """AVG of floats."""

    def _answers(self, totals: Any, count: Int64Array) -> Any:
        return totals / np.maximum(count, 1)
