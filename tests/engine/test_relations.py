"""Joins and distincts by example: what they share, what they say, and what a failing one costs the others."""

from __future__ import annotations

import pyarrow as pa
import pytest

import panewise as pw
from tests.laws.test_engine import same

SCHEMA = pa.schema([("t", pa.int64()), ("k", pa.string()), ("v", pa.int64())])
JOIN = "SELECT A.k, B.v FROM S [RANGE {0}] AS A, T [RANGE {0}] AS B WHERE A.k = B.k"
BIG = 2**62


def rows(*some: tuple[int, str, int]) -> pa.Table:
    return pa.Table.from_pylist([dict(zip("tkv", row, strict=True)) for row in some], SCHEMA)


def pool(*queries: str, delay: int = 0, bounded: bool = False) -> pw.Pool:
    made = pw.Pool({name: pw.StreamSchema(SCHEMA, "t", delay) for name in "ST"}, bounded=bounded)
    for number, query in enumerate(queries):
        made.register(f"q{number}", query)
    return made


@pytest.mark.parametrize("restart", [False, True])
def test_a_query_that_fails_costs_no_other_its_results(restart: bool) -> None:
    """Neither those that share its rows, nor kin, nor others; also not after a restart in between."""
    sums = "SELECT A.k, SUM(A.v) AS s FROM S [RANGE 6] AS A, T [RANGE 5] AS B WHERE A.k = B.k GROUP BY A.k"
    asked = pool("SELECT DISTINCT k FROM S [RANGE 5]", JOIN.format(5), JOIN.format(7), sums)
    engine = pw.Engine(asked)
    engine.feed("S", rows((1, "x", BIG), (1, "x", BIG), (10, "y", 1)))
    engine.feed("T", rows((1, "x", 1), (10, "y", 1)))
    for _ in range(2):
        with pytest.raises(pw.PanewiseError, match="SUM overflows BIGINT"):
            engine.advance()
        if restart:
            engine = pw.Engine.restore(engine.snapshot())
    engine.pool.revoke("q3")
    found = engine.finish()
    assert {name: found[name].num_rows for name in found} == {"q0": 4, "q1": 6, "q2": 6}


def test_a_batch_that_fails_is_not_taken_by_anybody() -> None:
    """Selections that sank below windows are evaluated when rows come."""
    asked = pool(JOIN.format(5), "SELECT C.k FROM S [RANGE 6] C, T [RANGE 5] B WHERE C.k = B.k AND C.v * C.v > 0")
    engine = pw.Engine(asked)
    with pytest.raises(pw.PanewiseError, match="does not fit into BIGINT"):
        engine.feed("S", rows((1, "x", BIG)))
    asked.revoke("q1")
    engine.feed("S", rows((1, "x", BIG)))
    engine.feed("T", rows((1, "x", 1)))
    assert engine.finish()["q0"].column("ts").to_pylist() == [1, 6]


def test_first_and_last_need_the_order_of_one_stream() -> None:
    with pytest.raises(pw.PanewiseError, match="LAST needs rows in the order of one stream"):
        pool("SELECT A.k, LAST(B.v) AS l FROM S [RANGE 4] A, T [RANGE 4] B WHERE A.k = B.k GROUP BY A.k")


def test_a_newcomer_does_not_hear_what_a_query_below_has_heard() -> None:
    inner = "SELECT A.k FROM (SELECT ISTREAM k FROM S [RANGE 10]) A [RANGE {0}], T [RANGE {0}] B WHERE A.k = B.k"
    asked = pool(inner.format(20), inner.format(30))
    engine = pw.Engine(asked)
    engine.feed("S", rows((1, "x", 1)))
    asked.register("new", inner.format(40))
    engine.feed("T", rows((1, "x", 1)))
    found = engine.finish()
    assert (found["q0"].num_rows, found["new"].num_rows) == (2, 0)


@pytest.mark.parametrize("query", ["SELECT RSTREAM DISTINCT k FROM S [RANGE 3 SLIDE 5]", JOIN.format("3 SLIDE 5")])
def test_a_row_is_late_that_no_instant_of_a_slide_sees_any_more(query: str) -> None:
    engine = pw.Engine(pool(query))
    engine.feed("S", rows((4, "x", 1), (7, "y", 1), (4, "late", 1), (20, "z", 1)))
    assert engine.accounting["S"].late == 1
    assert engine.late("S").column("k").to_pylist() == ["late"]


@pytest.mark.parametrize(
    "query",
    [
        "SELECT D.k, B.v FROM (SELECT DISTINCT k FROM S [RANGE 3]) AS D, T [RANGE 100] AS B WHERE D.k = B.k",
        "SELECT COUNT(*) AS n FROM (SELECT DISTINCT k FROM S [RANGE 3]) AS D",
    ],
)
def test_nothing_above_distinct_rows_says_when_it_leaves(query: str) -> None:
    """They stay as long as equal ones come, so that what they said at first does not hold."""
    found = pw.run(query, {"S": rows((0, "a", 1), (2, "a", 1)), "T": rows((4, "a", 7))}, time="t")
    assert set(found.column("expires_at").to_pylist()) == {None}


def test_snapshots_of_bounded_pools_and_of_columns_with_odd_names() -> None:
    endless = "SELECT A.k FROM S [UNBOUNDED] AS A, T [RANGE 5] AS B WHERE A.k = B.k"
    engine = pw.Engine(pool(endless, "SELECT DISTINCT k AS `#1`, v AS `#0` FROM S [RANGE 5]", bounded=True))
    engine.feed("S", rows((1, "x", 7)))
    engine.advance(3)
    found = pw.Engine.restore(engine.snapshot()).finish()["q1"]
    assert found.select(["#1", "#0", "ts"]).to_pylist() == [{"#1": "x", "#0": 7, "ts": 6}]


@pytest.mark.parametrize("early", ["nothing", "advance", "snapshot"])
def test_queries_share_until_the_first_row_comes(early: str) -> None:
    asked = pool(JOIN.format(3))
    engine = pw.Engine(asked)
    if early == "advance":
        engine.advance()
    if early == "snapshot":
        engine = pw.Engine.restore(engine.snapshot())
        asked = engine.pool
    asked.register("later", JOIN.format(5))
    engine.feed("S", rows((1, "x", 1)))
    assert "shared join on A.k = B.k: 2 sets of windows" in asked.explain()


def test_explain_does_not_claim_what_is_not_shared() -> None:
    asked = pool("SELECT DISTINCT k FROM S [RANGE 3]")
    engine = pw.Engine(asked)
    engine.feed("S", rows((1, "x", 1)))
    asked.register("later", "SELECT DISTINCT k FROM S [RANGE 5]")
    assert "shared" not in asked.explain()


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


def test_rows_with_nulls_of_every_type_enter_and_leave() -> None:
    """At one instant two rows leave that are equal to one that enters."""
    kinds = [pa.decimal128(12, 2), pa.decimal128(38, 10), pa.float64(), pa.bool_(), pa.timestamp("us"), pa.string()]
    columns = [pa.nulls(4, kind) for kind in kinds]
    names = [f"c{number}" for number in range(len(kinds))]
    stream = pa.table([[1, 1, 2, 3], *columns], names=["t", *names])
    found = pw.run(f"SELECT {', '.join(names)} FROM S [RANGE 1]", {"S": stream}, time="t")
    assert found.select(["ts", "sign"]).to_pydict() == {"ts": [1, 1, 2, 4], "sign": [1, 1, -1, -1]}
