"""Answers as bytes: JSON for people and browsers, Arrow for programs."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from datetime import date, datetime
from typing import Any

import pyarrow as pa

from panewise.engine.sealed import table_buffer
from panewise.serve.limits import TooLarge
from panewise.time import Domain, instant_text

ARROW = "application/vnd.apache.arrow.stream"


#: Rows that become text at once: Python lets nobody else have a turn meanwhile.
SLICE = 1000


def arrow_bytes(table: pa.Table) -> bytes:
    """A table as an Arrow IPC stream."""
    return bytes(table_buffer(table))


def json_rows(table: pa.Table) -> list[dict[str, Any]]:
    """Rows as objects. Times are ISO text, decimals and bytes text, and so is what JSON has no number for."""
    columns = [_plain(column) for column in table.columns]
    return [dict(zip(table.column_names, row, strict=True)) for row in zip(*columns, strict=True)]


def json_answer(head: dict[str, Any], table: pa.Table, most: int, check: Callable[[], None]) -> bytes:
    """An object with the rows of a table in it, slice by slice, as long as it has not more bytes than it may."""
    parts, size = [json_bytes(head)[:-1], b',"rows":['], 0
    for start in range(0, table.num_rows, SLICE):
        check()
        part = json_bytes(json_rows(table.slice(start, SLICE)))[1:-1]
        size += len(part)
        if size > most:
            raise TooLarge(f"the answer has more than {most:,} bytes", fix="ask for fewer windows or groups")
        parts += [b",", part] if start else [part]
    return b"".join([*parts, b"]}"])


def json_bytes(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()


def column_names(table: pa.Table) -> list[dict[str, str]]:
    """The columns of a table and their Arrow types."""
    return [{"name": field.name, "type": str(field.type)} for field in table.schema]


def instant_value(tick: int | None, domain: Domain) -> int | str | None:
    """An instant as answers show it: a number, or ISO text."""
    if tick is None or domain is Domain.INTEGER:
        return tick
    return instant_text(tick, domain).strip("'").replace(" ", "T") + "Z"


def _plain(column: pa.ChunkedArray) -> list[Any]:
    values, kind = column.to_pylist(), column.type
    if pa.types.is_integer(kind) or pa.types.is_string(kind) or pa.types.is_boolean(kind):
        return list(values)
    plain = _finite if pa.types.is_floating(kind) else _text
    return [None if value is None else plain(value) for value in values]


def _finite(value: float) -> float | str:
    if math.isfinite(value):
        return value
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def _text(value: Any) -> Any:
    match value:
        case datetime() if value.tzinfo is not None:
            return value.isoformat().replace("+00:00", "Z")
        case datetime() | date():
            return value.isoformat()
        case bytes():
            return value.hex()
        case float():
            return _finite(value)
        case int() | str():
            return value
        case list():
            return [_text(each) for each in value]
        case dict():
            return {name: _text(each) for name, each in value.items()}
    return str(value)
