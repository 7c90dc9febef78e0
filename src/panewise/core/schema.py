"""Streams as users declare them: columns, the time column, how late items may be."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field
from datetime import timedelta
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from panewise.core.decoding import decode_table, plain_schema
from panewise.core.errors import PanewiseWarning, SchemaProblem, did_you_mean
from panewise.core.time import MAX_TICK, MIN_TICK, Domain, Duration, DurationLike, Ticks


@dataclass(frozen=True)
class StreamSchema:
    """The declaration of a stream: its Arrow schema, its time column and its delay.

    `delay` is how long after a newer item an older one may still arrive: a number on integer time, text such as
    `"5 seconds"` or a timedelta on timestamps. `None` means that the input is complete and nothing can be late.
    """

    schema: pa.Schema
    time: str
    delay: DurationLike | None = None

    def __post_init__(self) -> None:
        if isinstance(self.delay, timedelta | np.timedelta64):
            object.__setattr__(self, "delay", str(Duration.parse(self.delay)))
        object.__setattr__(self, "schema", plain_schema(self.schema))
        duplicates = {name for name in self.schema.names if self.schema.names.count(name) > 1}
        if duplicates:
            raise SchemaProblem(f"column {min(duplicates)!r} appears twice", fix="rename one of them")
        if self.time not in self.schema.names:
            raise SchemaProblem(
                f"there is no time column {self.time!r}",
                fix=did_you_mean(str(self.time), self.schema.names) if self.schema.names else "give the stream columns",
            )
        _ = self.domain
        if self.delay_ticks is not None and self.delay_ticks < 0:
            raise SchemaProblem(f"delay {self.delay!r} is negative", fix="use zero or more")

    @cached_property
    def domain(self) -> Domain:
        kind = self.schema.field(self.time).type
        if pa.types.is_timestamp(kind):
            return Domain.TIMESTAMP
        if pa.types.is_integer(kind):
            return Domain.INTEGER
        raise SchemaProblem(
            f"time column {self.time!r} is {type_name(kind)}",
            fix=f"use a timestamp or an integer column as time{_time_conversion_hint(self.time, kind)}",
        )

    @cached_property
    def instants(self) -> pa.DataType:
        """The type of instants in results: int64, or microseconds in the zone of the time column."""
        kind = self.schema.field(self.time).type
        return pa.int64() if self.domain is Domain.INTEGER else pa.timestamp("us", kind.tz)

    @cached_property
    def delay_ticks(self) -> int | None:
        return None if self.delay is None else Duration.parse(self.delay).ticks(self.domain)


@dataclass(frozen=True)
class Stream:
    """A bounded stream: rows in arrival order, with the time column and the delay that lateness is measured by.

    A bare table given to `pw.run` is complete: its rows are ordered by time and none is late. A `Stream` arrives
    row by row: an item older than the newest one minus `delay` is late for the instants already final.
    `max_skew` rejects timestamps further than that after `now` (the wall clock when not given).
    """

    table: Any
    time: str
    delay: DurationLike | None = 0
    max_skew: DurationLike | None = None
    now: int | None = None
    arrow: pa.Table = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "arrow", as_table(self.table))
        if isinstance(self.delay, int) and self.delay == 0 and self.declaration(None).domain is Domain.TIMESTAMP:
            object.__setattr__(self, "delay", "0 seconds")
        _ = self.schema

    def declaration(self, delay: DurationLike | None) -> StreamSchema:
        return StreamSchema(self.arrow.schema, self.time, delay)

    @property
    def schema(self) -> StreamSchema:
        return self.declaration(self.delay)

    @property
    def horizon(self) -> int | None:
        """Later times are rejected; None if any time is accepted."""
        if self.max_skew is None:
            return None
        if self.schema.domain is Domain.INTEGER:
            message = "max_skew needs a timestamp column: integer time has no clock"
            raise SchemaProblem(message, fix="leave max_skew out")
        now = self.now if self.now is not None else int(np.datetime64("now", "us").astype(np.int64))
        return now + Duration.parse(self.max_skew).ticks(Domain.TIMESTAMP)


def as_stream(name: str, source: Any, time: str | None) -> Stream:
    """A stream from the user's input: a `Stream` as it is, a table as complete input."""
    try:
        if isinstance(source, Stream):
            return source
        table = as_table(source)
        if time is None:
            raise SchemaProblem("the time column is not named", fix='pass time="..." or a pw.Stream')
        return Stream(table, time, delay=None)
    except SchemaProblem as problem:
        raise SchemaProblem(f"stream {name!r}: {problem.message}", fix=problem.fix) from None


