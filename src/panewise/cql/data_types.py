"""Types of scalar expressions: Spark's, as Arrow types; their names in SQL and in DuckDB.

A column may have any Arrow type; expressions use the types that Spark has, which `spark_type` returns. Intervals are
numbers in DuckDB, microseconds or months, because its own mix months, days and microseconds.
"""

from __future__ import annotations

import pyarrow as pa
import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from panewise.core.errors import BindProblem, did_you_mean
from panewise.cql.dialect import CQL

NULL, BOOLEAN, STRING, BINARY, DATE = pa.null(), pa.bool_(), pa.string(), pa.binary(), pa.date32()
TINYINT, SMALLINT, INT, BIGINT = pa.int8(), pa.int16(), pa.int32(), pa.int64()
FLOAT, DOUBLE = pa.float32(), pa.float64()
TIMESTAMP, TIMESTAMP_NTZ = pa.timestamp("us", "UTC"), pa.timestamp("us")
#: An interval of whole days, one that may be shorter, and one of months. In results all days are in microseconds.
DAYS, SPAN, MONTHS = pa.duration("s"), pa.duration("us"), pa.month_day_nano_interval()

INTEGERS = (TINYINT, SMALLINT, INT, BIGINT)

_SQL = {
    "TINYINT": TINYINT,
    "SMALLINT": SMALLINT,
    "INT": INT,
    "BIGINT": BIGINT,
    "FLOAT": FLOAT,
    "DOUBLE": DOUBLE,
    "BOOLEAN": BOOLEAN,
    "TEXT": STRING,
    "VARCHAR": STRING,
    "CHAR": STRING,
    "BINARY": BINARY,
    "VARBINARY": BINARY,
    "DATE": DATE,
    "TIMESTAMPTZ": TIMESTAMP,
    "TIMESTAMP": TIMESTAMP,
    "TIMESTAMPNTZ": TIMESTAMP_NTZ,
}
_DUCKDB = {
    NULL: "INTEGER",
    BOOLEAN: "BOOLEAN",
    TINYINT: "TINYINT",
    SMALLINT: "SMALLINT",
    INT: "INTEGER",
    BIGINT: "BIGINT",
    FLOAT: "FLOAT",
    DOUBLE: "DOUBLE",
    STRING: "VARCHAR",
    BINARY: "BLOB",
    DATE: "DATE",
    TIMESTAMP: "TIMESTAMP",
    TIMESTAMP_NTZ: "TIMESTAMP",
    DAYS: "BIGINT",
    SPAN: "BIGINT",
    MONTHS: "INTEGER",
}
_PLAIN = {
    pa.uint8(): SMALLINT,
    pa.uint16(): INT,
    pa.uint32(): BIGINT,
    pa.uint64(): pa.decimal128(20, 0),
    pa.float16(): FLOAT,
    pa.large_string(): STRING,
    pa.string_view(): STRING,
    pa.large_binary(): BINARY,
    pa.binary_view(): BINARY,
    pa.date64(): DATE,
}


def data_type(text: str) -> pa.DataType:
    """The Arrow type of a SQL type name."""
    try:
        kind = sqlglot.parse_one(text, into=exp.DataType, dialect=CQL)
    except SqlglotError:
        kind = None
    if isinstance(kind, exp.DataType):
        return arrow_type(kind)
    raise _type_problem(text)


def arrow_type(kind: exp.DataType) -> pa.DataType:
    """The Arrow type of a SQL type."""
    name = kind.this.value if hasattr(kind.this, "value") else str(kind.this)
    inner = kind.expressions
    if name == "DECIMAL":
        digits = [int(p.name) if p.name.isdecimal() else 0 for p in inner] or [10, 0]
        precision, scale = digits[0], digits[1] if len(digits) > 1 else 0
        if not 0 <= scale <= precision <= 38 or not precision:
            text = kind.sql(dialect=CQL)
            raise BindProblem(f"{text} is not a decimal", fix="write DECIMAL(p, s) with s <= p <= 38")
        return pa.decimal128(precision, scale)
    if name == "ARRAY" and len(inner) == 1:
        return pa.list_(arrow_type(inner[0]))
    if name == "MAP" and len(inner) == 2:
        return pa.map_(arrow_type(inner[0]), arrow_type(inner[1]))
    if name == "STRUCT" and inner and all(isinstance(field, exp.ColumnDef) for field in inner):
        return pa.struct([(field.name, arrow_type(field.args["kind"])) for field in inner])
    if name in _SQL:
        return _SQL[name]
    raise _type_problem(kind.sql(dialect=CQL))


