"""Values as int64 that sort the way SQL sorts them, and back."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from panewise.aggregate.states.base import Int64Array

_BODY = np.int64(0x7FFF_FFFF_FFFF_FFFF)


def fits_int64(kind: pa.DataType) -> bool:
    """Whether values of a type can be carried as int64 in their order."""
    types = pa.types
    timed = types.is_temporal(kind) and not types.is_interval(kind)
    return bool(types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind) or timed)


def to_longs(values: pa.Array) -> Int64Array:
    """Values without NULLs as numbers; NaN is the largest and zero has no sign."""
    kind = values.type
    if pa.types.is_floating(kind):
        floats = values.to_numpy(zero_copy_only=False).astype(np.float64) + 0.0
        if np.isnan(floats).any():
            floats = np.where(np.isnan(floats), np.nan, floats)
        return _sortable_bits(floats.view(np.int64))
    if kind == pa.uint64():
        unsigned: Int64Array = values.to_numpy(zero_copy_only=False).view(np.int64)
        return unsigned ^ np.int64(-(2**63))
    if pa.types.is_temporal(kind):
        values = values.cast(pa.int32() if kind.bit_width == 32 else pa.int64())
    found: Int64Array = values.to_numpy(zero_copy_only=False).astype(np.int64, copy=False)
    return found


def from_longs(longs: Int64Array, missing: npt.NDArray[np.bool_], kind: pa.DataType) -> pa.Array:
    """Numbers as values of their type again; NULL where they are missing."""
    if pa.types.is_floating(kind):
        return pa.array(_sortable_bits(longs).view(np.float64), pa.float64(), mask=missing).cast(kind)
    if kind == pa.uint64():
        return pa.array((longs ^ np.int64(-(2**63))).view(np.uint64), mask=missing)
    numbers: Any = np.where(missing, 0, longs)
    if pa.types.is_temporal(kind) and kind.bit_width == 32:
        return pa.array(numbers.astype(np.int32), mask=missing).cast(kind)
    if pa.types.is_boolean(kind):
        return pa.array(numbers.astype(bool), mask=missing)
    return pa.array(numbers, pa.int64(), mask=missing).cast(kind)


def _sortable_bits(bits: Int64Array) -> Int64Array:
    """Bits of a double as a number that sorts like it; the same step leads back."""
    return bits ^ ((bits >> 63) & _BODY)
