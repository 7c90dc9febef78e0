"""Any tree of relational operators over any windows: the engine says what the reference says, however rows come."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from itertools import pairwise
from unittest.mock import patch

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import panewise as pw
from panewise.engine.rows.operators import base as operators
from tests.laws.test_engine import same
from tests.spark.shards import Shards

BOUNDARIES = st.sampled_from(["(]", "[)"])
SCHEMA = pa.schema([("t", pa.int64()), ("k", pa.string()), ("v", pa.int64())])
WINDOWS = (
    "[RANGE 5]",
    "[RANGE 3 SLIDE 2]",
    "[RANGE 4 SLIDE 4]",
    "[RANGE 2 SLIDE 5]",
    "[NOW]",
    "[UNBOUNDED]",
    "[UNBOUNDED SLIDE 4]",
    "[FROM 3 UNTIL 12]",
    "[UNTIL 9 SLIDE 2]",
    "[WHERE v > 1]",
    "[ROWS 2]",
    "[ROWS 3 LAG 1]",
    "[PARTITION BY k ROWS 1]",
    "[ROWS 3 SLIDE 2]",
    "[PARTITION BY k ROWS 2 SLIDE 2]",
    "[RANGE 4 LAG 3]",
    "[RANGE 5 SLIDE 3 START AT 4]",
    "[CUMULATE 6 STEP 2]",
    "[SESSION 2]",
    "[PARTITION BY k SESSION 3]",
    "[RANGES 8, 4 SLIDES 3, 2]",
)
#: Over the results of queries no window counts rows: those of one instant have no order among each other.
TIMED = tuple(window for window in WINDOWS if "ROWS" not in window)
windows = st.sampled_from(WINDOWS)
emits = st.sampled_from(["", "ISTREAM", "DSTREAM", "RSTREAM"])


@st.composite
def rows(draw: st.DrawFn, ordered: bool = False) -> pa.Table:
    times = draw(st.lists(st.integers(0, 20), max_size=9))
    times = sorted(times) if ordered else times
    keys, values = (
        draw(st.lists(st.sampled_from(some), min_size=len(times), max_size=len(times)))
        for some in ([None, "a", "b", "c"], [None, 1, 2, 3])
    )
    return pa.table([pa.array(times, pa.int64()), pa.array(keys, pa.string()), pa.array(values, pa.int64())], SCHEMA)


@st.composite
def singles(draw: st.DrawFn) -> str:
    """Rows of one window."""
    where = draw(st.sampled_from(["", "", "", " WHERE v > 1", " WHERE k <> 'a'"]))
    distinct = draw(st.sampled_from(["", "DISTINCT "]))
    stream = draw(st.sampled_from(["S", "T", "(SELECT * FROM S WHERE v < 3) AS P"]))
    return f"SELECT {distinct}k, v FROM {stream} {draw(windows)}{where}"


@st.composite
def joins(draw: st.DrawFn) -> str:
    """Two or three windows joined, with or without a further condition; as `k` and `v`."""
    distinct = draw(st.sampled_from(["", "DISTINCT "]))
    more = draw(st.sampled_from(["", " AND A.v <= B.v"]))
    two = f"S {draw(windows)} AS A, T {draw(windows)} AS B"
    if draw(st.booleans()):
        return f"SELECT {distinct}A.k, B.v FROM {two} WHERE A.k = B.k{more}"
    return f"SELECT {distinct}A.k, C.v FROM {two}, S {draw(windows)} AS C WHERE A.k = B.k AND B.v = C.v{more}"


@st.composite
def relations(draw: st.DrawFn, depth: int = 2) -> str:
    """A relation with the columns `k` and `v`."""
    kind = draw(st.sampled_from(["single", "join", "union", "except", "distinct", "inner"][: 6 if depth else 2]))
    match kind:
        case "single":
            return draw(singles())
        case "join":
            return draw(joins())
        case "union" | "except":
            operator = "UNION ALL" if kind == "union" else "EXCEPT ALL"
            return f"{draw(relations(depth - 1))} {operator} {draw(singles())}"
        case "inner":
            emitted = draw(st.sampled_from(["ISTREAM", "RSTREAM", "DSTREAM"]))
            inner = f"SELECT {emitted} k, v FROM ({draw(relations(depth - 1))}) AS X"
            return f"SELECT k, v FROM ({inner}) AS I {draw(st.sampled_from(TIMED))}"
    return f"SELECT DISTINCT k, v FROM ({draw(relations(depth - 1))}) AS D"


@st.composite
def queries(draw: st.DrawFn) -> str:
    inner, emit = draw(relations()), draw(emits)
    if draw(st.booleans()):
        calls = draw(st.sampled_from(["COUNT(*) AS n", "SUM(v) AS n, MAX(v) AS m", "MIN(v) AS n, COUNT(v) AS m"]))
        return f"SELECT {emit} k, {calls} FROM ({inner}) AS G GROUP BY k"
    return f"{emit}({inner})" if emit else inner


def answered(query: str, s: pa.Table, t: pa.Table, delay: int | None, boundary: str, until: int | None) -> pa.Table:
    streams = {"S": pw.Stream(s, "t", delay), "T": pw.Stream(t, "t", delay)}
    return pw.reference.run(query, streams, boundary=boundary, until=until)


def known(table: pa.Table) -> pa.Table:
    """Without expiry. The reference counts orders anew at every moment, also of rows that late ones have pushed aside;
    and which of two equal rows with the same time is the youngest is nobody's business."""
    return table.drop_columns([name for name in table.column_names if name.startswith("expires")])


