"""Frames: the engine against their meaning, whole and split, with groups, disorder, gaps and restarts."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any
from unittest.mock import patch

import pyarrow as pa
import pytest
from hypothesis import given, reject, settings
from hypothesis import strategies as st

import panewise as pw
from panewise.core.errors import BindProblem, PanewiseError, QueryProblem, SchemaProblem, WindowProblem
from panewise.engine import keys
from panewise.engine.frames import FrameQuery, row_ranges
from tests.spark.shards import Shards

from .test_engine import CUTS, Ask, Event, same, split
from .test_kernels import twins_in_use

pytestmark = pytest.mark.slow

SCHEMA = pa.schema([("t", pa.int64()), ("k", pa.string()), ("v", pa.int64()), ("x", pa.float64())])


@pytest.fixture(scope="module", autouse=True)
def forgetful() -> Iterator[None]:
    """Keys of which nothing is remembered are forgotten at once, and few rows are copied at a time."""
    with patch.object(keys, "FEW_KEYS", 0), patch.object(row_ranges, "PORTION", 4):
        yield


def reports(rows: Sequence[tuple[Any, ...]]) -> pa.Table:
    """Rows of (t, k, v, x)."""
    columns = list(zip(*rows, strict=True)) or [()] * len(SCHEMA)
    return pa.table([pa.array(c, f.type) for c, f in zip(columns, SCHEMA, strict=True)], schema=SCHEMA)


VALUES = st.one_of(st.integers(-3, 6), st.integers(-3, 6), st.none())
FLOATS = st.one_of(
    st.sampled_from([0.0, 0.1, 0.2, 0.5, 1.0, 2.5, -0.7]),
    st.none(),
    st.sampled_from([math.nan, math.inf, -math.inf, 1e19]),
)
KEYS = st.sampled_from(["a", "a", "b", None])


def streams(times: st.SearchStrategy[int], max_size: int = 16) -> st.SearchStrategy[pa.Table]:
    return st.lists(st.tuples(times, KEYS, VALUES, FLOATS), max_size=max_size).map(reports)


KINDS = st.sampled_from(
    [
        "WHILE v > 1",
        "WHILE x < 1 OR v IS NULL",
        "WHILE v > 0 WITH SOME v > 3",
        "EVERY 2 OF v",
        "EVERY 0.5 OF x",
        "AT (-1, 0.15, 2) OF x",
        "DELTA v > 2",
        "DELTA x >= 0.4",
        "SUM(v) >= 4",
        "SUM(x) > 0.6",
        "COUNT(*) >= 3",
        "COUNT(k) >= 2",
        "SUM(v) >= 3 ADJACENT 1",
        "SUM(x) <= 3",
        "FLAT x WITHIN 0.2",
        "WHILE v > 0 MAXIMUM",
        "COUNT(v) > 1",
        "AVG(v) <= 2",
        "MAX(v) < 4",
        "MIN(x) >= 0.2",
        "SUM(v) <= 5",
        "RISING v",
        "FALLING x",
        "FLAT v WITHIN 1",
        "START WHEN v > 2 END WHEN v < 1",
        "START WHEN v > 2 END WHEN v < 1 ON START DROP",
        "START WHEN v > 2 END WHEN v < 1 ON START CONTINUE",
        "MEDIAN(v) <= 2",
        "COUNT(DISTINCT v) >= 3",
        "DENSITY 3 PER 4",
        "DENSITY 2 PER 3 CHANCE 0.3 EXPECTED 0.2",
        "COUNT(*) >= 3 UNCONSTRAINED",
        "SUM(v) >= 4 ADVANCING",
        "AVG(v) <= 2 UNCONSTRAINED",
        "DELTA v > 2 ADJACENT 3",
        "SUM(x) > 0.6 ADJACENT 2",
        "EVERY 2 OF v COVER SATURATED",
        "DELTA x > 0.4 ADVANCING",
        "MAX(v) < 4 MAXIMUM",
        "MEDIAN(x) > 0.3 ADVANCING",
        "MEDIAN(v) >= 2 MAXIMUM",
        "QUANTILE(x, 0.75) <= 0.5",
        "QUANTILE(v, 0.3) < 3 UNCONSTRAINED",
        "COUNT(DISTINCT k) >= 2 ADJACENT 2",
        "COUNT(DISTINCT x) <= 2 UNCONSTRAINED",
        "STDDEV(v) <= 2",
        "VAR_POP(v) > 4 ADJACENT 2",
        "VAR(v) >= 2 UNCONSTRAINED",
        "FIRST(v) < 3 ADJACENT 3",
        "LAST(v) >= 3 UNCONSTRAINED",
        "APPROX_DISTINCT(v) >= 3",
        "APPROX_DISTINCT(v) <= 2 ADJACENT 2",
        "APPROX_DISTINCT(v) >= 2 ADVANCING",
        "USING 'tests.framing_functions:Alternating' OF COALESCE(v, 0)",
    ]
)
LENGTHS = st.sampled_from(["", "", "FOR AT LEAST 2", "FOR AT LEAST 2 ROWS", "FOR AT MOST 3 ROWS", "FOR AT MOST 4"])
EXTENTS = st.sampled_from(["", "", "EXTENT LIBERAL", "AS INTERVALS", "EXTENT LIBERAL AS INTERVALS"])
TWINS = st.sampled_from(["", "", "FIRST", "LAST", "AVG", "MIN", "MAX", "SUM"]).map(lambda h: h and f"DUPLICATES {h}")
FRAGMENTS = st.sampled_from(["", "", "", "FRAGMENTS EVERY 2", "FRAGMENTS EVERY 2 ROWS"])
PARTITIONS = st.sampled_from(["", "PARTITION BY k", "PARTITION BY k", "PARTITION BY k, v"])
CALLS = st.sampled_from(["COUNT(*) AS n", "SUM(v) AS s, MAX(x) AS m", "AVG(x) AS a, FIRST(v) AS f", "k, LAST(v) AS l"])
REST = st.sampled_from(["", "", "WHERE v <> 2", "GROUP BY v % 2", "WHERE x < 2 GROUP BY v", "HAVING COUNT(*) > 1"])


@st.composite
def queries(draw: st.DrawFn) -> str:
    frame = " ".join(draw(part) for part in (KINDS, LENGTHS, EXTENTS, TWINS, FRAGMENTS, PARTITIONS))
    calls = draw(CALLS)
    if calls.startswith("k") and "PARTITION BY k" not in frame:
        calls = "COUNT(*)"
    return f"SELECT {calls} FROM S [FRAME {frame}] {draw(REST)}"


def engine_of(cql: str, delay: int | None, boundary: str = "(]") -> pw.Engine:
    """An engine with one query; frames whose conditions contradict each other are no case of any law."""
    pool = pw.Pool({"S": pw.StreamSchema(SCHEMA, "t", delay)}, boundary, bounded=True)
    try:
        pool.register("q", cql)
    except (WindowProblem, BindProblem):
        reject()
    return pw.Engine(pool)


def played(engine: pw.Engine, events: Sequence[Event], restart: int | None = None) -> tuple[pa.Table, pw.Engine]:
    """All that the query said; before event number `restart` the engine is stored and restored."""
    said = []
    for number, event in enumerate(events):
        if number == restart:
            engine = pw.Engine.restore(engine.snapshot())
        if isinstance(event, Ask):
            said.append(engine.advance(event.to)["q"])
        else:
            assert isinstance(event, pa.Table)
            engine.feed("S", event)
    return pa.concat_tables([*said, engine.finish()["q"]]), engine


@settings(max_examples=150)
@given(streams(st.integers(-3, 12)), queries(), CUTS, st.integers(0, 8))
def test_the_engine_says_what_is_meant(s: pa.Table, cql: str, cuts: list[tuple[int, bool]], restart: int) -> None:
    engine = engine_of(cql, None)
    wanted = pw.reference.run(cql, {"S": s}, time="t")
    same(played(engine, split(s, cuts), restart)[0], wanted)


@settings(max_examples=50)
@given(streams(st.integers(-3, 12)), queries(), CUTS)
def test_compiled_kernels_find_the_frames_of_their_twins(s: pa.Table, cql: str, cuts: list[tuple[int, bool]]) -> None:
    with twins_in_use("frame"):
        wanted = played(engine_of(cql, None), split(s, cuts))[0]
    same(played(engine_of(cql, None), split(s, cuts))[0], wanted)


@settings(max_examples=150)
@given(
    streams(st.one_of(st.integers(0, 6), st.integers(0, 20))),
    queries(),
    st.integers(0, 6),
    CUTS,
    st.integers(0, 8),
    st.sampled_from(["(]", "[)"]),
)
def test_disorder_within_the_delay(
    s: pa.Table, cql: str, delay: int, cuts: list[tuple[int, bool]], restart: int, boundary: str
) -> None:
    """However rows are split into batches, frames split and merge as if rows had come in order; the rest is late."""
    engine = engine_of(cql, delay, boundary)
    wanted = pw.reference.execute(cql, {"S": pw.Stream(s, "t", delay)}, boundary=boundary)
    found, engine = played(engine, split(s, cuts), restart)
    same(found, wanted.table)
    assert engine.accounting["S"] == wanted.accounting["S"]
    assert engine.late("S").num_rows == wanted.accounting["S"].late or restart < len(cuts) + 8


SCHEDULES = st.sampled_from(["FAILS", "QUALIFIES", "NEIGHBOURS"])


@st.composite
def scheduled(draw: st.DrawFn) -> pa.Table:
    """Reports of two groups every three ticks, some of which are missing, some a little late."""
    rows = [(3 * n + (key == "b"), key, draw(st.integers(0, 3)), None) for n in range(8) for key in "ab"]
    kept = [row for row in rows if draw(st.integers(0, 3))]
    order = sorted(range(len(kept)), key=lambda place: (kept[place][0] + draw(st.integers(0, 4)), place))
    return reports([kept[place] for place in order])


@settings(max_examples=150)
@given(
    scheduled(),
    st.sampled_from(["WHILE v > 0", "WHILE v <> 2 WITH SOME v = 3"]),
    SCHEDULES,
    LENGTHS,
    EXTENTS,
    st.sampled_from(["", "DUPLICATES FIRST", "DUPLICATES LAST"]),
    FRAGMENTS,
    CUTS,
    st.integers(0, 8),
)
def test_reports_on_a_schedule(
    s: pa.Table,
    kind: str,
    missing: str,
    length: str,
    extent: str,
    twins: str,
    fragments: str,
    cuts: list[tuple[int, bool]],
    restart: int,
) -> None:
    frame = f"{kind} {length} {extent} {twins} {fragments} PARTITION BY k EVERY 3 MISSING {missing}"
    cql = f"SELECT SUM(v) AS s FROM S [FRAME {frame}]"
    engine = engine_of(cql, 6)
    wanted = pw.reference.run(cql, {"S": pw.Stream(s, "t", 6)})
    same(played(engine, split(s, cuts), restart)[0], wanted)


@settings(max_examples=100)
@given(streams(st.integers(0, 12)), st.sampled_from(["WHILE v > 0", "DUPLICATES ERROR"]), CUTS)
def test_data_that_contradict_are_refused_by_both(s: pa.Table, kind: str, cuts: list[tuple[int, bool]]) -> None:
    frame = f"{kind} EVERY 2" if "WHILE" in kind else f"WHILE v > 0 {kind}"
    cql = f"SELECT COUNT(*) AS n FROM S [FRAME {frame} PARTITION BY k]"
    contradicted = False
    try:
        wanted = pw.reference.run(cql, {"S": s}, time="t")
    except SchemaProblem:
        contradicted = True
    if contradicted:
        with pytest.raises(QueryProblem, match=r"contradicts EVERY|two reports of one group"):
            played(engine_of(cql, None), split(s, cuts))
    else:
        same(played(engine_of(cql, None), split(s, cuts))[0], wanted)


@settings(max_examples=100)
@given(
    streams(st.integers(0, 12)), queries(), st.integers(1, 3), st.booleans(), st.lists(st.integers(0, 16), max_size=3)
)
def test_shards_say_what_is_meant(s: pa.Table, cql: str, shards: int, restarts: bool, cuts: list[int]) -> None:
    """A pipeline whose rows are spread by the groups of frames, in batches and tasks; no row is late."""
    pool = engine_of(cql, 20).pool
    found = Shards(pool, shards, restarts)
    edges = [0, *sorted(min(cut, s.num_rows) for cut in cuts), s.num_rows]
    for start, stop in pairwise(edges):
        middle = (start + stop) // 2
        found.batch(S=[s.slice(start, middle - start), s.slice(middle, stop - middle)])
    found.finish()
    same(found.results("q"), pw.reference.run(cql, {"S": s}, time="t"))


def fed(engine: pw.Engine, rows: Sequence[tuple[Any, ...]]) -> list[dict[str, Any]]:
    engine.feed("S", reports(rows))
    return engine.advance()["q"].to_pylist()  # type: ignore[no-any-return]


def test_a_schedule_lets_frames_be_told_without_waiting() -> None:
    """The watermark is far behind, but all reports that were expected have come."""
    cql = "SELECT k FROM S [FRAME WHILE v > 0 FOR AT LEAST 3 ROWS FRAGMENTS EVERY 100 PARTITION BY k{}]"
    rows = [(20 * n, "a", 1, None) for n in range(6)]
    assert fed(engine_of(cql.format(""), 60), rows) == []
    (told,) = fed(engine_of(cql.format(" EVERY 20"), 60), rows)
    assert (told["w_start"], told["w_end"], told["final"]) == (0, 40, False)


def test_a_report_that_fails_to_come_ends_a_frame() -> None:
    """Nobody waits for a sensor that has died: time passes with the reports of others."""
    cql = "SELECT k FROM S [FRAME WHILE v > 0 PARTITION BY k EVERY 10 MISSING {}]"
    rows = [(0, "a", 1, None), (10, "a", 1, None), (0, "b", 0, None), *((n, "b", 0, None) for n in range(10, 60, 10))]
    (told,) = fed(engine_of(cql.format("FAILS"), 0), sorted(rows, key=lambda row: row[0]))
    assert (told["k"], told["w_start"], told["w_end"], told["final"]) == ("a", 0, 10, True)
    assert fed(engine_of(cql.format("NEIGHBOURS"), 0), sorted(rows, key=lambda row: row[0])) == []


def test_frames_of_a_stream_that_goes_on_for_long_keep_no_rows() -> None:
    """Rows are forgotten with the last frame that may hold them, also where frames overlap or are filled."""
    for frame in ("WHILE v > 0", "COUNT(*) >= 3 UNCONSTRAINED", "DENSITY 2 PER 2"):
        engine = engine_of(f"SELECT SUM(v) AS s FROM S [FRAME {frame} PARTITION BY k]", 0)
        sizes = []
        for start in range(0, 4000, 500):
            fed(engine, [(n, "ab"[n % 2], n % 7, None) for n in range(start, start + 500)])
            sizes.append(len(engine.snapshot()))
        assert max(sizes[1:]) < 1.2 * sizes[1]


def test_regression_a_frame_of_one_item_has_a_neighbour() -> None:
    """The last item of a frame says where the adjacent one begins, also where it is the first one too."""
    s = reports([(0, "a", 3, None), (1, "a", 0, None)])
    found = pw.run("SELECT COUNT(*) AS n FROM S [FRAME SUM(v) >= 3 ADJACENT 1]", {"S": s}, time="t")
    assert [(row["w_start"], row["w_end"]) for row in found.to_pylist()] == [(0, 0)]


@pytest.mark.parametrize("kind", ["SUM(v) >= 3", "APPROX_DISTINCT(v) >= 2"])
def test_regression_a_frame_that_ended_before_a_restart_has_a_neighbour(kind: str) -> None:
    """The first item after the restart decides where the adjacent frame begins; it was taken twice."""
    cql = f"SELECT COUNT(*) AS n FROM S [FRAME {kind} ADJACENT 1 EXTENT LIBERAL]"
    s = reports([(n, "a", 1 + n % 2, None) for n in range(9)])
    engine = engine_of(cql, 0)
    said = []
    for number in range(s.num_rows):
        engine.feed("S", s.slice(number, 1))
        said.append(engine.advance()["q"])
        engine = pw.Engine.restore(engine.snapshot())
    same(pa.concat_tables([*said, engine.finish()["q"]]), pw.reference.run(cql, {"S": s}, time="t"))


def test_many_fragments_of_one_frame_take_little_memory() -> None:
    """Each is told with what the frame holds by then, without a table of all pieces for each."""
    s = reports([(n, "a", 1, None) for n in range(5000)])
    cql = "SELECT SUM(v) AS s FROM S [FRAME WHILE v > 0 FRAGMENTS EVERY 1 ROWS]"
    found = pw.run(cql, {"S": s}, time="t")
    assert found["s"].to_pylist() == [*range(1, 5001), 5000]


class Failing:
    """A framing function with a mistake."""

    def open(self, time: int, value: Any) -> Any:
        return value

    def update(self, state: Any, time: int, value: Any) -> Any:
        return 1 // value


def test_a_framing_function_that_fails_breaks_its_query_only() -> None:
    pw.register_framing("failing", Failing)
    pool = pw.Pool({"S": pw.StreamSchema(SCHEMA, "t", 0)})
    pool.register("bad", "SELECT COUNT(*) AS n FROM S [FRAME USING 'failing' OF v]")
    pool.register("good", "SELECT COUNT(*) AS n FROM S [FRAME WHILE v > 0]")
    engine = pw.Engine(pool)
    engine.feed("S", reports([(0, "a", 1, None), (1, "a", 0, None), (2, "a", 1, None), (3, "a", 1, None)]))
    with pytest.raises(PanewiseError, match="the framing function 'Failing' failed at 1"):
        engine.advance()
    pool.revoke("bad")
    assert engine.advance()["good"].num_rows + engine.finish()["good"].num_rows == 2


@pytest.mark.parametrize("name", ["os:path", "builtins:int", "nobody", "no.module:Thing", ":x"])
def test_what_is_no_framing_function_is_refused_when_it_is_named(name: str) -> None:
    pool = pw.Pool({"S": pw.StreamSchema(SCHEMA, "t", 0)})
    with pytest.raises(BindProblem, match="framing function"):
        pool.register("q", f"SELECT COUNT(*) AS n FROM S [FRAME USING '{name}' OF v]")


def test_a_crowd_ends_when_time_has_passed_it() -> None:
    """Nobody waits for another item of its group, and what an idle group had is forgotten."""
    engine = engine_of("SELECT k FROM S [FRAME DENSITY 2 PER 5 PARTITION BY k]", 0)
    assert fed(engine, [(0, "a", 1, None), (1, "a", 1, None), (1, "b", 1, None)]) == []
    (told,) = fed(engine, [(20, "b", 1, None), (21, "c", 1, None)])
    assert (told["k"], told["w_start"], told["w_end"]) == ("a", 0, 1)
    (part,) = engine._row_engine.parts.values()
    assert isinstance(part, FrameQuery)
    assert part.method.earliest_start() >= 20
