"""Late items: at which instants they come in, which revisions admit them, and that none is lost uncounted."""

from __future__ import annotations

import pyarrow as pa

import panewise as pw
from tests.meaning.examples import keyed, late, rows


def test_without_a_slide_a_late_item_comes_in_at_its_first_open_instant() -> None:
    streams = {"A": late(3, t=[5, 10, 2], v=[1, 2, 3])}
    stepped = rows("SELECT ISTREAM v FROM A [RANGE 6 SLIDE 1]", streams, "v", "ts")
    assert rows("SELECT ISTREAM v FROM A [RANGE 6]", streams, "v", "ts") == stepped == [(1, 5), (3, 7), (2, 10)]


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


def test_a_revision_admits_no_row_beyond_the_patience() -> None:
    """The row of tick 1 comes when the watermark is at 20: no revision within 3 may hold it."""
    s = keyed([4, 2, 20, 1], "abaa")
    query = "SELECT i FROM (SELECT i, t FROM S WHERE k = 'a') AS P [RANGE 3 SLIDE 2] LATE REVISE 3"
    told = pw.execute(query, {"S": pw.Stream(s, "t", delay=0)}).table.to_pylist()
    assert 3 not in [row["i"] for row in told]


def test_revisions_of_a_join_count_each_stream_by_itself() -> None:
    s, t = keyed([2, 4, 1, 2], "aaaa"), keyed([4, 2, 20, 1], "aaaa")
    query = "SELECT A.i, B.i AS j FROM S AS A [RANGE 3 SLIDE 2], T AS B [RANGE 3 SLIDE 2] WHERE A.k = B.k LATE REVISE 3"
    told = pw.execute(query, {"S": pw.Stream(s, "t", delay=0), "T": pw.Stream(t, "t", delay=0)}).table.to_pylist()
    assert 3 not in [row["j"] for row in told if row["w_end"] == 2]


def test_a_late_item_that_a_lagged_window_still_waits_for_makes_nobody_speak() -> None:
    """It comes in at its own instant; that it has arrived changes nothing yet."""
    rows = pa.table({"t": [7, 15, 12], "k": ["a", "b", "b"]})
    query = "SELECT RSTREAM DISTINCT k FROM S [RANGE 4 LAG 3]"
    for run in (pw.run, pw.reference.run):
        found = run(query, {"S": pw.Stream(rows, time="t", delay=2)})
        assert found.column("ts").to_pylist() == [10, 15, 18, 19], run


def test_a_landmark_goes_on_to_the_instant_that_sees_a_late_item() -> None:
    """Time had come to the item's own, which is no instant of the window, and nothing was said of it."""
    rows = pa.table({"t": [14, 19, 13], "k": ["a", "b", "c"]})
    query = "SELECT k, COUNT(*) AS n FROM S [FROM 3 UNTIL 14 SLIDE 3] GROUP BY k"
    for run in (pw.run, pw.reference.run):
        found = run(query, {"S": pw.Stream(rows, time="t", delay=5)}, boundary="[)")
        assert found.to_pylist() == [{"k": "c", "n": 1, "w_start": 3, "w_end": 14}], run
