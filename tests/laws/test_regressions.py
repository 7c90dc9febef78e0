"""What the laws have found, one plain example each."""

from __future__ import annotations

import math

import pyarrow as pa
import pytest

import panewise as pw
from panewise.errors import SyntaxProblem
from panewise.lang import parse_query, render
from tests.laws.test_engine import same


def stream(times: list[int], keys: str) -> pa.Table:
    columns = {"i": (range(len(times)), pa.int64()), "t": (times, pa.int64()), "k": (keys, pa.string())}
    return pa.table({name: pa.array(list(values), kind) for name, (values, kind) in columns.items()})


def test_a_union_speaks_where_one_side_is_empty() -> None:
    """Instants of a periodic window used to be those at which it held something, even beside another window."""
    full, empty = stream([0, 3], "ab"), stream([], "")
    query = "SELECT k FROM S [ROWS 1] UNION ALL SELECT k FROM T [RANGE 1 SLIDE 2]"
    told = pw.run(query, {"S": full, "T": empty}, time="t").to_pylist()
    assert [(row["k"], row["w_end"]) for row in told] == [("a", 0), ("a", 2), ("b", 4)]


def test_a_difference_speaks_when_its_right_side_has_emptied() -> None:
    left, right = stream([5], "a"), stream([5], "a")
    query = "SELECT k FROM S [RANGE 10 SLIDE 5] EXCEPT ALL SELECT k FROM T [RANGE 2 SLIDE 1]"
    told = pw.run(query, {"S": left, "T": right}, time="t", until=10).to_pylist()
    assert [row["w_end"] for row in told] == [7, 8, 9, 10]


def test_bounds_between_instants_are_those_of_the_state_that_stands() -> None:
    """A cumulating window joined with a faster one used to report the period after the one its rows are from."""
    s = stream([10, 13], "aa")
    query = "SELECT A.i, B.i AS j FROM S AS A [RANGE 1 SLIDE 1], S AS B [CUMULATE 4 STEP 4] WHERE A.k = B.k"
    assert pw.run(query, {"S": s}, time="t").to_pylist() == [{"i": 1, "j": 0, "w_start": 8, "w_end": 13}]


def test_a_revision_admits_no_row_beyond_the_patience() -> None:
    """The row of tick 1 comes when the watermark is at 20: no revision within 3 may hold it."""
    s = stream([4, 2, 20, 1], "abaa")
    query = "SELECT i FROM (SELECT i, t FROM S WHERE k = 'a') AS P [RANGE 3 SLIDE 2] LATE REVISE 3"
    told = pw.execute(query, {"S": pw.Stream(s, "t", delay=0)}).table.to_pylist()
    assert 3 not in [row["i"] for row in told]


def test_revisions_of_a_join_count_each_stream_by_itself() -> None:
    s, t = stream([2, 4, 1, 2], "aaaa"), stream([4, 2, 20, 1], "aaaa")
    query = "SELECT A.i, B.i AS j FROM S AS A [RANGE 3 SLIDE 2], T AS B [RANGE 3 SLIDE 2] WHERE A.k = B.k LATE REVISE 3"
    told = pw.execute(query, {"S": pw.Stream(s, "t", delay=0), "T": pw.Stream(t, "t", delay=0)}).table.to_pylist()
    assert 3 not in [row["j"] for row in told if row["w_end"] == 2]


def test_rendering_keeps_istream_of_a_nested_union() -> None:
    text = "SELECT k FROM (SELECT ISTREAM k FROM S UNION ALL SELECT k FROM T) AS U [ROWS 1]"
    assert parse_query(render(parse_query(text))) == parse_query(text)


def test_istream_on_one_side_of_a_union_is_refused() -> None:
    """It used to be dropped without a word."""
    with pytest.raises(SyntaxProblem, match="one side of a set operator"):
        parse_query("SELECT k FROM S UNION ALL SELECT ISTREAM k FROM T")


@pytest.mark.parametrize(("call", "answer"), [("VAR_POP(x)", math.inf), ("STDDEV_POP(x)", 0.5e200)])
def test_squares_too_large_for_a_double(call: str, answer: float) -> None:
    """The variance is infinite, the deviation is not; both used to be a bare OverflowError."""
    s = pa.table({"t": [1, 2], "x": [0.0, 1e200]})
    (row,) = pw.run(f"SELECT {call} AS c FROM S [RANGE 2 SLIDE 2]", {"S": s}, time="t").to_pylist()
    assert row["c"] == answer


@pytest.mark.parametrize("purge", ["lazy", "eager"])
def test_groups_do_not_hear_twice_of_rows_that_have_left(purge: str) -> None:
    """Rows that had left and were not dropped yet ended their groups again, at an instant that was over."""
    schema = pa.schema([("t", pa.int64()), ("k", pa.string())])
    pool = pw.Pool({name: pw.StreamSchema(schema, time="t", delay=0) for name in ("S", "T")}, purge=purge)
    query = "SELECT A.k, COUNT(*) AS n FROM S [RANGE 3] A, T [RANGE 9] B WHERE A.k = B.k GROUP BY A.k"
    pool.register("q", query)
    engine, said = pw.Engine(pool), []
    rows = pa.table({"t": [1, 2, 3, 4, 5, 6, 7], "k": ["x"] * 7})
    for row in range(rows.num_rows):
        engine.feed("S", rows.slice(row, 1))
        engine.feed("T", rows.slice(row, 1))
        said.append(engine.advance()["q"])
    said.append(engine.finish()["q"])
    same(pa.concat_tables(said), pw.reference.run(query, {"S": rows, "T": rows}, time="t"))


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
