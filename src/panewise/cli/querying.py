"""`panewise query`: one query over one file."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
from rich.console import Console
from rich.markup import escape

from panewise.cli.output import Output, write_result
from panewise.cli.show import show_result
from panewise.core.errors import SchemaProblem, did_you_mean
from panewise.core.schema import Stream
from panewise.runtime.local import run
from panewise.runtime.local.files import read_undeclared

#: Integer columns with these names are taken as time if no other column looks more like it.
TIME_NAMES = ("t", "ts", "time", "timestamp")
#: How many values of a text column are tried before all of them.
SAMPLE_ROWS = 1000


def query_file(
    console: Console,
    errors: Console,
    data: Path,
    text: str,
    time: str | None,
    boundary: str,
    until: str | None,
    rows: int,
    output: Output,
) -> None:
    """Answer a query over a file, which the query calls S or by the file's name without its ending."""
    table = read_undeclared(data)
    if time is None:
        time, reason = guess_time(table)
        errors.print(f"time: {escape(time)} ({reason}; --time names another)", highlight=False, soft_wrap=True)
    source = Stream(with_timestamps(table, time), time, delay=None)
    with errors.status("answering"):
        answer = run(text, {"S": source, data.name.partition(".")[0]: source}, boundary=boundary, until=until)
    if output is Output.TABLE:
        show_result(console, data.name, answer, rows)
    else:
        write_result(answer, output)


def guess_time(table: pa.Table) -> tuple[str, str]:
    """The column that is probably the time, and why: the first timestamp, or the first that can be read as one."""
    stamps = [field.name for field in table.schema if pa.types.is_timestamp(field.type)]
    if stamps:
        return stamps[0], "the only timestamp" if len(stamps) == 1 else f"the first of {len(stamps)} timestamps"
    for name, column in zip(table.column_names, table.columns, strict=True):
        if to_timestamps(column.slice(0, SAMPLE_ROWS)) is not None and to_timestamps(column) is not None:
            return name, "it reads as a timestamp"
    for field in table.schema:
        if pa.types.is_integer(field.type) and field.name.lower() in TIME_NAMES:
            return field.name, "an integer of that name"
    for name, column in zip(table.column_names, table.columns, strict=True):
        if mostly_stamps(column):
            raise _unreadable(name, column)
    raise SchemaProblem("no column looks like time", fix=f"name one with --time: {', '.join(table.column_names)}")


def with_timestamps(table: pa.Table, time: str) -> pa.Table:
    """The table with days and text as timestamps in its time column."""
    if time not in table.column_names:
        raise SchemaProblem(f"there is no column {time!r}", fix=did_you_mean(time, table.column_names))
    stamps = to_timestamps(table[time])
    if stamps is None and mostly_stamps(table[time]):
        raise _unreadable(time, table[time])
    return table if stamps is None else table.set_column(table.column_names.index(time), time, stamps)


def to_timestamps(column: pa.ChunkedArray) -> pa.ChunkedArray | None:
    """Days and text as timestamps, without a zone where they have none; None for other values."""
    if pa.types.is_date(column.type):
        return column.cast(pa.timestamp("us"))
    if not pa.types.is_string(column.type) or column.null_count == len(column):
        return None
    for kind in (pa.timestamp("us"), pa.timestamp("us", "UTC")):
        try:
            return column.cast(kind)
        except pa.ArrowInvalid:
            continue
    return None


def mostly_stamps(column: pa.ChunkedArray) -> bool:
    """Whether more than half of the first values can be read as timestamps, so that the column is probably the time."""
    if not pa.types.is_string(column.type):
        return False
    tried = column.slice(0, SAMPLE_ROWS).drop_null()
    return 2 * sum(to_timestamps(tried.slice(place, 1)) is not None for place in range(len(tried))) > len(tried)


def _unreadable(name: str, column: pa.ChunkedArray) -> SchemaProblem:
    """A sentence that names the first value of a column that cannot be read as a time."""
    rows = pc.indices_nonzero(pc.is_valid(column))
    values = column.drop_null()
    # The first `readable` values can be read as timestamps together, the first `beyond` cannot.
    readable, beyond = 0, len(values)
    while beyond - readable > 1:
        middle = (readable + beyond) // 2
        readable, beyond = (readable, middle) if to_timestamps(values.slice(0, middle)) is None else (middle, beyond)
    value, row = values[readable].as_py(), rows[readable].as_py() + 1
    return SchemaProblem(
        f"column {name!r} looks like time, but row {row:,} has {value!r}, which is no timestamp like the others",
        fix="mend the value or leave the row out, or name another column with --time",
    )
