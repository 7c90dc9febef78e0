"""Lookups against their meaning: whatever has arrived, asked for any window, at any moment."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import panewise as pw
from panewise.core.errors import StateProblem
from panewise.engine.lookups import having_index

from .strategies import BOUNDARIES, Count, Slide, table
from .test_engine import same

pytestmark = pytest.mark.slow

#: Longer than any stream here.
ALWAYS = 1000
AGGREGATES = (
    "COUNT(*) AS n, COUNT(v) AS c, SUM(v) AS s, MAX(v) AS m, MIN(x) AS y, AVG(x) AS a, LAST(v) AS l, MEDIAN(v) AS h"
)
GROUPED = f"SELECT k, {AGGREGATES} FROM S {{}} GROUP BY k"
HAVING = [
    "SELECT k FROM S {} GROUP BY k HAVING COUNT(*) > 1",
    "SELECT k, COUNT(v) AS c FROM S {} GROUP BY k HAVING COUNT(v) < 2 AND MAX(v) > -5",
    "SELECT k, SUM(v) AS s FROM S {} GROUP BY k HAVING 3 <= SUM(v)",
    "SELECT k, MAX(v) AS m FROM S {} GROUP BY k HAVING MAX(v) >= 3 AND COUNT(*) < 9",
    "SELECT k, MIN(x) AS m FROM S {} GROUP BY k HAVING MIN(x) < 0.5",
]
TIERED = (
    "SELECT k, AGED_SUM(v) AS s, RECURRING(v) AS r, COUNT(*) AS n FROM S [RANGES 12, 6, 2 SLIDES 4, 2, 1] GROUP BY k"
)
ALONE = "SELECT SUM(v) AS s, MIN(x) AS m FROM S {}"

WINDOWS = st.one_of(
    st.builds(Slide, st.integers(1, 12), st.one_of(st.none(), st.integers(1, 7)), st.integers(0, 4)).map(
        lambda w: w.cql
    ),
    st.sampled_from(["[UNBOUNDED]", "[UNBOUNDED SLIDE 3]", "[CUMULATE 6 STEP 2]", "[RANGES 12, 6, 2 SLIDES 4, 2, 1]"]),
)
ROWS = st.tuples(
    st.integers(0, 40),
    st.sampled_from(["a", "b", None]),
    st.one_of(st.none(), st.integers(-9, 9)),
    st.one_of(st.none(), st.integers(-80, 80).map(lambda n: n / 8)),
    st.none(),
)


@dataclass(frozen=True)
class Asked:
    """One lookup: which query, when, and of whom."""

    cql: str
    at: int
    keys: list[str | None] | None


@dataclass(frozen=True)
class Restart:
    """The engine is written down and read again."""


Step = list[tuple[Any, ...]] | Asked | Restart

ASKED = st.builds(
    Asked,
    st.tuples(st.sampled_from([GROUPED, ALONE, TIERED, *HAVING]), WINDOWS).map(lambda pair: pair[0].format(pair[1])),
    st.integers(-5, 60),
    st.one_of(st.none(), st.lists(st.sampled_from(["a", "b", "z", None]), max_size=3)),
)
STEPS = st.lists(st.one_of(st.lists(ROWS, max_size=8), ASKED, ASKED, st.builds(Restart)), max_size=12)


def _reference(asked: Asked, rows: list[tuple[Any, ...]], boundary: str) -> pa.Table:
    found = pw.reference.lookup(asked.cql, {"S": pw.Stream(table(rows), time="t")}, asked.at, boundary=boundary)
    if asked.keys is None or "GROUP" not in asked.cql:
        return found
    return found.filter(pa.array([key in asked.keys for key in found.column("k").to_pylist()], pa.bool_()))


def _keys(asked: Asked) -> dict[str, list[str | None]] | None:
    return None if asked.keys is None or "GROUP" not in asked.cql else {"k": asked.keys}


def _pool(boundary: str, delay: int) -> pw.Pool:
    pool = pw.Pool({"S": pw.StreamSchema(table([]).schema, time="t", delay=delay)}, boundary=boundary)
    pool.register("grouped", GROUPED.format("[RANGE 6 SLIDE 2]"))
    pool.register("alone", ALONE.format("[RANGE 5]"))
    pool.register("tiered", TIERED)
    return pool


@pytest.fixture(autouse=True)
def eager_sieves(monkeypatch: pytest.MonkeyPatch) -> None:
    """HAVING is answered by collective indexes from the first lookup on."""
    monkeypatch.setattr(having_index, "MIN_LOOKUPS", 1)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(STEPS, BOUNDARIES, st.sampled_from([0, 3]), st.booleans())
def test_any_window_at_any_moment(steps: list[Step], boundary: str, delay: int, joins: bool) -> None:
    """What is kept finely enough answers every window exactly, late rows, restarts and other queries or not."""
    engine = pw.Engine(_pool(boundary, delay), keep=ALWAYS, grain=1)
    rows: list[tuple[Any, ...]] = []
    for number, step in enumerate(steps):
        match step:
            case Restart():
                engine.advance()
                engine = pw.Engine.restore(engine.snapshot())
            case Asked():
                same(engine.lookup(step.cql, at=step.at, keys=_keys(step)), _reference(step, rows, boundary))
            case _:
                engine.feed("S", table(step))
                rows += step
                if number % 2:
                    engine.advance()
                if joins and number == 2:
                    engine.pool.register("guest", GROUPED.format("[RANGE 9 SLIDE 3]"))
                if joins and number == 5 and "guest" in engine.pool.queries:
                    engine.pool.revoke("guest")


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(st.lists(ROWS, max_size=8), max_size=4),
    BOUNDARIES,
    st.lists(WINDOWS, min_size=1, max_size=3),
    st.integers(-3, 3),
)
def test_what_windows_hold_anyway_answers_or_says_so(
    batches: list[list[tuple[Any, ...]]], boundary: str, windows: list[str], ago: int
) -> None:
    """Without keep, a lookup is right or refused; the newest instant of a query alone with its slide is answered."""
    pool = pw.Pool({"S": pw.StreamSchema(table([]).schema, time="t", delay=2)}, boundary=boundary)
    for number, window in enumerate(windows):
        pool.register(f"q{number}", GROUPED.format(window))
    engine = pw.Engine(pool)
    rows: list[tuple[Any, ...]] = []
    for batch in batches:
        engine.feed("S", table(batch))
        rows += batch
        engine.advance()
    mark = engine.marks["S"]
    if mark is None:
        assert not engine.lookup("q0").num_rows or rows
        return
    at = mark - 1 + pool.boundary.shift
    for number, window in enumerate(windows):
        for instant in (at, at - ago):
            try:
                found = engine.lookup(f"q{number}", at=instant)
            except StateProblem:
                continue
            same(found, _reference(Asked(GROUPED.format(window), instant, None), rows, boundary))


@settings(max_examples=50, deadline=None)
@given(
    st.lists(st.lists(ROWS, max_size=8), max_size=4),
    BOUNDARIES,
    st.builds(Count, st.integers(1, 6), st.integers(0, 3), st.booleans()),
    st.builds(Count, st.integers(1, 6), st.integers(0, 3), st.booleans()),
    st.integers(-5, 45),
    st.booleans(),
)
def test_counted_windows(
    batches: list[list[tuple[Any, ...]]], boundary: str, held: Count, asked: Count, at: int, again: bool
) -> None:
    """Rows that some window of rows holds answer others, or it is said that they do not suffice."""
    pool = pw.Pool({"S": pw.StreamSchema(table([]).schema, time="t", delay=2)}, boundary=boundary)
    pool.register("held", f"{GROUPED.format(held.cql)} ALLOW UNBOUNDED")
    engine, rows = pw.Engine(pool), []
    for batch in batches:
        engine.feed("S", table(batch))
        rows += batch
        engine.advance()
    if again:
        engine = pw.Engine.restore(engine.snapshot())
    question = Asked(GROUPED.format(replace(asked, by_key=held.by_key).cql), at, None)
    try:
        found = engine.lookup(question.cql, at=at)
    except StateProblem:
        assert len(rows) > held.count + held.lag
        return
    same(found, _reference(question, rows, boundary))
