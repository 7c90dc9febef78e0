"""Functions that choose among values: IF, COALESCE and similar ones. The translator handles CASE."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
from sqlglot import exp

from panewise.cql.coercion import wider_type
from panewise.cql.data_types import BOOLEAN, DOUBLE, FLOAT
from panewise.cql.functions.casts import cast
from panewise.cql.functions.catalogue import Translation, TypedSql, duckdb_call, function, node, same_type
from panewise.cql.functions.kinds import ALIKE, ANY, COMPARABLE, CONDITION, FRACTIONS_ALIKE, NOT_TEXT, REAL, TEXT_ONLY


def _null_if(arguments: Sequence[TypedSql], kind: pa.DataType) -> str:
    """The first value, unless both are equal in their common type."""
    a, b = arguments
    both = wider_type(a.type, b.type)
    return f"CASE WHEN {cast(a, both)} = {cast(b, both)} THEN NULL ELSE {a.sql} END"


def _extreme(name: str) -> Translation:
    """The greatest or the least. DuckDB removes the sign of a zero of type FLOAT, but not of type DOUBLE."""

    def translate(arguments: Sequence[TypedSql], kind: pa.DataType) -> str:
        return f"{name}({', '.join(cast(a, DOUBLE) if kind == FLOAT else a.sql for a in arguments)})"

    return translate


function("COALESCE", takes=[ALIKE, ALIKE], least=1, rest=True, gives=same_type(), duckdb=duckdb_call("coalesce"))
function("IFNULL", "NVL", takes=[ALIKE, ALIKE], gives=same_type(), duckdb=duckdb_call("coalesce"))
function("IF", "IFF", takes=[CONDITION, ALIKE, ALIKE], gives=same_type(1), duckdb="CASE WHEN {0} THEN {1} ELSE {2} END")
function(
    "NVL2", takes=[ANY, ALIKE, ALIKE], gives=same_type(1), duckdb="CASE WHEN {0} IS NOT NULL THEN {1} ELSE {2} END"
)
function("NULLIF", takes=[COMPARABLE, COMPARABLE], gives=same_type(), duckdb=_null_if)
for _kind in (NOT_TEXT, TEXT_ONLY):
    function("GREATEST", takes=[_kind, _kind], rest=True, gives=same_type(), duckdb=_extreme("greatest"))
    function("LEAST", takes=[_kind, _kind], rest=True, gives=same_type(), duckdb=_extreme("least"))
function("ISNAN", takes=[REAL], gives=BOOLEAN, duckdb="coalesce(isnan({0}), FALSE)")
function("NANVL", takes=[FRACTIONS_ALIKE] * 2, gives=same_type(), duckdb="CASE WHEN isnan({0}) THEN {1} ELSE {0} END")

node(exp.If, "IF", "this", "true", "false")
