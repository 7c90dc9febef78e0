"""Slicers and shards together say what one engine says, however rows are spread over batches, tasks and shards."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import panewise as pw

from ..spark.shards import Shards
from .strategies import BOUNDARIES, KINDS, Aggregated, aggregated, odd_tables
from .test_engine import DISORDER, register, same

pytestmark = pytest.mark.slow

#: Where a stream is cut into batches, and each batch into tasks.
SPLITS = st.lists(st.tuples(st.integers(0, 12), st.integers(0, 12)), max_size=4)
SHARDS = st.integers(1, 3)
#: Kinds whose windows time alone decides; those that count rows or follow sessions travel as rows.
SLICED = ("sliding", "tumbling", "levels", "cumulate", "refreshed")


def batches(s: pa.Table, splits: Sequence[tuple[int, int]]) -> list[list[pa.Table]]:
    """The rows in batches, each in up to two tasks; together they are in the order of arrival."""
    found, done = [], 0
    for cut, inner in [*sorted(splits), (s.num_rows, 0)]:
        part = s.slice(done, max(min(cut, s.num_rows) - done, 0))
        done += part.num_rows
        found.append([part.slice(0, inner), part.slice(inner)])
    return found


def pooled(queries: Mapping[str, str], schema: pa.Schema, delay: int | None, boundary: str) -> pw.Pool:
    pool = pw.Pool({"S": pw.StreamSchema(schema, "t", delay)}, boundary)
    for name, cql in queries.items():
        register(pool, name, cql)
    return pool


def sharded(
    queries: Mapping[str, str],
    s: pa.Table,
    splits: Sequence[tuple[int, int]],
    shards: int,
    delay: int | None = None,
    boundary: str = "(]",
    restarts: bool = False,
) -> Shards:
    # In every other pipeline workers read the rows themselves.
    columnar = ["S"] if len(splits) % 2 else []
    found = Shards(pooled(queries, s.schema, delay, boundary), shards, restarts, columnar=columnar)
    for tasks in batches(s, splits):
        found.batch(S=tasks)
    found.finish()
    return found


def in_one_engine(
    queries: Mapping[str, str], s: pa.Table, splits: Sequence[tuple[int, int]], delay: int, boundary: str
) -> tuple[dict[str, pa.Table], pw.Engine]:
    """The same batches in one engine, whose watermark moves between them as that of a pipeline does."""
    pool = pooled(queries, s.schema, None, boundary)
    engine = pw.Engine(pool)
    said: dict[str, list[pa.Table]] = {name: [] for name in queries}
    for tasks in batches(s, splits):
        rows = pa.concat_tables(tasks)
        engine.feed("S", rows)
        newest = pc.max(rows["t"]).as_py()
        if newest is not None:
            engine.promise("S", newest - delay)
        for name, table in engine.advance().items():
            said[name].append(table)
    for name, table in engine.finish().items():
        said[name].append(table)
    return {name: pa.concat_tables(tables) for name, tables in said.items()}, engine


#: All but windows with a varying range: how long one is followed in the end depends on all items it holds, of which a
#: shard knows its own.
STEADY = tuple(kind for kind in KINDS if kind != "varying")


@settings(max_examples=110)
@given(odd_tables(12), aggregated(STEADY, silent=True), SPLITS, SHARDS, BOUNDARIES)
def test_shards_say_what_the_reference_says(
    s: pa.Table, query: Aggregated, splits: list[tuple[int, int]], shards: int, boundary: str
) -> None:
    wanted = pw.reference.run(query.cql, {"S": s}, time="t", boundary=boundary)
    same(sharded({"q": query.cql}, s, splits, shards, boundary=boundary).results("q"), wanted)


@settings(max_examples=90)
@given(
    odd_tables(12, DISORDER),
    aggregated(STEADY, revising=True),
    st.integers(0, 5),
    SPLITS,
    SHARDS,
    BOUNDARIES,
    st.booleans(),
)
def test_late_rows_are_late_by_batch(
    s: pa.Table,
    query: Aggregated,
    delay: int,
    splits: list[tuple[int, int]],
    shards: int,
    boundary: str,
    restarts: bool,
) -> None:
    wanted, _ = in_one_engine({"q": query.cql}, s, splits, delay, boundary)
    same(sharded({"q": query.cql}, s, splits, shards, delay, boundary, restarts).results("q"), wanted["q"])


@settings(max_examples=80)
@given(
    odd_tables(12, DISORDER),
    st.lists(aggregated(SLICED), min_size=1, max_size=3),
    st.integers(0, 5),
    SPLITS,
    SHARDS,
    BOUNDARIES,
)
def test_late_rows_are_counted(
    s: pa.Table, several: list[Aggregated], delay: int, splits: list[tuple[int, int]], shards: int, boundary: str
) -> None:
    queries = {f"q{n}": query.cql for n, query in enumerate(several)}
    _, engine = in_one_engine(queries, s, splits, delay, boundary)
    found = sharded(queries, s, splits, shards, delay, boundary, restarts=True)
    assert found.accounting == engine.accounting["S"]
    assert found.late_by_query == engine.intake("S").late_by_query


@settings(max_examples=60)
@given(
    odd_tables(12, DISORDER),
    st.lists(aggregated(STEADY), min_size=1, max_size=3),
    st.integers(0, 5),
    SPLITS,
    SHARDS,
    BOUNDARIES,
)
def test_every_row_is_counted_once_and_late_rows_of_each_query(
    s: pa.Table, several: list[Aggregated], delay: int, splits: list[tuple[int, int]], shards: int, boundary: str
) -> None:
    """Whatever travels as rows or as panes; where it takes several routes, a row that may be used is not late."""
    queries = {f"q{n}": query.cql for n, query in enumerate(several)}
    _, engine = in_one_engine(queries, s, splits, delay, boundary)
    found, wanted = sharded(queries, s, splits, shards, delay, boundary), engine.accounting["S"]
    account = found.accounting
    assert (account.rows_in, account.rejected) == (wanted.rows_in, wanted.rejected)
    assert account.rows_in == account.used + account.late + account.rejected
    assert found.late_by_query == engine.intake("S").late_by_query
    routes = {lane.route for lane in found.course.layout.family_transfers if lane.cuts is None}
    assert account.late <= wanted.late
    if len(routes) < 2:
        assert account == wanted


@settings(max_examples=45)
@given(
    odd_tables(12, DISORDER),
    st.lists(aggregated(STEADY), min_size=2, max_size=4),
    st.integers(0, 5),
    SPLITS,
    SHARDS,
    BOUNDARIES,
)
def test_together_as_alone(
    s: pa.Table, several: list[Aggregated], delay: int, splits: list[tuple[int, int]], shards: int, boundary: str
) -> None:
    queries = {f"q{n}": query.cql for n, query in enumerate(several)}
    together = sharded(queries, s, splits, shards, delay, boundary, restarts=True)
    for name, cql in queries.items():
        alone = sharded({name: cql}, s, splits, shards, delay, boundary)
        same(together.results(name), alone.results(name))


@pytest.mark.parametrize("window", ["RANGE 5", "UNBOUNDED", "ROWS 2", "PARTITION BY k ROWS 1"])
def test_regression_any_change_makes_all_groups_speak(window: str) -> None:
    """Whole results at every change need all groups in one shard."""
    query = f"SELECT RSTREAM k, COUNT(*) AS n FROM S [{window}] GROUP BY k"
    pool = pw.Pool({"S": pw.StreamSchema(pa.schema([("t", pa.int64()), ("k", pa.string())]), time="t", delay=0)})
    pool.register("q", f"{query} ALLOW UNBOUNDED")
    table = pa.table({"t": [1, 3, 13, 17], "k": ["c", "b", "b", "c"]})
    shards = Shards(pool, 3)
    shards.batch(S=[table])
    shards.finish()
    same(shards.results("q"), pw.run(query, {"S": table}, time="t"))


@pytest.mark.parametrize("columnar", [[], ["S"]])
@pytest.mark.parametrize("window", ["RANGE 10 SLIDE 5", "RANGE 10", "ROWS 3"])
def test_regression_expressions_are_for_rows_that_pass_the_filters(window: str, columnar: list[str]) -> None:
    """A quotient was computed for all rows, also for those that WHERE leaves out because there is none."""
    query = f"SELECT 10 / x AS k, SUM(10 / x) AS s FROM S [{window}] WHERE x <> 0 GROUP BY 10 / x HAVING SUM(x) > 1"
    table = pa.table({"t": [1, 2, 3, 4], "x": [0, 2, 0, 4]})
    pool = pw.Pool({"S": pw.StreamSchema(table.schema, time="t", delay=0)})
    pool.register("q", query)
    shards = Shards(pool, 2, columnar=columnar)
    shards.batch(S=[table])
    shards.finish()
    same(shards.results("q"), pw.run(query, {"S": table}, time="t"))


@pytest.mark.parametrize("rules_off", [[], ["share_panes"]])
def test_regression_families_that_keep_different_things_get_messages_of_their_own(rules_off: list[str]) -> None:
    """A window with a SLIDE that reports changes, beside one without: the panes of one went to the rows of the other.
    With sharing switched off, all panes went to the first of several queries."""
    queries = {
        "now": "SELECT COUNT(*) AS n FROM S [NOW]",
        "sliding": "SELECT ISTREAM COUNT(*) AS n FROM S [RANGE 1 SLIDE 1]",
        "wide": "SELECT ISTREAM COUNT(*) AS n FROM S [RANGE 4 SLIDE 2]",
    }
    table = pa.table({"t": [1, 1, 2, 4], "k": ["a", "b", "a", "b"]})
    pool = pw.Pool({"S": pw.StreamSchema(table.schema, time="t", delay=0)}, rules_off=rules_off)
    for name, text in queries.items():
        pool.register(name, text)
    shards = Shards(pool, 2, restarts=True)
    shards.batch(S=[table.slice(0, 2), table.slice(2)])
    shards.finish()
    for name, text in queries.items():
        same(shards.results(name), pw.run(text, {"S": table}, time="t"))
