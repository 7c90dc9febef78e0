"""Operators over numbers, with the types that Spark gives them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pyarrow as pa
from sqlglot import exp

from panewise.lang.coercion import as_decimal, decimal_result, widest
from panewise.lang.data_types import BIGINT, DOUBLE, INTEGERS, duckdb_type, is_fraction
from panewise.lang.functions.casts import cast, converted
from panewise.lang.functions.catalogue import Typed, fails, function, macro, node, same
from panewise.lang.functions.kinds import NUMBER, WHOLES


def _decimals(a: Typed, b: Typed) -> bool:
    """Whether two numbers meet as decimals."""
    kinds = (a.type, b.type)
    return any(map(pa.types.is_decimal, kinds)) and not any(map(is_fraction, kinds))


def _exact(value: Typed) -> Typed:
    """An argument as a decimal; an integer that is written out has only its own digits."""
    return converted(value, as_decimal(value.type, value.literal))


def _type(operator: str) -> Callable[[Sequence[Typed]], pa.DataType]:
    def gives(arguments: Sequence[Typed]) -> pa.DataType:
        a, b = arguments
        if _decimals(a, b):
            return decimal_result(operator, _exact(a).type, _exact(b).type)
        return DOUBLE if operator == "/" else widest(a.type, b.type)

    return gives


def _sum(symbol: str) -> Callable[[Sequence[Typed], pa.DataType], str]:
    def translated(arguments: Sequence[Typed], kind: pa.DataType) -> str:
        a, b = arguments
        if _decimals(a, b):
            # Both at the finer scale, so that DuckDB loses no digit before the result is cut to its type.
            a, b = _exact(a), _exact(b)
            both = pa.decimal128(kind.precision, max(a.type.scale, b.type.scale))
            return f"({cast(a, both)} {symbol} {cast(b, both)})"
        return f"({cast(a, kind)} {symbol} {cast(b, kind)})"

    return translated


def _product(arguments: Sequence[Typed], kind: pa.DataType) -> str:
    a, b = arguments
    if _decimals(a, b):
        return f"({_exact(a).sql} * {_exact(b).sql})"
    return f"({cast(a, kind)} * {cast(b, kind)})"


def nonzero(symbol: str, a: Typed, b: Typed, found: str, lenient: bool = False) -> str:
    """What division gives, or what stands for it where the divisor is zero."""
    if b.literal:
        return found
    bad = "NULL" if lenient else fails(f"{a.text} {symbol} {b.text} divides by zero", "write NULLIF(divisor, 0)")
    return f"CASE WHEN {b.sql} = 0 AND {a.sql} IS NOT NULL THEN {bad} ELSE {found} END"


def quotient(arguments: Sequence[Typed], kind: pa.DataType, lenient: bool = False) -> str:
    a, b = arguments
    if kind == DOUBLE:
        return nonzero("/", a, b, f"({cast(a, kind)} / {cast(b, kind)})", lenient)
    a, b = _exact(a), _exact(b)
    shift = 10 ** (kind.scale - a.type.scale + b.type.scale)
    digits = f"CAST(pw_rounded_quotient({unscaled(a)} * CAST('{shift}' AS HUGEINT), {unscaled(b)}) AS DECIMAL(38, 0))"
    return nonzero(
        "/", a, b, f"{digits} * CAST('0.{1:0>{kind.scale}}' AS DECIMAL({kind.scale}, {kind.scale}))", lenient
    )


def unscaled(value: Typed) -> str:
    """The digits of a decimal as one whole number."""
    return f"CAST(replace(CAST({value.sql} AS VARCHAR), '.', '') AS HUGEINT)"


#: A quotient of whole numbers, rounded half away from zero.
macro(
    "pw_rounded_quotient(x, y)",
    """(x // y) + CASE WHEN abs(x % y) >= abs(y) - abs(x % y) THEN CASE WHEN (x < 0) = (y < 0) THEN 1 ELSE -1 END
    ELSE 0 END""",
)


def _whole_quotient(arguments: Sequence[Typed], kind: pa.DataType) -> str:
    a, b = arguments
    if _decimals(a, b):
        a, b = _exact(a), _exact(b)
        scale = max(a.type.scale, b.type.scale)
        both = pa.decimal128(38, scale)
        return nonzero("DIV", a, b, f"({unscaled(converted(a, both))} // {unscaled(converted(b, both))})")
    return nonzero("DIV", a, b, f"({cast(a, BIGINT)} // {cast(b, BIGINT)})")


def _remainder(arguments: Sequence[Typed], kind: pa.DataType) -> str:
    a, b = arguments
    if _decimals(a, b):
        a, b = _exact(a), _exact(b)
        both = pa.decimal128(38, max(a.type.scale, b.type.scale))
        return nonzero("%", a, b, f"({cast(a, both)} % {cast(b, both)})")
    if kind in INTEGERS and not b.literal:
        # DuckDB divides, and the quotient by -1 may not fit; the remainder is zero anyway.
        rest = f"CASE WHEN {b.sql} = -1 THEN {a.sql} * 0 ELSE {cast(a, kind)} % {cast(b, kind)} END"
        return nonzero("%", a, b, rest)
    return nonzero("%", a, b, f"({cast(a, kind)} % {cast(b, kind)})")


def _negated(arguments: Sequence[Typed], kind: pa.DataType) -> str:
    (a,) = arguments
    return f"(CAST(0 AS {duckdb_type(kind)}) - {a.sql})" if kind in INTEGERS else f"(-{a.sql})"


function("+", takes=[NUMBER, NUMBER], gives=_type("+"), duckdb=_sum("+"), form="({0} + {1})")
function("-", takes=[NUMBER, NUMBER], gives=_type("-"), duckdb=_sum("-"), form="({0} - {1})")
function("*", takes=[NUMBER, NUMBER], gives=_type("*"), duckdb=_product, form="({0} * {1})")
function("/", takes=[NUMBER, NUMBER], gives=_type("/"), duckdb=quotient, form="({0} / {1})")
function("%", "MOD", takes=[NUMBER, NUMBER], gives=_type("%"), duckdb=_remainder, form="({0} % {1})")
function("DIV", takes=[NUMBER, NUMBER], gives=BIGINT, duckdb=_whole_quotient, form="({0} DIV {1})")
function("negative", "NEGATIVE", takes=[NUMBER], gives=same(), duckdb=_negated, form="(- {0})")
function("POSITIVE", takes=[NUMBER], gives=same(), duckdb="{0}")

node(exp.Add, "+")
node(exp.Sub, "-")
node(exp.Mul, "*")
node(exp.Div, "/")
node(exp.Mod, "%")
node(exp.IntDiv, "DIV")
node(exp.Neg, "negative", "this")


def _bits(symbol: str, spelt: str) -> None:
    function(
        symbol,
        takes=[WHOLES, WHOLES],
        gives=lambda args: widest(args[0].type, args[1].type),
        duckdb=lambda args, kind: spelt.format(*(cast(a, kind) for a in args)),
        form=f"({{0}} {symbol} {{1}})",
    )


_bits("&", "({0} & {1})")
_bits("|", "({0} | {1})")
_bits("^", "xor({0}, {1})")
function("~", takes=[WHOLES], gives=same(), duckdb="(~{0})", form="(~{0})")

node(exp.BitwiseAnd, "&")
node(exp.BitwiseOr, "|")
node(exp.BitwiseXor, "^")
node(exp.BitwiseNot, "~", "this")
