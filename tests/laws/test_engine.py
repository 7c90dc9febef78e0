"""The engine against its meaning, which is the reference: whole and split, together and alone, joining and leaving."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import Phase, given, reject, settings
from hypothesis import strategies as st
from pyarrow import feather

import panewise as pw
from panewise.aggregate import Items, Max, StateWords, Sum, put
from panewise.core.errors import BindProblem
from panewise.engine import keys
from panewise.engine.panes import grouping, open_panes
from panewise.plan.rules.choose_store import pane_totals
from panewise.plan.rules.group_windows import WindowGroup, WindowShape
from panewise.stores.chain import MIN_POSITION, StairChain, StairLevel
from panewise.stores.pane import Pane, PaneSpans, merge_panes

from .strategies import (
    BOUNDARIES,
    KINDS,
    Aggregated,
    aggregated,
    odd_tables,
    on_timestamps,
    stretched,
    table,
)

pytestmark = pytest.mark.slow

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
Event: TypeAlias = pa.Table | Ask | Join | Leave


def register(pool: pw.Pool, name: str, cql: str) -> None:
    """Let a query join; combinations that the engine leaves to the reference are no case of any law."""
    try:
        pool.register(name, cql if "LATE REVISE" in cql else f"{cql} ALLOW UNBOUNDED")
    except BindProblem as problem:
        if "the engine does not answer" in problem.message:
            reject()
        raise


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
        register(pool, name, cql)
    engine = pw.Engine(pool)
    said: dict[str, list[pa.Table]] = {}

    def hear(emission: Mapping[str, pa.Table]) -> None:
        for name, answer in emission.items():
            said.setdefault(name, []).append(answer)

    for event in events:
        match event:
            case Join(name, cql):
                register(pool, name, cql)
            case Leave(name):
                pool.revoke(name)
            case Ask(to):
                hear(engine.advance(to))
            case rows:
                engine.feed("S", rows)
    hear(engine.finish(until))
    return {name: pa.concat_tables(answers) for name, answers in said.items()}, engine


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


CUTS = st.lists(st.tuples(st.integers(0, 12), st.booleans()), max_size=6)


def unhurried(query: Aggregated, events: Sequence[Event]) -> list[Event]:
    """The same without asking for time, where that would let a query say more than it does in the end.

    A landmark with a SLIDE speaks as long as time passes, but `finish` stops with the last item it has seen.
    """
    landmark = "SLIDE" in query.window and ("UNBOUNDED" in query.window or "UNTIL" in query.window)
    ending = "UNTIL" in query.window or query.under
    return [event for event in events if not (landmark and ending and isinstance(event, Ask))]


# ---- engine = reference ----------------------------------------------------------------------------------------------


@settings(max_examples=200)
@given(odd_tables(), aggregated(silent=True), BOUNDARIES, st.one_of(st.none(), st.none(), st.integers(-8, 16)))
def test_the_engine_says_what_the_reference_says(
    s: pa.Table, query: Aggregated, boundary: str, until: int | None
) -> None:
    wanted = pw.reference.run(query.cql, {"S": s}, time="t", boundary=boundary, until=until)
    found, _ = played({"q": query.cql}, [s], s.schema, boundary=boundary, until=until)
    same(found["q"], wanted)


@settings(max_examples=80)
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


@settings(max_examples=180)
@given(odd_tables(12, DISORDER), aggregated(revising=True), st.integers(0, 5), CUTS, BOUNDARIES)
def test_any_split_gives_the_same_answers(
    s: pa.Table, query: Aggregated, delay: int, cuts: list[tuple[int, bool]], boundary: str
) -> None:
    """Rows out of order, late ones among them; the reference sees them in the same order of arrival."""
    wanted = pw.reference.run(query.cql, {"S": pw.Stream(s, "t", delay)}, boundary=boundary)
    same(alone(query.cql, unhurried(query, split(s, cuts)), s.schema, delay, boundary), wanted)


@settings(max_examples=100)
@given(
    odd_tables(12, DISORDER),
    # Which rows a counted or a varying window will still take in is not known when they come.
    aggregated(tuple(kind for kind in KINDS if kind not in {"rows", "blocks", "varying"}), revising=True, silent=True),
    st.integers(0, 5),
    CUTS,
    BOUNDARIES,
    st.one_of(st.none(), st.integers(-8, 16)),
)
def test_any_split_gives_the_same_account(
    s: pa.Table, query: Aggregated, delay: int, cuts: list[tuple[int, bool]], boundary: str, until: int | None
) -> None:
    wanted = pw.reference.execute(query.cql, {"S": pw.Stream(s, "t", delay)}, boundary=boundary, until=until)
    _, engine = played({"q": query.cql}, split(s, cuts), s.schema, delay, boundary, until=until)
    assert engine.accounting["S"] == wanted.accounting["S"], f"{engine.accounting} is not {wanted.accounting}"
    assert engine.late("S")["i"].to_pylist() == wanted.late["S"]["i"].to_pylist()


@settings(max_examples=80)
@given(odd_tables(12, DISORDER), aggregated(revising=True), st.integers(0, 5), CUTS, BOUNDARIES)
def test_housekeeping_changes_nothing(
    s: pa.Table, query: Aggregated, delay: int, cuts: list[tuple[int, bool]], boundary: str
) -> None:
    """Limits that only large streams meet, made small: blocks of rows, parts of a pane, groups to be forgotten."""
    wanted = alone(query.cql, split(s, cuts), s.schema, delay, boundary)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(keys, "FEW_KEYS", 1)
        patch.setattr(grouping, "SMALLEST_BLOCK", 1)
        patch.setattr(grouping, "LARGEST_BLOCK", 2)
        patch.setattr(open_panes, "MANY_PARTS", 2)
        same(alone(query.cql, split(s, cuts), s.schema, delay, boundary), wanted)


#: Bursts that lie far apart, so that panes and groups are many and hardly any of them is used.
BURSTS = st.builds(lambda burst, t: burst * 1_000_003 + t, st.integers(-2, 2), st.integers(0, 9))


@settings(max_examples=60)
@given(
    odd_tables(10, BURSTS),
    aggregated(("sliding", "tumbling", "continuous", "levels", "landmark", "rows", "session", "cumulate")),
    CUTS,
    BOUNDARIES,
)
def test_long_silences(s: pa.Table, query: Aggregated, cuts: list[tuple[int, bool]], boundary: str) -> None:
    cql = replace(query, suffix="").cql
    wanted = pw.reference.run(cql, {"S": pw.Stream(s, "t", delay=5)}, boundary=boundary)
    same(alone(cql, split(s, cuts), s.schema, 5, boundary), wanted)


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


@settings(max_examples=100)
@given(odd_tables(12), aggregated(), st.data(), BOUNDARIES)
def test_declaring_instants_final_changes_nothing_for_rows_on_time(
    s: pa.Table, query: Aggregated, data: st.DataObject, boundary: str
) -> None:
    events = data.draw(promised(s, boundary))
    wanted = pw.reference.run(query.cql, {"S": s.sort_by("t")}, time="t", boundary=boundary)
    same(alone(query.cql, unhurried(query, events), s.schema, None, boundary), wanted)


#: A delay that no row exceeds by itself, and how the reference is told of a promise then: by a row of the far future.
PATIENCE = 1000


@settings(max_examples=100)
@given(
    odd_tables(12, DISORDER),
    # Refreshed windows speak on as long as time is promised; the end of varying ones is told by the items WHERE leaves.
    aggregated(tuple(kind for kind in KINDS if kind not in {"refreshed", "varying"})),
    st.lists(st.tuples(st.integers(0, 12), st.integers(-6, 20)), max_size=4),
    st.sampled_from([None, PATIENCE]),
    BOUNDARIES,
)
def test_a_promise_is_a_watermark(
    s: pa.Table, query: Aggregated, promises: list[tuple[int, int]], delay: int | None, boundary: str
) -> None:
    """Rows that come after `advance(t)` and lie before t are as late as if a delay had said so."""
    # EMIT EMPTY goes on as long as time is promised.
    query = replace(
        query, under="i >= 0", suffix="", calls=tuple(c for c in query.calls if "REGR" not in c) or ("COUNT(*)",)
    )
    events: list[Event] = []
    marked: list[pa.Table] = []
    done = 0
    for cut, to in sorted((min(cut, s.num_rows), to) for cut, to in promises):
        newest = to + PATIENCE + (boundary == "(]")
        events += [s.slice(done, cut - done), Ask(to)]
        marked += [s.slice(done, cut - done), table([(newest, None, None, None, None)]).set_column(0, "i", [[-1]])]
        done = cut
    stream = pw.Stream(pa.concat_tables([*marked, s.slice(done)]), "t", PATIENCE)
    wanted = pw.reference.run(query.cql, {"S": stream}, boundary=boundary)
    same(alone(query.cql, [*events, s.slice(done)], s.schema, delay, boundary), wanted)


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
    queries = [one, *(replace(one, window=window, suffix="") for window in windows), *others]
    return {f"q{n}": query.cql for n, query in enumerate(queries)}


@settings(max_examples=60)
@given(odd_tables(12, DISORDER), pools(), st.integers(0, 5), CUTS, BOUNDARIES, st.sampled_from(["cost", "paper"]))
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
    kin = ANY_WINDOW.map(lambda window: replace(relative, window=window, suffix=""))
    found: list[Event] = []
    guests: list[str] = []
    for number, event in enumerate(events):
        found.append(event)
        coming, going = draw(st.booleans()), draw(st.booleans())
        if coming:
            guests.append(f"guest{number}")
            found.append(Join(guests[-1], draw(st.one_of(kin, kin, aggregated())).cql))
        if guests and going:
            found.append(Leave(guests.pop(draw(st.integers(0, len(guests) - 1)))))
    return found


@settings(max_examples=100)
@given(odd_tables(12, DISORDER), aggregated(), st.integers(0, 5), CUTS, st.data(), BOUNDARIES)
def test_guests_disturb_nobody(
    s: pa.Table, query: Aggregated, delay: int, cuts: list[tuple[int, bool]], data: st.DataObject, boundary: str
) -> None:
    events = data.draw(visited(unhurried(query, split(s, cuts)), query))
    policy = data.draw(st.sampled_from(["cost", "paper"]))
    found, _ = played({"q": query.cql}, events, s.schema, delay, boundary, policy)
    same(found["q"], pw.reference.run(query.cql, {"S": pw.Stream(s, "t", delay)}, boundary=boundary))


@settings(max_examples=60)
@given(odd_tables(10, DISORDER), aggregated(), aggregated(), st.integers(0, 5), CUTS, BOUNDARIES)
def test_joining_before_the_first_row_is_having_always_been_there(
    s: pa.Table, query: Aggregated, other: Aggregated, delay: int, cuts: list[tuple[int, bool]], boundary: str
) -> None:
    events = [s.slice(0, 0), Ask(), Join("q", query.cql), *unhurried(query, split(s, cuts))]
    found, _ = played({"other": other.cql}, events, s.schema, delay, boundary)
    same(found["q"], pw.reference.run(query.cql, {"S": pw.Stream(s, "t", delay)}, boundary=boundary))


#: (time, key) of rows, ascending; windows as range, slide and lag.
ITEMS = st.lists(st.tuples(st.integers(-12, 24), st.sampled_from("ab")), min_size=1, max_size=16).map(sorted)
EXTENTS = st.one_of(
    st.tuples(st.integers(1, 12), st.integers(1, 6), st.sampled_from([0, 0, 0, 1, 4])),
    st.sampled_from([(12, 12, 0), (12, 6, 0), (10, 10, 0), (20, 5, 0), (16, 8, 4), (2, 1, 0)]),
)


def counting(extent: tuple[int, int, int]) -> str:
    length, slide, lag = extent
    return f"SELECT k, COUNT(*) AS n, MAX(t) AS newest FROM S [RANGE {length} SLIDE {slide} LAG {lag}] GROUP BY k"


@settings(max_examples=150)
@given(ITEMS, st.lists(EXTENTS, max_size=3), EXTENTS, st.integers(-12, 24), st.lists(st.integers(0, 9)), BOUNDARIES)
def test_a_newcomer_is_half_filled_until_its_range_has_passed(
    items: list[tuple[int, str]],
    hosts: list[tuple[int, int, int]],
    newcomer: tuple[int, int, int],
    joins: int,
    steps: list[int],
    boundary: str,
) -> None:
    """It joins at an instant up to which all is final. Windows that begin after the pane that was unfinished then are
    complete; older ones hold what came after some position (decision 10)."""
    times, (length, slide, lag) = [t for t, _ in items], newcomer
    s = pa.table({"t": times, "k": [k for _, k in items]})
    known = joins + (boundary == "(]")
    events: list[Event] = [_between(s, None, known), Ask(joins), Join("q", counting(newcomer))]
    for step in steps:
        events += [_between(s, known, known + step), Ask(known + step - (boundary == "(]"))]
        known += step
    events.append(_between(s, known, None))
    found, _ = played({f"host{n}": counting(host) for n, host in enumerate(hosts)}, events, s.schema, None, boundary)
    told: dict[int, dict[str, tuple[int, int]]] = {}
    for row in found["q"].to_pylist():
        told.setdefault(row["w_end"], {})[row["k"]] = row["n"], row["newest"]
    unfinished = min((slide for _, slide, _ in hosts), default=0)
    for end in range(min(times) - 1, max(times) + length + 2):
        if (end + lag) % slide == 0 and end + lag > joins:
            inside = [(t, k) for t, k in items if end - length < t + (boundary == "[)") <= end]
            complete = end - length >= joins + unfinished
            since = {min(times)} if complete else {t for t, _ in inside} | {end + 1}
            wanted = [_counted([(t, k) for t, k in inside if t >= first]) for first in since]
            assert told.get(end, {}) in wanted, f"{told.get(end, {})} at {end} is not among {wanted}"


def _between(s: pa.Table, low: int | None, high: int | None) -> pa.Table:
    times = s["t"].to_pylist()
    return s.filter(pa.array([(low is None or t >= low) and (high is None or t < high) for t in times], pa.bool_()))


def _counted(items: Sequence[tuple[int, str]]) -> dict[str, tuple[int, int]]:
    found: dict[str, tuple[int, int]] = {}
    for t, k in items:
        found[k] = found.get(k, (0, 0))[0] + 1, t
    return found


# ---- the stairwise chain ---------------------------------------------------------------------------------------------

#: SUM and MAX of integers: one that can be subtracted, one that cannot.
COLUMNS = (Sum(pa.int64()).state_arrays(), Max(pa.int64()).state_arrays())
GROUPS = 3


@dataclass(frozen=True)
class Shape:
    """The edges of a chain: every range is a multiple of its granule, and each granule divides the next."""

    ranges: tuple[int, ...]
    granules: tuple[int, ...]

    @property
    def levels(self) -> list[StairLevel]:
        return [StairLevel(*each, 0) for each in zip(self.ranges, self.granules, strict=True)]

    def chain(self) -> StairChain:
        return StairChain(COLUMNS, pane_totals(COLUMNS, frozenset()), self.levels, GROUPS)

    @property
    def most_panes(self) -> int:
        """What the stairs may hold: their panes, one that straddles an edge and one that is being filled."""
        nears = (0, *self.ranges[:-1])
        return sum(-(-(far - near) // g) + 2 for near, far, g in zip(nears, self.ranges, self.granules, strict=True))


@st.composite
def shapes(draw: st.DrawFn) -> Shape:
    """Of frames as a pool has them."""
    frames = draw(
        st.lists(st.builds(WindowShape, st.integers(1, 40), st.sampled_from([1, 2, 3, 4, 6, 8, 12])), min_size=1)
    )
    group = WindowGroup(0, frames[:4])
    return Shape(group.ranges, group.granules)


@dataclass(frozen=True)
class Item:
    t: int
    group: int
    value: int


_ITEM = st.builds(Item, st.integers(-30, 120), st.integers(0, GROUPS - 1), st.integers(-9, 9))
STREAMS = st.lists(_ITEM, max_size=30)
#: How far to move, one instant after the other: mostly little, sometimes past everything.
MOVES = st.lists(st.one_of(st.integers(1, 3), st.integers(1, 12), st.sampled_from([30, 90])), min_size=1, max_size=16)


def pane(items: Sequence[Item], start: int, end: int) -> Pane:
    codes = sorted({item.group for item in items})
    slots = np.array([codes.index(item.group) for item in items], np.int64)
    rows = np.arange(len(items), dtype=np.int64)
    whole = Items((pa.array([item.value for item in items], pa.int64()),), rows, rows)
    return Pane(
        start, end, np.array(codes, np.int64), tuple(column.gather(slots, whole, len(codes)) for column in COLUMNS)
    )


def panes(items: Iterable[Item], width: int) -> list[Pane]:
    """Panes `(k * width - width, k * width]` that hold something, in order."""
    by_end: dict[int, list[Item]] = {}
    for item in items:
        by_end.setdefault(-(-item.t // width) * width, []).append(item)
    return [pane(some, end - width, end) for end, some in sorted(by_end.items())]


def lowered(states: Sequence[StateWords]) -> list[list[Any]]:
    return [column.lower(words).to_pylist() for column, words in zip(COLUMNS, states, strict=True)]


def recomputed(items: Iterable[Item], low: int, high: int) -> list[list[Any]]:
    """The sums and maxima of what lies in `(low, high]`, by group."""
    values = [[i.value for i in items if i.group == g and low < i.t <= high] for g in range(GROUPS)]
    return [[sum(v) if v else None for v in values], [max(v, default=None) for v in values]]


def all_answers(chain: StairChain) -> list[list[StateWords]]:
    """The states of the window of every stair, narrowest first."""
    return [states for _, states in chain.answers(range(len(chain.stairs)))]


def states_over(chain: StairChain, length: int) -> list[StateWords]:
    """The states over the last `length` positions, from all panes that lie in them."""
    inside = merge_panes(COLUMNS, [pane([], 0, 0), *(p for p in chain.panes() if p.start >= chain.now - length)])
    states = [column.identity(GROUPS) for column in COLUMNS]
    for words, found in zip(states, inside.states, strict=True):
        put(words, inside.codes, found)
    return states


def moved(chain: StairChain, ready: Iterable[Pane], now: int) -> None:
    """Bring a chain to an instant, with all panes that have ended since the one before."""
    chain.advance(now, [p for p in ready if chain.now < p.end <= now])
    chain.check()


@settings(max_examples=150)
@given(shapes(), STREAMS, MOVES)
def test_a_chain_answers_every_window_at_its_instants(shape: Shape, items: list[Item], moves: list[int]) -> None:
    chain, now = shape.chain(), -36
    ready = panes(items, shape.granules[0])
    for move in moves:
        now += move
        moved(chain, ready, now)
        assert len(list(chain.panes())) <= shape.most_panes
        for size, granule, states in zip(shape.ranges, shape.granules, all_answers(chain), strict=True):
            if now % granule == 0:
                assert lowered(states) == recomputed(items, now - size, now)


@settings(max_examples=80)
@given(shapes(), STREAMS, MOVES)
def test_a_chain_answers_any_horizon_at_the_edges_of_panes(shape: Shape, items: list[Item], moves: list[int]) -> None:
    """A length that ends on a stair is exact wherever the granules of that stair end."""
    chain, now = shape.chain(), -36
    width = shape.granules[0]
    ready = panes(items, width)
    for move in moves:
        now = (now // width + move) * width
        moved(chain, ready, now)
        for near, far, granule in zip((0, *shape.ranges[:-1]), shape.ranges, shape.granules, strict=True):
            for length in range(near + 1, far + 1):
                if (now - length) % granule == 0:
                    assert lowered(states_over(chain, length)) == recomputed(items, now - length, now)


@settings(max_examples=150)
@given(shapes(), STREAMS, st.lists(st.tuples(st.integers(1, 12), st.one_of(st.none(), shapes())), max_size=12))
def test_a_chain_takes_other_edges_while_it_runs(
    shape: Shape, items: list[Item], moves: list[tuple[int, Shape | None]]
) -> None:
    """A window is answered exactly from where the chain said it would be when the window joined."""
    chain, now, ready = shape.chain(), -36, panes(items, 1)
    known = dict.fromkeys(shape.ranges, MIN_POSITION)
    for move, other in moves:
        now += move
        moved(chain, ready, now)
        if other is not None:
            known = {level.range: chain.exact_since(level, PaneSpans.of(chain.panes())) for level in other.levels}
            chain.embed(other.levels)
            chain.check()
            shape = other
        for size, granule, states in zip(shape.ranges, shape.granules, all_answers(chain), strict=True):
            if now % granule == 0 and now - size >= known[size]:
                assert lowered(states) == recomputed(items, now - size, now)


LATENESS = st.lists(st.tuples(st.integers(0, 45), st.integers(0, GROUPS - 1), st.integers(-9, 9)), max_size=9)


@settings(max_examples=150)
@given(shapes(), STREAMS, st.lists(st.tuples(st.integers(1, 12), LATENESS), min_size=1, max_size=10))
def test_a_chain_takes_late_panes(
    shape: Shape, items: list[Item], moves: list[tuple[int, list[tuple[int, int, int]]]]
) -> None:
    """Those of a single tick, wherever the chain still reaches; those that are too old for it are told apart."""
    chain, now, items = shape.chain(), -36, list(items)
    width = shape.granules[0]
    ready = panes(items, width)
    for move, ages in moves:
        now = (now // width + move) * width
        moved(chain, ready, now)
        for age, group, value in ages:
            items.append(Item(now - age, group, value))
            forgotten = chain.forgotten_until
            let_in = chain.insert(pane(items[-1:], now - age - 1, now - age))
            assert let_in == (age < shape.ranges[-1] or now - age > forgotten)
            chain.check()
        assert len(list(chain.panes())) <= shape.most_panes
        for size, granule, states in zip(shape.ranges, shape.granules, all_answers(chain), strict=True):
            if now % granule == 0:
                assert lowered(states) == recomputed(items, now - size, now)


# ---- compiled = twins ------------------------------------------------------------------------------------------------

CASES = 200


def replay(folder: Path) -> None:
    """Play the cases in a folder and write down what they answered; called in a process with other kernels."""
    for number, (cql, delay, boundary) in enumerate(json.loads((folder / "cases.json").read_text())):
        s = feather.read_table(folder / f"{number}.arrow")
        feather.write_feather(alone(cql, split(s, [(4, True)]), s.schema, delay, boundary), folder / f"{number}.answer")


def test_both_kernels_answer_the_same(tmp_path: Path) -> None:
    """Random queries over random streams, here and in a process without the compiler."""
    cases: list[tuple[pa.Table, str, int, str]] = []

    @settings(max_examples=CASES, phases=[Phase.generate], database=None)
    @given(odd_tables(12, DISORDER), aggregated(revising=True), st.integers(0, 5), BOUNDARIES)
    def gather(s: pa.Table, query: Aggregated, delay: int, boundary: str) -> None:
        cases.append((s, query.cql, delay, boundary))

    gather()
    for number, (s, *_) in enumerate(cases):
        feather.write_feather(s, tmp_path / f"{number}.arrow")
    (tmp_path / "cases.json").write_text(json.dumps([case[1:] for case in cases]))
    code = f"from pathlib import Path; from tests.laws.test_engine import replay; replay(Path({str(tmp_path)!r}))"
    root = Path(__file__).parents[2]
    subprocess.run([sys.executable, "-c", code], cwd=root, check=True, env={**os.environ, "PANEWISE_KERNELS": "numpy"})
    for number, (s, cql, delay, boundary) in enumerate(cases):
        there = feather.read_table(tmp_path / f"{number}.answer")
        same(alone(cql, split(s, [(4, True)]), s.schema, delay, boundary), there)


# ---- what the laws have found, one plain example each ----------------------------------------------------------------


def agrees(
    cql: str,
    rows: Sequence[tuple[Any, ...]],
    delay: int | None = None,
    boundary: str = "(]",
    then: Sequence[Event] = (),
) -> None:
    """The engine and the reference over rows of (t, k, v, x, d), of which the last ones may be left out."""
    s = table([(*row, *[None] * (5 - len(row))) for row in rows])
    wanted = pw.reference.run(cql, {"S": pw.Stream(s, "t", delay)}, boundary=boundary)
    same(alone(cql, [s, *then], s.schema, delay, boundary), wanted)


def counted(cql: str, times: Sequence[int], delay: int, until: int | None = None) -> pw.Accounting:
    """The account of rows with these times, about which the engine and the reference agree."""
    s = table([(t, None, None, None, None) for t in times])
    wanted = pw.reference.execute(cql, {"S": pw.Stream(s, "t", delay)}, until=until).accounting["S"]
    _, engine = played({"q": cql}, [s], s.schema, delay, until=until)
    assert engine.accounting["S"] == wanted
    return wanted


def test_a_query_with_groups_has_no_empty_state() -> None:
    """EMIT EMPTY used to replace its groups by one without a key."""
    agrees("SELECT k, COUNT(*) AS n FROM S [RANGE 1 SLIDE 1] GROUP BY k EMIT EMPTY", [(0, "a"), (2, "a")])


def test_empty_states_are_told_of_all_items_not_of_the_first_and_last() -> None:
    """Neither the item of 13 nor that of -6 is in any of these windows."""
    agrees("SELECT COUNT(*) AS n FROM S [RANGE 5 SLIDE 12 START AT -8] EMIT EMPTY", [(13,), (1,), (-6,)])


def test_landmarks_speak_of_items_that_where_drops() -> None:
    """The window changes at 8 and 14 although the result does not."""
    agrees("SELECT COUNT(*) AS n FROM S [UNBOUNDED SLIDE 6] WHERE v > 0", [(3, "a", 1), (14, "a", 0)])


def test_deletions_from_every_level() -> None:
    agrees("SELECT DSTREAM COUNT(*) AS n FROM S [RANGES 3, 2, 1 SLIDES 5, 4, 1]", [(3,)])


def test_insertions_into_every_level() -> None:
    agrees("SELECT ISTREAM COUNT(*) AS n FROM S [RANGES 3, 2, 1 SLIDES 4, 3, 1 START AT 1]", [(5,), (12,)])


def test_deletions_beside_a_faster_window() -> None:
    s = table([(3, None, None, None, None)])
    fast, slow = (f"SELECT DSTREAM COUNT(*) AS n FROM S [RANGE 1 SLIDE {slide}]" for slide in (1, 3))
    together, _ = played({"fast": fast, "slow": slow}, [s], s.schema)
    same(together["slow"], alone(slow, [s], s.schema, None, "(]"))


def test_a_late_item_does_not_count_at_a_final_instant() -> None:
    """The watermark is at 6 when the item of 4 comes, and the window was closed at 5."""
    agrees("SELECT COUNT(*) AS n FROM S [UNTIL 5 SLIDE 1]", [(-4,), (6,), (4,)], delay=0)


def test_a_wholly_late_item_is_in_no_period() -> None:
    cql = "SELECT COUNT(*) AS n FROM (SELECT * FROM S WHERE k <> 'a') AS P [CUMULATE 4 STEP 4] LATE REVISE 0"
    agrees(cql, [(2, "b"), (16, "a"), (5, "b")], delay=0)


def test_a_wholly_late_item_does_not_keep_a_period_alive() -> None:
    agrees("SELECT DSTREAM COUNT(*) AS n FROM S [CUMULATE 12 STEP 3]", [(6,), (17,), (6,)], delay=2)


def test_a_buffer_is_no_older_than_its_stair() -> None:
    chain = Shape((17, 24), (1, 12)).chain()
    chain.advance(16, [pane([Item(-8, 0, 1)], -9, -8)])
    chain.check()


def test_late_panes_fill_granules() -> None:
    shape = Shape((40,), (10,))
    chain = shape.chain()
    chain.advance(40, [])
    for t in range(1, 10):
        chain.insert(pane([Item(t, 0, 1)], t - 1, t))
    assert len(list(chain.panes())) <= shape.most_panes


def test_a_late_pane_joins_the_granule_that_straddles_an_edge() -> None:
    """The granule from -66 to -64 is older than the second edge in part only, and is still held before it."""
    chain = Shape((1, 38, 40), (1, 2, 2)).chain()
    chain.advance(-31, [])
    for t in (-64, -65):
        chain.insert(pane([Item(t, 0, 1)], t - 1, t))
    chain.advance(-27, [])
    chain.insert(pane([Item(-65, 0, 1)], -66, -65))
    chain.check()


def test_a_period_that_started_inside_ends_where_it_would_have() -> None:
    """The first period ends with its origin, and what it holds is not repeated in the next."""
    for emit in ("", "ISTREAM ", "DSTREAM "):
        agrees(f"SELECT {emit}COUNT(*) AS n FROM S [CUMULATE 2 STEP 1 START AT 0]", [(0,)])


def test_a_landmark_of_late_items_speaks() -> None:
    """The watermark is at 6 when the item of 2 comes, and 6 is still open."""
    agrees("SELECT COUNT(*) AS n FROM S [UNTIL 3 SLIDE 6]", [(7,), (2,)], delay=1)


def test_a_landmark_waits_for_the_late_items_of_a_filtered_stream() -> None:
    """The item of 1 is none of the filtered stream's, but that of 0 is late because of it and counts from 4 on."""
    filtered = "(SELECT * FROM S WHERE v < 3) AS P [UNBOUNDED SLIDE 4]"
    for rows in ([(1, "a"), (0, "a", 1)], [(0, "a", 1), (17, "a"), (0, "a", 2), (3, "b", 1)]):
        agrees(f"SELECT COUNT(*) AS n FROM {filtered}", rows, delay=0)


