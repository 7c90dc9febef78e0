"""CAST, TRY_CAST and implicit conversions, as Spark makes them in ANSI mode.

A rule is found by its source type and target type. If a value has no equivalent in the target type, a cast fails with a
sentence and a lenient cast gives NULL; pairs of types without a rule are refused before any value is read.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pyarrow as pa

from panewise.core.errors import BindProblem
from panewise.core.schema import is_number, type_name
from panewise.cql.data_types import (
    BIGINT,
    BINARY,
    BOOLEAN,
    DATE,
    DAYS,
    DOUBLE,
    FLOAT,
    INT,
    INTEGERS,
    NULL,
    SMALLINT,
    SPAN,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    TINYINT,
    duckdb_type,
    is_array,
    is_fraction,
)
from panewise.cql.functions.catalogue import TypedSql, error_call, function
from panewise.cql.functions.kinds import ATOMS, ArgumentKind
from panewise.cql.functions.spelling import date_of_text, double_text, float_text, moment_of_text, number_of_text


def convert(value: TypedSql, to: pa.DataType) -> TypedSql:
    """A value in another type, converted implicitly or by CAST."""
    if value.type == to:
        return value
    widened = is_number(value.type) and is_number(to)
    return TypedSql(cast(value, to), to, value.literal, value.text, value.risky or not widened)


def cast(value: TypedSql, to: pa.DataType, lenient: bool = False) -> str:
    """DuckDB's text for a cast; a lenient one gives NULL for values without an equivalent in the other type."""
    given = value.type
    if given == to:
        return value.sql
    if given == DAYS and to == SPAN:
        return value.sql
    if given == NULL:
        return f"CAST(NULL AS {duckdb_type(to)})"
    rule = _rule(given, to)
    if rule is None:
        raise BindProblem(f"{type_name(given)} cannot be cast to {type_name(to)}", fix=_detour(given, to))
    otherwise = "NULL" if lenient else error_call(f"a value of {value.text or 'it'} is no {type_name(to)}", _LENIENT)
    return rule(value.sql, given, to, lenient, otherwise)


def is_castable(given: pa.DataType, to: pa.DataType) -> bool:
    """Whether there is a rule for casts from one type to the other."""
    return bool(given in (to, NULL) or _rule(given, to))


_LENIENT = "filter such values out, or use TRY_CAST"
#: Text of the value, its type, the target type, whether NULL replaces a bad value, and the text for a bad value.
Rule = Callable[[str, pa.DataType, pa.DataType, bool, str], str]


def _rule(given: pa.DataType, to: pa.DataType) -> Rule | None:
    if is_array(given) and is_array(to):
        inner = _rule(given.value_type, to.value_type)
        return partial(_each, inner) if inner or given.value_type == to.value_type else None
    return _RULES.get((_family(given), _family(to)))


def _family(kind: pa.DataType) -> str | None:
    if kind in INTEGERS:
        return "whole"
    if is_fraction(kind):
        return "fraction"
    return "decimal" if pa.types.is_decimal(kind) else _FAMILIES.get(kind)


def _simple(sql: str, given: pa.DataType, to: pa.DataType, lenient: bool, otherwise: str) -> str:
    return f"{'TRY_' if lenient else ''}CAST({sql} AS {duckdb_type(to)})"


def _truncate_fraction(sql: str, given: pa.DataType, to: pa.DataType, lenient: bool, otherwise: str) -> str:
    """A whole number: digits after the point are cut off, not rounded."""
    return _simple(f"trunc({sql})", given, to, lenient, otherwise)


def _decimal_to_fraction(sql: str, given: pa.DataType, to: pa.DataType, lenient: bool, otherwise: str) -> str:
    """The nearest fraction: DuckDB divides by a power of ten, which is exact as long as both sides are."""
    exact = given.precision <= 15 and to == DOUBLE
    return _simple(sql if exact else f"CAST({sql} AS VARCHAR)", given, to, lenient, otherwise)


def _narrow_fraction(sql: str, given: pa.DataType, to: pa.DataType, lenient: bool, otherwise: str) -> str:
    """A fraction with fewer digits; a value that is too large becomes infinite."""
    if to == DOUBLE:
        return _simple(sql, given, to, lenient, otherwise)
    infinite = f"CAST(CASE WHEN {sql} > 0 THEN 'inf' ELSE '-inf' END AS FLOAT)"
    large = f"abs({sql}) > 3.4028234663852886e38 AND isfinite({sql})"
    return f"CASE WHEN {large} THEN {infinite} ELSE CAST({sql} AS FLOAT) END"


def _through_text(sql: str, given: pa.DataType, to: pa.DataType, lenient: bool, otherwise: str) -> str:
    """A decimal of the digits that a fraction shows as a DOUBLE, not of its exact value."""
    shown = _simple(f"CAST(CAST({sql} AS DOUBLE) AS VARCHAR)", given, to, lenient, otherwise)
    # DuckDB reads digits with an exponent into decimals that are too small for them.
    large = f"abs({sql}) >= 1e{to.precision - to.scale}"
    return f"CASE WHEN NOT isfinite({sql}) THEN NULL WHEN {large} THEN {otherwise} ELSE {shown} END"


def _fraction_text(sql: str, given: pa.DataType, *_: object) -> str:
    return double_text(sql) if given == DOUBLE else float_text(sql)


def _decimal_text(sql: str, given: pa.DataType, to: pa.DataType, lenient: bool, otherwise: str) -> str:
    if given.precision == given.scale < 38:
        sql = f"CAST({sql} AS DECIMAL({given.precision + 1}, {given.scale}))"  # otherwise DuckDB leaves out the zero
    return f"CAST({sql} AS VARCHAR)"


