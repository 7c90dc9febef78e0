"""Cases for every scalar on the list, made from the list itself: each entry over each type it takes, at the edges."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from itertools import product
from typing import Any

import pyarrow as pa

from panewise.core.schema import is_number, type_name
from panewise.cql.coercion import common_type
from panewise.cql.data_types import (
    BINARY,
    BOOLEAN,
    DATE,
    DAYS,
    DOUBLE,
    FLOAT,
    INTEGERS,
    MONTHS,
    SPAN,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    is_array,
    is_moment,
)
from panewise.cql.functions import FUNCTIONS, ScalarFunction
from panewise.cql.functions.casts import is_castable
from panewise.cql.functions.kinds import ATOMS

#: How many rows of a case are tried, where its arguments allow for more.
ROWS = 40


@dataclass(frozen=True)
class Case:
    """An expression over columns `a0`, `a1`, their types and rows; `ulps` is how far results may be apart.

    A case that is `stricter` may fail where Spark gives a value.
    """

    name: str
    text: str
    types: tuple[pa.DataType, ...]
    rows: tuple[tuple[Any, ...], ...]
    ulps: int = 0
    stricter: bool = False


def cases(seed: int, combinations: int) -> Iterator[Case]:
    """Cases for every entry, with at most so many combinations of types for each, and for CAST of each type to each."""
    entries = dict.fromkeys(entry for entries in FUNCTIONS.values() for entry in entries)
    for entry in entries:
        # Of its own for each entry, so that a new one changes no other's cases.
        rng = random.Random(f"{seed} {entry.names} {[kind.name for kind in entry.takes]}")
        yield from _of(entry, rng, combinations)
    for given, to in product(ATOMS, ATOMS):
        if is_castable(given, to):
            yield from _cast(given, to)


def _of(entry: ScalarFunction, rng: random.Random, combinations: int) -> Iterator[Case]:
    for shape in _shapes(entry):
        open_places = [n for n, text in enumerate(shape) if text == "?"]
        kinds = entry.kinds(len(shape))
        choices = [kinds[n].samples for n in open_places]
        alike = [kinds[n].alike for n in open_places]
        for types in _combinations(choices, alike, rng, combinations):
            # No column is an interval of days or months, so these are written out.
            spelt = [rng.choice(INTERVALS[kind]) if kind in INTERVALS else "?" for kind in types]
            columns = [kind for kind in types if kind not in INTERVALS]
            names, given = iter(f"a{n}" for n in range(len(columns))), iter(spelt)
            texts = [next(given) if text == "?" else text for text in shape]
            text = entry.call_text([next(names) if text == "?" else text for text in texts])
            if entry.gives == MONTHS:
                text = f"(DATE'2024-01-31' + {text})"  # Spark does not hand over months
            yield Case(entry.names[0], text, tuple(columns), _rows(columns, rng), entry.ulps, entry.stricter)


def _shapes(entry: ScalarFunction) -> list[tuple[str, ...]]:
    """Lists of arguments: texts as they are, and ? for one that is made up."""
    counts = {entry.least, len(entry.takes), len(entry.takes) + entry.rest}
    plain = not any(kind.constant for kind in entry.takes)
    made = [("?",) * count for count in sorted(counts)] if entry.made_up and plain else []
    if entry.form is not None:
        made = made[:1]
    return [*made, *entry.edges]


def _combinations(
    choices: Sequence[Sequence[pa.DataType]], alike: Sequence[bool], rng: random.Random, most: int
) -> list[tuple[pa.DataType, ...]]:
    """Combinations of types: every type of every argument at least once, others at random."""
    everything = [c for c in product(*choices) if _meet([t for t, same in zip(c, alike, strict=True) if same])]
    if len(everything) <= most:
        return everything
    rng.shuffle(everything)
    found: list[tuple[pa.DataType, ...]] = []
    for place, options in enumerate(choices):
        for kind in options:
            if not any(c[place] == kind for c in found):
                found += [c for c in everything if c[place] == kind][:1]
    return found + [c for c in everything if c not in found][: max(0, most - len(found))]


def _meet(types: Sequence[pa.DataType]) -> bool:
    return common_type(types) is not None


def _rows(types: Sequence[pa.DataType], rng: random.Random) -> tuple[tuple[Any, ...], ...]:
    values = [edges(kind) for kind in types]
    if math.prod(map(len, values)) <= ROWS:
        return tuple(product(*values))
    least = max(map(len, values))
    columns = [[*v, *(rng.choice(v) for _ in range(max(ROWS, least) - len(v)))] for v in values]
    for column in columns[1:]:
        rng.shuffle(column)
    return tuple(zip(*columns, strict=True))


def _cast(given: pa.DataType, to: pa.DataType) -> Iterator[Case]:
    for name in ("CAST", "TRY_CAST"):
        values = [*edges(given), *(SPELT.get(to, _FRACTIONS.split("|")) if given == STRING and to != STRING else ())]
        if is_number(given) and is_moment(to):
            # Spark lets seconds beyond its calendar wrap around.
            values = [v for v in values if v is None or not abs(v) > 1e11]
        text = f"{name}(a0 AS {_sql_type(to)})"
        yield Case(f"{name} AS {type_name(to).partition('(')[0]}", text, (given,), tuple((v,) for v in values))


def _sql_type(kind: pa.DataType) -> str:
    return "TIMESTAMP_NTZ" if kind == TIMESTAMP_NTZ else type_name(kind)


# ---- values ------------------------------------------------------------------------------------------------------

_MOMENTS = [
    datetime(1970, 1, 1, tzinfo=UTC),
    datetime(2024, 2, 29, 12, 34, 56, 789012, tzinfo=UTC),
    datetime(1969, 12, 31, 23, 59, 59, 999999, tzinfo=UTC),
    datetime(1, 1, 1, tzinfo=UTC),
    datetime(9999, 12, 31, 23, 59, 59, 999999, tzinfo=UTC),
    datetime(2023, 12, 31, 23, 0, tzinfo=UTC),
    datetime(2000, 1, 1, 0, 0, 0, 500000, tzinfo=UTC),
    datetime(1582, 10, 10, 3, 4, 5, tzinfo=UTC),
]
_TEXTS = [
    "",
    " ",
    "Hello",
    "hello World 12",
    "it's",
    'a"b',
    "a\\b",
    "%_%",
    "äöü ß",
    "日本語",
    "😀x",
    "a,b,,c",
    "  padded  ",
    "ÀÉ",
    "12",
    "-5",
    "x" * 300,
    "line\nbreak\ttab",
    "$1 \\1 (a+b)* [x]",
]
_WHOLES = "12| 12 |+5|-128|12.5|1e3|99999999999999999999|0x1F|1_000||127|128|.|1L|1 2|--1"
_FRACTIONS = "9.5e18|1.5| 1.5 |1e3|-1E-3|NaN|nan|Infinity|-inf|+inf|1.5d|2f|.5|5.|1e400|1_0|1,5|.|1e|e5"
_TRUTHS = "true|FALSE|t|f|yes|no|y|n|1|0| true |on|truth|10"
_DAYS = (
    "2024-02-29|2023-02-29|2024-2-9|2024|2024-02|2024-02-29T12|2024-02-29 x| 2024-02-29 |02/29/2024|0001-01-01|"
    "9999-12-31|20240229|2024-02-29x|2024-13-01|2024-|24-01-01"
)
_TIMES = (
    "2024-02-29 12:34:56|2024-02-29T12:34:56.789|2024-02-29|2024-02-29 12:34|2024-02-29 1:2:3|2024|"
    "2024-02-29T12:34:56Z|2024-02-29 12:34:56+02:00|2024-02-29 12:34:56 UTC|2024-02-29 25:00:00|"
    "2024-02-29 12:34:56.1234567| 2024-02-29 00:00:00 |0001-01-01 00:00:00|2024-02-30 00:00:00|"
    "2024-02-29 12:34:60|2024-02-29T|2024-02-29 12|2024-02-29 12:34:56-0530|2024-02-29 12:34:56+5"
)
#: Texts that say a value of a type, or almost.
SPELT: dict[pa.DataType, list[str]] = {
    **{kind: _WHOLES.split("|") for kind in INTEGERS},
    **{kind: _FRACTIONS.split("|") for kind in (FLOAT, DOUBLE)},
    BOOLEAN: _TRUTHS.split("|"),
    DATE: _DAYS.split("|"),
    TIMESTAMP: _TIMES.split("|"),
    TIMESTAMP_NTZ: _TIMES.split("|"),
}


OTHERS: dict[pa.DataType, list[Any]] = {
    BOOLEAN: [None, True, False],
    STRING: [None, *_TEXTS],
    BINARY: [None, b"", b"abc", b"\x00\xff", "ä😀".encode()],
    SPAN: [None, 0, 1, -1, 86_400_000_000, 3_600_000_000, -90_061_000_001],
}
INTERVALS = {
    DAYS: [f"INTERVAL '{n}' DAY" for n in (0, 1, -1, 40)],
    MONTHS: [f"INTERVAL '{n}' MONTH" for n in (0, 1, -1, 12, 13)],
}


def edges(kind: pa.DataType) -> list[Any]:
    """Values of a type at which functions go wrong, NULL first."""
    if kind in INTEGERS:
        high = 2 ** (kind.bit_width - 1) - 1
        return [None, 0, 1, -1, 2, 3, -7, 12, 100, high, -high - 1]
    if pa.types.is_floating(kind):
        small, large = (1e-300, 1.7976931348623157e308) if kind == DOUBLE else (1e-30, 3.4028234663852886e38)
        found = [0.0, -0.0, 1.0, -1.0, 0.5, 1.5, 2.5, -2.5, 0.1, 1e7, 1.5e10, 123456.789, -0.6, 9.5e18, 1e-3, 1.5e-4]
        if kind == FLOAT:
            found.remove(1.5e10)  # some versions of Java show more digits than it takes, Spark with them
        return [None, *found, small, large, -large, math.nan, math.inf, -math.inf]
    if pa.types.is_decimal(kind):
        unit = Decimal(1).scaleb(-kind.scale)
        high = Decimal((0, (9,) * kind.precision, -kind.scale))
        return [
            None,
            Decimal(0),
            unit,
            -unit,
            Decimal("1.50"),
            Decimal("-2.50"),
            Decimal("0.70"),
            Decimal("99.95"),
            high,
            high.copy_negate(),
        ]
    if kind == DATE:
        return [None, *(m.date() for m in _MOMENTS), date(2024, 1, 31), date(2023, 2, 28), date(2020, 12, 28)]
    if kind in (TIMESTAMP, TIMESTAMP_NTZ):
        return [None, *(m if kind == TIMESTAMP else m.replace(tzinfo=None) for m in _MOMENTS)]
    if is_array(kind):
        inner = edges(kind.value_type)
        return [None, [], inner[1:2], inner[:4], inner[1:6] + inner[1:3], inner[-3:], [None]]
    if pa.types.is_map(kind):
        inner = edges(kind.item_type)
        return [None, [], [("a", inner[1])], [("a", inner[2]), ("b", None), ("", inner[3])]]
    if pa.types.is_struct(kind):
        return [None, {f.name: edges(f.type)[3] for f in kind}, {f.name: None for f in kind}]
    return OTHERS[kind]
