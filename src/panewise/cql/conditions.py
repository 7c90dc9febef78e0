"""Conditions that compare columns with numbers, and calculations with an integer column and an integer, by Arrow.

For a few rows, DuckDB takes longer to begin. Anything else, and every number whose comparison it might round, is left
to it.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from functools import lru_cache
from math import floor
from typing import TypeAlias

import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import exp
from sqlglot.errors import SqlglotError

from panewise.cql.dialect import with_scalar
from panewise.cql.literals import literal

#: The truth of a condition for every row: NULL where it is unknown.
Condition: TypeAlias = Callable[[pa.Table], pa.ChunkedArray]
ColumnTypes: TypeAlias = tuple[tuple[str, pa.DataType], ...]

_FUNCTIONS: dict[type[exp.Expr], Callable[..., pa.ChunkedArray]] = {
    exp.EQ: pc.equal,
    exp.NEQ: pc.not_equal,
    exp.LT: pc.less,
    exp.LTE: pc.less_equal,
    exp.GT: pc.greater,
    exp.GTE: pc.greater_equal,
}
#: The comparisons that are others when their sides are exchanged.
_EXCHANGED: dict[type[exp.Expr], type[exp.Expr]] = {
    exp.LT: exp.GT,
    exp.LTE: exp.GTE,
    exp.GT: exp.LT,
    exp.GTE: exp.LTE,
}
_CALCULATIONS: dict[type[exp.Expr], Callable[..., pa.ChunkedArray]] = {
    exp.Add: pc.add_checked,
    exp.Sub: pc.subtract_checked,
    exp.Mul: pc.multiply_checked,
}
#: Decimals of so many digits become the nearest DOUBLE, in whatever way they are converted.
_EXACT_DIGITS = 15


@lru_cache(maxsize=1 << 14)
def condition_of(sql: str, columns: ColumnTypes) -> Condition | None:
    """The condition with a text; None if it does more than to compare columns with numbers."""
    try:
        return with_scalar(sql, lambda tree: _condition(tree, dict(columns)))
    except SqlglotError:
        return None


@lru_cache(maxsize=1 << 14)
def calculation_of(sql: str, columns: ColumnTypes) -> Condition | None:
    """The sum, difference, product or remainder of an integer column and a number, if a text is one.

    Where the result does not fit into the type of the column, Arrow raises an error.
    """
    try:
        return with_scalar(sql, lambda tree: _calculation(tree, dict(columns)))
    except SqlglotError:
        return None


def _calculation(node: exp.Expr, types: dict[str, pa.DataType]) -> Condition | None:
    if not isinstance(node, exp.Binary) or not isinstance(node.this, exp.Column):
        return None
    found, name, dtype = literal(node.expression), node.this.name, types.get(node.this.name, pa.null())
    number = None if found is None else found.literal
    # A number of another type than the column may decide the type of the result.
    if type(number) is not int or dtype not in (pa.int32(), pa.int64()) or abs(number) >= 2**31:
        return None
    other = pa.scalar(number, dtype)
    if type(node) in _CALCULATIONS:
        calculate = _CALCULATIONS[type(node)]
        return lambda table: calculate(table.column(name), other)
    if isinstance(node, exp.Mod) and number > 0:
        return lambda table: _remainder(table.column(name), other)
    return None


def _remainder(values: pa.ChunkedArray, divisor: pa.Scalar) -> pa.ChunkedArray:
    """What is left of integers that are divided by a positive one; it has the sign of the integer."""
    return pc.subtract(values, pc.multiply(pc.divide(values, divisor), divisor))


def _condition(node: exp.Expr, types: dict[str, pa.DataType]) -> Condition | None:
    match node:
        case exp.Paren():
            return _condition(node.this, types)
        case exp.And() | exp.Or():
            return _connection(node, types)
        case exp.Between(this=tested, args={"low": low, "high": high}) if not node.args.get("negate"):
            both = exp.And(this=exp.GTE(this=tested, expression=low), expression=exp.LTE(this=tested, expression=high))
            return _connection(both, types)
    kind = type(node)
    if kind not in _FUNCTIONS or node.args.get("negate"):
        return None
    left, right = node.this, node.expression
    if isinstance(left, exp.Column):
        return _comparison(kind, left.name, right, types)
    return _comparison(_EXCHANGED.get(kind, kind), right.name, left, types) if isinstance(right, exp.Column) else None


def _connection(node: exp.Connector, types: dict[str, pa.DataType]) -> Condition | None:
    one, other = _condition(node.this, types), _condition(node.expression, types)
    if one is None or other is None:
        return None
    connect = pc.and_kleene if isinstance(node, exp.And) else pc.or_kleene
    return lambda table: connect(one(table), other(table))


def _comparison(kind: type[exp.Expr], name: str, node: exp.Expr, types: dict[str, pa.DataType]) -> Condition | None:
    """A column compared with a number."""
    found, dtype = literal(node), types.get(name, pa.null())
    number = None if found is None else found.literal
    if isinstance(number, bool) or not isinstance(number, int | float | Decimal):
        return None
    if pa.types.is_signed_integer(dtype):
        return _integer_comparison(kind, name, number)
    return _double_comparison(kind, name, number) if pa.types.is_float64(dtype) else None


def _integer_comparison(kind: type[exp.Expr], name: str, number: float | Decimal) -> Condition | None:
    """Integers compared with a number; between two integers, the lower one stands for it."""
    if isinstance(number, float) or not -(2**63) <= number < 2**63:
        return None
    if number % 1:
        if kind in (exp.EQ, exp.NEQ):
            return None
        kind = exp.LTE if kind in (exp.LT, exp.LTE) else exp.GT
    compare, limit = _FUNCTIONS[kind], pa.scalar(floor(number), pa.int64())
    return lambda table: compare(table.column(name), limit)


def _double_comparison(kind: type[exp.Expr], name: str, number: float | Decimal) -> Condition | None:
    """Doubles compared with a number; NaN is greater than any."""
    if not isinstance(number, float) and len(Decimal(number).as_tuple().digits) > _EXACT_DIGITS:
        return None
    limit = pa.scalar(float(number))
    if kind in (exp.GT, exp.GTE):
        opposite = pc.less_equal if kind is exp.GT else pc.less
        return lambda table: pc.invert(opposite(table.column(name), limit))
    compare = _FUNCTIONS[kind]
    return lambda table: compare(table.column(name), limit)
