"""What the laws are tried on: tables, windows as plain data, aggregate values, arrivals and query texts.

Windows are described here by dataclasses of our own, so that the expected side of a law never touches panewise.window.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
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
    """`[PARTITION BY k ROWS count LAG lag]`."""

    count: int
    lag: int = 0
    by_key: bool = False
    slide: None = None

    @property
    def cql(self) -> str:
        return f"[{'PARTITION BY k ' * self.by_key}ROWS {self.count}{f' LAG {self.lag}' if self.lag else ''}]"


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
