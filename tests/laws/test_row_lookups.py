"""Lookups of counted windows: any number of rows, at any instant, and any stretch of row numbers, by every index."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import panewise as pw
from panewise.aggregate import StateArrays
from panewise.core.errors import StateProblem
from panewise.engine.lookups import row_archive
from panewise.plan.rules.choose_index import IndexChoice, LookupUsage
from panewise.stores.ranked import QuantileIndex, RowQuantileIndex
from panewise.stores.row_indexes import RowBaseIndex, RowIndex, RowLevelIndex, RowRecomputeIndex, RowRunningIndex

from .strategies import BOUNDARIES, Count, Slide, table
from .test_engine import same
from .test_lookup_sequences import CALLS, asked
from .test_lookups import ALWAYS

pytestmark = pytest.mark.slow

#: Calls that cover every kind of state: exact, of floats, with an order, sorted, and of different sizes.
SOME = ("COUNT(*)", "SUM(v)", "SUM(x)", "MAX(x)", "LAST(v)", "MEDIAN(v)", "COUNT(DISTINCT v)")
#: A text whose condition removes rows after the window has counted them, and whose groups are not its partitions.
FILTERED = "SELECT x, SUM(v) AS s, COUNT(*) AS n FROM S {} WHERE v > -5 GROUP BY x"
HELD = st.builds(Count, st.integers(1, 4), st.integers(0, 2), st.booleans())
COUNTED = st.tuples(st.integers(1, 12), st.integers(0, 4))
RANGES = st.builds(Slide, st.integers(1, 12), st.one_of(st.none(), st.integers(1, 7)), st.integers(0, 4))
#: Rows and questions are about the time of their step, so that streams go on and a part of the rows is late.
TICKS = 3
ROWS = st.lists(
    st.tuples(
        st.one_of(st.integers(0, TICKS), st.integers(-15, TICKS)),
        st.sampled_from(["a", "b", None]),
        st.one_of(st.none(), st.integers(-9, 9)),
        st.one_of(st.none(), st.integers(-3, 3).map(lambda n: n / 8)),
        st.none(),
    ),
    min_size=1,
    max_size=6,
)
INSTANTS = st.lists(st.integers(-20, 5), min_size=1, max_size=3, unique=True)
#: How many rows before the newest a stretch begins, and how many rows it has.
STRETCHES = st.lists(st.tuples(st.integers(0, 20), st.integers(0, 12)), min_size=1, max_size=3)
ACTIONS = st.one_of(
    st.tuples(st.just("count"), st.tuples(COUNTED, INSTANTS)),
    st.tuples(st.just("between"), STRETCHES),
    st.tuples(st.just("range"), st.tuples(RANGES, INSTANTS)),
    st.tuples(st.sampled_from(["advance", "restart", "register", "revoke"]), st.none()),
)
#: Rows, and what happens after they have come.
Step = tuple[list[tuple[Any, ...]], tuple[str, Any]]
STEPS = st.lists(st.tuples(ROWS, ACTIONS), min_size=6, max_size=14)


@pytest.fixture(autouse=True)
def small_segments(monkeypatch: pytest.MonkeyPatch) -> None:
    """A few rows are in several segments."""
    monkeypatch.setattr(row_archive, "SMALL_SEGMENT", 1)
    monkeypatch.setattr(row_archive, "SEGMENT_GROWTH", 1)


def forced(index: type[RowIndex | RowQuantileIndex]) -> Any:
    """A planner that takes one index wherever the laws of states allow it."""

    def chosen(column: StateArrays, usage: LookupUsage, partitioned: bool, *_: object) -> IndexChoice[Any]:
        if issubclass(index, RowIndex):
            return IndexChoice(index if index.accepts(column) else RowLevelIndex, "forced")
        ranked = not partitioned and QuantileIndex.accepts(column)
        return IndexChoice(index if ranked else RowRecomputeIndex, "forced")

    return chosen


def questions(what: str, more: Any, text: str, held: Count, now: int, count: int) -> list[tuple[str, dict[str, Any]]]:
    """The lookups of a step, when so many rows have come: a text, and what is asked of it."""
    match what:
        case "count":
            (size, lag), instants = more
            return [(text.format(Count(size, lag, held.by_key).cql), {"at": [now + at for at in instants]})]
        case "between":
            starts = [max(count - back, 0) for back, _ in more]
            ends = [start + size for start, (_, size) in zip(starts, more, strict=True)]
            return [(text.format(held.cql), {"between": (starts, ends)})]
        case "range" if not held.by_key:
            window, instants = more
            stretch = now + instants[0] - 3, now + instants[0] + 4
            at = [now + each for each in instants]
            return [(text.format(window.cql), {"at": at}), (text.format(window.cql), {"between": stretch})]
    return []


def compare(engine: pw.Engine, cql: str, rows: list[tuple[Any, ...]], complete: bool, **question: Any) -> None:
    """A lookup says what the reference says, or that rows are not kept, unless they all are."""
    try:
        found = engine.lookup(cql, **question)
    except StateProblem:
        assert not complete
        return
    streams = {"S": pw.Stream(table(rows), time="t")}
    same(found, pw.reference.lookup(cql, streams, boundary=engine.pool.boundary, **question))


def played(steps: list[Step], held: Count, text: str, boundary: str, delay: int, keep: int) -> None:
    """Every answer on the way is the one of the reference; the registered query has one at every kept instant."""
    pool = pw.Pool({"S": pw.StreamSchema(table([]).schema, time="t", delay=delay)}, boundary=boundary)
    pool.register("held", f"{text.format(held.cql)} ALLOW UNBOUNDED")
    engine, rows = pw.Engine(pool, keep=keep), list[tuple[Any, ...]]()
    for number, (more_rows, (what, more)) in enumerate(steps):
        now = TICKS * number
        fresh = [(now + row[0], *row[1:]) for row in more_rows]
        engine.feed("S", table(fresh))
        rows += fresh
        newest = max(row[0] for row in rows) + pool.boundary.shift
        compare(engine, text.format(held.cql), rows, True, at=[newest - keep + 1, newest - 1, newest])
        match what:
            case "advance":
                engine.advance()
            case "register" if "guest" not in engine.pool.queries and not held.by_key:
                engine.pool.register("guest", text.format("[RANGE 3]"))
            case "revoke" if "guest" in engine.pool.queries:
                engine.pool.revoke("guest")
            case "restart":
                engine = pw.Engine.restore(engine.snapshot())
        for cql, question in questions(what, more, text, held, now, len(rows)):
            compare(engine, cql, rows, keep == ALWAYS, **question)


@pytest.mark.parametrize("index", [RowRecomputeIndex, RowRunningIndex, RowBaseIndex, RowLevelIndex, RowQuantileIndex])
def test_rows_that_are_kept_answer_every_window(
    index: type[RowIndex | RowQuantileIndex], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Counted windows, stretches of row numbers and windows over time; the query itself at every kept instant."""
    monkeypatch.setattr(row_archive, "choose_row_index", forced(index))

    @settings(max_examples=12, deadline=None, suppress_health_check=list(HealthCheck))
    @given(STEPS, HELD, st.sampled_from([asked(SOME, "{}"), FILTERED]), BOUNDARIES, st.sampled_from([0, 5]))
    def law(steps: list[Step], held: Count, text: str, boundary: str, delay: int) -> None:
        for keep in (ALWAYS, 6):
            played(steps, held, text, boundary, delay, keep)

    law()