@pytest.mark.slow
@settings(max_examples=150)
@given(queries(), rows(), rows(), st.sampled_from([None, 0, 2, 5]), BOUNDARIES, st.sampled_from([None, None, 9]))
def test_the_engine_says_what_the_reference_says(
    query: str, s: pa.Table, t: pa.Table, delay: int | None, boundary: str, until: int | None
) -> None:
    wanted = answered(query, s, t, delay, boundary, until)
    streams = {"S": pw.Stream(s, "t", delay), "T": pw.Stream(t, "t", delay)}
    found = pw.execute(query, streams, boundary=boundary, until=until)
    same(known(found.table), known(wanted))
    if "ROWS" not in query:  # whether a late row is still among the last ones is not known when it comes
        assert found.accounting == pw.Accounting.of(wanted)


def test_a_landmark_of_a_filtered_stream_waits_for_late_rows() -> None:
    """The row of 1 is none of that stream's, but that of 0 is late because of it, and counts from 4 on."""
    s = pa.Table.from_pylist([{"t": 1}, {"t": 0, "v": 1}], SCHEMA)
    query = "SELECT k, v FROM (SELECT * FROM S WHERE v < 3) AS P [UNBOUNDED SLIDE 4]"
    found = pw.run(query, {"S": pw.Stream(s, "t", 0)})
    same(known(found), known(answered(query, s, s, 0, "(]", None)))
    assert found["w_end"].to_pylist() == [4]


@pytest.mark.filterwarnings("ignore::panewise.PanewiseWarning")
def test_between_its_instants_a_window_does_not_hear_of_late_rows() -> None:
    """The row of 8 comes after 10, the only instant of its window: it is not there at 12 either, when others speak."""
    t = pa.Table.from_pylist([{"t": time} for time in (0, 10, 8)], SCHEMA)
    query = "SELECT k, v FROM T [RANGE 2 SLIDE 5] UNION ALL SELECT k, v FROM S [RANGE 3 SLIDE 2]"
    assert answered(query, t.slice(0, 0), t, 0, "[)", None).num_rows == 0
    assert (
        pw.run(query, {"S": pw.Stream(t.slice(0, 0), "t", 0), "T": pw.Stream(t, "t", 0)}, boundary="[)").num_rows == 0
    )