def as_table(source: Any) -> pa.Table:
    """Arrow, pandas or polars data as one Arrow table of plain columns.

    NULL is what the source itself marks as missing. NaN is a number, except in columns that pandas keeps in NumPy
    arrays, which have no other mark for missing values.
    """
    if isinstance(source, pa.RecordBatch):
        source = pa.Table.from_batches([source])
    if not isinstance(source, pa.Table):
        if not hasattr(source, "__arrow_c_stream__"):
            raise SchemaProblem(
                f"{'None' if source is None else 'a ' + type(source).__name__} is not a table",
                fix="pass a pyarrow, pandas or polars table, or a pw.Stream",
            )
        try:
            source = pa.table(source)
        except (pa.ArrowException, TypeError, ValueError) as problem:
            raise SchemaProblem(f"the table cannot be read as Arrow: {_first_line(problem)}") from None
    for name, kind in zip(source.schema.names, source.schema.types, strict=True):
        if pa.types.is_null(kind):
            message = f"column {name!r} has no type: all its values are NULL"
            raise SchemaProblem(message, fix="cast it to a type first")
        if pa.types.is_union(kind):
            raise SchemaProblem(f"column {name!r} holds values of several types", fix="cast it to one, or drop it")
    return decode_table(source)


def _time_conversion_hint(name: str, kind: pa.DataType) -> str:
    """How a column that is no time can be converted to one."""
    if pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        spark = f"TIMESTAMP_SECONDS({name}) on Spark"
        return f": pd.to_datetime(df[{name!r}], unit='s') in pandas, {spark} make one of seconds"
    if pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_date(kind):
        spark = f"CAST({name} AS TIMESTAMP) in a view on Spark"
        return f": pd.to_datetime(df[{name!r}]) in pandas, {spark}, {name} TIMESTAMP in CREATE STREAM make one"
    return ""


def is_number(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind))


def type_name(kind: pa.DataType) -> str:
    """The SQL name of a type.

    >>> type_name(pa.list_(pa.int64()))
    'ARRAY<BIGINT>'
    """
    if pa.types.is_timestamp(kind):
        return "TIMESTAMP"
    if pa.types.is_decimal(kind):
        return f"DECIMAL({kind.precision}, {kind.scale})"
    if pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        return f"ARRAY<{type_name(kind.value_type)}>"
    if pa.types.is_interval(kind) or pa.types.is_duration(kind):
        return "INTERVAL"
    name = str(kind).partition("<")[0]
    return _SQL_NAMES.get(name, name.upper())


_SQL_NAMES = {
    "int8": "TINYINT",
    "int16": "SMALLINT",
    "int32": "INT",
    "int64": "BIGINT",
    "halffloat": "FLOAT",
    "float": "FLOAT",
    "bool": "BOOLEAN",
    "large_string": "STRING",
    "large_binary": "BINARY",
    "date32[day]": "DATE",
    "date64[ms]": "DATE",
}


def _first_line(problem: Exception) -> str:
    return str(problem).strip().splitlines()[0] if str(problem).strip() else type(problem).__name__


def ticks_of(values: pa.ChunkedArray) -> tuple[Ticks, np.ndarray[Any, np.dtype[np.bool_]] | None]:
    """Times as int64 ticks, and which are usable: not NULL and inside the bounds of time; None where all are."""
    if pa.types.is_timestamp(values.type):
        values = _microseconds(values)
    numbers = values.cast(pa.int64(), safe=False) if values.type != pa.uint64() else _clip_to_ticks(values)
    if not numbers.null_count:
        ticks = numbers.to_numpy().astype(np.int64, copy=False)
        if not len(ticks) or (ticks.min() > MIN_TICK and ticks.max() < MAX_TICK):
            return ticks, None
    usable = pc.is_valid(numbers).to_numpy()
    ticks = pc.fill_null(numbers, 0).to_numpy().astype(np.int64, copy=False)
    return ticks, usable & (ticks > MIN_TICK) & (ticks < MAX_TICK)


def tick_size(kind: pa.DataType) -> Fraction:
    """How many ticks a difference of one is between values of a type, such as 1000 for timestamps in milliseconds.

    >>> tick_size(pa.timestamp("ns"))
    Fraction(1, 1000)
    """
    return _TICKS[kind.unit] if pa.types.is_timestamp(kind) else Fraction(1)


_TICKS = {"s": Fraction(1_000_000), "ms": Fraction(1_000), "us": Fraction(1), "ns": Fraction(1, 1_000)}


def _microseconds(values: pa.ChunkedArray) -> pa.ChunkedArray:
    numbers = values.cast(pa.int64())
    size = tick_size(values.type)
    if size < 1:
        # Floor division, so that times before 1970 round the same way as times after it.
        floored, cut = np.divmod(pc.fill_null(numbers, 0).to_numpy(), size.denominator)
        if cut.any():
            message = "times finer than a microsecond are cut off; those of one microsecond are one time"
            warnings.warn(message, PanewiseWarning, stacklevel=2)
        return pc.if_else(pc.is_valid(numbers), pa.chunked_array([pa.array(floored)]), pa.scalar(None, pa.int64()))
    factor = int(size)
    limit = MAX_TICK // factor + 1  # just outside the bounds, so that clipped times are refused
    return pc.multiply(
        pc.min_element_wise(pc.max_element_wise(numbers, -limit, skip_nulls=False), limit, skip_nulls=False), factor
    )


def _clip_to_ticks(values: pa.ChunkedArray) -> pa.ChunkedArray:
    return pc.min_element_wise(values, pa.scalar(MAX_TICK, pa.uint64()), skip_nulls=False).cast(pa.int64())
