"""Scalars on the embedded host: values and types as Spark gives them, refusals and errors that name the expression.

The values were computed by Spark 4 in ANSI mode; `tests/spark/test_scalars.py` asks it again, and for much more.
"""

from __future__ import annotations

import math
import re
from datetime import date
from decimal import Context, Decimal
from typing import Any

import pyarrow as pa
import pytest

import panewise as pw
from panewise.core.scalar import Scalar
from panewise.cql import scalar_type
from panewise.cql.dialect import canonical, parse_scalar, with_scalar
from panewise.cql.functions import FUNCTIONS, INSTEAD
from panewise.runtime.local import HOST
from tests.meaning.examples import S

ROWS = pa.table(
    {
        "t": [1, 2, 3],
        "i": pa.array([1, 0, 2147483647], pa.int32()),
        "d": [0.6, 1.5, -0.6],
        "m": pa.array([Decimal("1.500"), Decimal("99.995"), Decimal("-0.700")], pa.decimal128(6, 3)),
        "s": ["12", "x", None],
        "st": [{"b": 1, "c": {"e": "u"}}, {"b": 2, "c": None}, None],
        "S": [{"a": {"b": 7}}, {"a": {"b": 8}}, None],
    }
)


#: The largest decimal of its type: the sum of two has more digits than there is room for, and is rounded.
WIDEST = "CAST('99999999999999999999.999999999999999999' AS DECIMAL(38, 18))"
DIGITS = Context(prec=38)


def value(text: str) -> tuple[Any, pa.DataType]:
    """A scalar without columns, and its type."""
    kind = scalar_type(text, {})
    (found,) = HOST.evaluate([Scalar(text, (), kind)], pa.table({"row": [0]}))
    return found[0].as_py(), kind


def column(text: str) -> list[Any]:
    """What a query over the rows makes of an expression, row by row."""
    answers = pw.run(
        f"SELECT t, {text} AS r, COUNT(*) AS n FROM S [RANGE 4 SLIDE 4] GROUP BY t, {text}", {"S": ROWS}, time="t"
    )
    return [row["r"] for row in sorted(answers.to_pylist(), key=lambda row: row["t"])]


def test_a_cast_to_a_whole_number_cuts_digits_off() -> None:
    assert column("CAST(d AS INT)") == [0, 1, 0]
    assert column("CAST(m AS INT)") == [1, 99, 0]
    assert column("INT(d)") == [0, 1, 0]


