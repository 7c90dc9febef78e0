"""What the laws are tried on: tables, windows as plain data, aggregate values, arrivals and query texts.

Windows are described here by dataclasses of our own, so that the expected side of a law never touches panewise.window.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st

SCHEMA = pa.schema(
    [
        ("i", pa.int64()),
        ("t", pa.int64()),
        ("k", pa.string()),
        ("v", pa.int64()),
        ("x", pa.float64()),
        ("d", pa.decimal128(10, 2)),
    ]
)
BOUNDARIES = st.sampled_from(["(]", "[)"])
KEYS = st.sampled_from(["a", "b", "it's", "", None])

#: Few different times over a short span, so that ties, gaps and both sides of the epoch are common.
TIMES = st.integers(-12, 14)
_VALUES = st.one_of(st.none(), st.integers(-3, 3), st.integers(-1000, 1000))
#: Awkward decimals and eighths: never so close together that DuckDB's own rounding would show in a slope.
_FLOATS = st.one_of(
    st.none(), st.sampled_from([0.0, -0.0, 0.1, 0.2, -0.3, 1e3]), st.integers(-8000, 8000).map(lambda n: n / 8)
)
_DECIMALS = st.one_of(st.none(), st.integers(-99999, 99999).map(lambda n: Decimal(n).scaleb(-2)))


def table(rows: list[tuple[Any, ...]]) -> pa.Table:
    """Rows of (t, k, v, x, d) in arrival order; `i` is the arrival."""
    columns = list(zip(*((i, *row) for i, row in enumerate(rows)), strict=True)) or [()] * len(SCHEMA)
    return pa.table([pa.array(c, f.type) for c, f in zip(columns, SCHEMA, strict=True)], schema=SCHEMA)


def tables(max_size: int = 10, min_size: int = 0) -> st.SearchStrategy[pa.Table]:
    row = st.tuples(TIMES, KEYS, _VALUES, _FLOATS, _DECIMALS)
    return st.lists(row, min_size=min_size, max_size=max_size).map(table)


def keyed_tables(max_size: int = 10) -> st.SearchStrategy[pa.Table]:
    """Tables whose other columns hardly vary, for what only looks at keys and values."""
    row = st.tuples(TIMES, KEYS, st.sampled_from([None, 1, 2]), st.none(), st.none())
    return st.lists(row, max_size=max_size).map(table)


# ---- windows -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Slide:
    """`[RANGE range SLIDE slide LAG lag START AT start]`."""

    range: int
    slide: int | None = None
    lag: int = 0
    start: int | None = None

    @property
    def cql(self) -> str:
        words = [f"RANGE {self.range}"]
        words += [f"SLIDE {self.slide}"] if self.slide else []
        words += [f"LAG {self.lag}"] if self.lag else []
        words += [f"START AT {self.start}"] if self.start is not None else []
        return f"[{' '.join(words)}]"


@dataclass(frozen=True)
class Count:
    """`[PARTITION BY k ROWS count SLIDE slide LAG lag]`."""

    count: int
    lag: int = 0
    by_key: bool = False
    slide: int | None = None

    @property
    def cql(self) -> str:
        slide, lag = f" SLIDE {self.slide}" if self.slide else "", f" LAG {self.lag}" if self.lag else ""
        return f"[{'PARTITION BY k ' * self.by_key}ROWS {self.count}{slide}{lag}]"


@dataclass(frozen=True)
class Mark:
    """`[UNBOUNDED]`, `[UNBOUNDED START AT lower]`, `[UNTIL upper]`, `[FROM lower UNTIL upper]`; maybe a slide."""

    lower: int | None = None
    upper: int | None = None
    slide: int | None = None

    @property
    def cql(self) -> str:
        text = "UNBOUNDED" if self.lower is None else f"UNBOUNDED START AT {self.lower}"
        if self.upper is not None:
            text = f"UNTIL {self.upper}" if self.lower is None else f"FROM {self.lower} UNTIL {self.upper}"
        return f"[{text}{f' SLIDE {self.slide}' if self.slide else ''}]"


@dataclass(frozen=True)
class Grow:
    """`[CUMULATE step * steps STEP step START AT start]`."""

    step: int
    steps: int
    start: int | None = None

    @property
    def slide(self) -> int:
        return self.step

    @property
    def size(self) -> int:
        return self.step * self.steps

    @property
    def cql(self) -> str:
        start = "" if self.start is None else f" START AT {self.start}"
        return f"[CUMULATE {self.size} STEP {self.step}{start}]"


Spec = Slide | Count | Mark | Grow

_LAGS = st.one_of(st.just(0), st.integers(1, 5))
_STARTS = st.one_of(st.none(), st.integers(-8, 8))
SLIDING = st.builds(Slide, st.integers(1, 9), st.integers(1, 12), _LAGS, _STARTS)
TUMBLING = st.builds(lambda size, start: Slide(size, size, 0, start), st.integers(1, 9), _STARTS)
CONTINUOUS = st.builds(Slide, st.integers(1, 9), st.none(), _LAGS, _STARTS)
COUNTED = st.builds(Count, st.integers(1, 5), _LAGS, st.booleans())
COUNTED_SLIDING = st.builds(Count, st.integers(1, 5), _LAGS, st.booleans(), st.integers(1, 4))
CUMULATING = st.builds(Grow, st.integers(1, 4), st.integers(1, 4), _STARTS)
_BANDS = st.tuples(_STARTS, st.one_of(st.none(), st.integers(0, 12))).map(
    lambda b: (b[0], None if b[1] is None else (b[0] or 0) + b[1])
)
LANDMARKS = st.builds(lambda band: Mark(band[0], band[1]), _BANDS)
PERIODIC_LANDMARKS = st.builds(lambda band, slide: Mark(band[0], band[1], slide), _BANDS, st.integers(1, 6))
PERIODIC: st.SearchStrategy[Spec] = st.one_of(SLIDING, TUMBLING, PERIODIC_LANDMARKS, CUMULATING)
CHANGING: st.SearchStrategy[Spec] = st.one_of(CONTINUOUS, COUNTED, LANDMARKS)
WINDOWS: st.SearchStrategy[Spec] = st.one_of(SLIDING, CONTINUOUS, COUNTED, LANDMARKS, TUMBLING, CUMULATING)


# ---- values of aggregates --------------------------------------------------------------------------------------------

#: Values of each type an aggregate may be asked to take, as it meets them: no NULLs, timestamps as ticks.
ARGUMENTS: dict[pa.DataType, st.SearchStrategy[Any]] = {
    pa.int64(): st.one_of(st.integers(-3, 3), st.integers(-(2**63), 2**63 - 1)),
    pa.float64(): st.one_of(
        st.integers(-3, 3).map(float), st.floats(), st.sampled_from([math.nan, math.inf, -math.inf, 0.1, 1e16])
    ).map(lambda x: math.nan if x != x else x + 0.0),
    pa.decimal128(10, 2): st.decimals("-99999999.99", "99999999.99", places=2),
    pa.string(): st.text(max_size=3),
    pa.timestamp("us"): st.integers(-(2**60), 2**60),
    pa.bool_(): st.booleans(),
}


# ---- arrivals --------------------------------------------------------------------------------------------------------


def arrivals(max_size: int = 9) -> st.SearchStrategy[pa.Table]:
    """Rows in any order, some without a time."""
    row = st.tuples(st.one_of(TIMES, TIMES, TIMES, st.none()), KEYS, st.none(), st.none(), st.none())
    return st.lists(row, max_size=max_size).map(table)


def late_arrivals(max_size: int = 8) -> st.SearchStrategy[pa.Table]:
    """Rows close together in time with now and then a much newer one, so that many are late by little or by much."""
    times = st.one_of(st.integers(0, 6), st.integers(0, 6), st.integers(0, 25))
    row = st.tuples(times, st.sampled_from(["a", "a", "b"]), st.none(), st.none(), st.none())
    return st.lists(row, max_size=max_size).map(table)


@st.composite
def jittered(draw: st.DrawFn) -> tuple[pa.Table, int]:
    """Rows of which none is older than the newest before it by more than the delay, and that delay.

    Each row arrives at its time plus at most the delay, so all that came before it is at most that much newer.
    """
    delay = draw(st.integers(0, 6))
    times = draw(st.lists(st.tuples(TIMES, st.integers(0, delay), KEYS), max_size=10))
    ordered = sorted(times, key=lambda r: r[0] + r[1])
    return table([(t, k, None, None, None) for t, _, k in ordered]), delay


# ---- queries an engine answers from panes ----------------------------------------------------------------------------

#: Every aggregate over every type of column it takes.
CALLS = (
    *("COUNT(*)", "COUNT(v)", "COUNT(k)", "COUNT(DISTINCT v)", "COUNT(DISTINCT k)", "COUNT(DISTINCT x)"),
    *("SUM(v)", "SUM(x)", "SUM(d)", "SUM(v * 2)", "AVG(v)", "AVG(x)", "AVG(d)"),
    *("MIN(v)", "MAX(v)", "MIN(k)", "MAX(k)", "MIN(x)", "MAX(x)", "MIN(d)", "MAX(d)", "MIN(t)", "MAX(t)"),
    *("VAR_SAMP(v)", "VAR_POP(x)", "VARIANCE(d)", "STDDEV(v)", "STDDEV_POP(x)"),
    *("FIRST(v)", "LAST(v)", "FIRST(k)", "LAST(k)", "FIRST(x)", "LAST(x)", "FIRST(d)", "LAST(i)", "FIRST(i)"),
    *("MEDIAN(v)", "MEDIAN(x)", "QUANTILE(v, 0.29)", "QUANTILE(x, 0.7)", "QUANTILE(k, 1)", "MEDIAN(d)"),
    *("REGR_SLOPE(v, x)", "REGR_INTERCEPT(v, x)", "REGR_SLOPE(v)", "REGR_INTERCEPT(x)", "REGR_R2(v, x)", "REGR_R2(x)"),
    *("APPROX_DISTINCT(v)", "APPROX_DISTINCT(k)", "APPROX_DISTINCT(x)", "TOP_K(v, 2)", "TOP_K(k, 1)", "TOP_K(d, 3)"),
)
_GROUPINGS = ("k", "v", "x", "d", "k, x", "v % 2, k", "k, v, x", "k IS NULL", "v > 0, x")
_FILTERS = ("v > 0", "k <> 'a'", "x < 1 OR v IS NULL", "i % 3 = 1", "k IS NULL OR v < 2", "false")
_HAVINGS = ("COUNT(*) > 1", "SUM(v) > 0 OR SUM(v) IS NULL", "MAX(v) - MIN(v) >= 2", "COUNT(v) = 0")
_COMPUTED = ("SUM(v) + COUNT(*)", "MAX(v) - MIN(v)", "COUNT(*) * 2", "COALESCE(SUM(v), 0)")
#: NaN, infinities and both zeros: one NaN, one zero.
_ODD_FLOATS = st.one_of(_FLOATS, _FLOATS, st.sampled_from([math.nan, -math.nan, math.inf, -math.inf, -0.0, 0.0]))


@dataclass(frozen=True)
class Aggregated:
    """A grouped query, clause by clause; `window` is a text over integer time."""

    window: str
    calls: tuple[str, ...] = ("COUNT(*)",)
    keys: str = ""
    emit: str = ""
    under: str = ""
    where: str = ""
    having: str = ""
    suffix: str = ""

    @property
    def cql(self) -> str:
        named = [f"{call} AS c{n}" for n, call in enumerate(self.calls)]
        keys = [f"{key} AS g{n}" for n, key in enumerate(self.keys.split(", "))] if self.keys else []
        source = f"(SELECT * FROM S WHERE {self.under}) AS P" if self.under else "S"
        words = [f"SELECT {self.emit} {', '.join(keys + named)} FROM {source} {self.window}"]
        words += [f"WHERE {self.where}"] if self.where else []
        words += [f"GROUP BY {self.keys}"] if self.keys else []
        words += [f"HAVING {self.having}"] if self.having else []
        return " ".join([*words, self.suffix]).replace("  ", " ").strip()


_SESSIONS = st.builds(
    lambda gap, by: f"[{by}SESSION {gap}]",
    st.integers(1, 6),
    st.sampled_from(["", "PARTITION BY k ", "PARTITION BY v, k "]),
)
_LEVELS = st.builds(
    lambda ranges, slides, start: (
        f"[RANGES {sum(ranges)}, {sum(ranges[:2])}, {ranges[0]} SLIDES {sum(slides)}, {sum(slides[:2])}, {slides[0]}"
        f"{'' if start is None else f' START AT {start}'}]"
    ),
    st.tuples(*[st.integers(1, 5)] * 3),
    st.tuples(st.integers(1, 4), st.integers(0, 3), st.integers(0, 3)),
    _STARTS,
)
_ROW_LEVELS = st.builds(
    lambda by, counts, slides: f"[{by}ROWS {sum(counts)}, {counts[0]} SLIDES {sum(slides)}, {slides[0]}]",
    st.sampled_from(["", "PARTITION BY k "]),
    st.tuples(*[st.integers(1, 3)] * 2),
    st.tuples(st.integers(1, 3), st.integers(0, 2)),
)
_EXTENTS = st.builds(
    lambda extent, slide: f"[RANGE ({extent}) SLIDE {slide}]",
    st.sampled_from(["CASE WHEN now < 3 THEN 1 ELSE 5 END", "CASE WHEN now % 4 = 0 THEN 7 ELSE 2 END", "ABS(now) % 4"]),
    st.integers(1, 4),
)
_FILTERED = st.sampled_from(["[WHERE v > 0]", "[WHERE k <> 'a']", "[WHERE x < 1 OR v IS NULL]"])
#: Windows by kind, as texts.
KINDS: dict[str, st.SearchStrategy[str]] = {
    "sliding": SLIDING.map(lambda w: w.cql),
    "tumbling": TUMBLING.map(lambda w: w.cql),
    "continuous": st.one_of(CONTINUOUS.map(lambda w: w.cql), st.just("[NOW]")),
    "levels": _LEVELS,
    "landmark": LANDMARKS.map(lambda w: w.cql),
    "refreshed": PERIODIC_LANDMARKS.map(lambda w: w.cql),
    "cumulate": CUMULATING.map(lambda w: w.cql),
    "rows": st.one_of(COUNTED.map(lambda w: w.cql), st.just("[PARTITION BY k, v ROWS 2 LAG 1]")),
    "blocks": st.one_of(COUNTED_SLIDING.map(lambda w: w.cql), _ROW_LEVELS),
    "session": _SESSIONS,
    "predicate": _FILTERED,
    "varying": _EXTENTS,
}
#: Kinds with instants of their own on a grid, of which LATE REVISE may say some again.
GRIDDED = ("sliding", "tumbling", "levels", "refreshed", "cumulate")


@st.composite
def aggregated(
    draw: st.DrawFn, kinds: tuple[str, ...] = tuple(KINDS), revising: bool = False, silent: bool = False
) -> Aggregated:
    """Any query the engine answers; with `revising` some that end in LATE REVISE, with `silent` some in EMIT EMPTY.

    Silence is reported as long as time passes, so only runs whose time ends with the items agree with the reference.
    """
    kind = draw(st.sampled_from(kinds))
    calls = draw(st.lists(st.sampled_from(CALLS + _COMPUTED), min_size=1, max_size=4, unique=True))
    keys = draw(st.one_of(st.just(""), st.sampled_from(_GROUPINGS)))
    emit = draw(st.sampled_from(["", "", *([] if kind == "varying" else ["ISTREAM", "DSTREAM"]), "RSTREAM"]))
    rarely = st.sampled_from([False, False, True])
    under, where, having = (
        draw(st.sampled_from(choices)) if draw(rarely) else "" for choices in (_FILTERS, _FILTERS, _HAVINGS)
    )
    if any(call.startswith("REGR") and "," not in call for call in calls):
        under = ""  # a sub-query has no time of its own to regress over
    if kind == "refreshed":
        under = ""  # rows that are dropped before the window move the watermark, and what never empties speaks on
    whole = kind in GRIDDED and kind != "refreshed" and emit in ("", "RSTREAM")
    suffix = "EMIT EMPTY" if silent and whole and draw(rarely) else ""
    if emit == "RSTREAM" and kind in ("continuous", "landmark", "predicate"):
        where = ""  # whole results would be said of items that WHERE drops, which the engine leaves to the reference
    if revising and whole and not suffix:
        suffix = f"LATE REVISE {draw(st.integers(0, 6))}"
    return Aggregated(draw(KINDS[kind]), tuple(calls), keys, emit, under, where, having, suffix.strip())


def odd_tables(max_size: int = 10, times: st.SearchStrategy[Any] = TIMES) -> st.SearchStrategy[pa.Table]:
    """Tables with every kind of float."""
    row = st.tuples(times, KEYS, _VALUES, _ODD_FLOATS, _DECIMALS)
    return st.lists(row, max_size=max_size).map(table)


def on_timestamps(query: Aggregated) -> Aggregated:
    """The same query over timestamps, a second for each tick."""

    def told(found: re.Match[str]) -> str:
        word, number = found.groups()
        if word:
            return f"{word}'{(datetime(1970, 1, 1) + timedelta(seconds=int(number))).isoformat(sep=' ')}'"
        return f"{number} SECONDS"

    timed = "(START AT |FROM |UNTIL )?(-?[0-9]+)"
    window = query.window if "ROWS" in query.window else re.sub(timed, told, query.window)
    return replace(query, window=window, suffix=re.sub(timed, told, query.suffix))


def stretched(s: pa.Table, kind: pa.DataType) -> pa.Table:
    """The same rows over timestamps, a second for each tick."""
    factor = {"s": 1, "ms": 1000, "us": 1_000_000, "ns": 1_000_000_000}[kind.unit]
    times = [None if t is None else t * factor for t in s["t"].to_pylist()]
    return s.set_column(1, "t", pa.array(times, pa.int64()).cast(kind))
