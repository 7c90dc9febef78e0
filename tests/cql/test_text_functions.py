"""Functions of text, patterns and formats answer in one process what Spark answers; the values are Spark's."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

import panewise as pw
from panewise.core.errors import BindProblem

ONE = pa.table({"t": [1], "s": ["Hello"]})


def value(expression: str) -> Any:
    query = f"SELECT {expression} AS r, COUNT(*) AS n FROM S [RANGE 1 SLIDE 1] GROUP BY {expression}"
    (row,) = pw.run(query, {"S": ONE}, time="t").to_pylist()
    return row["r"]


@pytest.mark.parametrize(
    ("expression", "wanted"),
    [
        ("SUBSTRING(s, 0, 2)", "He"),
        ("SUBSTRING(s, -3, 2)", "ll"),
        ("LEFT(s, -1)", ""),
        ("RIGHT(s, 2)", "lo"),
        ("REGEXP_REPLACE('ab', '([a-z])', '<$1>')", "<a><b>"),
        ("REGEXP_EXTRACT('id-42', '(\\\\d+)', 1)", "42"),
        ("FORMAT_STRING('%d-%s', 1, s)", "1-Hello"),
        ("PRINTF('%s', CAST(NULL AS STRING))", "null"),
        ("FORMAT_STRING('%.2f', 0.125D)", "0.13"),
        ("FORMAT_NUMBER(0.125D, 2)", "0.12"),
        ("UPPER('straße')", "STRASSE"),
        ("INITCAP('hello wORLD')", "Hello World"),
        ("'it''s'", "it's"),
        ("SPLIT('a,b,,', ',')", ["a", "b", "", ""]),
        ("MD5(s)", "8b1a9953c4611296a827abf8c47804d7"),
    ],
)
def test_text_is_as_on_spark(expression: str, wanted: Any) -> None:
    assert value(expression) == wanted


@pytest.mark.parametrize(
    ("expression", "reason"),
    [
        ("HASH(s)", "there is no function HASH.*use MD5"),
        ("TO_CHAR(1, '9')", "there is no function TO_CHAR"),
        ("REGEXP_REPLACE(s, '(?=l)', 'x')", "not every host knows"),
        ("REGEXP_REPLACE(s, 'x*', '-')", "matches no text at all"),
        ("REGEXP_EXTRACT(s, 'l+', 1)", "has no group 1"),
        ("REGEXP_REPLACE(s, s, 'x')", "needs a text in quotes"),
        ("FORMAT_STRING('%d', s)", "%d does not take STRING"),
        ("FORMAT_STRING('%q', s)", "is no format"),
        ("s LIKE 'a\\\\b'", "stands before a letter"),
    ],
)
def test_what_hosts_would_tell_differently_is_refused(expression: str, reason: str) -> None:
    with pytest.raises(BindProblem, match=reason):
        value(expression)


def test_a_pattern_that_java_reads_otherwise_for_a_text_fails_for_that_text() -> None:
    texts = pa.table({"t": [1], "s": ["ends\n"]})
    with pytest.raises(pw.PanewiseError, match="ends with a line break"):
        pw.run("SELECT REGEXP_EXTRACT(s, '(.)$', 1) AS r FROM S [RANGE 1 SLIDE 1]", {"S": texts}, time="t")