@pytest.mark.parametrize(
    ("text", "expected", "kind"),
    [
        ("CAST(1.5e10 AS STRING)", "1.5E10", pa.string()),
        ("CAST(0.0001e0 AS STRING)", "1.0E-4", pa.string()),
        ("CAST(CAST(0.1 AS FLOAT) AS STRING)", "0.1", pa.string()),
        ("CAST(CAST('inf' AS DOUBLE) AS STRING)", "Infinity", pa.string()),
        ("CAST(CAST(0.5 AS DECIMAL(2, 2)) AS STRING)", "0.50", pa.string()),
        ("TRY_CAST('12.5' AS INT)", None, pa.int32()),
        ("TRY_CAST(' 12 ' AS INT)", 12, pa.int32()),
        ("TRY_CAST('yes' AS BOOLEAN)", True, pa.bool_()),
        ("CAST(true AS INT)", 1, pa.int32()),
        ("LN(-3)", None, pa.float64()),
        ("LOG10(0)", None, pa.float64()),
        ("ISNAN(NULL)", False, pa.bool_()),
        ("1.0/3", Decimal("0.333333"), pa.decimal128(7, 6)),
        ("1/4", 0.25, pa.float64()),
        ("2 * 1.50", Decimal("3.00"), pa.decimal128(5, 2)),
        (f"{WIDEST} + {WIDEST}", Decimal("2E20").quantize(Decimal("1E-17"), context=DIGITS), pa.decimal128(38, 17)),
        (f"-{WIDEST} - {WIDEST}", Decimal("-2E20").quantize(Decimal("1E-17"), context=DIGITS), pa.decimal128(38, 17)),
        ("7 DIV 2", 3, pa.int64()),
        ("-7 % 3", -1, pa.int32()),
        ("PMOD(-7, 3)", 2, pa.int32()),
        ("'it''s'", "it's", pa.string()),
        ("ROUND(2.675e0, 2)", 2.68, pa.float64()),
        ("ROUND(2.5)", Decimal("3"), pa.decimal128(2, 0)),
        ("BROUND(2.5e0)", 2.0, pa.float64()),
        ("CEIL(1.2)", Decimal("2"), pa.decimal128(2, 0)),
        ("FLOOR(-1.2e0)", -2, pa.int64()),
        ("TRY_DIVIDE(1, 0)", None, pa.float64()),
        ("TRY_ADD(2147483647, 1)", None, pa.int32()),
        ("TRY_MOD(5, 0)", None, pa.int32()),
        ("GREATEST(1, NULL, 3L)", 3, pa.int64()),
        ("NULLIF(0, 0)", None, pa.int32()),
        ("NVL2(NULL, 1, 2)", 2, pa.int32()),
        ("WIDTH_BUCKET(5.3, 0.2, 10.6, 5)", 3, pa.int64()),
        ("SHIFTLEFT(1, 33)", 2, pa.int32()),
        ("BIT_COUNT(-1)", 64, pa.int32()),
        ("HEX(-1)", "FFFFFFFFFFFFFFFF", pa.string()),
        ("1 <=> NULL", False, pa.bool_()),
        ("- -5", 5, pa.int32()),
        ("-(-5)", 5, pa.int32()),
        ("1 - -5", 6, pa.int32()),
        ("DATE '2024-01-31' + (-(INTERVAL '-1' MONTH))", date(2024, 2, 29), pa.date32()),
        ("NULL AND false", False, pa.bool_()),
        ("DATE '2024-02-29' BETWEEN '2024-02-01' AND '2024-03-01'", True, pa.bool_()),
    ],
)
def test_a_scalar_has_the_value_and_the_type_that_spark_gives_it(text: str, expected: Any, kind: pa.DataType) -> None:
    assert value(text) == (expected, kind)


@pytest.mark.parametrize(
    "texts",
    [
        ("`a` + 1", "`a` + 27", "`a` + 2.5"),
        ("-1 * `a`", "-30 * `a`"),
        ("CAST(`a` AS DECIMAL(9, 2))", "CAST(`a` AS DECIMAL(12, 1))"),
        ("CONCAT('1', CAST(`a` AS STRING), '2')", "CONCAT('3', CAST(`a` AS STRING), '2')"),
        ("`a1` + 1", "`a1` + 2"),
        ("CASE WHEN `a` > 1 THEN 2 ELSE 3 END", "CASE WHEN `a` > 4 THEN 5 ELSE 6 END"),
        ("'it''s 1' = 'a\\\\1'", "'it''s 2' = 'a\\\\2'"),
    ],
)
def test_texts_that_differ_in_numbers_have_the_trees_that_they_have_alone(texts: tuple[str, ...]) -> None:
    for text in (*texts, *texts):
        assert with_scalar(text, canonical) == canonical(parse_scalar(text))


def test_the_root_of_a_negative_number_is_not_a_number() -> None:
    assert math.isnan(value("SQRT(-1)")[0])


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("10 / i", "10 / S.i divides by zero"),
        ("5 % i", "5 % S.i divides by zero"),
        ("5 DIV i", "5 DIV S.i divides by zero"),
        ("i + 1", r"S.i \+ 1: 2147483647 \+ 1 does not fit into INT"),
        ("CAST(d * 1e300 AS INT)", r"CAST\(S.d \* 1e300 AS INT\): 6e\+299 does not fit into INT"),
        ("CAST(s AS INT)", "a value of S.s is no INT; filter such values out, or use TRY_CAST"),
        ("CAST(m AS DECIMAL(3, 2))", r"CAST\(S.m AS DECIMAL\(3, 2\)\): .*99.995.* does not fit"),
    ],
)
def test_a_value_that_there_is_not_is_an_error_that_names_the_expression(text: str, reason: str) -> None:
    with pytest.raises(pw.PanewiseError, match=reason):
        column(text)


