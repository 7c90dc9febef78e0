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
    aggregated(("sliding", "tumbling", "levels", "cumulate", "session"), revising=True),
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


# ---- together = alone ------------------------------------------------------------------------------------------------

#: Windows that may share panes.
TIMED = ("sliding", "tumbling", "continuous", "levels", "landmark", "refreshed", "cumulate")
ANY_WINDOW = st.one_of(*(KINDS[kind] for kind in TIMED))


@st.composite
def pools(draw: st.DrawFn) -> dict[str, str]:
    """Some queries that differ in their windows only, also twice the same, and some others."""
    one = draw(aggregated(TIMED))
    windows = draw(st.lists(ANY_WINDOW, min_size=1, max_size=4))
    others = draw(st.lists(aggregated(), max_size=2))
    queries = [one, *(replace(one, window=window) for window in windows), *others]
    return {f"q{n}": query.cql for n, query in enumerate(queries)}


@settings(max_examples=100)
@given(
    odd_tables(12, DISORDER), pools(), st.integers(0, 5), CUTS, BOUNDARIES, st.sampled_from(["cost", "paper"])
)
def test_together_as_alone(
    s: pa.Table, queries: dict[str, str], delay: int, cuts: list[tuple[int, bool]], boundary: str, policy: str
) -> None:
    found, engine = played(queries, split(s, cuts), s.schema, delay, boundary, policy)
    for name, cql in queries.items():
        same(found[name], alone(cql, split(s, cuts), s.schema, delay, boundary))
    account = engine.accounting["S"]
    assert account.rows_in == s.num_rows == account.used + account.late + account.rejected


# ---- joining and leaving ---------------------------------------------------------------------------------------------


@st.composite
def visited(draw: st.DrawFn, events: list[Event], relative: Aggregated) -> list[Event]:
    """The same events with other queries coming and going in between, some of them of the family of `relative`."""
    kin = ANY_WINDOW.map(lambda window: replace(relative, window=window))
    found: list[Event] = []
    guests: list[str] = []
    for number, event in enumerate(events):
        found.append(event)
        if draw(st.booleans()):
            guests.append(f"guest{number}")
            found.append(Join(guests[-1], draw(st.one_of(kin, kin, aggregated())).cql))
        if guests and draw(st.booleans()):
            found.append(Leave(guests.pop(draw(st.integers(0, len(guests) - 1)))))
    return found


@settings(max_examples=120)
@given(odd_tables(12, DISORDER), aggregated(), st.integers(0, 5), CUTS, st.data(), BOUNDARIES)
def test_guests_disturb_nobody(
    s: pa.Table, query: Aggregated, delay: int, cuts: list[tuple[int, bool]], data: st.DataObject, boundary: str
) -> None:
    events = data.draw(visited(split(s, cuts), query))
    policy = data.draw(st.sampled_from(["cost", "paper"]))
    found, _ = played({"q": query.cql}, events, s.schema, delay, boundary, policy)
    same(found["q"], pw.reference.run(query.cql, {"S": pw.Stream(s, "t", delay)}, boundary=boundary))


@settings(max_examples=60)
@given(odd_tables(10, DISORDER), aggregated(), aggregated(), st.integers(0, 5), CUTS, BOUNDARIES)
def test_joining_before_the_first_row_is_having_always_been_there(
    s: pa.Table, query: Aggregated, other: Aggregated, delay: int, cuts: list[tuple[int, bool]], boundary: str
) -> None:
    events = [s.slice(0, 0), Ask(), Join("q", query.cql), *split(s, cuts)]
    found, _ = played({"other": other.cql}, events, s.schema, delay, boundary)
    same(found["q"], pw.reference.run(query.cql, {"S": pw.Stream(s, "t", delay)}, boundary=boundary))


#: (time, key) of rows, ascending; windows as range, slide and lag.
ITEMS = st.lists(st.tuples(st.integers(-12, 24), st.sampled_from("ab")), min_size=1, max_size=16).map(sorted)
EXTENTS = st.tuples(st.integers(1, 12), st.integers(1, 6), st.sampled_from([0, 0, 0, 1, 4]))


def counting(extent: tuple[int, int, int]) -> str:
    range, slide, lag = extent
    return f"SELECT k, COUNT(*) AS n, MAX(t) AS newest FROM S [RANGE {range} SLIDE {slide} LAG {lag}] GROUP BY k"


@settings(max_examples=200)
@given(ITEMS, st.lists(EXTENTS, max_size=3), EXTENTS, st.integers(-12, 24), st.lists(st.integers(0, 9)), BOUNDARIES)
def test_a_newcomer_is_half_filled_until_its_range_has_passed(
    items: list[tuple[int, str]],
    hosts: list[tuple[int, int, int]],
    newcomer: tuple[int, int, int],
    joins: int,
    steps: list[int],
    boundary: str,
) -> None:
    """It joins at an instant up to which all is final. Windows that begin no earlier are complete, and older ones hold
    what came after some position."""
    s = pa.table({"t": [t for t, _ in items], "k": [k for _, k in items]}, pa.schema([("t", pa.int64()), ("k", pa.string())]))
    first = joins + (boundary == "(]")
    events: list[Event] = [s.filter(pa.array([t < first for t, _ in items])), Ask(joins), Join("q", counting(newcomer))]
    now = joins
    for step in steps:
        events += [s.filter(pa.array([first <= t < first + step for t, _ in items])), Ask(now + step)]
        first, now = first + step, now + step
    events.append(s.filter(pa.array([t >= first for t, _ in items])))
    found, _ = played({f"host{n}": counting(host) for n, host in enumerate(hosts)}, events, s.schema, None, boundary)
    by_end: dict[int, dict[str, tuple[int, int]]] = {}
    for row in found["q"].to_pylist():
        by_end.setdefault(row["w_end"], {})[row["k"]] = row["n"], row["newest"]
    range, slide, lag = newcomer
    for end in sorted({*by_end, *(t + d for t, _ in items for d in (0, 1, slide, range))}):
        if (end + lag) % slide == 0 and end + lag > joins:
            inside = [
                (t, k)
                for t, k in items
                if (end - range < t <= end if boundary == "(]" else end - range <= t < end)
            ]
            half = [_counted([i for i in inside if i[0] >= since]) for since in {t for t, _ in inside} | {end + 1}]
            wanted = [_counted(inside)] if end - range >= joins else half
            assert by_end.get(end, {}) in wanted, f"{by_end.get(end, {})} at {end} is not among {wanted}"


def _counted(items: Sequence[tuple[int, str]]) -> dict[str, tuple[int, int]]:
    found: dict[str, tuple[int, int]] = {}
    for t, k in items:
        found[k] = found.get(k, (0, 0))[0] + 1, t
    return found
