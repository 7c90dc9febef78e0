"""Numbers with fewer digits."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from panewise.cql.coercion import bounded_decimal
from panewise.cql.data_types import BIGINT, DOUBLE, INTEGERS, duckdb_type
from panewise.cql.functions.casts import cast
from panewise.cql.functions.catalogue import Translation, TypedSql, function, macro
from panewise.cql.functions.kinds import CONSTANT_WHOLE, NUMBER, REAL


def _whole_type(arguments: Sequence[TypedSql]) -> pa.DataType:
    kind = arguments[0].type
    return bounded_decimal(kind.precision - kind.scale + 1, 0) if pa.types.is_decimal(kind) else BIGINT


def _next_whole(name: str) -> Translation:
    def translate(arguments: Sequence[TypedSql], kind: pa.DataType) -> str:
        (a,) = arguments
        if a.type in INTEGERS:
            return a.sql
        rounded = f"{name}({a.sql})"
        return rounded if pa.types.is_decimal(kind) else cast(TypedSql(rounded, DOUBLE, text=a.text), BIGINT)

    return translate


function("FLOOR", takes=[NUMBER], gives=_whole_type, duckdb=_next_whole("floor"))
function("CEIL", "CEILING", takes=[NUMBER], gives=_whole_type, duckdb=_next_whole("ceil"))
function("RINT", takes=[REAL], gives=DOUBLE, duckdb="round_even({0}, 0)")


def _digits(arguments: Sequence[TypedSql]) -> int:
    """How many digits after the point remain; before the point, if negative."""
    return int(arguments[1].literal) if len(arguments) > 1 else 0


def _type(arguments: Sequence[TypedSql]) -> pa.DataType:
    """The result type: a decimal may get one more digit before the point, and has no more after it than before."""
    kind, digits = arguments[0].type, _digits(arguments)
    if not pa.types.is_decimal(kind):
        return kind
    whole = max(kind.precision - kind.scale, -digits) + 1
    scale = max(min(kind.scale, digits), 0)
    return pa.decimal128(min(whole + scale, 38), scale)


#: Makes decimals that were rounded half away from zero even if they were half way; a unit is the value of the last
#: digit.
macro(
    "pw_even(x, rounded, unit)",
    """CASE WHEN abs(rounded - x) * 2 = unit AND rounded % (2 * unit) <> 0 THEN rounded - sign(x) * unit
    ELSE rounded END""",
)


def _round(even: bool) -> Translation:
    def exact(sql: str, digits: int) -> str:
        rounded = f"round({sql}, {digits})"
        unit = (
            f"CAST('{'0.' + '0' * (digits - 1) + '1' if digits > 0 else 10**-digits}' AS DECIMAL(38, {max(digits, 0)}))"
        )
        return f"pw_even({sql}, {rounded}, {unit})" if even else rounded

    def translate(arguments: Sequence[TypedSql], kind: pa.DataType) -> str:
        a, digits = arguments[0], _digits(arguments)
        if kind in INTEGERS:
            return a.sql if digits >= 0 else exact(f"CAST({a.sql} AS DECIMAL(38, 0))", max(digits, -37))
        if pa.types.is_decimal(kind):
            return a.sql if digits >= a.type.scale else exact(a.sql, max(digits, -37))
        # The digits that are shown are rounded, not the exact number: 2.675 is stored as slightly less.
        shown = f"CAST(CAST({a.sql} AS DOUBLE) AS VARCHAR)"
        fine, coarse = f"CAST({shown} AS DECIMAL(38, 22))", f"CAST({shown} AS DECIMAL(38, 0))"
        small = f"CAST(CAST({exact(fine, digits)} AS VARCHAR) AS DOUBLE)"
        large = f"CAST(CAST({exact(coarse, digits)} AS VARCHAR) AS DOUBLE)" if digits < 0 else a.sql
        if digits > 21:
            return a.sql
        return (
            f"CASE WHEN abs({a.sql}) < 1e15 THEN {small} WHEN abs({a.sql}) < 1e37 THEN {large} ELSE {a.sql} END"
            if digits > -37
            else f"CAST(0 AS {duckdb_type(kind)})"
        )

    return translate


_EDGES = [("?",), *(("?", digits) for digits in ("2", "-1", "0", "5"))]
for _name, _even in (("ROUND", False), ("BROUND", True)):
    function(
        _name,
        takes=[NUMBER, CONSTANT_WHOLE],
        least=1,
        gives=_type,
        duckdb=_round(_even),
        made_up=False,
        edges=_EDGES,
        stricter=_even,
    )
