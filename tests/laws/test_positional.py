"""Aggregates that know where items lie: engine and shards against the reference, whatever the levels are."""

from __future__ import annotations

import math
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import panewise as pw
from panewise.aggregate import AgedCount, AgedSum, Items, LevelView, Recurring
from panewise.core.errors import PanewiseError

from .strategies import BOUNDARIES
from .test_engine import Ask, Event, Join, played, same
from .test_shards import SPLITS, in_one_engine, sharded

pytestmark = pytest.mark.slow

SCHEMA = pa.schema([("t", pa.int64()), ("k", pa.string()), ("v", pa.int64()), ("x", pa.float64()), ("at", pa.date32())])
_ROW = st.tuples(
    st.integers(-6, 24),
    st.sampled_from(["a", "b", None]),
    st.one_of(st.none(), st.integers(-3, 4)),
    st.one_of(st.none(), st.sampled_from([0.5, -1.25, 3.0, math.nan, math.inf])),
    st.one_of(st.none(), st.integers(0, 3)),
)


def table(rows: list[tuple[Any, ...]]) -> pa.Table:
    columns = list(zip(*rows, strict=True)) or [()] * len(SCHEMA)
    return pa.table([pa.array(c, f.type) for c, f in zip(columns, SCHEMA, strict=True)], schema=SCHEMA)


IN_ORDER = st.lists(_ROW, max_size=16).map(lambda rows: table(sorted(rows, key=lambda row: row[0])))
IN_DISORDER = st.lists(_ROW, max_size=14).map(table)
CALLS = (
    "AGED_SUM(v)",
    "AGED_AVG(x)",
    "AGED_COUNT(k)",
    "AGED_SUM(x, 'EXPONENTIAL', 3)",
    "AGED_AVG(v, 'POLYNOMIAL', 1.5)",
    "RECURRING(v)",
    "RECURRING(at)",
    "RECURRING_COUNTS(k)",
    "RECURRING_COUNTS(v, 2)",
    "RECURRING(x)",
    "SUM(v)",
    "COUNT(*)",
)


