"""The order of values in SQL: of Python values, and as int64 that sort in the same way."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from panewise.aggregate.states import Int64Array, nullable_array


def sort_values(values: Sequence[Any]) -> list[Any]:
    """Values in the order of SQL, in which NaN is the largest number, as in Spark."""
    return sorted(values, key=order_key)


def order_key(value: Any) -> tuple[bool, Any]:
    """What `sorted` compares for a value."""
    return (True, 0) if value != value else (False, value)


_BODY = np.int64(0x7FFF_FFFF_FFFF_FFFF)


def fits_int64(kind: pa.DataType) -> bool:
    """Whether int64 can hold the values of a type in their order."""
    types = pa.types
    timed = types.is_temporal(kind) and not types.is_interval(kind)
    number = types.is_integer(kind) or types.is_floating(kind) or _is_short_decimal(kind)
    return bool(number or types.is_boolean(kind) or timed)


def to_longs(values: pa.Array) -> Int64Array:
    """Values without NULLs as int64; NaN is the largest and zero has no sign."""
    kind = values.type
    if pa.types.is_floating(kind):
        floats = values.to_numpy(zero_copy_only=False).astype(np.float64) + 0.0
        if np.isnan(floats).any():
            floats = np.where(np.isnan(floats), np.nan, floats)
        return _sortable_bits(floats.view(np.int64))
    if kind == pa.uint64():
        unsigned: Int64Array = values.to_numpy(zero_copy_only=False).view(np.int64)
        return unsigned ^ np.int64(-(2**63))
    if _is_short_decimal(kind):
        return decimal_words(values)[:, 0].copy()
    if pa.types.is_temporal(kind):
        values = values.cast(pa.int32() if kind.bit_width == 32 else pa.int64())
    found: Int64Array = values.to_numpy(zero_copy_only=False).astype(np.int64, copy=False)
    return found


def decimal_words(values: pa.Array) -> Int64Array:
    """The lower and the upper 64 bits of decimals without NULLs, which have 128 bits."""
    words = np.frombuffer(values.buffers()[1] or b"", np.int64).reshape(-1, 2)
    return words[values.offset : values.offset + len(values)]


def from_longs(longs: Int64Array, missing: npt.NDArray[np.bool_] | None, kind: pa.DataType) -> pa.Array:
    """The values of a type that `to_longs` made int64 of; NULL where they are missing."""
    if missing is None:
        missing = np.zeros(len(longs), bool)
    if pa.types.is_floating(kind):
        doubles = nullable_array(_sortable_bits(longs).view(np.float64), missing)
        return doubles if kind == pa.float64() else doubles.cast(kind)
    if kind == pa.uint64():
        return nullable_array((longs ^ np.int64(-(2**63))).view(np.uint64), missing)
    if kind == pa.int64():
        return nullable_array(longs, missing)
    numbers: Any = np.where(missing, 0, longs)
    if _is_short_decimal(kind):
        words = np.stack([numbers, numbers >> 63], axis=1)
        found = pa.Array.from_buffers(kind, len(numbers), [None, pa.py_buffer(words)])
        return pc.if_else(pa.array(missing), None, found)
    if pa.types.is_temporal(kind) and kind.bit_width == 32:
        return pa.array(numbers.astype(np.int32), mask=missing).cast(kind)
    if pa.types.is_boolean(kind):
        return pa.array(numbers.astype(bool), mask=missing)
    return pa.array(numbers, pa.int64(), mask=missing).cast(kind)


def _is_short_decimal(kind: pa.DataType) -> bool:
    """Whether values are decimals of 128 bits of which the lower 64 say all."""
    return bool(pa.types.is_decimal128(kind) and kind.precision <= 18)


def _sortable_bits(bits: Int64Array) -> Int64Array:
    """Bits of a double as a number that sorts like it; applied again, it returns the bits."""
    return bits ^ ((bits >> 63) & _BODY)
