"""A query that fails is named, with the row it fails on; the others lose nothing and count nothing twice."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

import panewise as pw
from panewise.core.errors import QueryProblem

SCHEMA = pa.schema([("t", pa.int64()), ("k", pa.string()), ("v", pa.int64())])
BIG = 2**62
COUNTED = "SELECT k, COUNT(*) AS n FROM S [RANGE 10 SLIDE 10] GROUP BY k"
#: Queries that fail on v = 2**62, each in another place, and the name of the column that the blamed row must show.
FAILING = {
    "filter": "SELECT k, COUNT(*) AS n FROM S [RANGE 10 SLIDE 10] WHERE v * v > 0 GROUP BY k",
    "key": "SELECT v * v AS w, COUNT(*) AS n FROM S [RANGE 10 SLIDE 10] GROUP BY v * v",
    "argument": "SELECT k, MAX(v * v) AS n FROM S [RANGE 10 SLIDE 10] GROUP BY k",
    "rows": "SELECT k, MAX(v * v) AS n FROM S [ROWS 3] GROUP BY k",
    "session": "SELECT k, MAX(v * v) AS n FROM S [SESSION 3] GROUP BY k",
    "having": "SELECT k, COUNT(*) AS n FROM S [RANGE 10 SLIDE 10] GROUP BY k HAVING MAX(v) * MAX(v) > 0",
    "projection": "SELECT k, MAX(v) * MAX(v) AS n FROM S [RANGE 10 SLIDE 10] GROUP BY k",
    "lowering": "SELECT k, SUM(v) AS n FROM S [RANGE 10 SLIDE 10] GROUP BY k",
    "distinct": "SELECT DISTINCT k, v * v AS w FROM S [RANGE 10 SLIDE 10]",
    "frame": "SELECT COUNT(*) AS n FROM S [FRAME WHILE v * v > 0]",
}


def rows(*found: tuple[int, str, int]) -> pa.Table:
    return pa.Table.from_pylist([dict(zip("tkv", row, strict=True)) for row in found], schema=SCHEMA)


def engine(**queries: str) -> pw.Engine:
    pool = pw.Pool({"S": pw.StreamSchema(SCHEMA, "t")})
    for name, text in queries.items():
        pool.register(name, text)
    return pw.Engine(pool)


GOOD, BAD = rows((1, "a", 1), (2, "b", 2)), rows((3, "a", 3), (4, "b", BIG), (4, "b", BIG), (5, "a", 5))


def blamed(action: Callable[[], object]) -> QueryProblem | None:
    try:
        action()
    except QueryProblem as problem:
        return problem
    return None


@pytest.mark.parametrize("place", FAILING)
def test_a_query_that_fails_is_named_with_its_row_and_costs_nobody_anything(place: str) -> None:
    """Neither rows nor results, nor is anything counted twice once the query has left and the rows come again."""
    e = engine(before=COUNTED, bad=FAILING[place], after=COUNTED.replace("COUNT(*)", "MIN(t)"))
    e.feed("S", GOOD)
    problem = blamed(lambda: e.feed("S", BAD))
    fed = problem is None
    problem = problem or blamed(lambda: e.advance(20))
    assert problem is not None
    assert [failure.query for failure in problem.failures] == ["bad"]
    assert "query 'bad' fails" in str(problem)
    if place != "frame":
        assert str(BIG) in str(problem.failures[0].row) or problem.failures[0].row == {"S.k": "'b'"}
    e.pool.revoke("bad")
    if not fed:
        e.feed("S", BAD)
    alone = engine(before=COUNTED, after=COUNTED.replace("COUNT(*)", "MIN(t)"))
    alone.feed("S", pa.concat_tables([GOOD, BAD]))
    found, wanted = e.advance(20), alone.advance(20)
    assert {name: found[name].to_pylist() for name in found} == {name: wanted[name].to_pylist() for name in wanted}
    assert e.accounting == alone.accounting


def test_of_queries_that_are_reported_together_only_those_are_named_whose_windows_fail() -> None:
    """They share filters, groups and HAVING, and differ in their windows."""
    text = "SELECT k, 1000 * MAX(v) AS n FROM S [RANGE {0} SLIDE {0}] GROUP BY k"
    sums = "SELECT k, SUM(v) AS n FROM S [RANGE {0} SLIDE {0}] GROUP BY k"
    e = engine(short=text.format(5), long=text.format(20), narrow=sums.format(5), wide=sums.format(20))
    e.feed("S", rows((1, "a", 1), (8, "a", 2**55), (9, "b", BIG), (13, "b", BIG)))
    assert blamed(lambda: e.advance(5)) is None
    problem = blamed(lambda: e.advance(15))
    assert problem is not None
    assert [failure.query for failure in problem.failures] == ["short"]
    e.pool.revoke("short")
    problem = blamed(lambda: e.advance(20))
    assert problem is not None
    assert {failure.query: failure.row for failure in problem.failures} == {
        "long": {"S.k": "'a'", "MAX(S.v)": str(2**55)},
        "wide": {"S.k": "'b'"},
    }


def test_the_row_is_found_by_halving_not_by_trying_each(monkeypatch: pytest.MonkeyPatch) -> None:
    """A batch of 5,000 rows takes about a dozen evaluations more."""
    e = engine(bad=FAILING["filter"])
    asked = []
    evaluate = type(e.pool.host).evaluate

    def counted(host: Any, scalars: Any, table: pa.Table) -> Any:
        asked.append(table.num_rows)
        return evaluate(host, scalars, table)

    monkeypatch.setattr(type(e.pool.host), "evaluate", counted)
    problem = blamed(lambda: e.feed("S", rows(*((n, "a", BIG if n == 3210 else 1) for n in range(5000)))))
    assert problem is not None
    assert problem.failures[0].row["S.t"] == "3210"
    assert len(asked) < 20