@pytest.mark.filterwarnings("ignore::panewise.PanewiseWarning")
@pytest.mark.parametrize("slide", [1, 4, 7])
def test_a_closed_landmark_does_not_wait_for_late_rows(slide: int) -> None:
    s = pa.Table.from_pylist([{"t": time, "v": time} for time in (-4, 6, 4)], SCHEMA)
    query = f"SELECT k, v FROM S [UNTIL 5 SLIDE {slide}]"
    same(known(pw.run(query, {"S": pw.Stream(s, "t", 0)})), known(answered(query, s, s, 0, "(]", None)))


@pytest.mark.filterwarnings("ignore::panewise.PanewiseWarning")
def test_a_closed_landmark_takes_nothing_in_beside_other_windows() -> None:
    """The row of 4 comes when 6, the last instant of its window, is final; the other window speaks until 12."""
    s = pa.Table.from_pylist([{"t": time} for time in (0, 8, 4)], SCHEMA)
    t = pa.Table.from_pylist([{"t": 12}], SCHEMA)
    query = "SELECT k, v FROM S [UNTIL 5 SLIDE 3] UNION ALL SELECT k, v FROM T [RANGE 3 SLIDE 3]"
    streams = {"S": pw.Stream(s, "t", 0), "T": pw.Stream(t, "t", 0)}
    found, wanted = pw.execute(query, streams), pw.reference.execute(query, streams)
    same(known(found.table), known(wanted.table))
    assert found.table["w_end"].to_pylist().count(12) == 2
    assert found.accounting["S"] == wanted.accounting["S"] == pw.Accounting(rows_in=3, used=2, late=1)


@pytest.mark.parametrize(
    ("query", "late", "partly"),
    [
        ("SELECT DISTINCT k, v FROM S [SESSION 2]", 1, 0),
        ("SELECT A.k, B.v FROM S [SESSION 2] AS A, S [RANGE 6 SLIDE 3] AS B WHERE A.k = B.k", 0, 1),
    ],
)
def test_a_row_that_no_open_session_takes_is_late(query: str, late: int, partly: int) -> None:
    """The row of 17 joins the session that ends at 20. That of 14 comes too late for any; 15 is final, 18 is not."""
    s = pa.Table.from_pylist([{"t": time, "k": "a"} for time in (18, 17, 14)], SCHEMA)
    streams = {"S": pw.Stream(s, "t", 0)}
    wanted = pw.Accounting(rows_in=3, used=3 - late, late=late, partly_late=partly)
    assert pw.execute(query, streams).accounting["S"] == wanted
    assert pw.reference.execute(query, streams).accounting["S"] == wanted


def test_a_window_beside_others_has_open_instants_of_its_own() -> None:
    """The row of 4 counts from 17 on, although no other window lets the query report there."""
    s = pa.Table.from_pylist([{"t": time} for time in (17, 4)], SCHEMA)
    streams = {"S": pw.Stream(s, "t", 0), "T": pw.Stream(s.slice(0, 0), "t", 0)}
    query = "SELECT A.k, B.v FROM S [FROM 3 UNTIL 12] AS A, T [RANGE 4 SLIDE 4] AS B WHERE A.k = B.k"
    wanted = pw.Accounting(rows_in=2, used=2, partly_late=1)
    assert pw.execute(query, streams).accounting["S"] == wanted
    assert pw.reference.execute(query, streams).accounting["S"] == wanted


@pytest.mark.filterwarnings("ignore::panewise.PanewiseWarning")
def test_a_wholly_late_row_does_not_let_a_union_speak_longer() -> None:
    s = pa.Table.from_pylist([{"t": time} for time in (0, 16, 14)], SCHEMA)
    query = "SELECT k, v FROM S [RANGE 2 SLIDE 5] UNION ALL SELECT k, v FROM T [RANGE 3 SLIDE 2]"
    found = pw.run(query, {"S": pw.Stream(s, "t", 0), "T": pw.Stream(s.slice(0, 0), "t", 0)})
    same(known(found), known(answered(query, s, s.slice(0, 0), 0, "(]", None)))
    assert found["w_end"].to_pylist() == [0]


