"""Rows as JSON, the same in files, on standard output and over HTTP."""

from __future__ import annotations

import json
import math
from datetime import date, datetime
from typing import Any

import pyarrow as pa


def json_rows(table: pa.Table) -> list[dict[str, Any]]:
    """Rows as objects. Times become ISO text; decimals, bytes and numbers that JSON cannot write become text."""
    columns = [_json_values(column) for column in table.columns]
    return [dict(zip(table.column_names, row, strict=True)) for row in zip(*columns, strict=True)]


def json_bytes(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()


def _json_values(column: pa.ChunkedArray) -> list[Any]:
    values, kind = column.to_pylist(), column.type
    if pa.types.is_integer(kind) or pa.types.is_string(kind) or pa.types.is_boolean(kind):
        return list(values)
    plain = _json_float if pa.types.is_floating(kind) else _json_value
    return [None if value is None else plain(value) for value in values]


def _json_float(value: float) -> float | str:
    if math.isfinite(value):
        return value
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def _json_value(value: Any) -> Any:
    match value:
        case datetime() if value.tzinfo is not None:
            return value.isoformat().replace("+00:00", "Z")
        case datetime() | date():
            return value.isoformat()
        case bytes():
            return value.hex()
        case float():
            return _json_float(value)
        case int() | str():
            return value
        case list():
            return [_json_value(each) for each in value]
        case dict():
            return {name: _json_value(each) for name, each in value.items()}
    return str(value)
