"""Operators over numbers, with the types that Spark gives them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import pyarrow as pa
from sqlglot import exp

from panewise.cql.coercion import as_decimal, decimal_result, wider_type
from panewise.cql.data_types import BIGINT, DOUBLE, INTEGERS, duckdb_type, is_fraction
from panewise.cql.functions.casts import cast, convert
from panewise.cql.functions.catalogue import Translation, TypedSql, error_call, function, macro, node, same_type
from panewise.cql.functions.kinds import EXACT_NUMBER, NUMBER, SIGNED, WHOLES


def _decimals(a: TypedSql, b: TypedSql) -> bool:
    """Whether the common type of two numbers is a decimal."""
    kinds = (a.type, b.type)
    return any(map(pa.types.is_decimal, kinds)) and not any(map(is_fraction, kinds))


def _exact(value: TypedSql) -> TypedSql:
    """An argument as a decimal; an integer literal has only its own digits."""
    return convert(value, as_decimal(value.type, value.literal))


def _type(operator: str) -> Callable[[Sequence[TypedSql]], pa.DataType]:
    def gives(arguments: Sequence[TypedSql]) -> pa.DataType:
        a, b = arguments
        if _decimals(a, b):
            return decimal_result(operator, _exact(a).type, _exact(b).type)
        return DOUBLE if operator == "/" else wider_type(a.type, b.type)

    return gives


def _sum(symbol: str) -> Callable[[Sequence[TypedSql], pa.DataType], str]:
    def translate(arguments: Sequence[TypedSql], kind: pa.DataType) -> str:
        a, b = arguments
        if _decimals(a, b):
            # Both at the finer scale, so that DuckDB loses no digit before the result is cut to its type.
            a, b = _exact(a), _exact(b)
            both = pa.decimal128(kind.precision, max(a.type.scale, b.type.scale))
            a, b = convert(a, both), convert(b, both)
            if kind.scale == both.scale:
                return f"({a.sql} {symbol} {b.sql})"
            other = unscaled_digits(b) if symbol == "+" else f"-{unscaled_digits(b)}"
            digits = f"pw_rounded_sum({unscaled_digits(a)}, {other}, {10 ** (both.scale - kind.scale)})"
            return _with_point(digits, kind.scale)
        return f"({cast(a, kind)} {symbol} {cast(b, kind)})"

    return translate


def _product(arguments: Sequence[TypedSql], kind: pa.DataType) -> str:
    a, b = arguments
    if not _decimals(a, b):
        return f"({cast(a, kind)} * {cast(b, kind)})"
    a, b = _exact(a), _exact(b)
    if a.type.precision + b.type.precision <= 38:
        return f"({a.sql} * {b.sql})"
    beyond = a.type.scale + b.type.scale - kind.scale
    return _with_point(f"pw_product({unscaled_digits(a)}, {unscaled_digits(b)}, {beyond})", kind.scale)


def guard_division(symbol: str, a: TypedSql, b: TypedSql, found: str, lenient: bool = False) -> str:
    """The quotient, or the replacement where the divisor is zero."""
    if b.literal:
        return found
    bad = "NULL" if lenient else error_call(f"{a.text} {symbol} {b.text} divides by zero", "write NULLIF(divisor, 0)")
    return f"CASE WHEN {b.sql} = 0 AND {a.sql} IS NOT NULL THEN {bad} ELSE {found} END"


def quotient(arguments: Sequence[TypedSql], kind: pa.DataType, lenient: bool = False) -> str:
    a, b = arguments
    if kind == DOUBLE:
        return guard_division("/", a, b, f"({cast(a, kind)} / {cast(b, kind)})", lenient)
    a, b = _exact(a), _exact(b)
    shift = 10 ** (kind.scale - a.type.scale + b.type.scale)
    digits = f"pw_quotient({unscaled_digits(a)}, {unscaled_digits(b)}, CAST('{shift}' AS HUGEINT))"
    return guard_division("/", a, b, _with_point(digits, kind.scale), lenient)


def _with_point(digits: str, scale: int) -> str:
    """A whole number as a decimal with as many digits after the point as its scale."""
    whole = f"CAST({digits} AS DECIMAL(38, 0))"
    return f"{whole} * CAST('0.{1:0>{scale}}' AS DECIMAL({scale}, {scale}))" if scale else whole


def unscaled_digits(value: TypedSql) -> str:
    """The digits of a decimal as one whole number."""
    return f"CAST(replace(CAST({value.sql} AS VARCHAR), '.', '') AS HUGEINT)"


#: A quotient of whole numbers, rounded half away from zero.
macro(
    "pw_rounded_quotient(x, y)",
    """(x // y) + CASE WHEN abs(x % y) >= abs(y) - abs(x % y) THEN CASE WHEN (x < 0) = (y < 0) THEN 1 ELSE -1 END
    ELSE 0 END""",
)
#: A quotient and a remainder of the same divisor y as one rounded number, half away from zero; signs may differ.
macro(
    "pw_rounded_parts(q, r, y)",
    """q + CASE WHEN 2 * abs(r) > y OR (2 * abs(r) = y AND (q >= 0 AND r > 0 OR q <= 0 AND r < 0))
    THEN CASE WHEN r > 0 THEN 1 ELSE -1 END ELSE 0 END""",
)
#: A sum divided by a whole number: each summand is divided first, since the sum of two numbers with 38 digits may
#: overflow.
macro("pw_rounded_sum(a, b, y)", "pw_rounded_parts(a // y + b // y + (a % y + b % y) // y, (a % y + b % y) % y, y)")
#: A quotient times another number; only the remainder is multiplied before the division.
macro("pw_quotient(x, y, shift)", "(x // y) * shift + pw_rounded_quotient((x % y) * shift, y)")
macro("pw_ten(n)", "CAST('1' || repeat('0', n) AS UHUGEINT)")
macro("pw_middle(a, b, c, d)", "(a * d + b * c + b * d // pw_ten(19))")
macro(
    "pw_shifted(high, low, k)",
    """CASE WHEN k = 0 THEN high * pw_ten(38) + low
    WHEN k <= 38 THEN high * pw_ten(38 - k) + low // pw_ten(k)
        + CAST(low % pw_ten(k) >= pw_ten(k) // CAST(2 AS UHUGEINT) AS UHUGEINT)
    ELSE high // pw_ten(k - 38)
        + CAST(high % pw_ten(k - 38) >= pw_ten(k - 38) // CAST(2 AS UHUGEINT) AS UHUGEINT) END""",
)
macro(
    "pw_halves(a, b, c, d, k)",
    """pw_shifted(a * c + pw_middle(a, b, c, d) // pw_ten(19),
    pw_middle(a, b, c, d) % pw_ten(19) * pw_ten(19) + b * d % pw_ten(19), k)""",
)
#: A product of whole numbers without its last k digits, rounded: it may have 76 digits, more than any type of DuckDB
#: can hold, so it is computed from halves of 19 digits each.
macro(
    "pw_product(x, y, k)",
    """CAST(pw_halves(CAST(abs(x) AS UHUGEINT) // pw_ten(19), CAST(abs(x) AS UHUGEINT) % pw_ten(19),
        CAST(abs(y) AS UHUGEINT) // pw_ten(19), CAST(abs(y) AS UHUGEINT) % pw_ten(19), k) AS HUGEINT)
    * CASE WHEN (x < 0) = (y < 0) THEN 1 ELSE -1 END""",
)


def _whole_quotient(arguments: Sequence[TypedSql], kind: pa.DataType) -> str:
    a, b = arguments
    if _decimals(a, b):
        a, b = _exact(a), _exact(b)
        scale = max(a.type.scale, b.type.scale)
        both = pa.decimal128(38, scale)
        return guard_division(
            "DIV", a, b, f"({unscaled_digits(convert(a, both))} // {unscaled_digits(convert(b, both))})"
        )
    return guard_division("DIV", a, b, f"({cast(a, BIGINT)} // {cast(b, BIGINT)})")


def _remainder(arguments: Sequence[TypedSql], kind: pa.DataType, lenient: bool = False) -> str:
    a, b = arguments
    if _decimals(a, b):
        a, b = _exact(a), _exact(b)
        both = pa.decimal128(38, max(a.type.scale, b.type.scale))
        return guard_division("%", a, b, f"({cast(a, both)} % {cast(b, both)})", lenient)
    if kind in INTEGERS and not b.literal:
        # DuckDB divides, and the quotient by -1 may overflow; the remainder is zero anyway.
        rest = f"CASE WHEN {b.sql} = -1 THEN {a.sql} * 0 ELSE {cast(a, kind)} % {cast(b, kind)} END"
        return guard_division("%", a, b, rest, lenient)
    return guard_division("%", a, b, f"({cast(a, kind)} % {cast(b, kind)})", lenient)


def _positive_remainder(arguments: Sequence[TypedSql], kind: pa.DataType) -> str:
    """A remainder to which the divisor is added where it is negative."""
    a, b = arguments
    rest = TypedSql(
        f"CAST({_remainder(arguments, kind)} AS {duckdb_type(kind)})", kind, text=f"PMOD({a.text}, {b.text})"
    )
    wide = pa.decimal128(38, kind.scale) if pa.types.is_decimal(kind) else kind
    moved = TypedSql(_sum("+")([convert(rest, wide), b], wide), wide)
    return f"CASE WHEN {rest.sql} < 0 THEN {_remainder([moved, b], wide)} ELSE {rest.sql} END"


def _try_operator(symbol: str, strict: Callable[[Sequence[TypedSql], pa.DataType], str]) -> Translation:
    """The result of an operator, or NULL where it does not fit its type."""

    def translate(arguments: Sequence[TypedSql], kind: pa.DataType) -> str:
        a, b = arguments
        if kind in INTEGERS:
            wide = f"(CAST({a.sql} AS HUGEINT) {symbol} CAST({b.sql} AS HUGEINT))"
            return f"TRY_CAST({wide} AS {duckdb_type(kind)})"
        if is_fraction(kind):
            return strict(arguments, kind)
        size = f"abs({cast(a, DOUBLE)} {symbol} {cast(b, DOUBLE)})"
        return f"CASE WHEN {size} < 1e{kind.precision - kind.scale} THEN {strict(arguments, kind)} END"

    return translate


def _negate(arguments: Sequence[TypedSql], kind: pa.DataType) -> str:
    (a,) = arguments
    return f"(CAST(0 AS {duckdb_type(kind)}) - {a.sql})" if kind in INTEGERS else f"(-{a.sql})"


function("+", takes=[NUMBER, NUMBER], gives=_type("+"), duckdb=_sum("+"), form="({0} + {1})")
function("-", takes=[NUMBER, NUMBER], gives=_type("-"), duckdb=_sum("-"), form="({0} - {1})")
function("*", takes=[NUMBER, NUMBER], gives=_type("*"), duckdb=_product, form="({0} * {1})")
function("/", takes=[NUMBER, NUMBER], gives=_type("/"), duckdb=quotient, form="({0} / {1})", stricter=True)
function("%", "MOD", takes=[NUMBER, NUMBER], gives=_type("%"), duckdb=_remainder, form="({0} % {1})")
function("DIV", takes=[EXACT_NUMBER] * 2, gives=BIGINT, duckdb=_whole_quotient, form="({0} DIV {1})", stricter=True)
function("PMOD", takes=[NUMBER, NUMBER], gives=_type("%"), duckdb=_positive_remainder, stricter=True)
function("TRY_ADD", takes=[NUMBER, NUMBER], gives=_type("+"), duckdb=_try_operator("+", _sum("+")))
function("TRY_SUBTRACT", takes=[NUMBER, NUMBER], gives=_type("-"), duckdb=_try_operator("-", _sum("-")))
function("TRY_MULTIPLY", takes=[NUMBER, NUMBER], gives=_type("*"), duckdb=_try_operator("*", _product))
function("TRY_DIVIDE", takes=[NUMBER] * 2, gives=_type("/"), duckdb=partial(quotient, lenient=True), stricter=True)
function("TRY_MOD", takes=[NUMBER, NUMBER], gives=_type("%"), duckdb=partial(_remainder, lenient=True))
function("negative", "NEGATIVE", takes=[SIGNED], gives=same_type(), duckdb=_negate, form="(- {0})")
function("POSITIVE", takes=[NUMBER], gives=same_type(), duckdb="{0}")

node(exp.Add, "+")
node(exp.Sub, "-")
node(exp.Mul, "*")
node(exp.Div, "/")
node(exp.Mod, "%")
node(exp.IntDiv, "DIV")
node(exp.Neg, "negative", "this")


def _register_bit_operator(symbol: str, spelt: str) -> None:
    function(
        symbol,
        takes=[WHOLES, WHOLES],
        gives=lambda args: wider_type(args[0].type, args[1].type),
        duckdb=lambda args, kind: spelt.format(*(cast(a, kind) for a in args)),
        form=f"({{0}} {symbol} {{1}})",
    )


_register_bit_operator("&", "({0} & {1})")
_register_bit_operator("|", "({0} | {1})")
_register_bit_operator("^", "xor({0}, {1})")
function("~", takes=[WHOLES], gives=same_type(), duckdb="(~{0})", form="(~{0})")

node(exp.BitwiseAnd, "&")
node(exp.BitwiseOr, "|")
node(exp.BitwiseXor, "^")
node(exp.BitwiseNot, "~", "this")