def pool_of(query: str, boundary: str, delay: int | None) -> pw.Pool:
    schema = pw.StreamSchema(SCHEMA, "t", delay)
    pool = pw.Pool({"S": schema, "T": schema}, boundary)
    pool.register("q", f"{query} ALLOW UNBOUNDED")
    return pool


def pieces(table: pa.Table, cuts: Sequence[int]) -> list[pa.Table]:
    edges = [0, *sorted(min(cut, table.num_rows) for cut in cuts), table.num_rows]
    return [table.slice(a, b - a) for a, b in pairwise(edges)]


@pytest.fixture(autouse=True, scope="module")
def forgetful() -> Iterator[None]:
    """Keys are forgotten as soon as may be."""
    with patch.object(operators, "FEW_KEYS", 0):
        yield


@pytest.mark.slow
@settings(max_examples=100)
@given(
    queries(),
    rows(ordered=True),
    rows(ordered=True),
    st.lists(st.integers(0, 9), min_size=2, max_size=2),
    BOUNDARIES,
    st.booleans(),
    st.randoms(use_true_random=False),
)
def test_any_split_and_restart_say_the_same(
    query: str, s: pa.Table, t: pa.Table, cuts: list[int], boundary: str, restarts: bool, chance: random.Random
) -> None:
    """Streams in order, fed in pieces, one before the other or not, with a look at what is final in between."""
    wanted = answered(query, s, t, None, boundary, None)
    engine = pw.Engine(pool_of(query, boundary, 0))
    said = []
    fed = [("S", piece) for piece in pieces(s, cuts)] + [("T", piece) for piece in pieces(t, cuts)]
    for _ in range(3):
        # Pieces of one stream stay in their order; those of the two streams meet in any.
        place = chance.randrange(len(fed) + 1)
        fed = sorted(fed[:place], key=lambda each: each[0]) + fed[place:]
    for stream, piece in fed:
        engine.feed(stream, piece)
        said.append(engine.advance()["q"])
        if restarts:
            engine = pw.Engine.restore(engine.snapshot())
    said.append(engine.finish()["q"])
    same(known(pa.concat_tables(said)), known(wanted))


@pytest.mark.slow
@settings(max_examples=60)
@given(queries(), queries(), rows(ordered=True), rows(ordered=True), BOUNDARIES)
def test_a_guest_that_leaves_disturbs_nobody(query: str, guest: str, s: pa.Table, t: pa.Table, boundary: str) -> None:
    """Revoked halfway, it takes nothing along that others need, and is not missed after a restart."""
    wanted = answered(query, s, t, None, boundary, None)
    pool = pw.Pool({name: pw.StreamSchema(SCHEMA, "t", 0) for name in ("S", "T")}, boundary)
    pool.register("guest", f"{guest} ALLOW UNBOUNDED")
    pool.register("q", f"{query} ALLOW UNBOUNDED")
    engine = pw.Engine(pool)
    said = []
    for first in (True, False):
        for stream, table in (("S", s), ("T", t)):
            half = table.num_rows // 2
            engine.feed(stream, table.slice(0, half) if first else table.slice(half))
        said.append(engine.advance()["q"])
        if first:
            pool.revoke("guest")
            engine = pw.Engine.restore(engine.snapshot())
    said.append(engine.finish()["q"])
    same(known(pa.concat_tables(said)), known(wanted))


@pytest.mark.slow
@settings(max_examples=80)
@given(
    queries(),
    rows(ordered=True),
    rows(ordered=True),
    st.lists(st.integers(0, 9), min_size=2, max_size=2),
    st.integers(1, 3),
    BOUNDARIES,
    st.booleans(),
)
def test_shards_say_the_same(
    query: str, s: pa.Table, t: pa.Table, cuts: list[int], shards: int, boundary: str, restarts: bool
) -> None:
    wanted = answered(query, s, t, None, boundary, None)
    found = Shards(pool_of(query, boundary, 0), shards, restarts)
    for one, other in zip(pieces(s, cuts), pieces(t, cuts), strict=True):
        found.batch(S=[one], T=[other])
    found.finish()
    same(known(found.results("q")), known(wanted))
