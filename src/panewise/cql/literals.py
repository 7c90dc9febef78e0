"""Literals of Spark SQL: the type of each, and its text in DuckDB."""

from __future__ import annotations

import re
from decimal import Decimal

import pyarrow as pa
from sqlglot import exp

from panewise.core.errors import BindProblem
from panewise.core.time import UNITS
from panewise.cql.data_types import BIGINT, BINARY, BOOLEAN, DAYS, DOUBLE, INT, MONTHS, NULL, SPAN, STRING, duckdb_text
from panewise.cql.functions import TypedSql


def literal(node: exp.Expr) -> TypedSql | None:
    """The literal of a node; None for an expression that must be computed."""
    match node:
        case exp.Literal(is_string=True) | exp.RawString():
            return TypedSql(duckdb_text(node.this), STRING, node.this, quoted_text(node.this))
        case exp.Literal():
            return _number(node.this)
        case exp.Neg(this=exp.Literal(is_string=False) as inner):
            return _number(f"-{inner.this}")
        case exp.Boolean():
            return TypedSql(str(bool(node.this)).upper(), BOOLEAN, bool(node.this), str(bool(node.this)).upper())
        case exp.Null():
            return TypedSql("NULL", NULL, None, "NULL")
        case exp.HexString():
            digits = node.this.rjust(len(node.this) + len(node.this) % 2, "0")
            return TypedSql(f"unhex('{digits}')", BINARY, bytes.fromhex(digits), f"X'{digits}'")
        case exp.Interval():
            return _interval(node)
    return None


def quoted_text(text: str) -> str:
    return "'" + text + "'"


def _number(text: str) -> TypedSql:
    """An INT or a larger type that holds the number; with a point a DECIMAL, with an exponent a DOUBLE."""
    if "e" in text.lower():
        return TypedSql(f"CAST({duckdb_text(text)} AS DOUBLE)", DOUBLE, float(text), text)
    value = Decimal(text)
    if "." not in text and -(2**63) <= int(value) < 2**63:
        whole = int(value)
        if not -(2**31) <= whole < 2**31:
            return TypedSql(f"CAST({whole} AS BIGINT)", BIGINT, whole, text)
        # A minus sign is put in parentheses, since with another one before it a comment would begin.
        return TypedSql(str(whole) if whole >= 0 else f"({whole})", INT, whole, text)
    scale = -int(value.as_tuple().exponent)
    precision = max(len(value.as_tuple().digits), scale)
    if precision > 38:
        raise BindProblem(f"{text} has more than 38 digits", fix="write it with an exponent, as a DOUBLE")
    return TypedSql(
        f"CAST({duckdb_text(text)} AS DECIMAL({precision}, {scale}))", pa.decimal128(precision, scale), value, text
    )


_MONTHS = {"MONTH": 1, "YEAR": 12}
_PART = re.compile(r"\s*([+-]?\d+(?:\.\d+)?)\s*([a-z]+)\s*", re.IGNORECASE)


def _interval(node: exp.Interval) -> TypedSql:
    """An interval as its microseconds, or as its months."""
    shown = node.sql(dialect="spark")
    unit = node.args.get("unit")
    value = node.this.name if isinstance(node.this, exp.Literal) else None
    if value is None or not (unit is None or isinstance(unit, exp.Var)):
        raise BindProblem(f"{shown} is not supported", fix="write one such as INTERVAL '5' MINUTES")
    parts = _PART.findall(f"{value} {unit.name}" if unit else value)
    if "".join(f"{n}{u}" for n, u in parts) != re.sub(r"\s", "", f"{value}{unit.name if unit else ''}"):
        raise BindProblem(f"{shown} is not an interval", fix="write one such as INTERVAL '5' MINUTES")
    units = [(Decimal(count), word.upper().removesuffix("S")) for count, word in parts]
    if all(word in _MONTHS for _, word in units):
        months = sum(int(count) * _MONTHS[word] for count, word in units)
        return TypedSql(f"CAST({months} AS INTEGER)", MONTHS, months, shown)
    lengths = UNITS | {"WEEK": 7 * UNITS["DAY"]}
    if not all(word in lengths for _, word in units):
        raise BindProblem(f"{shown} mixes months with days or has an unknown unit", fix="add two intervals")
    ticks = int(sum(count * lengths[word] for count, word in units))
    kind = DAYS if all(word in ("DAY", "WEEK") for _, word in units) else SPAN
    return TypedSql(f"CAST({ticks} AS BIGINT)", kind, ticks, shown)
