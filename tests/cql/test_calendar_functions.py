"""Functions of the calendar answer in one process what Spark answers, in Spark's types; the values are Spark's."""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

import panewise as pw
from panewise.core.errors import BindProblem

ONE = pa.table({"t": [1], "hour": [3]})


def value(expression: str) -> tuple[pa.DataType, Any]:
    found = pw.run(f"SELECT {expression} AS r FROM S [RANGE 1 SLIDE 1]", {"S": ONE}, time="t").column("r")
    return found.type, found[0].as_py()


@pytest.mark.parametrize(
    ("expression", "kind", "wanted"),
    [
        ("DAYOFWEEK(DATE'2024-02-29')", pa.int32(), 5),
        ("EXTRACT(DOW FROM DATE'2024-02-29')", pa.int32(), 5),
        ("WEEKDAY(DATE'2024-02-29')", pa.int32(), 3),
        ("DAYNAME(DATE'2024-02-29')", pa.string(), "Thu"),
        ("MONTHNAME(DATE'2024-02-29')", pa.string(), "Feb"),
        (
            "EXTRACT(SECOND FROM TIMESTAMP'2024-02-29 12:34:15.123456')",
            pa.decimal128(8, 6),
            Decimal("15.123456"),
        ),
        ("DATE_ADD(DATE'2024-02-28', 2)", pa.date32(), date(2024, 3, 1)),
        ("DATE_SUB(DATE'2024-03-01', 1)", pa.date32(), date(2024, 2, 29)),
        ("ADD_MONTHS(DATE'2024-01-31', 1)", pa.date32(), date(2024, 2, 29)),
        ("DATE'2024-02-28' + INTERVAL '2' DAY", pa.date32(), date(2024, 3, 1)),
        ("TIMESTAMPDIFF(HOUR, TIMESTAMP'1970-01-01 00:59:59', TIMESTAMP'2024-01-01 00:00:00')", pa.int64(), 473351),
        ("MONTHS_BETWEEN(DATE'1997-02-28', DATE'1996-10-30')", pa.float64(), 3.93548387),
        ("DATE_FORMAT(TIMESTAMP'2024-02-29 12:34:56', 'dd/MM/yyyy')", pa.string(), "29/02/2024"),
        ("TIMESTAMPDIFF(HOUR, DATE'2024-01-01', DATEADD(hour, hour, DATE'2024-01-01'))", pa.int64(), 3),
    ],
)
def test_the_calendar_is_as_on_spark(expression: str, kind: pa.DataType, wanted: Any) -> None:
    assert value(expression) == (kind, wanted)


@pytest.mark.parametrize(
    ("expression", "reason"),
    [
        ("DATE_TRUNC('fortnight', DATE'2024-01-01')", "is no unit that fits here"),
        ("DATE_FORMAT(DATE'2024-01-01', 'LLLL')", "in the pattern 'LLLL' is not supported"),
        ("FROM_UTC_TIMESTAMP(DATE'2024-01-01', 'CET')", "there is no function FROM_UTC_TIMESTAMP"),
        ("DATE_ADD(DATE'2024-01-01', CAST(1 AS BIGINT))", "does not take"),
    ],
)
def test_what_the_calendar_does_not_know_is_refused(expression: str, reason: str) -> None:
    with pytest.raises(BindProblem, match=reason):
        value(expression)
