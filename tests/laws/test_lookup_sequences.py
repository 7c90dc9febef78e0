"""Lookups between feeds, advances, registrations, revocations and restarts: every aggregate, by every index."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import panewise as pw
from panewise.aggregate import AGGREGATES, Positional, StateArrays
from panewise.engine.lookups import archive
from panewise.plan.rules.choose_index import IndexChoice, LookupUsage
from panewise.stores.arrays import BaseArrays
from panewise.stores.dense import BaseArrayIndex, LandmarkIndex, RunningIndex
from panewise.stores.indexes import BaseIntervalIndex, PaneIndex, RecomputeIndex
from panewise.stores.ranked import QuantileIndex

from .strategies import BOUNDARIES, table
from .test_engine import same
from .test_lookups import ROWS

CALLS = (
    "COUNT(*)",
    "COUNT(v)",
    "COUNT(DISTINCT v)",
    "SUM(v)",
    "SUM(x)",
    "AVG(x)",
    "MIN(v)",
    "MAX(x)",
    "VAR_SAMP(v)",
    "VAR_POP(v)",
    "STDDEV_SAMP(v)",
    "STDDEV_POP(x)",
    "FIRST(v)",
    "LAST(x)",
    "QUANTILE(v, 0.5)",
    "QUANTILE(x, 0.9)",
    "MEDIAN(v)",
    "MEDIAN(x)",
    "REGR_SLOPE(v)",
    "REGR_INTERCEPT(v)",
    "REGR_R2(v)",
    "APPROX_DISTINCT(v)",
    "TOP_K(v, 2)",
)
#: Those that ask where items lie, which need levels.
TIERED = (
    "AGED_SUM(v)",
    "AGED_AVG(v)",
    "AGED_COUNT(v)",
    "RECURRING(v)",
    "RECURRING_COUNTS(v)",
    "REGR_FORECAST(v, 3)",
)


def asked(calls: tuple[str, ...], window: str) -> str:
    named = ", ".join(f"{call} AS a{number}" for number, call in enumerate(calls))
    return f"SELECT k, {named} FROM S {window} GROUP BY k"


LEVELS = "[RANGES 12, 6, 2 SLIDES 4, 2, 1]"
WINDOWS = st.sampled_from(["[RANGE 15]", "[RANGE 7]", "[RANGE 6 SLIDE 4]", "[RANGE 9 LAG 3]", "[UNBOUNDED]", LEVELS])
QUESTIONS = st.one_of(WINDOWS.map(lambda window: asked(CALLS, window)), st.just(asked(TIERED, LEVELS)))
GUEST = asked(CALLS, "[RANGE 9 SLIDE 3]")
Step = tuple[str, Any]
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("feed"), st.lists(ROWS, min_size=1, max_size=6)),
        st.tuples(st.just("advance"), st.none()),
        st.tuples(st.just("lookup"), st.tuples(QUESTIONS, st.lists(st.integers(0, 50), min_size=1, max_size=3))),
        st.tuples(st.sampled_from(["register", "revoke", "restart"]), st.none()),
    ),
    min_size=3,
    max_size=12,
)


def forced(index: type[PaneIndex]) -> Any:
    """A planner that takes one index wherever the laws of states allow it."""

    def chosen(column: StateArrays, usage: LookupUsage, *_: object) -> IndexChoice[PaneIndex]:
        numbers = not any(word.dtype.hasobject for word in column.identity(0)) and BaseArrays.accepts(column)
        allowed = {QuantileIndex: QuantileIndex.accepts(column), RunningIndex: numbers and column.exact}
        return IndexChoice(
            index if allowed.get(index, index in (RecomputeIndex, BaseIntervalIndex) or numbers) else BaseIntervalIndex,
            "forced",
        )

    return chosen


def pool(boundary: str, delay: int) -> pw.Pool:
    made = pw.Pool({"S": pw.StreamSchema(table([]).schema, time="t", delay=delay)}, boundary=boundary)
    made.register("plain", asked(CALLS, "[RANGE 6 SLIDE 6]"))
    made.register("tiered", asked(TIERED, LEVELS))
    return made


def played(steps: list[Step], boundary: str, delay: int) -> None:
    """Every answer on the way is the one of the reference, whatever has come before it."""
    engine, rows = pw.Engine(pool(boundary, delay), keep=1000, grain=1), []
    for what, more in steps:
        match what:
            case "feed":
                engine.feed("S", table(more))
                rows += more
            case "advance":
                engine.advance()
            case "lookup":
                cql, instants = more
                streams = {"S": pw.Stream(table(rows), time="t")}
                wanted = pa.concat_tables(
                    [pw.reference.lookup(cql, streams, at, boundary=boundary) for at in sorted(set(instants))]
                )
                same(engine.lookup(cql, at=sorted(set(instants))), wanted)
            case "register" if "guest" not in engine.pool.queries:
                engine.pool.register("guest", GUEST)
            case "revoke" if "guest" in engine.pool.queries:
                engine.pool.revoke("guest")
            case "restart":
                engine = pw.Engine.restore(engine.snapshot())


def test_every_aggregate_is_looked_up() -> None:
    """By the first of its names; COUNT has three forms."""
    kinds = {kind.names[0].partition("(")[0]: kind for kind in AGGREGATES.values()}
    assert set(kinds) == {call.partition("(")[0] for call in (*CALLS, *TIERED)}
    assert {name for name, kind in kinds.items() if issubclass(kind, Positional)} == {
        call.partition("(")[0] for call in TIERED
    }


@pytest.mark.slow
@pytest.mark.parametrize(
    "index", [RecomputeIndex, BaseIntervalIndex, QuantileIndex, RunningIndex, BaseArrayIndex, LandmarkIndex]
)
def test_lookups_between_anything_say_what_the_reference_says(
    index: type[PaneIndex], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(archive, "choose_index", forced(index))

    @settings(max_examples=20, deadline=None, suppress_health_check=list(HealthCheck))
    @given(STEPS, BOUNDARIES, st.sampled_from([0, 5]))
    def law(steps: list[Step], boundary: str, delay: int) -> None:
        played(steps, boundary, delay)

    law()


@pytest.mark.parametrize("index", [None, QuantileIndex])
@pytest.mark.parametrize("delay", [0, 5])
@pytest.mark.parametrize("call", ["MEDIAN(v)", "QUANTILE(v, 0.5)", "QUANTILE(v, 0.75)"])
def test_a_median_counts_rows_that_are_not_kept_yet(
    call: str, delay: int, index: type[PaneIndex] | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The values of kept panes were reduced to their middle before those of open ones were added."""
    if index is not None:
        monkeypatch.setattr(archive, "choose_index", forced(index))
    made = pw.Pool({"S": pw.StreamSchema(table([]).schema, time="t", delay=delay)})
    made.register("q", asked((call,), "[RANGE 6 SLIDE 6]"))
    engine = pw.Engine(made, keep=100, grain=1)
    rows: list[tuple[Any, ...]] = [(0, "b", 4, None, None)]
    engine.feed("S", table(rows))
    engine.lookup(asked((call,), "[RANGE 7]"), at=10)
    more = [(1, "b", 1, None, None), (3, "b", 2, None, None), (6, "b", 4, None, None)]
    engine.feed("S", table(more))
    engine.advance()
    wanted = {"MEDIAN(v)": 3.0, "QUANTILE(v, 0.5)": 2, "QUANTILE(v, 0.75)": 4}[call]
    assert engine.lookup(asked((call,), "[RANGE 15]"), at=14)["a0"].to_pylist() == [wanted]
