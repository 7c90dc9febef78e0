"""Rows wait until a window of their family may report; whoever looks at the family before sees them all the same."""

from __future__ import annotations

import pyarrow as pa
import pytest

import panewise as pw
from panewise.core.errors import QueryProblem
from panewise.engine.panes.family import MANY_ROWS

SCHEMA = pa.schema([("t", pa.int64()), ("v", pa.int64())])
SLIDING = "SELECT SUM(v) AS a FROM S [RANGE 10 SLIDE 10]"


def rows(*times: int, v: int = 1) -> pa.Table:
    return pa.table([list(times), [v] * len(times)], schema=SCHEMA)


def running(text: str = SLIDING) -> tuple[pw.Pool, pw.Engine]:
    """An engine that has answered the instants up to 10."""
    pool = pw.Pool({"S": pw.StreamSchema(SCHEMA, time="t", delay=0)}, bounded=True)
    pool.register("q", text)
    engine = pw.Engine(pool)
    engine.feed("S", rows(1, 10))
    engine.advance(10)
    return pool, engine


def waiting(engine: pw.Engine) -> int:
    (family,) = engine._families.values()
    return family.backlog.rows


def test_rows_wait_until_the_next_instant() -> None:
    _, engine = running()
    for time in (11, 12, 13):
        engine.feed("S", rows(time))
        assert not engine.advance()["q"].num_rows
    assert waiting(engine) == 3
    engine.feed("S", rows(21))
    assert engine.advance()["q"].column("a").to_pylist() == [3]
    assert waiting(engine) == 0


def test_rows_wait_where_an_expression_might_fail_but_does_not() -> None:
    """The row on which it does is refused when it comes, and those that wait are not lost."""
    pool, engine = running("SELECT SUM(v * 3) AS a FROM S [RANGE 10 SLIDE 10]")
    pool.register("other", "SELECT SUM(v * 2) AS a FROM S [RANGE 10 SLIDE 10]")
    engine.feed("S", rows(11))
    assert [family.backlog.rows for family in engine._families.values()] == [1, 1]
    with pytest.raises(QueryProblem) as caught:
        engine.feed("S", rows(12, v=2**62 - 1))
    assert [failure.query for failure in caught.value.failures] == ["q"]
    engine.feed("S", rows(21))
    answers = engine.advance()
    assert [answers[name].column("a").to_pylist() for name in ("q", "other")] == [[3], [2]]


def test_sessions_wait_until_one_may_end() -> None:
    _, engine = running("SELECT SUM(v) AS a FROM S [SESSION 5]")
    engine.feed("S", rows(12))
    engine.advance()
    assert waiting(engine) == 1
    engine.feed("S", rows(20))
    assert engine.advance()["q"].column("a").to_pylist() == [2]


def test_a_late_row_finds_those_before_it() -> None:
    _, engine = running()
    engine.feed("S", rows(15))
    engine.advance()
    engine.feed("S", rows(3))
    assert waiting(engine) == 0
    assert engine.accounting["S"].late == 1


def test_a_new_query_sees_rows_that_wait() -> None:
    """Those before them are gone: the window that was there needs them no more."""
    pool, engine = running()
    engine.feed("S", rows(11, 12))
    engine.advance()
    pool.register("new", "SELECT SUM(v) AS a FROM S [RANGE 20 SLIDE 20]")
    engine.feed("S", rows(21))
    assert engine.advance()["new"].column("a").to_pylist() == [2]


def test_lookups_and_snapshots_have_rows_that_wait() -> None:
    _, engine = running()
    engine.feed("S", rows(11, 12))
    engine.advance()
    again = pw.Engine.restore(engine.snapshot())
    for each in (engine, again):
        each.feed("S", rows(21))
        assert each.advance()["q"].column("a").to_pylist() == [2]


def test_many_rows_do_not_wait() -> None:
    _, engine = running()
    engine.feed("S", rows(*[11] * (MANY_ROWS + 1)))
    assert waiting(engine) == 0


def test_an_expression_that_fails_still_fails_when_rows_are_fed() -> None:
    _, engine = running("SELECT SUM(10 / v) AS a FROM S [RANGE 10 SLIDE 10]")
    with pytest.raises(QueryProblem):
        engine.feed("S", rows(11, v=0))