def test_of_several_expressions_the_one_that_fails_is_named() -> None:
    with pytest.raises(pw.PanewiseError, match=r"S.i \+ 1: 2147483647"):
        pw.run("SELECT d * 2 AS a, i + 1 AS b, s || 'x' AS c FROM S [NOW]", {"S": ROWS}, time="t")


def test_a_condition_guards_what_stands_after_it() -> None:
    assert column("i <> 0 AND 10 / i > 5") == [True, False, False]
    assert column("CASE WHEN i <> 0 THEN 10 / i END")[:2] == [10.0, None]


@pytest.mark.parametrize(
    ("text", "name", "instead"),
    [
        ("UNNEST(STRUCT(i, d))", "UNNEST", "write one for each column"),
        ("COLUMNS('.*')", "COLUMNS", "write one for each column"),
        ("EXPLODE(ARRAY(1, 2))", "EXPLODE", "unfold arrays before"),
        ("LAG(i)", "LAG", "brackets after a stream"),
        ("STRFTIME(t, '%Y')", "STRFTIME", "use DATE_FORMAT"),
        ("SAFE_CAST(s)", "SAFE_CAST", "use TRY_CAST"),
        ("READ_CSV('x')", "READ_CSV", "docs/functions.md lists"),
        ("FLOR(d)", "FLOR", "did you mean 'FLOOR'"),
    ],
)
def test_what_is_not_on_the_list_is_refused_by_name(text: str, name: str, instead: str) -> None:
    with pytest.raises(pw.PanewiseError, match=f"there is no function {name}; .*{instead}"):
        column(text)


@pytest.mark.parametrize("text", ["i = 's'", "i + s", "NULLIF(i, s)", "i DIV d", "GREATEST(i, s)", "NOT i"])
def test_types_that_do_not_meet_are_refused(text: str) -> None:
    with pytest.raises(pw.PanewiseError):
        column(text)


def test_fields_of_structs_are_values() -> None:
    assert column("st.b") == [1, 2, None]
    assert column("S.st.b") == [1, 2, None]
    assert column("st.c.e") == ["u", None, None]
    assert column("S.st.c.e") == ["u", None, None]
    with pytest.raises(pw.PanewiseError, match="has no field 'x'; use one of b, c"):
        column("st.x")
    with pytest.raises(pw.PanewiseError, match="is INT and has no field 'b'"):
        column("i.b")


def test_a_column_that_is_called_as_its_stream_has_fields_too() -> None:
    assert column("S.S.a.b") == [7, 8, None]


def test_fields_of_structs_are_aggregated_and_filtered() -> None:
    (row,) = pw.run("SELECT SUM(st.b) AS n FROM S [RANGE 4 SLIDE 4] WHERE st.b > 1", {"S": ROWS}, time="t").to_pylist()
    assert row["n"] == 2


def test_what_is_said_to_be_written_instead_is_on_the_list() -> None:
    words = {word for fix in INSTEAD.values() for word in re.findall(r"\b[A-Z][A-Z_]{3,}\b", fix)}
    known = {*FUNCTIONS, "TRY_CAST", "CAST", "CASE", "FROM", "ROWS", "JSON", "NULL"}
    assert words - known == set()


@pytest.mark.parametrize("call", ["MODE(v)", "EXPLODE(ARRAY(1, 2))", "COUNT_IF(v > 1)", "PERCENTILE(v, 0.5)", "RAND()"])
def test_what_is_no_function_of_a_row_is_refused(call: str) -> None:
    with pytest.raises(pw.PanewiseError):
        pw.run(f"SELECT {call} AS x FROM S [RANGE 10 SLIDE 10]", {"S": S}, time="t")
