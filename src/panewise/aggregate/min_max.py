"""MIN and MAX of values that can be ordered. NaN is the largest number, as in Spark."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from panewise import kernels
from panewise.aggregate.base import Fold, Laws, PickAggregate, orderable_type
from panewise.aggregate.byte_order import fits_bytes
from panewise.aggregate.min_max_bytes import MinMaxBytesStates
from panewise.aggregate.moving import MovingRanges
from panewise.aggregate.ordering import fits_int64, from_longs, order_key, to_longs
from panewise.aggregate.states import FusedOperation, Int64Array, Items, StateArrays, StateWords

_LEAST = np.iinfo(np.int64).min


class Max(PickAggregate):
    """The greatest value. Idempotent and not invertible: when it leaves, the next one is found among the others.

    Paper: "Consistent results" section 4.2, retrospective.
    """

    names = ("MAX",)
    laws = Laws(idempotent=True)
    fold: ClassVar[Fold | None] = Fold.GREATEST

    def result_type(self) -> pa.DataType:
        return orderable_type(self)

    def meaning(self, values: Sequence[Any]) -> Any:
        return max(values, key=order_key, default=None)

    def state_arrays(self) -> StateArrays:
        least = self.fold is Fold.LEAST
        if fits_int64(self.result):
            return MinMaxStates(self.result, least)
        return MinMaxBytesStates(self.result, least) if fits_bytes(self.result) else super().state_arrays()


class Min(Max):
    """The least value."""

    names = ("MIN",)
    fold = Fold.LEAST

    def meaning(self, values: Sequence[Any]) -> Any:
        return min(values, key=order_key, default=None)


class MinMaxStates(StateArrays):
    """The greatest value and whether there is any, for types that int64 can hold in their order.

    The least value is kept as the greatest of all complements.
    """

    fused = FusedOperation.GREATEST
    needs_time = False

    def __init__(self, kind: pa.DataType, least: bool) -> None:
        self.kind, self.flip = kind, np.int64(-1 if least else 0)

    def identity(self, size: int) -> StateWords:
        return np.full(size, _LEAST, np.int64), np.zeros(size, bool)

    def _gather(self, slots: Int64Array, items: Items, into: StateWords) -> None:
        values = items.arguments[0]
        if values.type == pa.float64():
            bits = values.to_numpy(zero_copy_only=False).view(np.int64)
            kernels.take_greatest_floats(slots, bits, self.flip, *into)
        else:
            longs = to_longs(values)
            kernels.take_greatest(slots, longs ^ self.flip if self.flip else longs, *into)

    def combine(self, left: StateWords, right: StateWords) -> StateWords:
        return np.maximum(left[0], right[0]), left[1] | right[1]

    def moving_answers(self, items: Items, ranges: MovingRanges) -> tuple[StateArrays, StateWords] | None:
        if items.present() is not None:
            words = self.gather(np.arange(len(items), dtype=np.int64), items, len(items))
        else:
            longs = to_longs(items.arguments[0])
            words = longs ^ self.flip if self.flip else longs, np.ones(len(items), bool)
            if ranges.is_rising(longs):
                best, there = ranges.low if self.flip else ranges.high - 1, ranges.low < ranges.high
                found = words[0].take(best, mode="clip")
                return self, (found if there.all() else np.where(there, found, _LEAST), there)
        return self, kernels.range_greatest(*words, ranges.low, ranges.high, ranges.middle)

    def lower(self, words: StateWords) -> pa.Array:
        return from_longs(words[0] ^ self.flip, ~words[1], self.kind)

    def spark_sql(self, value: str) -> list[str]:
        return [f"{'MIN' if self.flip else 'MAX'}({value})"]

    def from_spark(self, found: Sequence[pa.Array]) -> StateWords:
        (best,) = found
        values, present = self.identity(len(best))
        present[:] = best.is_valid().to_numpy(zero_copy_only=False)
        values[present] = to_longs(best.drop_null()) ^ self.flip
        return values, present
