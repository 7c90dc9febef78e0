"""Values as Spark SQL writes them, so that a query over them needs no data from us."""

from __future__ import annotations

import math
from typing import Any

import pyarrow as pa

from panewise.cql.data_types import BINARY, BOOLEAN, DAYS, MONTHS, SPAN, STRING, is_array
from panewise.runtime.spark.types import spark_type


def spark_literal(value: Any, kind: pa.DataType) -> str:
    """An expression of Spark SQL that is this value in this type."""
    if kind in (DAYS, SPAN, MONTHS):
        return _interval(value, kind)
    if value is None:
        return f"CAST(NULL AS {_name(kind)})"
    if pa.types.is_map(kind):
        pairs = [f"{spark_literal(k, kind.key_type)}, {spark_literal(v, kind.item_type)}" for k, v in value]
        return f"CAST(MAP({', '.join(pairs)}) AS {_name(kind)})"
    if is_array(kind):
        return f"CAST(ARRAY({', '.join(spark_literal(v, kind.value_type) for v in value)}) AS {_name(kind)})"
    if pa.types.is_struct(kind):
        fields = [f"'{f.name}', {spark_literal(value[f.name], f.type)}" for f in kind]
        return f"NAMED_STRUCT({', '.join(fields)})"
    if kind == BOOLEAN:
        return str(value).upper()
    if kind == STRING:
        return quoted(value)
    if kind == BINARY:
        return f"X'{value.hex()}'"
    if pa.types.is_temporal(kind):
        number = pa.scalar(value, kind).cast(pa.int32() if kind == pa.date32() else pa.int64()).as_py()
        if kind == pa.date32():
            return f"DATE_FROM_UNIX_DATE({number})"
        return f"CAST(TIMESTAMP_MICROS({number}L) AS {_name(kind)})" if number > -(2**63) else "NULL"
    if pa.types.is_floating(kind):
        spelt = "NaN" if math.isnan(value) else repr(float(value)).replace("inf", "Infinity")
        return f"CAST('{spelt}' AS {_name(kind)})"
    return f"CAST('{value:f}' AS {_name(kind)})" if pa.types.is_decimal(kind) else f"CAST('{value}' AS {_name(kind)})"


def quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace("'", "\\'").replace("\n", "\\n").replace("\t", "\\t")
    return f"'{escaped}'"


def _interval(value: int | None, kind: pa.DataType) -> str:
    if kind == MONTHS:
        return "CAST(NULL AS INTERVAL YEAR TO MONTH)" if value is None else f"MAKE_YM_INTERVAL(0, {value})"
    name = "INTERVAL DAY" if kind == DAYS else "INTERVAL DAY TO SECOND"
    if value is None:
        return f"CAST(NULL AS {name})"
    whole = f"MAKE_DT_INTERVAL(0, 0, 0, CAST({value} AS DECIMAL(20, 0)) / 1000000)"
    return f"CAST({whole} AS {name})"


def _name(kind: pa.DataType) -> str:
    if pa.types.is_map(kind):
        return f"map<{_name(kind.key_type)}, {_name(kind.item_type)}>"
    return spark_type(kind)
