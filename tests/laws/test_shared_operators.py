"""Queries that differ in their windows share their joins and distincts, and each says what it would say alone."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import panewise as pw
from panewise.engine.rows.operator_graph import OperatorGraph
from panewise.engine.rows.operators.join import JoinOperator
from panewise.engine.rows.operators.shared_distinct import SharedDistinct
from panewise.engine.rows.operators.shared_join import SharedJoin
from tests.laws.test_engine import same
from tests.laws.test_relations import BOUNDARIES, SCHEMA, known, pieces, rows
from tests.spark.shards import Shards

WINDOWS = (
    "[RANGE 5]",
    "[RANGE 8]",
    "[NOW]",
    "[RANGE 3 SLIDE 2]",
    "[RANGE 4 SLIDE 4]",
    "[RANGE 2 SLIDE 5]",
    "[RANGE 4 LAG 3]",
    "[RANGE 5 SLIDE 3 START AT 4]",
    "[CUMULATE 6 STEP 2]",
    "[RANGES 8, 4 SLIDES 3, 2]",
)
windows = st.sampled_from(WINDOWS)
emits = st.sampled_from(["", "", "ISTREAM ", "DSTREAM ", "RSTREAM "])


@st.composite
def joins(draw: st.DrawFn) -> str:
    emit = draw(emits)
    selected = draw(st.sampled_from(["A.k, B.v", "A.k, A.v AS a, B.v", "DISTINCT B.v", "A.k, COUNT(*) AS n"]))
    grouped = " GROUP BY A.k" if "COUNT" in selected else ""
    more = draw(st.sampled_from(["", " AND A.v <= B.v"]))
    left = draw(windows)
    right = draw(windows) if "RANGES" not in left else left
    third = ", S [RANGE 4] AS C WHERE B.v = C.v AND A.k = B.k" if draw(st.integers(0, 5)) == 0 else " WHERE A.k = B.k"
    return f"SELECT {emit}{selected} FROM S {left} AS A, T {right} AS B{third}{more}{grouped}"


@st.composite
def distincts(draw: st.DrawFn) -> str:
    emit = draw(emits)
    where = draw(st.sampled_from(["", " WHERE v > 1"]))
    inner = f"SELECT {emit}DISTINCT k FROM S {draw(windows)}{where}"
    if not emit and draw(st.booleans()):
        return f"SELECT COUNT(*) AS n FROM (SELECT DISTINCT k FROM S {draw(windows)}{where}) AS D"
    return inner


kin = st.one_of(st.lists(joins(), min_size=2, max_size=5), st.lists(distincts(), min_size=2, max_size=5))


def pool_of(queries: Sequence[str], boundary: str, delay: int | None, purge: str = "lazy") -> pw.Pool:
    pool = pw.Pool({name: pw.StreamSchema(SCHEMA, "t", delay) for name in ("S", "T")}, boundary, purge=purge)
    for number, query in enumerate(queries):
        pool.register(f"q{number}", query)
    return pool


def alone(query: str, s: pa.Table, t: pa.Table, boundary: str, delay: int | None) -> pa.Table:
    streams = {"S": pw.Stream(s, "t", delay), "T": pw.Stream(t, "t", delay)}
    return pw.reference.run(query, streams, boundary=boundary)


@pytest.mark.slow
@settings(max_examples=150)
@given(kin, rows(), rows(), BOUNDARIES, st.sampled_from([None, 0, 2, 5]))
def test_kin_say_what_each_says_alone(
    queries: list[str], s: pa.Table, t: pa.Table, boundary: str, delay: int | None
) -> None:
    """Late rows too."""
    engine = pw.Engine(pool_of(queries, boundary, delay))
    engine.feed("S", s)
    engine.feed("T", t)
    found = engine.finish()
    for number, query in enumerate(queries):
        same(known(found[f"q{number}"]), known(alone(query, s, t, boundary, delay)))


@pytest.mark.slow
@settings(max_examples=100)
@given(
    kin,
    rows(ordered=True),
    rows(ordered=True),
    BOUNDARIES,
    st.lists(st.integers(0, 9), min_size=2, max_size=2),
    st.lists(st.integers(0, 4), min_size=3, max_size=3),
    st.booleans(),
    st.sampled_from(["lazy", "eager"]),
)
def test_kin_that_leave_are_not_missed(
    queries: list[str],
    s: pa.Table,
    t: pa.Table,
    boundary: str,
    cuts: list[int],
    leaving: list[int],
    restarts: bool,
    purge: str,
) -> None:
    """After any of them the others go on, also from a snapshot, in which nothing is left of it."""
    pool = pool_of(queries, boundary, 0, purge)
    engine = pw.Engine(pool)
    said: dict[str, list[pa.Table]] = {name: [] for name in pool.queries}
    for one, other, gone in zip(pieces(s, cuts), pieces(t, cuts), leaving, strict=True):
        engine.feed("S", one)
        engine.feed("T", other)
        for name, table in engine.advance().items():
            said[name].append(table)
        if len(pool.queries) > 1 and f"q{gone}" in pool.queries:
            pool.revoke(f"q{gone}")
        if restarts:
            engine = pw.Engine.restore(engine.snapshot())
            pool = engine.pool
    for name, table in engine.finish().items():
        wanted = alone(queries[int(name[1:])], s, t, boundary, None)
        same(known(pa.concat_tables([*said[name], table])), known(wanted))


@pytest.mark.slow
@settings(max_examples=120)
@given(
    kin,
    rows(ordered=True),
    rows(ordered=True),
    BOUNDARIES,
    st.lists(st.integers(0, 9), min_size=3, max_size=3),
    st.lists(st.integers(0, 3), min_size=5, max_size=5),
    st.lists(st.integers(0, 3), min_size=5, max_size=5),
    st.booleans(),
)
def test_kin_that_join_later_begin_with_what_comes(
    queries: list[str],
    s: pa.Table,
    t: pa.Table,
    boundary: str,
    cuts: list[int],
    coming: list[int],
    leaving: list[int],
    restarts: bool,
) -> None:
    """Each says what it would say alone of the rows that come while it is there, whoever else is there or was."""
    pool = pool_of([], boundary, 0)
    engine = pw.Engine(pool)
    said: dict[str, list[pa.Table]] = {f"q{number}": [] for number in range(len(queries))}
    fed = [pieces(s, cuts), pieces(t, cuts)]
    for step, (one, other) in enumerate(zip(*fed, strict=True)):
        for number, query in enumerate(queries):
            if coming[number] == step:
                pool.register(f"q{number}", query)
            if leaving[number] == step and f"q{number}" in pool.queries and len(pool.queries) > 1:
                pool.revoke(f"q{number}")
        engine.feed("S", one)
        engine.feed("T", other)
        for name, table in engine.advance().items():
            said[name].append(table)
        if restarts:
            engine = pw.Engine.restore(engine.snapshot())
            pool = engine.pool
    for name, table in engine.finish().items():
        first = coming[int(name[1:])]
        left, right = (pa.concat_tables(some[first:]) for some in fed)
        wanted = alone(queries[int(name[1:])], left, right, boundary, None)
        same(known(pa.concat_tables([*said[name], table])), known(wanted))


@pytest.mark.slow
@settings(max_examples=50)
@given(kin, rows(ordered=True), rows(ordered=True), BOUNDARIES, st.integers(1, 3))
def test_kin_on_shards(queries: list[str], s: pa.Table, t: pa.Table, boundary: str, shards: int) -> None:
    found = Shards(pool_of(queries, boundary, 0), shards, restarts=True)
    for one, other in zip(pieces(s, [3, 6]), pieces(t, [3, 6]), strict=True):
        found.batch(S=[one], T=[other])
    found.finish()
    for number, query in enumerate(queries):
        same(known(found.results(f"q{number}")), known(alone(query, s, t, boundary, None)))


def families(*queries: str) -> list[object]:
    engine = pw.Engine(pool_of(queries, "(]", 0))
    engine.feed("S", pa.table([[1], ["x"], [1]], SCHEMA))
    parts = {id(part): part for part in engine._row_engine.parts.values()}
    return [family for part in parts.values() if isinstance(part, OperatorGraph) for family in part.shared_operators]


JOIN = "SELECT {} FROM S [{}] AS A, T [{}] AS B WHERE A.k = B.k"


def test_joins_with_the_same_signature_are_one() -> None:
    (family,) = families(
        JOIN.format("A.k", "RANGE 5", "RANGE 5"),
        JOIN.format("A.k, B.v", "RANGE 9 SLIDE 3", "RANGE 9 SLIDE 3"),
        JOIN.format("B.v", "RANGE 2", "RANGE 9 LAG 3"),
        JOIN.format("B.v", "RANGE 2", "RANGE 9 LAG 3"),
    )
    assert isinstance(family, SharedJoin)
    assert len(family.members) == 3


def test_joins_that_come_later_share_with_each_other() -> None:
    """The first one that comes to a running stream founds a family, and those after it join it."""
    pool = pool_of([JOIN.format("A.k", "RANGE 5", "RANGE 5")], "(]", 0)
    engine = pw.Engine(pool)
    engine.feed("S", pa.table([[1], ["x"], [1]], SCHEMA))
    for number in (4, 9, 2):
        pool.register(f"later{number}", JOIN.format("A.k, B.v", f"RANGE {number}", f"RANGE {number}"))
        engine.feed("T", pa.table([[number], ["x"], [number]], SCHEMA))
    parts = engine._row_engine.parts
    assert parts["later4"] is parts["later9"] is parts["later2"] is not parts["q0"]
    part = parts["later4"]
    assert isinstance(part, OperatorGraph)
    (family,) = part.shared_operators
    assert len(family.members) == 3


def test_a_join_that_looks_at_more_columns_founds_a_family_of_its_own() -> None:
    pool = pool_of([JOIN.format("A.k", "RANGE 5", "RANGE 5"), JOIN.format("A.k", "RANGE 6", "RANGE 6")], "(]", 0)
    engine = pw.Engine(pool)
    engine.feed("S", pa.table([[1], ["x"], [1]], SCHEMA))
    pool.register("same", JOIN.format("A.k", "RANGE 8", "RANGE 8"))
    pool.register("more", JOIN.format("A.k, B.v", "RANGE 8", "RANGE 8"))
    parts = engine._row_engine.parts
    assert parts["q0"] is parts["q1"] is parts["same"] is not parts["more"]


def test_the_levels_of_a_multi_granular_join_are_kin() -> None:
    (family,) = families(JOIN.format("A.k", "RANGES 8, 4 SLIDES 3, 2", "RANGES 8, 4 SLIDES 3, 2"))
    assert isinstance(family, SharedJoin)
    assert len(family.members) == 2


def test_distincts_of_the_same_columns_are_one() -> None:
    distinct = "SELECT DISTINCT {} FROM S [{}]"
    (family,) = families(
        distinct.format("k", "RANGE 5"), distinct.format("k", "RANGE 9 SLIDE 3"), distinct.format("v", "RANGE 3")
    )
    assert isinstance(family, SharedDistinct)
    assert list(family.levels) == [5, 9]


@pytest.mark.parametrize(
    "other",
    [
        "SELECT A.k FROM S [RANGE 9] AS A, T [RANGE 9] AS B WHERE A.v = B.v",
        "SELECT A.k FROM S [RANGE 9] AS A, T [ROWS 9] AS B WHERE A.k = B.k",
        "SELECT RSTREAM A.k FROM S [RANGE 9] AS A, T [RANGE 9] AS B WHERE A.k = B.k",
    ],
)
def test_other_conditions_and_windows_that_count_are_no_kin(other: str) -> None:
    assert not families(JOIN.format("A.k", "RANGE 5", "RANGE 5"), other)


@pytest.mark.parametrize(("purge", "kept"), [("eager", 3), ("lazy", 5)])
def test_expired_rows_are_dropped_at_once_or_many_together(purge: str, kept: int) -> None:
    pool = pool_of([JOIN.format("A.k", "RANGE 4", "RANGE 4")], "(]", 0, purge)
    engine = pw.Engine(pool)
    for time in range(6):
        engine.feed("S", pa.table([[time], ["x"], [1]], SCHEMA))
        engine.feed("T", pa.table([[time], ["y"], [1]], SCHEMA))
        engine.advance()
    part = engine._row_engine.parts["q0"]
    assert isinstance(part, OperatorGraph)
    (join,) = (each for each in part.operators.values() if isinstance(each, JoinOperator))
    assert [len(side.rows) for side in join.sides] == [kept, kept]


def test_a_pair_belongs_to_every_window_from_the_one_where_it_was_found() -> None:
    """Of three windows the second is the first that holds both parts: two memberships, each with its own expiry."""
    queries = [JOIN.format("A.v AS a, B.v AS b", f"RANGE {n}", f"RANGE {n}") for n in (2, 4, 6)]
    engine = pw.Engine(pool_of(queries, "(]", 0))
    engine.feed("S", pa.table([[10], ["x"], [1]], SCHEMA))
    engine.feed("T", pa.table([[13], ["x"], [2]], SCHEMA))
    found = engine.finish()
    came = [
        [(row["ts"], row["expires_at"]) for row in found[f"q{n}"].to_pylist() if row["sign"] == 1] for n in range(3)
    ]
    assert came == [[], [(13, 14)], [(13, 16)]]
