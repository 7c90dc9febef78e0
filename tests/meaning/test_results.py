"""What is reported: at which instants, with which bounds and columns."""

from __future__ import annotations

import panewise as pw
from tests.meaning.examples import S, keyed, rows


def test_a_union_speaks_where_one_side_is_empty() -> None:
    """Instants of a periodic window used to be those at which it held something, even beside another window."""
    full, empty = keyed([0, 3], "ab"), keyed([], "")
    query = "SELECT k FROM S [ROWS 1] UNION ALL SELECT k FROM T [RANGE 1 SLIDE 2]"
    told = pw.run(query, {"S": full, "T": empty}, time="t").to_pylist()
    assert [(row["k"], row["w_end"]) for row in told] == [("a", 0), ("a", 2), ("b", 4)]


def test_a_difference_speaks_when_its_right_side_has_emptied() -> None:
    left, right = keyed([5], "a"), keyed([5], "a")
    query = "SELECT k FROM S [RANGE 10 SLIDE 5] EXCEPT ALL SELECT k FROM T [RANGE 2 SLIDE 1]"
    told = pw.run(query, {"S": left, "T": right}, time="t", until=10).to_pylist()
    assert [row["w_end"] for row in told] == [7, 8, 9, 10]


def test_bounds_between_instants_are_those_of_the_state_that_stands() -> None:
    """A cumulating window joined with a faster one used to report the period after the one its rows are from."""
    s = keyed([10, 13], "aa")
    query = "SELECT A.i, B.i AS j FROM S AS A [RANGE 1 SLIDE 1], S AS B [CUMULATE 4 STEP 4] WHERE A.k = B.k"
    assert pw.run(query, {"S": s}, time="t").to_pylist() == [{"i": 1, "j": 0, "w_start": 8, "w_end": 13}]


def test_results_above_a_difference_announce_nothing() -> None:
    query = "SELECT d.k FROM (SELECT k FROM S [RANGE 5] EXCEPT ALL SELECT k FROM S [RANGE 2]) AS d, S AS z [RANGE 50]"
    assert pw.run(query, {"S": S}, time="t").column_names == ["k", "ts", "sign"]


def test_the_columns_of_a_result_do_not_depend_on_the_data() -> None:
    assert pw.run("SELECT k FROM S [RANGE 2] WHERE v > 999", {"S": S}, time="t").column_names[-1] == "expires_at"
    empty = pw.run("SELECT COUNT(*) AS n FROM S [RANGES 6, 2 SLIDES 3, 2]", {"S": S.slice(0, 0)}, time="t")
    assert empty.column_names == ["n", "w_start", "w_end", "w_level"]


def test_sessions_announce_when_they_go() -> None:
    assert rows("SELECT ISTREAM v FROM S [SESSION 2]", None, "ts", "expires_at")[-1] == (9, 10)
