"""Types of Arrow and of Spark in the words of Spark SQL."""

from __future__ import annotations

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import ArrayType, DataType, MapType, StructType

from panewise.core.errors import SchemaProblem
from panewise.core.schema import type_name

_NAMES = {
    pa.int8(): "tinyint",
    pa.int16(): "smallint",
    pa.int32(): "int",
    pa.int64(): "bigint",
    pa.uint8(): "smallint",
    pa.uint16(): "int",
    pa.uint32(): "bigint",
    pa.float32(): "float",
    pa.float64(): "double",
    pa.bool_(): "boolean",
    pa.string(): "string",
    pa.large_string(): "string",
    pa.binary(): "binary",
    pa.large_binary(): "binary",
    pa.date32(): "date",
}


def spark_type(kind: pa.DataType) -> str:
    """The name Spark SQL has for a type.

    >>> spark_type(pa.list_(pa.timestamp("us", "UTC")))
    'array<timestamp>'
    """
    if pa.types.is_timestamp(kind):
        if kind.unit != "us":
            raise SchemaProblem(
                f"timestamps in {kind.unit} were declared, but those of Spark are in us", fix='use pa.timestamp("us")'
            )
        return "timestamp" if kind.tz else "timestamp_ntz"
    if pa.types.is_decimal(kind) and kind.precision <= 38:
        return f"decimal({kind.precision},{kind.scale})"
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return f"array<{spark_type(kind.value_type)}>"
    if pa.types.is_map(kind):
        return f"map<{spark_type(kind.key_type)}, {spark_type(kind.item_type)}>"
    if pa.types.is_struct(kind):
        return f"struct<{', '.join(f'{quote_name(field.name)}: {spark_type(field.type)}' for field in kind)}>"
    if kind in _NAMES:
        return _NAMES[kind]
    raise SchemaProblem(f"Spark has no type for {type_name(kind)}", fix="cast it to one that Spark knows")


def type_text(kind: DataType) -> str:
    """A type of Spark in the words of `spark_type`: equal for equal types, however they were written.

    >>> from pyspark.sql.types import ArrayType, LongType, StructType
    >>> type_text(StructType().add("A", ArrayType(LongType())))
    'struct<`A`: array<bigint>>'
    """
    match kind:
        case ArrayType():
            return f"array<{type_text(kind.elementType)}>"
        case MapType():
            return f"map<{type_text(kind.keyType)}, {type_text(kind.valueType)}>"
        case StructType():
            return f"struct<{', '.join(f'{quote_name(f.name)}: {type_text(f.dataType)}' for f in kind.fields)}>"
    return kind.simpleString()


def spark_schema(schema: pa.Schema) -> str:
    """The columns of a table as Spark SQL declares them."""
    return ", ".join(f"{quote_name(field.name)} {spark_type(field.type)}" for field in schema)


def arrow_schema(session: SparkSession, schema: pa.Schema) -> pa.Schema:
    """The columns of a table in the types in which Spark has them."""
    found: pa.Schema = to_arrow_schema(session.createDataFrame([], spark_schema(schema)).schema, timezone="UTC")
    return found


def quote_name(name: str) -> str:
    return f"`{name.replace('`', '``')}`"
