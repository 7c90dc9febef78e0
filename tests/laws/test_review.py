"""What an independent review found wrong, each as the smallest query that shows it."""

from __future__ import annotations

import math
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import panewise as pw
from panewise.lang import bind_script
from panewise.runtime.local import HOST

S = pa.table({"t": [1, 2, 2, 4, 7], "k": list("abaab"), "v": [10, 20, 5, 40, 7]})
TWO = {"A": pa.table({"t": [1, 3], "k": ["a", "b"]}), "B": pa.table({"t": [3], "k": ["a"]})}


def late(delay: int, **columns: list[Any]) -> pw.Stream:
    return pw.Stream(pa.table(columns), time="t", delay=delay)


def rows(query: str, streams: dict[str, Any] | None = None, *columns: str) -> list[tuple[Any, ...]]:
    table = pw.run(query, streams or {"S": S}, time="t")
    return list(zip(*(table[c].to_pylist() for c in columns or table.column_names), strict=True))


def test_a_varying_extent_may_be_longer_than_many_slides() -> None:
    assert rows("SELECT COUNT(*) AS n FROM S [RANGE (40) SLIDE 20]") == [(5, -20, 20), (5, 0, 40)]


def test_a_varying_extent_may_see_an_item_again() -> None:
    extent = "CASE WHEN now % 24 < 8 THEN 20 ELSE 2 END"
    assert rows(f"SELECT COUNT(*) AS n FROM S [RANGE ({extent}) SLIDE 2]", None, "n", "w_end")[-2:] == [
        (1, 24),
        (1, 26),
    ]


def test_without_a_slide_a_late_item_comes_in_at_its_first_open_instant() -> None:
    streams = {"A": late(3, t=[5, 10, 2], v=[1, 2, 3])}
    stepped = rows("SELECT ISTREAM v FROM A [RANGE 6 SLIDE 1]", streams, "v", "ts")
    assert rows("SELECT ISTREAM v FROM A [RANGE 6]", streams, "v", "ts") == stepped == [(1, 5), (3, 7), (2, 10)]


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


def test_columns_that_differ_in_case_are_two_columns() -> None:
    streams = {"S": pa.table({"t": [1], "K": [10], "k": [3]})}
    assert rows("SELECT K, k, K - k AS d FROM S [ROWS 1]", streams, "K", "k", "d") == [(10, 3, 7)]


def test_nan_stays_equal_to_itself() -> None:
    streams = {"S": pa.table({"t": [1, 2, 3], "v": [math.nan, 1.0, 2.0]})}
    assert len(rows("SELECT SUM(v) AS s FROM S [UNBOUNDED]", streams)) == 1


def test_group_by_means_a_column_before_an_alias() -> None:
    query = "SELECT k AS v, SUM(v) AS k FROM S [RANGE 10 SLIDE 10] GROUP BY k"
    assert rows(query, None, "v", "k") == [("a", 55), ("b", 27)]


def test_group_by_ignores_parentheses() -> None:
    assert len(rows("SELECT v + 1 AS w, COUNT(*) AS n FROM S [RANGE 10 SLIDE 10] GROUP BY (v + 1)")) == 5


@pytest.mark.parametrize("call", ["MODE(v)", "EXPLODE(ARRAY(1, 2))", "COUNT_IF(v > 1)", "PERCENTILE(v, 0.5)", "RAND()"])
def test_what_is_no_function_of_a_row_is_refused(call: str) -> None:
    with pytest.raises(pw.PanewiseError):
        pw.run(f"SELECT {call} AS x FROM S [RANGE 10 SLIDE 10]", {"S": S}, time="t")


def test_a_time_of_day_is_anchored_by_derived_streams_too() -> None:
    hours = pa.array([h * 3_600_000_000 for h in (24 * 365 + 6, 24 * 365 + 8)], pa.timestamp("us", "UTC"))
    streams = {"S": pa.table({"t": hours, "v": [1, 2]})}
    query = "SELECT ISTREAM v FROM (SELECT ISTREAM v FROM S [NOW]) AS d [UNBOUNDED START AT '07:00:00']"
    assert rows(query, streams, "v") == [(2,)]


