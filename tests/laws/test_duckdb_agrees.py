"""DuckDB as the second opinion: each query again as plain SQL, the scope written out as a join condition.

The SQL side knows nothing of panewise.window. It joins a stream with a series of instants, which gives the relation
`(tick, columns of the stream)`; the rest of the query then runs over that with `tick` as one more key.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import panewise as pw

from .strategies import (
    BOUNDARIES,
    CHANGING,
    CONTINUOUS,
    COUNTED,
    COUNTED_SLIDING,
    CUMULATING,
    LANDMARKS,
    PERIODIC,
    PERIODIC_LANDMARKS,
    SLIDING,
    TUMBLING,
    WINDOWS,
    Count,
    Grow,
    Mark,
    Slide,
    Spec,
    keyed_tables,
    tables,
)

Row = tuple[Any, ...]
States = dict[int, list[Row]]

DUCKDB = duckdb.connect(":memory:", config={"threads": 1})

#: Streams are few, windows many: each generated table is asked this many times, with another window each time.
WINDOWS_A_TABLE = 4


# ---- the expected side: states at every instant, by SQL --------------------------------------------------------------


def grid(window: Spec) -> str:
    """The instant whose state stands at `g.tick`: the latest on the window's grid."""
    origin = getattr(window, "start", None) or getattr(window, "lower", None) or 0
    step = window.slide or 1
    return f"(g.tick - ((g.tick - {origin}) % {step} + {step}) % {step})"


def is_instant(window: Spec, boundary: str) -> str:
    """Whether a periodic window has an instant at `g.tick`; one that counts, over the stream S."""
    if not isinstance(window, Count):
        return f"g.tick = {grid(window)}"
    blocks = f"SELECT count(*) // {window.slide} FROM S s WHERE s.t {'<=' if boundary == '(]' else '<'} g.tick"
    return f"({blocks}) > ({blocks} - 1)"


def state(window: Spec, stream: str, boundary: str) -> str:
    """SQL for the window's state at every instant of `instants`."""
    after, upto = (">", "<=") if boundary == "(]" else (">=", "<")
    joined = f"SELECT g.tick, s.* FROM instants g JOIN {stream} s ON "
    match window:
        case Slide(size, _, lag, start):
            text = f"s.t {after} {grid(window)} - {lag} - {size} AND s.t {upto} {grid(window)} - {lag}"
            return joined + text + (f" AND s.t >= {start} AND g.tick >= {start}" if start is not None else "")
        case Count(count, lag, by_key):
            keys = "g.tick, s.k" if by_key else "g.tick"
            number = f"row_number() OVER (PARTITION BY {keys} ORDER BY s.t DESC, s.i DESC)"
            waiting = f"count(*) OVER (PARTITION BY {keys}) % {window.slide or 1}"
            return f"{joined} s.t {upto} g.tick QUALIFY {number} - {waiting} BETWEEN {lag + 1} AND {lag + count}"
        case Mark(lower, upper):
            text = f"s.t {upto} {grid(window)}"
            text += f" AND s.t >= {lower}" if lower is not None else ""
            return joined + text + (f" AND s.t {upto} {upper}" if upper is not None else "")
        case Grow(_, _, start):
            text = f"s.t {after} {period(window)} AND s.t {upto} {grid(window)}"
            return joined + text + (f" AND s.t >= {start} AND g.tick >= {start}" if start is not None else "")


def period(window: Grow) -> str:
    """Start of the period that the instant closes or lies in."""
    origin, at = window.start or 0, f"({grid(window)} - 1)"
    return f"({at} - (({at} - {origin}) % {window.size} + {window.size}) % {window.size})"


def bounds(window: Spec) -> tuple[str, str]:
    """SQL for `w_start` and `w_end` at `g.tick`."""
    match window:
        case Slide(size, _, lag):
            return f"{grid(window)} - {lag} - {size}", f"{grid(window)} - {lag}"
        case Mark(lower, upper):
            last = "g.tick" if upper is None else f"least(g.tick, {upper})"
            return "NULL::BIGINT" if lower is None else f"{lower}", last
        case Grow():
            return period(window), grid(window)
        case Count():
            return "NULL::BIGINT", "g.tick"


