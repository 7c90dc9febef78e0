"""Arrow values as plain Python values and back. Time types become numbers, so that no calendar can overflow."""

from __future__ import annotations

import math
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import pyarrow as pa

from panewise.core.errors import AggregateProblem
from panewise.core.schema import type_name


def to_python(values: pa.ChunkedArray | pa.Array) -> list[Any]:
    """Python values; equal values are equal in Python too (one NaN, no negative zero, tuples for lists)."""
    kind = values.type
    if _is_time_count(kind):
        return list(values.cast(_integer_type(kind)).to_pylist())
    plain = values.to_pylist()
    if pa.types.is_floating(kind):
        return [normalize_float(v) for v in plain]
    return [_freeze(v) for v in plain] if pa.types.is_nested(kind) else list(plain)


def to_arrow(values: Sequence[Any], kind: pa.DataType) -> pa.Array:
    """An Arrow array of that type; a value that does not fit is an error."""
    try:
        if _is_time_count(kind):
            return pa.array(values, _integer_type(kind)).cast(kind)
        if pa.types.is_decimal(kind):
            return pa.array([None if v is None else Decimal(v) for v in values], kind)
        return pa.array([_thaw(v, kind) for v in values] if pa.types.is_nested(kind) else values, kind)
    except (pa.ArrowException, OverflowError) as problem:
        raise AggregateProblem(
            f"a result does not fit into {type_name(kind)}: {problem}", fix="cast it to a wider type"
        ) from None


def normalize_float(value: Any) -> Any:
    """The value, with NaN always the same object, so that tuples of it are equal, and zero without a sign."""
    if not isinstance(value, float):
        return value
    return math.nan if value != value else value + 0.0


def _is_time_count(kind: pa.DataType) -> bool:
    """Whether values of a type are counts of some unit of time; calendar intervals are not."""
    return bool(pa.types.is_temporal(kind) and not pa.types.is_interval(kind))


def _integer_type(kind: pa.DataType) -> pa.DataType:
    return pa.int32() if kind.bit_width == 32 else pa.int64()


def _freeze(value: Any) -> Any:
    if isinstance(value, list):
        return tuple(_freeze(v) for v in value)
    if isinstance(value, dict):
        return tuple((k, _freeze(v)) for k, v in value.items())
    return normalize_float(value)


def _thaw(value: Any, kind: pa.DataType) -> Any:
    """A frozen value in the form that Arrow takes: its type decides which tuples were structs."""
    if value is None or not pa.types.is_nested(kind):
        return value
    if pa.types.is_struct(kind):
        return {name: _thaw(v, kind.field(name).type) for name, v in value}
    if pa.types.is_map(kind):
        return [(k, _thaw(v, kind.item_type)) for k, v in value]
    return [_thaw(v, kind.value_type) for v in value]