@st.composite
def windows(draw: st.DrawFn) -> str:
    """One to four levels; slides divide each other or not, ranges are whole granules or not."""
    count, even = draw(st.integers(1, 4)), draw(st.booleans())
    slide, size, levels = 1, 0, []
    for _ in range(count):
        slide = slide * draw(st.integers(1, 2)) if even else slide + draw(st.integers(0, 3))
        size = (size // slide + draw(st.integers(1, 2))) * slide if even else size + draw(st.integers(1, 5))
        levels.append((size, slide))
    start = draw(st.sampled_from(["", "", " START AT 2"]))
    if count == 1:
        lag = draw(st.sampled_from(["", " LAG 3"]))
        return f"RANGE {levels[0][0]} SLIDE {levels[0][1]}{lag}{start}"
    ranges, slides = (", ".join(str(level[part]) for level in levels[::-1]) for part in (0, 1))
    return f"RANGES {ranges} SLIDES {slides}{start}"


@st.composite
def queries(draw: st.DrawFn, silent: bool = True) -> str:
    emit = draw(st.sampled_from(["", "", "ISTREAM ", "DSTREAM "]))
    calls = ", ".join(draw(st.lists(st.sampled_from(CALLS), min_size=1, max_size=3, unique=True)))
    grouped = draw(st.booleans())
    where = draw(st.sampled_from(["", "", " WHERE v > -2"]))
    empty = " EMIT EMPTY" if silent and not emit and draw(st.booleans()) else ""
    lead, tail = ("k, ", " GROUP BY k") if grouped else ("", "")
    return f"SELECT {emit}{lead}{calls} FROM S [{draw(windows())}]{where}{tail}{empty}"


@settings(max_examples=90)
@given(IN_ORDER, queries(), BOUNDARIES, st.lists(st.integers(0, 16), max_size=3))
def test_the_engine_says_what_the_reference_says(s: pa.Table, cql: str, boundary: str, cuts: list[int]) -> None:
    """However rows are cut into batches, and after a restart at every cut."""
    wanted = pw.reference.run(cql, {"S": s}, time="t", boundary=boundary)
    pool = pw.Pool({"S": pw.StreamSchema(SCHEMA, "t")}, boundary)
    pool.register("q", cql)
    engine, said, done = pw.Engine(pool), [], 0
    for cut in [*sorted(cuts), s.num_rows]:
        engine.feed("S", s.slice(done, max(cut - done, 0)))
        done = max(cut, done)
        said.append(engine.advance()["q"])
        engine = pw.Engine.restore(engine.snapshot())
    said.append(engine.finish()["q"])
    same(pa.concat_tables(said), wanted)


@settings(max_examples=60)
@given(IN_DISORDER, queries(), BOUNDARIES, st.integers(0, 6))
def test_late_rows_count_as_the_reference_counts_them(s: pa.Table, cql: str, boundary: str, delay: int) -> None:
    wanted = pw.reference.run(cql, {"S": pw.Stream(s, time="t", delay=delay)}, boundary=boundary)
    same(pw.execute(cql, {"S": pw.Stream(s, time="t", delay=delay)}, boundary=boundary).table, wanted)


@settings(max_examples=50)
@given(IN_DISORDER, queries(), st.integers(0, 5), SPLITS, st.integers(1, 3), BOUNDARIES, st.booleans())
def test_shards_say_what_one_engine_says(
    s: pa.Table,
    cql: str,
    delay: int,
    splits: list[tuple[int, int]],
    shards: int,
    boundary: str,
    restarts: bool,
) -> None:
    wanted, _ = in_one_engine({"q": cql}, s, splits, delay, boundary)
    same(sharded({"q": cql}, s, splits, shards, delay, boundary, restarts).results("q"), wanted["q"])


@settings(max_examples=25)
@given(IN_ORDER, windows(), windows(), st.integers(0, 16))
def test_queries_beside_each_other_do_not_meet(s: pa.Table, one: str, other: str, joins: int) -> None:
    """Windows that others have do not change an answer, nor does one that joins later."""
    first = f"SELECT k, AGED_SUM(v), RECURRING(v) FROM S [{one}] GROUP BY k"
    second = f"SELECT k, AGED_SUM(v), RECURRING(v) FROM S [{other}] GROUP BY k"
    events: list[Event] = [s.slice(0, joins), Ask(), Join("b", second), s.slice(joins)]
    alone, _ = played({"a": first}, [s], SCHEMA)
    together, _ = played({"a": first}, events, SCHEMA)
    same(together["a"], alone["a"])


def test_a_query_that_joins_sees_what_tiers_hold() -> None:
    cql = "SELECT AGED_SUM(v) AS s FROM S [RANGES 8, 4 SLIDES 2, 1]"
    s = table([(t, "a", 1, None, None) for t in range(12)])
    joining: list[Event] = [s.slice(0, 9), Ask(), Join("b", cql), s.slice(9)]
    said, _ = played({"a": cql}, joining, SCHEMA)
    later = [row for row in said["a"].to_pylist() if row["w_end"] > 8]
    assert [row for row in said["b"].to_pylist() if row["w_end"] > 8] == later


# ---- views -----------------------------------------------------------------------------------------------------------


@given(st.integers(-50, 50), windows(), st.data())
def test_every_position_of_a_window_lies_in_one_tier(at: int, text: str, data: st.DataObject) -> None:
    """Tiers leave nothing out, and no finer level holds what a tier has."""
    query = pw.Pool({"S": pw.StreamSchema(SCHEMA, "t")}).prepare_query("q", f"SELECT AGED_SUM(v) FROM S [{text}]")
    views = query.aggregation.views
    level = data.draw(st.integers(0, len(views.levels) - 1))
    at -= (at - views.levels[0].start) % views.levels[level].step
    view = views.at(at, level)
    for position in range(view.edges[-1] + 1, view.front + 1):
        tier = view.tier(position)
        assert position > view.edges[tier]
        assert all(position <= edge for edge in view.edges[:tier])
        age = view.age(position, tier)
        end = view.front - age
        assert position <= end < position + view.slides[tier]
        assert end == view.front or (end - view.origin) % view.slides[tier] == 0


# ---- values ----------------------------------------------------------------------------------------------------------


def test_groups_of_few_and_of_many_values_stand_beside_each_other() -> None:
    rows = [(t, "a", n, None, None) for t in range(4) for n in range(0, 3000, 1 + t)]
    rows += [(t, "b", v, None, None) for t, v in [(0, 2990), (0, 5), (1, 2990), (2, 7), (3, 5), (3, 2990)]]
    for call in ("RECURRING(v)", "RECURRING_COUNTS(v, 5)"):
        for cql in (
            f"SELECT k, {call} AS r FROM S [RANGES 4, 2 SLIDES 2, 1] GROUP BY k",
            f"SELECT {call} AS r FROM S [RANGES 4, 2 SLIDES 2, 1]",
        ):
            s = table(sorted(rows, key=lambda row: row[0]))
            same(pw.run(cql, {"S": s}, time="t"), pw.reference.run(cql, {"S": s}, time="t"))


def test_states_travel_as_values() -> None:
    """Codes mean nothing elsewhere: what one process writes another reads, whatever it has numbered before."""
    here, there = Recurring(pa.string()).state_arrays(), Recurring(pa.string()).state_arrays()
    assert there.dictionary is not None
    there.dictionary.encode(pa.array(["z", "b"]))
    numbers = pa.array([0, 0, 1]).to_numpy()
    words = here.gather(numbers, Items((pa.array(["b", "a", "é"]),), numbers, numbers), 3)
    assert there.lower(there.read(here.write(words))).to_pylist() == [["a", "b"], ["é"], []]


# ---- weights ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("literals", "weights"),
    [
        ((), [1.0, 0.5, 0.25]),
        (("1", "0.2", "0"), [1.0, 0.2, 0.0]),
        (("EXPONENTIAL", "4"), [2**-0.5, 2**-1.0, 2**-2.0]),
        (("polynomial", "2"), [3.0**-2, 5.0**-2, 9.0**-2]),
    ],
)
def test_what_items_weigh(literals: tuple[str, ...], weights: list[float]) -> None:
    """One item in each tier of <4, 1>, <8, 2>, <16, 4>, whose granules ended 2, 4 and 8 ticks ago."""
    view = LevelView(16, (4, 8, 16), (1, 2, 4))
    items = [(14, 1), (12, 1), (8, 1)]
    for item, weight in zip(items, weights, strict=True):
        assert AgedSum(pa.int64(), weights=literals).meaning_in_view([item], view) == pytest.approx(weight)
    assert AgedCount(pa.int64(), weights=literals).meaning_in_view(items, view) == pytest.approx(sum(weights))