def _type_problem(text: str) -> BindProblem:
    known = ("BIGINT", "BOOLEAN", "DATE", "DOUBLE", "FLOAT", "INT", "STRING", "TIMESTAMP", "DECIMAL(p, s)")
    return BindProblem(f"{text!r} is not a column type", fix=did_you_mean(text, known))


def spark_type(kind: pa.DataType) -> pa.DataType:
    """The Spark type that holds the values of a column; only the unit and the unsignedness of numbers may get lost.

    >>> spark_type(pa.large_list(pa.timestamp("ns", "Europe/Berlin")))
    ListType(list<item: timestamp[us, tz=UTC]>)
    """
    if pa.types.is_timestamp(kind):
        return TIMESTAMP if kind.tz else TIMESTAMP_NTZ
    if pa.types.is_duration(kind):
        return SPAN
    if pa.types.is_decimal(kind) and kind.precision <= 38:
        return pa.decimal128(kind.precision, kind.scale)
    if pa.types.is_map(kind):
        return pa.map_(spark_type(kind.key_type), spark_type(kind.item_type))
    if is_array(kind):
        return pa.list_(spark_type(kind.value_type))
    if pa.types.is_struct(kind):
        return pa.struct([pa.field(field.name, spark_type(field.type)) for field in kind])
    return _PLAIN.get(kind, kind)


def result_type(kind: pa.DataType) -> pa.DataType:
    """The type that a result has: a bare NULL is an INT, days are microseconds."""
    return INT if kind == NULL else SPAN if kind == DAYS else kind


def exchange_type(kind: pa.DataType) -> pa.DataType:
    """The Arrow type in which values of a Spark type go to DuckDB and come back: all times are in UTC."""
    if is_moment(kind):
        return TIMESTAMP_NTZ
    if kind in (DAYS, SPAN):
        return BIGINT
    if pa.types.is_map(kind):
        return pa.map_(exchange_type(kind.key_type), exchange_type(kind.item_type))
    if is_array(kind):
        return pa.list_(exchange_type(kind.value_type))
    if pa.types.is_struct(kind):
        return pa.struct([pa.field(field.name, exchange_type(field.type)) for field in kind])
    return kind


def duckdb_type(kind: pa.DataType) -> str | None:
    """The name of a type in DuckDB, in which values are sent there; None where DuckDB has none.

    >>> duckdb_type(pa.map_(pa.string(), pa.list_(pa.decimal128(10, 2))))
    'MAP(VARCHAR, DECIMAL(10, 2)[])'
    """
    if pa.types.is_decimal(kind):
        return f"DECIMAL({kind.precision}, {kind.scale})" if kind.precision <= 38 else None
    if pa.types.is_map(kind):
        inner = [duckdb_type(kind.key_type), duckdb_type(kind.item_type)]
        return f"MAP({', '.join(map(str, inner))})" if None not in inner else None
    if is_array(kind):
        item = duckdb_type(kind.value_type)
        return f"{item}[]" if item else None
    if pa.types.is_struct(kind):
        types = [duckdb_type(field.type) for field in kind]
        fields = [f"{duckdb_name(field.name)} {inner}" for field, inner in zip(kind, types, strict=True)]
        return f"STRUCT({', '.join(fields)})" if None not in types else None
    return _DUCKDB.get(kind)


def duckdb_name(name: str) -> str:
    """A name in quotes for DuckDB."""
    return '"' + name.replace('"', '""') + '"'


def duckdb_text(text: str) -> str:
    """A string in quotes for DuckDB."""
    return "'" + text.replace("'", "''") + "'"


def is_array(kind: pa.DataType) -> bool:
    return bool(pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind))


def is_fraction(kind: pa.DataType) -> bool:
    """Whether a type is FLOAT or DOUBLE."""
    return bool(kind in (FLOAT, DOUBLE))


def is_interval(kind: pa.DataType) -> bool:
    return bool(kind in (DAYS, SPAN, MONTHS))


def is_moment(kind: pa.DataType) -> bool:
    """Whether a type is a timestamp of either kind."""
    return bool(kind in (TIMESTAMP, TIMESTAMP_NTZ))
