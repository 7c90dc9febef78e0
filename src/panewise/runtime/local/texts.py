"""Values in text files: times with and without zones, and errors for values that cannot be read."""

from __future__ import annotations

import csv
import re
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from panewise.core.errors import SourceProblem
from panewise.core.schema import type_name

#: A time of day with a zone behind it.
_ZONED = r"[T ]\d\d(:?\d\d)*(\.\d+)?(Z|[+-]\d\d(:?\d\d)?)$"
#: The names of columns are read from at most this many bytes.
_HEADER = 1 << 16
_FORMS = "write times as 2014-07-31 16:05:00, with Z or +02:00 where they have a zone; pd.to_datetime reads other forms"


def read_times(reader: Callable[[pa.Schema], pa.Table], schema: pa.Schema) -> pa.Table:
    """Read texts, with times in any form; those without a zone are UTC.

    Arrow requires all times of a column to have a zone, or none. Where this is not so, or anything else is wrong, times
    are read as texts first: what still fails then is the true cause.
    """
    texts = pa.schema([f.with_type(pa.string()) if pa.types.is_timestamp(f.type) else f for f in schema])
    try:
        return reader(schema)
    except pa.ArrowInvalid:
        if texts == schema:
            raise
        table = reader(texts)
    for place, name in enumerate(table.column_names):
        if name in schema.names and pa.types.is_timestamp(schema.field(name).type):
            times = _times(table.column(place), name, schema.field(name).type)
            table = table.set_column(place, name, times)
    return table


def _times(texts: pa.ChunkedArray, name: str, kind: pa.DataType) -> pa.ChunkedArray:
    try:
        if kind.tz is None:
            return texts.cast(kind)
        zoned = pc.match_substring_regex(texts, _ZONED)
        plain = pc.if_else(zoned, pa.scalar(None, pa.string()), texts).cast(pa.timestamp(kind.unit)).cast(kind)
        return pc.coalesce(pc.if_else(zoned, texts, pa.scalar(None, pa.string())).cast(kind), plain)
    except pa.ArrowInvalid as problem:
        found = re.search(r"string: '(.*?)' as", str(problem))
        value = found[1] if found else "a value"
        if "expected no zone" in str(problem):
            message = f"'{value}' in column {name!r} has a zone, but the column was declared without"
            raise SourceProblem(message, fix=f"declare {name} TIMESTAMP") from None
        raise SourceProblem(f"'{value}' in column {name!r} is no time", fix=_FORMS) from None


def csv_reason(problem: Exception, file: Path) -> str:
    """Arrow's reason in our words, if a value cannot be read as its type."""
    found = re.search(
        r"column #(\d+): (?:Row #(\d+): )?CSV conversion error to (.+?): invalid value '(.*)'", str(problem)
    )
    if found is None:
        return str(problem)
    number, row, kind, value = found.groups()
    try:
        kind = type_name(pa.type_for_alias(kind))
    except ValueError:
        kind = kind.upper()
    with pa.input_stream(str(file)) as opened:
        names = next(csv.reader(opened.read(_HEADER).decode(errors="replace").splitlines()), [])
    where = f"column {names[int(number)]!r}" if int(number) < len(names) else f"column {int(number) + 1}"
    return f"'{value}' in {where}{f', row {row}' if row else ''} is no {kind}"
