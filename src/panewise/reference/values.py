"""Arrow values as plain Python ones and back. Time types travel as numbers, so no calendar can overflow."""

from __future__ import annotations

import math
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import pyarrow as pa

from panewise.errors import AggregateProblem


def to_python(values: pa.ChunkedArray | pa.Array) -> list[Any]:
    """Python values; equal values are equal in Python too (one NaN, no negative zero, tuples for lists)."""
    kind = values.type
    if pa.types.is_temporal(kind):
        width = pa.int32() if kind.bit_width == 32 else pa.int64()
        return list(values.cast(width).to_pylist())
    plain = values.to_pylist()
    if pa.types.is_floating(kind):
        return [_one_nan(v) for v in plain]
    return [_frozen(v) for v in plain] if pa.types.is_nested(kind) else list(plain)


def to_arrow(values: Sequence[Any], kind: pa.DataType) -> pa.Array:
    """An Arrow array of that type; a value that does not fit is an error, not a surprise."""
    try:
        if pa.types.is_temporal(kind):
            width = pa.int32() if kind.bit_width == 32 else pa.int64()
            return pa.array(values, width).cast(kind)
        if pa.types.is_decimal(kind):
            return pa.array([None if v is None else Decimal(v) for v in values], kind)
        return pa.array([_thawed(v) for v in values] if pa.types.is_nested(kind) else values, kind)
    except (pa.ArrowException, OverflowError) as problem:
        raise AggregateProblem(f"a result does not fit into {kind}: {problem}", fix="cast it to a wider type") from None


def _one_nan(value: float | None) -> float | None:
    if value is None:
        return None
    return math.nan if value != value else value + 0.0


def _frozen(value: Any) -> Any:
    if isinstance(value, list):
        return tuple(_frozen(v) for v in value)
    if isinstance(value, dict):
        return tuple((k, _frozen(v)) for k, v in value.items())
    return value


def _thawed(value: Any) -> Any:
    if not isinstance(value, tuple):
        return value
    fields = all(isinstance(v, tuple) and len(v) == 2 and isinstance(v[0], str) for v in value)
    return {k: _thawed(v) for k, v in value} if value and fields else [_thawed(v) for v in value]