def test_a_landmark_that_ends_reports_the_last_late_item_that_was_in_time() -> None:
    """One late item became visible at the last instant, another one after it."""
    s = pa.table({"i": [*range(5)], "t": [0, 3, 0, 4, 0]})
    cql = "SELECT COUNT(*) AS n FROM S [UNTIL 1 SLIDE 1]"
    wanted = pw.reference.run(cql, {"S": pw.Stream(s, "t", 2)})
    assert wanted["n"].to_pylist() == [1, 2]
    same(alone(cql, [s], s.schema, 2, "(]"), wanted)


def test_an_item_outside_of_a_landmark_changes_nothing() -> None:
    agrees("SELECT RSTREAM COUNT(*) AS n FROM S [FROM 5 UNTIL 10]", [(6,), (9,), (-1,)], delay=1)


def test_a_varying_window_ends_by_its_own_items() -> None:
    """It is long at 0, where an item lies that WHERE drops, so it is asked until 4, where it is long again."""
    extent = "CASE WHEN now % 4 = 0 THEN 7 ELSE 2 END"
    agrees(f"SELECT COUNT(*) AS n FROM S [RANGE ({extent}) SLIDE 1] WHERE v > 0", [(0, "a", 0), (1, "a", 1)])


@pytest.mark.parametrize("times", [(10, 3), (3, 10, 6)])
def test_a_wholly_late_item_is_late_beside_empty_states_too(times: Sequence[int]) -> None:
    """The item of 10 is in no window, so nothing is reported at the instant that wanted the late one, nor after it."""
    assert counted("SELECT COUNT(*) AS n FROM S [RANGE 1 SLIDE 3] EMIT EMPTY", times, delay=0).late == 1


