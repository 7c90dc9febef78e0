"""The engine against its meaning, which is the reference: whole and split, together and alone, joining and leaving."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

import panewise as pw

from .strategies import (
    BOUNDARIES,
    GRIDDED,
    KINDS,
    TIMES,
    Aggregated,
    aggregated,
    odd_tables,
    on_timestamps,
    stretched,
)

#: Times close together with now and then a much newer one, and sometimes none: many rows are late.
DISORDER = st.one_of(*[st.integers(-4, 6)] * 4, st.integers(0, 20), st.none())


# ---- comparing -------------------------------------------------------------------------------------------------------


def same(found: pa.Table, wanted: pa.Table) -> None:
    """Equal schemas, and equal rows in any order; floats within a few ulps."""
    assert found.schema == wanted.schema
    ours, theirs = (sorted((tuple(row.values()) for row in t.to_pylist()), key=_rank) for t in (found, wanted))
    assert len(ours) == len(theirs), f"{ours} is not {theirs}"
    for one, other in zip(ours, theirs, strict=True):
        assert all(map(_close, one, other)), f"{one} is not {other}, in {ours} and {theirs}"


def _rank(row: tuple[Any, ...]) -> list[str]:
    """Rows that differ by no more than they may stand side by side."""
    return [f"{v:.9g}" if isinstance(v, float) else repr(v) for v in row]


def _close(one: Any, other: Any) -> bool:
    if isinstance(one, float) and isinstance(other, float) and math.isfinite(one) and math.isfinite(other):
        return abs(one - other) <= 4 * math.ulp(max(abs(one), abs(other)))
    return repr(one) == repr(other)


# ---- playing ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Join:
    name: str
    cql: str


@dataclass(frozen=True)
class Leave:
    name: str


@dataclass(frozen=True)
class Ask:
    """`engine.advance(to)`."""

    to: int | None = None


#: What can happen to a running engine: rows come, time is asked for, queries come and go.
Event = pa.Table | Ask | Join | Leave


def played(
    queries: Mapping[str, str],
    events: Iterable[Event],
    schema: pa.Schema,
    delay: int | None = None,
    boundary: str = "(]",
    policy: str = "cost",
    until: int | None = None,
) -> tuple[dict[str, pa.Table], pw.Engine]:
    """Everything each query said, until the end; and the engine."""
    pool = pw.Pool({"S": pw.StreamSchema(schema, "t", delay)}, boundary, policy)
    for name, cql in queries.items():
        pool.register(name, cql)
    engine = pw.Engine(pool)
    said: dict[str, list[pa.Table]] = {}

    def hear(emission: Mapping[str, pa.Table]) -> None:
        for name, table in emission.items():
            said.setdefault(name, []).append(table)

    for event in events:
        match event:
            case Join(name, cql):
                pool.register(name, cql)
            case Leave(name):
                pool.revoke(name)
            case Ask(to):
                hear(engine.advance(to))
            case rows:
                engine.feed("S", rows)
    hear(engine.finish(until))
    return {name: pa.concat_tables(tables) for name, tables in said.items()}, engine


def alone(cql: str, events: Iterable[Event], schema: pa.Schema, delay: int | None, boundary: str) -> pa.Table:
    return played({"q": cql}, events, schema, delay, boundary)[0]["q"]


def split(s: pa.Table, cuts: Sequence[tuple[int, bool]]) -> list[Event]:
    """The rows cut at some places, also into no rows at all; after some of the batches time is asked for."""
    events: list[Event] = []
    done = 0
    for cut, asking in sorted((min(place, s.num_rows), asking) for place, asking in cuts):
        events += [s.slice(done, cut - done), *[Ask()] * asking]
        done = cut
    return [*events, s.slice(done)]


CUTS = st.lists(st.tuples(st.integers(0, 12), st.booleans()), max_size=5)


# ---- engine = reference ----------------------------------------------------------------------------------------------


@settings(max_examples=250)
@given(odd_tables(), aggregated(), BOUNDARIES, st.one_of(st.none(), st.none(), st.integers(-8, 16)))
def test_the_engine_says_what_the_reference_says(
    s: pa.Table, query: Aggregated, boundary: str, until: int | None
) -> None:
    wanted = pw.reference.run(query.cql, {"S": s}, time="t", boundary=boundary, until=until)
    found, _ = played({"q": query.cql}, [s], s.schema, boundary=boundary, until=until)
    same(found["q"], wanted)


@settings(max_examples=100)
@given(
    odd_tables(),
    aggregated(tuple(kind for kind in KINDS if kind not in ("varying", "predicate"))),
    st.sampled_from([pa.timestamp("us"), pa.timestamp("ms", "UTC"), pa.timestamp("s"), pa.timestamp("ns")]),
    BOUNDARIES,
)
def test_on_timestamps(s: pa.Table, query: Aggregated, kind: pa.DataType, boundary: str) -> None:
    query, s = on_timestamps(query), stretched(s, kind)
    wanted = pw.reference.run(query.cql, {"S": s}, time="t", boundary=boundary)
    same(alone(query.cql, [s], s.schema, None, boundary), wanted)


# ---- split -----------------------------------------------------------------------------------------------------------


@settings(max_examples=250)
@given(odd_tables(12, DISORDER), aggregated(revising=True), st.integers(0, 5), CUTS, BOUNDARIES)
def test_any_split_gives_the_same_answers(
    s: pa.Table, query: Aggregated, delay: int, cuts: list[tuple[int, bool]], boundary: str
) -> None:
    """Rows out of order, late ones among them; the reference sees them in the same order of arrival."""
    wanted = pw.reference.run(query.cql, {"S": pw.Stream(s, "t", delay)}, boundary=boundary)
    same(alone(query.cql, split(s, cuts), s.schema, delay, boundary), wanted)


@settings(max_examples=150)
@given(
    odd_tables(12, DISORDER),
    aggregated(("sliding", "tumbling", "continuous", "levels", "cumulate", "session"), revising=True),
    st.integers(0, 5),
    CUTS,
    BOUNDARIES,
)
def test_any_split_gives_the_same_account(
    s: pa.Table, query: Aggregated, delay: int, cuts: list[tuple[int, bool]], boundary: str
) -> None:
    wanted = pw.reference.execute(query.cql, {"S": pw.Stream(s, "t", delay)}, boundary=boundary)
    _, engine = played({"q": query.cql}, split(s, cuts), s.schema, delay, boundary)
    assert engine.accounting["S"] == wanted.accounting["S"], f"{engine.accounting} is not {wanted.accounting}"
    assert engine.late("S")["i"].to_pylist() == wanted.late["S"]["i"].to_pylist()


@st.composite
def promised(draw: st.DrawFn, s: pa.Table, boundary: str) -> list[Event]:
    """The rows in the order of time; now and then an instant before the next of them is declared final."""
    s = s.sort_by("t")
    times = s["t"].to_pylist()
    events: list[Event] = []
    done = 0
    for cut in sorted(draw(st.sets(st.integers(1, max(len(times) - 1, 1)), max_size=4))):
        if cut < len(times):
            events.append(s.slice(done, cut - done))
            done, latest = cut, times[cut] - (boundary == "(]")
            if draw(st.booleans()) and times[0] < latest:
                events.append(Ask(draw(st.integers(times[0], latest))))
    return [*events, s.slice(done)]


@settings(max_examples=150)
@given(odd_tables(12), aggregated(), st.data(), BOUNDARIES)
def test_declaring_instants_final_changes_nothing_for_rows_on_time(
    s: pa.Table, query: Aggregated, data: st.DataObject, boundary: str
) -> None:
    events = data.draw(promised(s, boundary))
    wanted = pw.reference.run(query.cql, {"S": s.sort_by("t")}, time="t", boundary=boundary)
    same(alone(query.cql, events, s.schema, None, boundary), wanted)
