"""What windows hold, and when they are refreshed: each as the smallest query that shows it."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from tests.meaning.examples import rows

TWO = {"A": pa.table({"t": [1, 3], "k": ["a", "b"]}), "B": pa.table({"t": [3], "k": ["a"]})}


def test_a_varying_extent_may_be_longer_than_many_slides() -> None:
    assert rows("SELECT COUNT(*) AS n FROM S [RANGE (40) SLIDE 20]") == [(5, -20, 20), (5, 0, 40)]


def test_a_varying_extent_may_see_an_item_again() -> None:
    extent = "CASE WHEN now % 24 < 8 THEN 20 ELSE 2 END"
    assert rows(f"SELECT COUNT(*) AS n FROM S [RANGE ({extent}) SLIDE 2]", None, "n", "w_end")[-2:] == [
        (1, 24),
        (1, 26),
    ]


def test_a_window_over_distinct_rows_sees_each_once() -> None:
    query = "SELECT COUNT(*) AS n FROM (SELECT DISTINCT k FROM S) AS d [RANGE 10 SLIDE 10]"
    assert rows(query, None, "n") == [(2,)]


@pytest.mark.parametrize(
    ("query", "answer"),
    [
        ("SELECT k FROM A [SESSION 2] EXCEPT ALL SELECT k FROM B [SESSION 2]", [("b", None, 5)]),
        ("SELECT A.k FROM A [SESSION 2], B [SESSION 2] WHERE A.k = B.k", [("a", None, 5)]),
        ("SELECT A.k FROM A [SESSION 2], B [PARTITION BY k ROWS 1]", [("a", None, 5), ("b", None, 5)]),
        ("SELECT COUNT(*) AS n FROM A [SESSION 2], B [RANGE 8 SLIDE 5]", [(2, -3, 5)]),
    ],
)
def test_sessions_beside_other_windows_do_not_narrow_them(query: str, answer: list[tuple[Any, ...]]) -> None:
    assert rows(query, TWO) == answer


def test_a_refreshed_landmark_tells_what_others_bring_later() -> None:
    streams = {"S": pa.table({"t": [1], "v": [10]}), "P": pa.table({"t": [2, 9], "p": [1, 2]})}
    query = "SELECT S.v, P.p FROM S [UNBOUNDED SLIDE 4], P [ROWS 1]"
    assert rows(query, streams, "p", "w_end") == [(1, 4), (1, 8), (2, 12)]


def test_a_landmark_refreshes_from_its_own_start() -> None:
    assert rows("SELECT COUNT(*) AS n FROM S [UNBOUNDED START AT 3 SLIDE 4]") == [(2, 3, 7)]


def test_a_time_of_day_is_anchored_by_derived_streams_too() -> None:
    hours = pa.array([h * 3_600_000_000 for h in (24 * 365 + 6, 24 * 365 + 8)], pa.timestamp("us", "UTC"))
    streams = {"S": pa.table({"t": hours, "v": [1, 2]})}
    query = "SELECT ISTREAM v FROM (SELECT ISTREAM v FROM S [NOW]) AS d [UNBOUNDED START AT '07:00:00']"
    assert rows(query, streams, "v") == [(2,)]


def test_ties_across_partitions_are_ordered_by_arrival() -> None:
    streams = {"S": pa.table({"t": [0, 0, 0], "k": ["a", "b", "a"]})}
    assert rows("SELECT LAST(k) AS newest FROM S [PARTITION BY k ROWS 1]", streams, "newest") == [("a",)]