@pytest.mark.parametrize("window", ["[RANGE 2 SLIDE 1] LATE REVISE 1", "[UNTIL 0]", "[RANGE 4 SLIDE 2]"])
def test_an_account_does_not_ask_where_a_run_stops(window: str) -> None:
    """The item of 0 comes when 0 is final, and a later instant would still have counted it."""
    for until in (None, 0, -5):
        account = counted(f"SELECT COUNT(*) AS n FROM S {window}", (1, 0), delay=0, until=until)
        assert (account.late, account.partly_late) == (0, 1)


@pytest.mark.parametrize("window", ["[UNTIL 5 SLIDE 1]", "[FROM -8 UNTIL 5 SLIDE 3]"])
def test_a_landmark_that_was_closed_lost_the_item(window: str) -> None:
    """The item of 4 comes when the last instant that sees something new is final; it used to count as used."""
    assert counted(f"SELECT COUNT(*) AS n FROM S {window}", (-4, 8, 4), delay=0).late == 1


def test_an_item_outside_of_a_landmark_is_not_partly_late() -> None:
    cql = "SELECT COUNT(*) AS n FROM S [FROM 3 UNTIL 5 SLIDE 1]"
    assert counted(cql, (4, 9, 2, 7), delay=0) == pw.Accounting(rows_in=4, used=4)


def test_what_waits_for_its_granule_survives_a_restart() -> None:
    """The widest window is older than its range when the engine is stored, but speaks of its items only at 22."""
    schema = pa.schema([("t", pa.int64()), ("k", pa.string())])
    cql = "SELECT DSTREAM k, COUNT(*) AS n FROM S [RANGES 4, 3, 1 SLIDES 8, 5, 4 START AT 6] GROUP BY k"
    pool = pw.Pool({"S": pw.StreamSchema(schema, "t")}, "[)")
    pool.register("q", cql)
    engine = pw.Engine(pool)
    rows = pa.table({"t": [20, 10], "k": ["a", "b"]}, schema=schema)
    engine.feed("S", rows)
    engine.promise("S", 16)
    said = [engine.advance()["q"], pw.Engine.restore(engine.snapshot()).finish()["q"]]
    same(pa.concat_tables(said), pw.reference.run(cql, {"S": rows}, time="t", boundary="[)"))
