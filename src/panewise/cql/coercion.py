"""The common type of values of several types, and the result types of arithmetic: Spark's rules in ANSI mode."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from panewise.core.schema import is_number
from panewise.cql.data_types import (
    BIGINT,
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
    TINYINT,
    is_array,
    is_fraction,
    is_moment,
)

#: How many digits the values of an integer type may have.
_DIGITS = {TINYINT: 3, SMALLINT: 5, INT: 10, BIGINT: 20}
_MOST, _LEAST_SCALE = 38, 6


def as_decimal(kind: pa.DataType, literal: object = None) -> pa.Decimal128Type:
    """The decimal that holds every value of an integer type, or only the value of an integer literal."""
    if pa.types.is_decimal(kind):
        return kind
    digits = len(str(abs(literal))) if isinstance(literal, int) else _DIGITS[kind]
    return pa.decimal128(digits, 0)


def bounded_decimal(precision: int, scale: int) -> pa.Decimal128Type:
    """A decimal of at most 38 digits: if more are needed, digits after the point are dropped first, down to six."""
    if precision <= _MOST:
        return pa.decimal128(precision, scale)
    whole = precision - scale
    return pa.decimal128(_MOST, max(_MOST - whole, min(scale, _LEAST_SCALE)))


def decimal_result(operator: str, a: pa.Decimal128Type, b: pa.Decimal128Type) -> pa.Decimal128Type:
    """The type of a sum, difference, product, quotient or remainder of decimals.

    >>> decimal_result("/", pa.decimal128(2, 1), pa.decimal128(10, 0))
    Decimal128Type(decimal128(13, 12))
    """
    wholes, scale = (a.precision - a.scale, b.precision - b.scale), max(a.scale, b.scale)
    match operator:
        case "*":
            return bounded_decimal(a.precision + b.precision + 1, a.scale + b.scale)
        case "/":
            fine = max(_LEAST_SCALE, a.scale + b.precision + 1)
            return bounded_decimal(wholes[0] + b.scale + fine, fine)
        case "%":
            return bounded_decimal(min(wholes) + scale, scale)
    return bounded_decimal(max(wholes) + scale + 1, scale)


def wider_type(a: pa.DataType, b: pa.DataType) -> pa.DataType | None:
    """The common type of two types, without loss; None where Spark has none, or has one that we refuse."""
    if a == b or b == NULL:
        return a
    if a == NULL:
        return b
    if is_number(a) and is_number(b):
        return _wider_number(a, b)
    if {a, b} == {DAYS, SPAN}:
        return SPAN
    if (a == DATE or is_moment(a)) and (b == DATE or is_moment(b)):
        return TIMESTAMP if TIMESTAMP in (a, b) else a if is_moment(a) else b
    if STRING in (a, b):
        # Text and times have a common type, the time; numbers and text are never converted implicitly.
        other = a if b == STRING else b
        return other if other == DATE or is_moment(other) else None
    if is_array(a) and is_array(b):
        inner = wider_type(a.value_type, b.value_type)
        return None if inner is None else pa.list_(inner)
    if pa.types.is_map(a) and pa.types.is_map(b):
        key, item = wider_type(a.key_type, b.key_type), wider_type(a.item_type, b.item_type)
        return None if key is None or item is None else pa.map_(key, item)
    if pa.types.is_struct(a) and pa.types.is_struct(b) and a.names == b.names:
        inner_types = [wider_type(one.type, other.type) for one, other in zip(a, b, strict=True)]
        if all(kind is not None for kind in inner_types):
            return pa.struct(list(zip(a.names, inner_types, strict=True)))
    return None


def _wider_number(a: pa.DataType, b: pa.DataType) -> pa.DataType:
    if is_fraction(a) or is_fraction(b):
        # A float has too few digits for any other number.
        return FLOAT if a == b == FLOAT else DOUBLE
    if pa.types.is_decimal(a) or pa.types.is_decimal(b):
        a, b = as_decimal(a), as_decimal(b)
        scale = max(a.scale, b.scale)
        return bounded_decimal(max(a.precision - a.scale, b.precision - b.scale) + scale, scale)
    return max(a, b, key=INTEGERS.index)


def common_type(types: Sequence[pa.DataType]) -> pa.DataType | None:
    """The common type of all of them."""
    found: pa.DataType | None = NULL
    for kind in types:
        found = wider_type(found, kind) if found is not None else None
    return found