def test_a_late_row_does_not_move_the_day() -> None:
    day, hour = 86_400_000_000, 3_600_000_000
    times = pa.array([5 * day + 8 * hour, 5 * day + 9 * hour, 4 * day + 8 * hour], pa.timestamp("us", "UTC"))
    stream = pw.Stream(pa.table({"t": times}), time="t")
    query = "SELECT COUNT(*) AS n FROM S [RANGE 1 HOUR SLIDE 7 HOURS START AT '08:00:00']"
    assert pw.run(query, {"S": stream})["n"].to_pylist() == [1]


def test_rows_lost_below_a_derived_stream_are_accounted_for() -> None:
    query = "SELECT v FROM (SELECT ISTREAM v FROM S [RANGE 2]) AS d [RANGE 3]"
    account = pw.reference.execute(query, {"S": late(0, t=[1, 10, 2], v=[1, 2, 3])}).accounting["S"]
    assert (account.used, account.late) == (2, 1)


def test_renamed_partitions_are_accounted_for_like_named_ones() -> None:
    streams = {"A": late(0, t=[1, 10, 2, 3], k=list("abaa"), v=[1, 2, 3, 4])}
    renamed = "SELECT v FROM (SELECT k AS g, v FROM A) AS u [PARTITION BY g ROWS 1]"
    accounts = [
        pw.reference.execute(query, streams).accounting["A"]
        for query in (renamed, "SELECT v FROM A [PARTITION BY k ROWS 1]")
    ]
    assert accounts[0] == accounts[1]
    assert accounts[0].late == 1


def test_results_above_a_difference_announce_nothing() -> None:
    query = "SELECT d.k FROM (SELECT k FROM S [RANGE 5] EXCEPT ALL SELECT k FROM S [RANGE 2]) AS d, S AS z [RANGE 50]"
    assert pw.run(query, {"S": S}, time="t").column_names == ["k", "ts", "sign"]


def test_the_columns_of_a_result_do_not_depend_on_the_data() -> None:
    assert pw.run("SELECT k FROM S [RANGE 2] WHERE v > 999", {"S": S}, time="t").column_names[-1] == "expires_at"
    empty = pw.run("SELECT COUNT(*) AS n FROM S [RANGES 6, 2 SLIDES 3, 2]", {"S": S.slice(0, 0)}, time="t")
    assert empty.column_names == ["n", "w_start", "w_end", "w_level"]


def test_sessions_announce_when_they_go() -> None:
    assert rows("SELECT ISTREAM v FROM S [SESSION 2]", None, "ts", "expires_at")[-1] == (9, 10)


def test_intervals_and_nested_lists_pass_through() -> None:
    streams = {"S": pa.table({"t": [1], "x": [[["a", "b"]]]})}
    assert rows("SELECT x, INTERVAL 1 DAY AS d FROM S [ROWS 1]", streams, "x", "d") == [
        ([["a", "b"]], timedelta(days=1))
    ]


def test_ties_across_partitions_are_ordered_by_arrival() -> None:
    streams = {"S": pa.table({"t": [0, 0, 0], "k": ["a", "b", "a"]})}
    assert rows("SELECT LAST(k) AS newest FROM S [PARTITION BY k ROWS 1]", streams, "newest") == [("a",)]


def test_a_stream_may_have_a_dot_in_its_name() -> None:
    assert rows("SELECT `a.b`.k FROM `a.b` [ROWS 1]", {"a.b": S.slice(0, 1)}, "k") == [("a",)]


def test_a_suffix_in_a_view_is_not_dropped_silently() -> None:
    script = """CREATE STREAM S (t BIGINT) TIME t;
      CREATE VIEW tally AS SELECT COUNT(*) AS n FROM S [RANGE 1 SLIDE 1] EMIT EMPTY;
      SELECT n FROM tally"""
    with pytest.raises(pw.PanewiseError, match="EMIT EMPTY cannot stand in a view"):
        bind_script(script, HOST.describe)


def test_types_do_not_depend_on_the_zone_of_the_machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("TZ", "America/New_York")
    moment = pa.table({"t": pa.array([0], pa.timestamp("us", "UTC"))})
    query = "SELECT t FROM S [ROWS 1] UNION ALL SELECT t + INTERVAL 1 HOUR FROM S [ROWS 1]"
    assert pw.run(query, {"S": moment}, time="t").num_rows == 2
