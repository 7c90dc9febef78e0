"""Kinds of arguments: which types an entry takes in a place, and to which type a value is converted there."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import pyarrow as pa

from panewise.core.schema import is_number
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
    MONTHS,
    NULL,
    SMALLINT,
    SPAN,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    TINYINT,
    is_array,
    is_fraction,
    is_moment,
)

DECIMALS = (pa.decimal128(4, 2), pa.decimal128(20, 5), pa.decimal128(38, 18))


@dataclass(frozen=True)
class ArgumentKind:
    """`fit` gives the type to which a value of another type is converted, or None; `samples` are the types that tests
    try.

    Arguments of kinds that are `alike` are converted to one common type, or `kept` as they are if a common type exists.
    A `constant` must be a literal.
    """

    name: str
    fit: Callable[[pa.DataType], pa.DataType | None]
    samples: tuple[pa.DataType, ...]
    alike: bool = False
    kept: bool = False
    constant: bool = False


def _whole(kind: pa.DataType) -> bool:
    return kind in INTEGERS


def _atom(kind: pa.DataType) -> bool:
    return bool(not pa.types.is_nested(kind) and kind != BINARY)


def _kind(
    name: str, to: pa.DataType, *samples: pa.DataType, from_: Callable[[pa.DataType], bool] = lambda _: False
) -> ArgumentKind:
    """Values of one type, and of others that Spark converts to it implicitly."""
    return ArgumentKind(name, lambda given: to if given in (to, NULL) or from_(given) else None, samples or (to,))


def _any_of(
    name: str, test: Callable[[pa.DataType], bool], nothing: pa.DataType, *samples: pa.DataType
) -> ArgumentKind:
    """Values of several types, each as it is; a bare NULL is of the type `nothing`."""
    return ArgumentKind(name, lambda given: nothing if given == NULL else given if test(given) else None, samples)


NUMBERS = (TINYINT, SMALLINT, INT, BIGINT, FLOAT, DOUBLE, *DECIMALS)
ATOMS = (BOOLEAN, *NUMBERS, STRING, DATE, TIMESTAMP, TIMESTAMP_NTZ)

CONDITION = _kind("a condition", BOOLEAN)
WHOLE = _kind("a whole number", INT, INT, BIGINT, from_=_whole)
#: A count that may not be a BIGINT.
COUNT = _kind("a whole number that is no BIGINT", INT, INT, SMALLINT, from_=lambda k: k in (TINYINT, SMALLINT))
LONG = _kind("a whole number", BIGINT, INT, BIGINT, from_=_whole)
REAL = _kind("a number", DOUBLE, *NUMBERS, from_=is_number)
#: Text; any single value becomes text as by CAST.
TEXT = _kind("text", STRING, STRING, BIGINT, DOUBLE, BOOLEAN, DATE, from_=_atom)
#: Text only; other types are not converted.
TEXT_ONLY = _kind("text", STRING)
BYTES = _kind("bytes", BINARY)
DAY = _kind("a date", DATE, DATE, TIMESTAMP, TIMESTAMP_NTZ, STRING, from_=lambda k: is_moment(k) or k == STRING)
MOMENT = _any_of("a timestamp", is_moment, TIMESTAMP, TIMESTAMP, TIMESTAMP_NTZ)
#: A moment as Spark's TIMESTAMP, whatever its type was.
DATE_ONLY = _kind("a date", DATE)
DAY_SPAN = _kind("an interval of days", DAYS)
TIME_SPAN = _kind("an interval", SPAN, from_=lambda k: k == DAYS)
MONTH_SPAN = _kind("an interval of months", MONTHS)
INSTANT = _kind("a timestamp", TIMESTAMP, TIMESTAMP, DATE, STRING, from_=lambda k: is_moment(k) or k in (DATE, STRING))

WHOLES = _any_of("a whole number", _whole, INT, *INTEGERS)
NUMBER = _any_of("a number", is_number, DOUBLE, *NUMBERS)
#: A number whose sign may change: there Spark rounds decimals to 34 digits, we do not, so longer ones are not compared.
SIGNED = replace(NUMBER, samples=NUMBERS[:-1])
#: A number that is exact: whole or a decimal.
EXACT_NUMBER = _any_of("a number", lambda k: is_number(k) and not is_fraction(k), BIGINT, *INTEGERS, *DECIMALS)
FRACTION = _any_of("a fraction", is_fraction, DOUBLE, FLOAT, DOUBLE)
DECIMAL = _any_of("a decimal", lambda k: bool(pa.types.is_decimal(k)), pa.decimal128(10, 0), *DECIMALS)
ANY = _any_of("a value", lambda _: True, NULL, *ATOMS, BINARY, pa.list_(INT))
ARRAY = _any_of("an array", is_array, pa.list_(INT), pa.list_(INT), pa.list_(STRING), pa.list_(DOUBLE))
MAP = _any_of("a map", lambda k: bool(pa.types.is_map(k)), pa.map_(STRING, INT), pa.map_(STRING, INT))
STRUCT = _any_of("a struct", lambda k: bool(pa.types.is_struct(k)), NULL, pa.struct([("a", INT), ("b", STRING)]))

#: Arguments that are converted to their common type.
ALIKE = ArgumentKind("a value", lambda given: given, (*ATOMS, BINARY), alike=True)
#: Arguments that can be compared.
COMPARABLE = replace(ALIKE, kept=True)
#: Arguments that have a common type without parsing text.
NOT_TEXT = replace(
    ALIKE,
    fit=lambda given: given if given != STRING else None,
    samples=tuple(kind for kind in ALIKE.samples if kind != STRING),
)
NUMBERS_ALIKE = ArgumentKind(
    "a number", lambda given: given if is_number(given) or given == NULL else None, NUMBERS, alike=True
)
FRACTIONS_ALIKE = ArgumentKind(
    "a fraction",
    lambda given: given if is_fraction(given) else DOUBLE if is_number(given) or given == NULL else None,
    (FLOAT, DOUBLE),
    alike=True,
)
#: A format, a unit or a pattern that must be known before any row.
CONSTANT = ArgumentKind("a text in quotes", lambda given: STRING if given == STRING else None, (STRING,), constant=True)
CONSTANT_WHOLE = ArgumentKind(
    "a whole number that is written out", lambda given: INT if given in (INT, NULL) else None, (INT,), constant=True
)
#: A unit of time, written as a bare word.
UNIT = ArgumentKind("a unit such as HOUR", lambda given: STRING if given == STRING else None, (STRING,), constant=True)