@settings(max_examples=10, deadline=None, suppress_health_check=list(HealthCheck))
@given(STEPS, HELD, BOUNDARIES)
def test_every_aggregate_is_looked_up_over_rows(steps: list[Step], held: Count, boundary: str) -> None:
    played(steps, held, asked(CALLS, "{}"), boundary, 3, ALWAYS)


@settings(max_examples=60, deadline=None)
@given(ROWS, st.integers(1, 9), STRETCHES, BOUNDARIES)
def test_a_stretch_of_the_reference_is_what_sql_would_number(
    rows: list[tuple[Any, ...]], count: int, stretches: list[tuple[int, int]], boundary: str
) -> None:
    """Row numbers by time and arrival, against Python."""
    ordered = [row[2] for row in sorted(rows, key=lambda row: row[0])]
    starts, ends = [a for a, _ in stretches], [a + b for a, b in stretches]
    found = pw.reference.lookup(
        f"SELECT COUNT(*) AS n, SUM(v) AS s FROM S [ROWS {count}]",
        {"S": pw.Stream(table(rows), time="t")},
        between=(starts, ends),
        boundary=boundary,
    )
    wanted = []
    for start, end in zip(starts, ends, strict=True):
        inside = ordered[start:end]
        values = [value for value in inside if value is not None]
        if inside:
            wanted.append({"n": len(inside), "s": sum(values) if values else None, "w_start": start, "w_end": end})
    assert found.to_pylist() == wanted
    assert found.schema.field("w_end").type == pa.int64()
