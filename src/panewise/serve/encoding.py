"""Answers as Arrow for programs, and the parts of JSON answers beside the rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa

from panewise.core.time import Domain, instant_text
from panewise.engine.state.sealed import table_buffer
from panewise.runtime.json_text import json_bytes, json_rows
from panewise.serve.limits import TooLarge

ARROW = "application/vnd.apache.arrow.stream"


#: Values that become text at once: Python runs no other thread meanwhile.
VALUES_PER_SLICE = 4096


def arrow_bytes(table: pa.Table) -> bytes:
    """A table as an Arrow IPC stream."""
    return bytes(table_buffer(table))


def json_answer(head: dict[str, Any], table: pa.Table, most: int, check: Callable[[], None]) -> bytearray:
    """A JSON object that contains the rows of a table, made slice by slice; refused once it has too many bytes."""
    answer = bytearray(json_bytes(head)[:-1] + b',"rows":[')
    begun, rows = len(answer), max(VALUES_PER_SLICE // max(table.num_columns, 1), 1)
    for start in range(0, table.num_rows, rows):
        check()
        answer += b"," if start else b""
        answer += json_bytes(json_rows(table.slice(start, rows)))[1:-1]
        if len(answer) - begun > most:
            raise TooLarge(f"the answer has more than {most:,} bytes", fix="ask for fewer windows or groups")
    answer += b"]}"
    return answer


def describe_columns(table: pa.Table) -> list[dict[str, str]]:
    """The columns of a table and their Arrow types."""
    return [{"name": field.name, "type": str(field.type)} for field in table.schema]


def instant_value(tick: int | None, domain: Domain) -> int | str | None:
    """An instant as answers show it: a number, or ISO text."""
    if tick is None or domain is Domain.INTEGER:
        return tick
    return instant_text(tick, domain).strip("'").replace(" ", "T") + "Z"