def last_instant(window: Spec, times: Sequence[int], boundary: str) -> int | None:
    """When the last change of the window's state is told: the end of a bounded run."""
    shift = 0 if boundary == "(]" else 1
    match window:
        case Slide(size, slide, lag, start):
            enters = [t + shift + lag for t in times if start is None or t >= start]
            if slide is None:
                return max((e + size for e in enters), default=None)
            on_grid = [((e + size - 1 - (start or 0)) // slide) * slide + (start or 0) for e in enters]
            return max((last for last, e in zip(on_grid, enters, strict=True) if last >= e), default=None)
        case Count():
            return max((t + shift for t in times), default=None)
        case Mark(lower, upper, slide):
            inside = [
                t + shift for t in times if (lower is None or t >= lower) and (upper is None or t + shift <= upper)
            ]
            origin, step = lower or 0, slide or 1
            return max((origin - (origin - e) // step * step for e in inside), default=None)
        case Grow(_, _, start):
            origin, size = start or 0, window.size
            enters = [t + shift for t in times if start is None or t >= start]
            ends = [((e - 1 - origin) // size + 1) * size + origin for e in enters]
            return max(ends, default=None)


def series(windows: Sequence[tuple[Spec, pa.Table]], boundary: str) -> tuple[int, int]:
    """First and last instant worth looking at: before it nothing has come, after it nothing is told."""
    times = [t for _, table in windows for t in table["t"].to_pylist()]
    ends = [last_instant(w, table["t"].to_pylist(), boundary) for w, table in windows]
    last = max((e for e in ends if e is not None), default=0)
    return min(times, default=0) - 1, last


def expected(sql: str, span: tuple[int, int], streams: dict[str, pa.Table]) -> States:
    """The rows of a query whose first column is the instant, by instant."""
    with DUCKDB.cursor() as cursor:
        for name, table in streams.items():
            cursor.register(name, table)
        cursor.execute(
            f"CREATE OR REPLACE TEMP VIEW instants AS SELECT range AS tick FROM range({span[0]}, {span[1] + 1})"
        )
        found: States = {}
        for at, *row in cursor.execute(sql).fetchall():
            found.setdefault(at, []).append(tuple(row))
    return found


# ---- the side under test -------------------------------------------------------------------------------------------


def told(result: pa.Table) -> list[Row]:
    """What a periodic query tells; the bounds at the end of each row say when."""
    return list(zip(*(c.to_pylist() for c in result.columns), strict=True))


def replayed(result: pa.Table, span: tuple[int, int]) -> States:
    """The states that signed changes lead to, at every instant of the span and of the changes."""
    width = result.schema.names.index("ts")
    changes: dict[int, list[tuple[Row, int]]] = {}
    columns = [c.to_pylist() for c in result.columns[:width]]
    for *row, ts, sign in zip(*columns, result["ts"].to_pylist(), result["sign"].to_pylist(), strict=True):
        changes.setdefault(ts, []).append((tuple(row), sign))
    held: Counter[Row] = Counter()
    found: States = {}
    for at in range(min([span[0], *changes]), max([span[1], *changes]) + 1):
        for key, sign in changes.get(at, ()):
            held[key] += sign
        assert min(held.values(), default=0) >= 0, f"a row left at {at} that was not there"
        held += Counter()
        if held:
            found[at] = list(held.elements())
    return found


def same_states(found: States, wanted: States) -> None:
    assert found.keys() == wanted.keys()
    for at in wanted:
        same_rows(found[at], wanted[at])


def same_rows(found: Sequence[Row], wanted: Sequence[Row]) -> None:
    assert len(found) == len(wanted), (found, wanted)
    for mine, theirs in zip(_ordered(found), _ordered(wanted), strict=True):
        assert len(mine) == len(theirs)
        assert all(_close(a, b) for a, b in zip(mine, theirs, strict=True)), (mine, theirs)


def _ordered(rows: Iterable[Row]) -> list[Row]:
    """Rows by what is exact in them; floats only break ties between equal keys, rounded."""
    return sorted(
        rows, key=lambda r: ([repr(v) for v in r if not _inexact(v)], [_rounded(v) for v in r if _inexact(v)])
    )


def _inexact(value: Any) -> bool:
    return isinstance(value, float | Decimal)


def _rounded(value: float | Decimal) -> float:
    return round(float(value), 4)


def _close(mine: Any, theirs: Any) -> bool:
    if isinstance(mine, Decimal) and isinstance(theirs, float):  # DuckDB's AVG of decimals is a double
        return abs(float(mine) - theirs) <= 0.5000001 * 10.0 ** int(mine.as_tuple().exponent)
    if isinstance(mine, float) and isinstance(theirs, float):
        return math.isclose(mine, theirs, rel_tol=1e-9, abs_tol=1e-9)
    return bool(mine == theirs) and type(mine) is type(theirs)


# ---- one query on both sides ----------------------------------------------------------------------------------------


def check(
    cql: str,
    sql: str,
    windows: Sequence[tuple[Spec, pa.Table]],
    boundary: str,
    streams: dict[str, pa.Table] | None = None,
) -> None:
    """A query over streams S and T, and the SQL of its state, whose first column is the instant `tick`.

    With a periodic window everything told, bounds included, must be what the SQL finds at the instants of the
    periodic windows; without one, the changes must replay to the state at every instant.
    """
    streams = streams or dict(zip("ST", (table for _, table in windows), strict=False))
    span = series(windows, boundary)
    result = pw.run(cql, streams, time="t", boundary=boundary)
    speakers = [w for w, _ in windows if w.slide and not (isinstance(w, Count) and w.by_key)]
    if not speakers:
        same_states(replayed(result, span), expected(sql, span, streams))
        return
    starts, ends = zip(*map(bounds, speakers), strict=True)
    steps = [w.slide or 1 for w in speakers]
    ends_at = [
        f"{is_instant(w, boundary)} AND g.tick < {span[1] + step}" for w, step in zip(speakers, steps, strict=True)
    ]
    told_sql = f"SELECT g.*, least({', '.join(starts)}), greatest({', '.join(ends)}) FROM ({sql}) g"
    told_sql += f" WHERE {' OR '.join(ends_at)}"
    span = span[0], span[1] + max(steps) - 1
    same_rows(told(result), [row for rows in expected(told_sql, span, streams).values() for row in rows])


def several(windows: st.SearchStrategy[Spec]) -> st.SearchStrategy[list[Spec]]:
    return st.lists(windows, min_size=WINDOWS_A_TABLE, max_size=WINDOWS_A_TABLE)


# ---- one stream, one window ----------------------------------------------------------------------------------------


def check_rows(window: Spec, s: pa.Table, boundary: str) -> None:
    """The window's rows themselves."""
    sql = f"SELECT tick, i, k, v, x, d FROM ({state(window, 'S', boundary)})"
    check(f"SELECT i, k, v, x, d FROM S {window.cql}", sql, [(window, s)], boundary)


@pytest.mark.slow
@settings(max_examples=90)
@given(tables(), several(SLIDING), BOUNDARIES)
def test_sliding(s: pa.Table, windows: list[Spec], boundary: str) -> None:
    for window in windows:
        check_rows(window, s, boundary)


@settings(max_examples=40)
@given(tables(), several(TUMBLING), BOUNDARIES)
def test_tumbling(s: pa.Table, windows: list[Spec], boundary: str) -> None:
    for window in windows:
        check_rows(window, s, boundary)


@pytest.mark.slow
@settings(max_examples=40)
@given(tables(), several(CUMULATING), BOUNDARIES)
def test_cumulating(s: pa.Table, windows: list[Spec], boundary: str) -> None:
    for window in windows:
        check_rows(window, s, boundary)


@pytest.mark.slow
@settings(max_examples=80)
@given(tables(), several(CONTINUOUS), BOUNDARIES)
def test_sliding_at_every_tick(s: pa.Table, windows: list[Spec], boundary: str) -> None:
    for window in windows:
        check_rows(window, s, boundary)


@pytest.mark.slow
@settings(max_examples=80)
@given(tables(), several(st.one_of(COUNTED, COUNTED_SLIDING)), BOUNDARIES)
def test_counted(s: pa.Table, windows: list[Spec], boundary: str) -> None:
    for window in windows:
        check_rows(window, s, boundary)


@pytest.mark.slow
@settings(max_examples=60)
@given(tables(), several(st.one_of(LANDMARKS, PERIODIC_LANDMARKS)), BOUNDARIES)
def test_landmarks(s: pa.Table, windows: list[Spec], boundary: str) -> None:
    for window in windows:
        check_rows(window, s, boundary)


@settings(max_examples=60)
@given(
    tables(),
    st.tuples(st.integers(1, 6), st.integers(1, 6)),
    st.tuples(st.integers(1, 4), st.integers(0, 3)),
    BOUNDARIES,
)
def test_multi_granular(s: pa.Table, ranges: tuple[int, int], slides: tuple[int, int], boundary: str) -> None:
    fine, wide = Slide(ranges[0], slides[0]), Slide(sum(ranges), sum(slides))
    cql = f"SELECT i, k FROM S [RANGES {wide.range}, {fine.range} SLIDES {wide.slide}, {fine.slide}]"
    result = pw.run(cql, {"S": s}, time="t", boundary=boundary)
    wanted: list[Row] = []
    for level, window in enumerate((fine, wide)):
        start, end = bounds(window)
        rows = f"({state(window, 'S', boundary)}) g WHERE g.tick = {grid(window)}"
        found = expected(
            f"SELECT g.tick, g.i, g.k, {start}, {end}, {level} FROM {rows}", series([(window, s)], boundary), {"S": s}
        )
        wanted += [row for some in found.values() for row in some]
    same_rows(told(result), wanted)


@settings(max_examples=120)
@given(tables(), st.integers(1, 8), st.booleans(), BOUNDARIES)
def test_sessions(s: pa.Table, gap: int, by_key: bool, boundary: str) -> None:
    window = f"[{'PARTITION BY k ' * by_key}SESSION {gap}]"
    result = pw.run(
        f"SELECT COUNT(*) AS n, SUM(v) AS total, MIN(k) AS k FROM S {window}", {"S": s}, time="t", boundary=boundary
    )
    order = f"OVER ({'PARTITION BY k' * by_key} ORDER BY t, i)"
    sql = f"""
        WITH gaps AS (SELECT *, coalesce(t - lag(t) {order} > {gap}, true) AS opens FROM S),
        numbered AS (SELECT *, sum(opens::INT) {order} AS number FROM gaps)
        SELECT 0, count(*), sum(v)::BIGINT, min(k), min(t), max(t) + {gap}
        FROM numbered GROUP BY number{", k" * by_key}"""
    same_rows(told(result), expected(sql, (0, 0), {"S": s}).get(0, []))


@pytest.mark.slow
@settings(max_examples=60)
@given(tables(), several(SLIDING), BOUNDARIES)
def test_timestamps(s: pa.Table, windows: list[Spec], boundary: str) -> None:
    """Windows of one and a half seconds a tick over timestamps are the integer windows, stretched."""
    tick = 1_500_000
    stretched = pa.array([t * tick for t in s["t"].to_pylist()], pa.timestamp("us"))
    stream = s.set_column(1, "t", stretched)
    for window in windows:
        assert isinstance(window, Slide)
        start, end = bounds(window)
        sql = f"SELECT g.tick, g.i, ({start}) * {tick}, ({end}) * {tick} FROM ({state(window, 'S', boundary)}) g"
        wanted = expected(f"{sql} WHERE g.tick = {grid(window)}", series([(window, s)], boundary), {"S": s})
        seconds = f"RANGE {window.range * 1.5} SECONDS SLIDE {(window.slide or 1) * 1500} MILLISECONDS"
        seconds += f" LAG {window.lag * 1.5} SECONDS"
        if window.start is not None:
            moment = datetime(1970, 1, 1) + timedelta(microseconds=window.start * tick)
            seconds += f" START AT '{moment.isoformat(sep=' ')}'"
        result = pw.run(f"SELECT i FROM S [{seconds}]", {"S": stream}, time="t", boundary=boundary)
        numbers = pa.table([result["i"], *(result[c].cast(pa.int64()) for c in ("w_start", "w_end"))], ["i", "a", "b"])
        same_rows(told(numbers), [row for rows in wanted.values() for row in rows])


# ---- insertions and deletions ----------------------------------------------------------------------------------------


@pytest.mark.slow
@settings(max_examples=55)
@given(keyed_tables(), several(WINDOWS), BOUNDARIES)
def test_insertions_and_deletions(s: pa.Table, windows: list[Spec], boundary: str) -> None:
    """ISTREAM and DSTREAM are what differs between the states before and at each instant."""
    for window in windows:
        first, last = series([(window, s)], boundary)
        span = first, last + 13  # past the next instant of any slide, at which the last state has left
        states = expected(f"SELECT tick, k, v FROM ({state(window, 'S', boundary)})", span, {"S": s})
        bags = {at: Counter(states.get(at, ())) for at in range(span[0] - 1, span[1] + 1)}
        pairs = [(at, bags[at - 1], bags[at]) for at in range(*span)]
        came = [(*row, at) for at, before, now in pairs for row in (now - before).elements()]
        went = [(*row, at) for at, before, now in pairs for row in (before - now).elements()]
        for keyword, wanted in (("ISTREAM", came), ("DSTREAM", went)):
            result = pw.run(f"SELECT {keyword} k, v FROM S {window.cql}", {"S": s}, time="t", boundary=boundary)
            same_rows(told(result.select(["k", "v", "ts"])), wanted)


# ---- relational operators --------------------------------------------------------------------------------------------


@pytest.mark.slow
@settings(max_examples=55)
@given(keyed_tables(), several(st.one_of(PERIODIC, CHANGING)), BOUNDARIES)
def test_distinct(s: pa.Table, windows: list[Spec], boundary: str) -> None:
    for window in windows:
        sql = f"SELECT DISTINCT tick, k, v FROM ({state(window, 'S', boundary)})"
        check(f"SELECT DISTINCT k, v FROM S {window.cql}", sql, [(window, s)], boundary)


@pytest.mark.slow
@settings(max_examples=60)
@given(keyed_tables(), several(st.one_of(PERIODIC, CHANGING)), BOUNDARIES)
def test_where_and_expressions(s: pa.Table, windows: list[Spec], boundary: str) -> None:
    """A condition above the window sees what the window holds; NULL is not true."""
    for window in windows:
        sql = f"SELECT tick, i, (v + t)::BIGINT FROM ({state(window, 'S', boundary)}) WHERE v > 1 OR k = 'a'"
        check(f"SELECT i, v + t AS y FROM S {window.cql} WHERE v > 1 OR k = 'a'", sql, [(window, s)], boundary)


@pytest.mark.slow
@settings(max_examples=60)
@given(keyed_tables(), several(st.one_of(PERIODIC, CHANGING)), BOUNDARIES)
def test_window_over_a_selection(s: pa.Table, windows: list[Spec], boundary: str) -> None:
    """A window around a sub-query counts and times only what the sub-query lets through."""
    passing = s.filter(pc.fill_null(pc.not_equal(s["k"], "a"), False))
    for window in windows:
        cql = f"SELECT i, k FROM (SELECT i, t, k FROM S WHERE k <> 'a') AS P {window.cql}"
        inner = state(window, "(SELECT * FROM S WHERE k <> 'a')", boundary)
        check(cql, f"SELECT tick, i, k FROM ({inner})", [(window, passing)], boundary, {"S": s})


#: Every aggregate DuckDB has too: ours, and DuckDB's way to say it over a window's state.
AGGREGATES = {
    "COUNT(*)": "count(*)",
    "COUNT(v)": "count(v)",
    "COUNT(DISTINCT v)": "count(DISTINCT v)",
    "COUNT(DISTINCT x)": "count(DISTINCT x)",
    "SUM(v)": "sum(v)::BIGINT",
    "SUM(x)": "sum(x)",
    "SUM(d)": "sum(d)",
    "SUM(v * 2)": "sum(v * 2)::BIGINT",
    "AVG(v)": "avg(v)",
    "AVG(x)": "avg(x)",
    "AVG(d)": "avg(d)",
    "MIN(v)": "min(v)",
    "MAX(v)": "max(v)",
    "MIN(k)": "min(k)",
    "MAX(k)": "max(k)",
    "MIN(x)": "min(x)",
    "MAX(d)": "max(d)",
    "VAR_SAMP(v)": "var_samp(v)",
    "VAR_POP(x)": "var_pop(x)",
    "VARIANCE(d)": "var_samp(d)",
    "STDDEV(v)": "stddev_samp(v)",
    "STDDEV_POP(x)": "stddev_pop(x)",
    "FIRST(v)": "first(v ORDER BY t, i) FILTER (v IS NOT NULL)",
    "LAST(v)": "last(v ORDER BY t, i) FILTER (v IS NOT NULL)",
    "LAST(k)": "last(k ORDER BY t, i) FILTER (k IS NOT NULL)",
    "MEDIAN(v)": "median(v)",
    "MEDIAN(x)": "median(x)",
    "QUANTILE(v, 0.29)": "list_sort(list(v) FILTER (v IS NOT NULL))[greatest(floor(0.29 * count(v)), 1)::INT]",
    "QUANTILE(x, 0.7)": "list_sort(list(x) FILTER (x IS NOT NULL))[greatest(floor(0.7 * count(x)), 1)::INT]",
    "QUANTILE(k, 1)": "max(k)",
    "REGR_SLOPE(v, x)": "CASE WHEN regr_sxx(v, x) > 0 THEN regr_slope(v, x) END",
    "REGR_INTERCEPT(v, x)": "CASE WHEN regr_sxx(v, x) > 0 THEN regr_intercept(v, x) END",
    "REGR_R2(v, x)": "CASE WHEN regr_sxx(v, x) > 0 THEN regr_r2(v, x) END",
    "REGR_R2(x)": "CASE WHEN regr_sxx(x, t) > 0 THEN CASE WHEN min(x) = max(x) THEN 1.0 ELSE regr_r2(x, t) END END",
    "APPROX_DISTINCT(v)": "count(DISTINCT v)",
    "REGR_SLOPE(v)": "CASE WHEN regr_sxx(v, t) > 0 THEN regr_slope(v, t) END",
    "REGR_INTERCEPT(x)": "CASE WHEN regr_sxx(x, t) > 0 THEN regr_intercept(x, t) END",
}
CALLS = st.lists(st.sampled_from(sorted(AGGREGATES)), min_size=1, max_size=6, unique=True)


@pytest.mark.slow
@settings(max_examples=90)
@given(tables(12), CALLS, several(st.one_of(PERIODIC, CHANGING)), st.booleans(), BOUNDARIES)
def test_aggregates(s: pa.Table, calls: list[str], windows: list[Spec], grouped: bool, boundary: str) -> None:
    ours = ", ".join([*["k"] * grouped, *(f"{call} AS c{n}" for n, call in enumerate(calls))])
    theirs = ", ".join(["tick", *["k"] * grouped, *(AGGREGATES[call] for call in calls)])
    for window in windows:
        sql = f"SELECT {theirs} FROM ({state(window, 'S', boundary)}) GROUP BY tick{', k' * grouped}"
        check(f"SELECT {ours} FROM S {window.cql}{' GROUP BY k' * grouped}", sql, [(window, s)], boundary)


@pytest.mark.parametrize("call", sorted(AGGREGATES))
@settings(max_examples=6)
@given(tables(12, min_size=4), SLIDING, BOUNDARIES)
def test_each_aggregate(call: str, s: pa.Table, window: Spec, boundary: str) -> None:
    sql = f"SELECT tick, k, {AGGREGATES[call]} FROM ({state(window, 'S', boundary)}) GROUP BY tick, k"
    check(f"SELECT k, {call} AS c FROM S {window.cql} GROUP BY k", sql, [(window, s)], boundary)


HAVINGS = st.sampled_from(
    [
        "count(*) > 1",
        "sum(v) > 0 OR sum(v) IS NULL",
        "k IS NULL OR max(v) - min(v) >= 2",
        "count(v) = 0",
        "avg(x) < 0.5",
    ]
)


@pytest.mark.slow
@settings(max_examples=60)
@given(tables(12), HAVINGS, several(st.one_of(PERIODIC, CHANGING)), BOUNDARIES)
def test_having(s: pa.Table, having: str, windows: list[Spec], boundary: str) -> None:
    for window in windows:
        sql = f"SELECT tick, k, count(*), sum(v)::BIGINT FROM ({state(window, 'S', boundary)})"
        sql += f" GROUP BY tick, k HAVING {having}"
        cql = f"SELECT k, COUNT(*) AS n, SUM(v) AS total FROM S {window.cql} GROUP BY k HAVING {having}"
        check(cql, sql, [(window, s)], boundary)


@pytest.mark.slow
@settings(max_examples=60)
@given(keyed_tables(), several(st.one_of(PERIODIC, CHANGING)), BOUNDARIES)
def test_grouping_by_expressions(s: pa.Table, windows: list[Spec], boundary: str) -> None:
    for window in windows:
        sql = f"SELECT tick, t > 0, k, sum(v)::BIGINT FROM ({state(window, 'S', boundary)}) GROUP BY tick, t > 0, k"
        cql = f"SELECT t > 0 AS late, k, SUM(v) AS total FROM S {window.cql} GROUP BY t > 0, k"
        check(cql, sql, [(window, s)], boundary)


# ---- two windowed streams --------------------------------------------------------------------------------------------

PAIRS = st.lists(st.tuples(WINDOWS, WINDOWS), min_size=WINDOWS_A_TABLE, max_size=WINDOWS_A_TABLE)


@pytest.mark.slow
@settings(max_examples=90)
@given(keyed_tables(8), keyed_tables(8), PAIRS, BOUNDARIES)
def test_joins(s: pa.Table, t: pa.Table, pairs: list[tuple[Spec, Spec]], boundary: str) -> None:
    """Windows of any two kinds; NULL keys meet nothing."""
    for a, b in pairs:
        left, right = state(a, "S", boundary), state(b, "T", boundary)
        sql = f"SELECT l.tick, l.i, r.i, l.k FROM ({left}) l JOIN ({right}) r ON l.tick = r.tick AND l.k = r.k"
        cql = f"SELECT A.i, B.i AS j, A.k FROM S AS A {a.cql}, T AS B {b.cql} WHERE A.k = B.k"
        check(cql, sql, [(a, s), (b, t)], boundary)


@pytest.mark.slow
@settings(max_examples=40)
@given(keyed_tables(8), keyed_tables(8), PAIRS, BOUNDARIES)
def test_joins_on_two_keys_and_a_condition(
    s: pa.Table, t: pa.Table, pairs: list[tuple[Spec, Spec]], boundary: str
) -> None:
    for a, b in pairs:
        left, right = state(a, "S", boundary), state(b, "T", boundary)
        on = "l.k = r.k AND l.v = r.v AND l.t + r.v >= r.t"
        sql = f"SELECT l.tick, l.k, count(*) FROM ({left}) l JOIN ({right}) r ON l.tick = r.tick AND {on}"
        sql += " GROUP BY l.tick, l.k"
        cql = f"SELECT l.k, COUNT(*) AS n FROM S AS l {a.cql} JOIN T AS r {b.cql} ON {on} GROUP BY l.k"
        check(cql, sql, [(a, s), (b, t)], boundary)


@pytest.mark.slow
@settings(max_examples=100)
@given(keyed_tables(8), keyed_tables(8), PAIRS, st.sampled_from(["UNION ALL", "EXCEPT ALL"]), BOUNDARIES)
def test_set_operations(s: pa.Table, t: pa.Table, pairs: list[tuple[Spec, Spec]], operator: str, boundary: str) -> None:
    """Multiplicities add up or cancel at every instant of either window, also where one side is empty."""
    for a, b in pairs:
        left, right = state(a, "S", boundary), state(b, "T", boundary)
        sql = f"SELECT tick, k FROM ({left}) {operator} SELECT tick, k FROM ({right})"
        check(f"SELECT k FROM S {a.cql} {operator} SELECT k FROM T {b.cql}", sql, [(a, s), (b, t)], boundary)
