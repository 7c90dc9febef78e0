"""Which stream and which column a name means."""

from __future__ import annotations

import pyarrow as pa

from tests.meaning.examples import S, rows


def test_columns_that_differ_in_case_are_two_columns() -> None:
    streams = {"S": pa.table({"t": [1], "K": [10], "k": [3]})}
    assert rows("SELECT K, k, K - k AS d FROM S [ROWS 1]", streams, "K", "k", "d") == [(10, 3, 7)]


def test_a_stream_may_have_a_dot_in_its_name() -> None:
    assert rows("SELECT `a.b`.k FROM `a.b` [ROWS 1]", {"a.b": S.slice(0, 1)}, "k") == [("a",)]


def test_group_by_means_a_column_before_an_alias() -> None:
    query = "SELECT k AS v, SUM(v) AS k FROM S [RANGE 10 SLIDE 10] GROUP BY k"
    assert rows(query, None, "v", "k") == [("a", 55), ("b", 27)]


def test_group_by_ignores_parentheses() -> None:
    assert len(rows("SELECT v + 1 AS w, COUNT(*) AS n FROM S [RANGE 10 SLIDE 10] GROUP BY (v + 1)")) == 5