def test_what_weighs_nothing_leaves_no_trace() -> None:
    s = table([(1, "a", 1, math.inf, None), (7, "a", 1, 2.0, None)])
    cql = "SELECT AGED_SUM(x, 1, 0) AS s, AGED_AVG(x, 1, 0) AS m FROM S [RANGES 8, 2 SLIDES 4, 1]"
    wide = [row for row in pw.run(cql, {"S": s}, time="t").to_pylist() if row["w_level"] == 1]
    assert [(row["w_end"], row["s"], row["m"]) for row in wide] == [(4, 0.0, None), (8, 2.0, 2.0), (12, 0.0, None)]


@pytest.mark.parametrize("form", ["SELECT {} FROM S [UNBOUNDED SLIDE 2]", "SELECT {} FROM S [ROWS 3]"])
@pytest.mark.parametrize("call", ["AGED_SUM(v)", "RECURRING(v)"])
def test_every_runner_refuses_windows_without_tiers(form: str, call: str) -> None:
    cql, s = form.format(call), table([])
    pool = pw.Pool({"S": pw.StreamSchema(SCHEMA, "t")})
    for refusing in (
        lambda: pw.run(cql, {"S": s}, time="t"),
        lambda: pw.reference.run(cql, {"S": s}, time="t"),
        lambda: pool.register("q", cql),
    ):
        with pytest.raises(PanewiseError, match="where in the window items lie"):
            refusing()


def test_explain_says_whose_tiers_they_are() -> None:
    pool = pw.Pool({"S": pw.StreamSchema(SCHEMA, "t")})
    pool.register("q", "SELECT AGED_SUM(v), AGED_AVG(v, 'POLYNOMIAL', 2), SUM(v) FROM S [RANGES 8, 4 SLIDES 2, 1]")
    pool.register("r", "SELECT AGED_SUM(v), AGED_AVG(v, 'POLYNOMIAL', 2), SUM(v) FROM S [RANGE 8 SLIDE 2]")
    said = pool.explain()
    assert said.count("family") == 2
    assert "window [RANGE 4 SLIDE 1] of q, in tiers of its own: they say where items lie" in said
    assert "AGED_AVG(S.v, POLYNOMIAL, 2) in recompute" in said


def test_a_query_that_starts_now_does_not_look_back() -> None:
    cql = "SELECT AGED_COUNT(v) AS n FROM S [RANGES 8, 4 SLIDES 2, 1]"
    s = table([(t, "a", 1, None, None) for t in range(16)])
    pool = pw.Pool({"S": pw.StreamSchema(SCHEMA, "t")})
    pool.register("a", cql)
    engine = pw.Engine(pool)
    engine.feed("S", s.slice(0, 9))
    engine.advance()
    pool.register("b", cql, since=8)
    engine.feed("S", s.slice(9))
    said = engine.finish()
    since = pw.run(cql, {"S": s.slice(9)}, time="t")
    same(said["b"], since)
    assert len(said["a"]) > len(said["b"])
