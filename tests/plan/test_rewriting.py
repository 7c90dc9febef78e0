"""Which rewrites the planner applies, where it must not, and what explain says of them."""

from __future__ import annotations

import pyarrow as pa
import pytest

import panewise as pw
from panewise.algebra import Select
from panewise.plan import RowPlan

SCHEMA = pa.schema([("t", pa.int64()), ("k", pa.string()), ("v", pa.int64())])


def pool(*queries: str, delay: int | None = 0) -> pw.Pool:
    made = pw.Pool({name: pw.StreamSchema(SCHEMA, time="t", delay=delay) for name in ("S", "T")})
    for number, query in enumerate(queries):
        made.register(f"q{number}", query)
    return made


def plan(query: str) -> RowPlan:
    found = pool(query).queries["q0"].plan
    assert isinstance(found, RowPlan)
    return found


def conditions(query: str) -> tuple[set[str], set[str]]:
    """What is selected above windows, and below them."""
    ((_, level),) = plan(query).levels
    below = {id(node) for window in level.windows for node in window.child.walk()}
    selections = [node for node in level.root.walk() if isinstance(node, Select)]
    above = {node.predicate.sql for node in selections if id(node) not in below}
    return above, {node.predicate.sql for node in selections if id(node) in below}


JOIN = "SELECT A.k FROM S [{}] A, T [{}] B WHERE A.k = B.k AND A.v > 1 AND B.v < 3 AND A.v < B.v"


def test_selections_sink_to_the_stream_they_speak_of() -> None:
    query = JOIN.format("RANGE 5", "RANGE 9")
    assert conditions(query) == ({"`A.v` < `B.v`"}, {"`A.v` > 1", "`B.v` < 3"})
    assert plan(query).rewrites == ("selection into join", "selection under window", "unread columns left out")


def test_they_stop_above_windows_that_count() -> None:
    """A counted window holds other tuples if they are selected before."""
    above, below = conditions(JOIN.format("ROWS 5", "RANGE 9"))
    assert (above, below) == ({"`A.v` < `B.v`", "`A.v` > 1"}, {"`B.v` < 3"})


def test_they_pass_joins_of_joins() -> None:
    query = "SELECT A.k FROM S [RANGE 5] A, T [RANGE 5] B, S [RANGE 2] C WHERE A.k = B.k AND B.v = C.v AND A.v < B.v"
    above, below = conditions(f"{query} AND C.v > 1")
    assert (above, below) == ({"`A.v` < `B.v`"}, {"`C.v` > 1"})


@pytest.mark.parametrize(
    "query",
    [
        "SELECT RSTREAM A.k FROM S [RANGE 5] A, T [RANGE 5] B WHERE A.k = B.k AND A.v > 1",
        "SELECT A.k FROM S [RANGE 5 SLIDE 2] A, T [ROWS 5] B WHERE A.k = B.k AND A.v > 1",
        "SELECT k FROM S [RANGE 5 SLIDE 2] WHERE v > 1 EXCEPT ALL SELECT k FROM T [RANGE 4 SLIDE 3]",
        "SELECT k FROM S [RANGE 5 SLIDE 2] WHERE v > 1 UNION ALL SELECT k FROM T [RANGE 5 SLIDE 2 START AT 1]",
    ],
)
def test_they_stay_where_every_item_of_a_window_makes_the_query_speak(query: str) -> None:
    assert conditions(query) == ({"`A.v` > 1"} if " A," in query else {"`S.v` > 1"}, set())


@pytest.mark.parametrize("combined", ["UNION ALL", "EXCEPT ALL"])
def test_they_sink_below_windows_with_the_same_instants(combined: str) -> None:
    query = f"SELECT k FROM S [RANGE 5 SLIDE 2] WHERE v > 1 {combined} SELECT k FROM T [RANGE 4 SLIDE 2]"
    assert conditions(query) == (set(), {"`S.v` > 1"})


def test_equal_windows_below_a_union_become_one() -> None:
    query = "SELECT k FROM S [RANGE 5 SLIDE 2] WHERE v > 1 UNION ALL SELECT upper(k) FROM T [RANGE 5 SLIDE 2]"
    ((_, level),) = plan(query).levels
    assert [w.window.text(level.domain) for w in level.windows] == ["RANGE 5 SLIDE 2"]
    assert plan(query).rewrites == ("selection under window", "union under window")
    assert len(plan(query.replace("SLIDE 2", "SLIDE 3", 1)).levels[0][1].windows) == 2


def test_late_rows_are_counted_before_a_selection_that_sank() -> None:
    engine = pw.Engine(pool("SELECT DISTINCT k FROM S [RANGE 3] WHERE v > 1"))
    engine.feed("S", pa.table([[10, 2], ["a", "b"], [5, 0]], SCHEMA))
    assert engine.accounting["S"].late == 1


def test_explain_says_what_was_rewritten_and_what_is_shared() -> None:
    told = pool(
        "SELECT A.k, B.v FROM S [RANGE 5] A, T [RANGE 9] B WHERE A.k = B.k",
        "SELECT A.k FROM S [RANGE 6 SLIDE 2] A, T [RANGE 6 SLIDE 2] B WHERE A.k = B.k",
        "SELECT DISTINCT k FROM S [RANGE 5] WHERE v > 1",
        "SELECT DISTINCT k FROM S [RANGE 60 SLIDE 20] WHERE v > 1",
    ).explain()
    assert (
        told
        == """\
q0: answered from rows with lifetimes
  rewritten: unread columns left out
  on shards: A by k, B by k
q1: answered from rows with lifetimes
  rewritten: unread columns left out
  on shards: A by k, B by k
q2: answered from rows with lifetimes
  negative tuples, by number: distinct: a row stays until the last of its equals has left
  rewritten: selection under window, unread columns left out
  on shards: S by k
q3: answered from rows with lifetimes
  negative tuples, by number: distinct: a row stays until the last of its equals has left
  rewritten: selection under window, unread columns left out
  on shards: S by k
shared join on A.k = B.k: 2 sets of windows, each pair is found once
  [RANGE 5] with [RANGE 9] of q0
  [RANGE 6 SLIDE 2] with [RANGE 6 SLIDE 2] of q1
shared distinct: 2 sets of windows, each window passes the rows that leave it to the next wider one
  [RANGE 5] of q2
  [RANGE 60 SLIDE 20] of q3"""
    )