def _moment_of_number(sql: str, given: pa.DataType, to: pa.DataType, lenient: bool, otherwise: str) -> str:
    whole = {True: f"CAST({sql} AS HUGEINT) * 1000000", False: f"trunc({sql} * 1000000)"}[given in INTEGERS]
    ticks = f"trunc(CAST({sql} AS DOUBLE) * 1000000)" if is_fraction(given) else whole
    moment = f"make_timestamp({'TRY_' if lenient else ''}CAST({ticks} AS BIGINT))"
    return f"CASE WHEN NOT isfinite({sql}) THEN {otherwise} ELSE {moment} END" if is_fraction(given) else moment


def _seconds(sql: str, given: pa.DataType, to: pa.DataType, lenient: bool, otherwise: str) -> str:
    if to in INTEGERS:
        ticks = f"epoch_us({sql})"
        whole = f"({ticks} // 1000000 - CASE WHEN {ticks} % 1000000 < 0 THEN 1 ELSE 0 END)"
        return _simple(whole, BIGINT, to, lenient, otherwise)
    if is_fraction(to):
        return f"CAST(epoch_us({sql}) / 1000000 AS {duckdb_type(to)})"
    exact = f"CAST(epoch_us({sql}) AS DECIMAL(20, 0)) * CAST(0.000001 AS DECIMAL(7, 6))"
    return _simple(exact, pa.decimal128(27, 6), to, lenient, otherwise)


def _truth_of_text(sql: str, given: pa.DataType, to: pa.DataType, lenient: bool, otherwise: str) -> str:
    word = f"lower(trim({sql}))"
    return (
        f"CASE WHEN {sql} IS NULL THEN NULL WHEN {word} IN ('t', 'true', 'y', 'yes', '1') THEN TRUE "
        f"WHEN {word} IN ('f', 'false', 'n', 'no', '0') THEN FALSE ELSE {otherwise} END"
    )


def _each(inner: Rule | None, sql: str, given: pa.DataType, to: pa.DataType, lenient: bool, otherwise: str) -> str:
    """Every element of an array, cast by the rule for one element."""
    if inner is None:
        return sql
    return f"list_transform({sql}, lambda x: {inner('x', given.value_type, to.value_type, lenient, otherwise)})"


def _is_not_zero(sql: str, *_: object) -> str:
    return f"({sql} <> 0)"


_FAMILIES = {
    BOOLEAN: "truth",
    STRING: "text",
    BINARY: "bytes",
    DATE: "date",
    TIMESTAMP: "instant",
    TIMESTAMP_NTZ: "local",
}
_RULES: dict[tuple[str | None, str | None], Rule] = {
    ("whole", "whole"): _simple,
    ("whole", "fraction"): _simple,
    ("whole", "decimal"): _simple,
    ("whole", "text"): _simple,
    ("whole", "truth"): _is_not_zero,
    ("whole", "instant"): _moment_of_number,
    ("fraction", "whole"): _truncate_fraction,
    ("fraction", "fraction"): _narrow_fraction,
    ("fraction", "decimal"): _through_text,
    ("fraction", "text"): _fraction_text,
    ("fraction", "truth"): _is_not_zero,
    ("fraction", "instant"): _moment_of_number,
    ("decimal", "whole"): _truncate_fraction,
    ("decimal", "fraction"): _decimal_to_fraction,
    ("decimal", "decimal"): _simple,
    ("decimal", "text"): _decimal_text,
    ("decimal", "truth"): _is_not_zero,
    ("decimal", "instant"): _moment_of_number,
    ("truth", "whole"): _simple,
    ("truth", "fraction"): _simple,
    ("truth", "decimal"): _simple,
    ("truth", "text"): _simple,
    ("text", "whole"): number_of_text,
    ("text", "fraction"): number_of_text,
    ("text", "decimal"): number_of_text,
    ("text", "truth"): _truth_of_text,
    ("text", "bytes"): lambda sql, *_: f"encode({sql})",
    ("text", "date"): date_of_text,
    ("text", "instant"): moment_of_text,
    ("text", "local"): moment_of_text,
    ("bytes", "text"): lambda sql, *_: f"decode({sql})",
    ("date", "text"): _simple,
    ("date", "instant"): _simple,
    ("date", "local"): _simple,
    ("instant", "whole"): _seconds,
    ("instant", "fraction"): _seconds,
    ("instant", "decimal"): _seconds,
    ("instant", "text"): _simple,
    ("instant", "date"): _simple,
    ("instant", "local"): _simple,
    ("local", "text"): _simple,
    ("local", "date"): _simple,
    ("local", "instant"): _simple,
}


def _detour(given: pa.DataType, to: pa.DataType) -> str:
    if given == DATE and is_number(to):
        return "use UNIX_DATE or DATEDIFF"
    if to == DATE and is_number(given):
        return "use DATE_FROM_UNIX_DATE"
    return "check both types"


def _register_shorthand(name: str, to: pa.DataType) -> None:
    samples = tuple(kind for kind in ATOMS if is_castable(kind, to))
    fitting = ArgumentKind("a value", lambda given: given if is_castable(given, to) else None, samples)
    function(name, takes=[fitting], gives=to, duckdb=lambda args, kind: cast(args[0], kind), stricter=to == TIMESTAMP)


for _name, _to in {
    "TINYINT": TINYINT,
    "SMALLINT": SMALLINT,
    "INT": INT,
    "BIGINT": BIGINT,
    "FLOAT": FLOAT,
    "DOUBLE": DOUBLE,
    "DECIMAL": pa.decimal128(10, 0),
    "BOOLEAN": BOOLEAN,
    "STRING": STRING,
    "BINARY": BINARY,
    "DATE": DATE,
    "TIMESTAMP": TIMESTAMP,
}.items():
    _register_shorthand(_name, _to)
