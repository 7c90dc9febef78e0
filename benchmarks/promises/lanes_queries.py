"""The lanes: every kind of window with every aggregate, and the streams that they are measured on."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

import panewise as pw

SCHEMA = pa.schema(
    [("t", pa.int64()), ("n", pa.int64()), ("k", pa.int64()), ("v", pa.int64()), ("s", pa.string()), ("j", pa.int64())]
)

#: Windows that report at intervals, and how they are written.
PERIODIC = {
    "sliding": "[RANGE 600 SLIDE 60]",
    "hierarchy": "[RANGES 600, 60 SLIDES 60, 10]",
    "tumbling": "[RANGE 60 SLIDE 60]",
    "cumulating": "[CUMULATE 600 STEP 60]",
    "landmark with SLIDE": "[UNBOUNDED SLIDE 60]",
}
#: Windows that report when they change, and sessions.
CHANGING = {
    "landmark": "[UNBOUNDED]",
    "continuous": "[RANGE 600]",
    "now": "[NOW]",
    "counted": "[ROWS 1000]",
    "partitioned": "[PARTITION BY k ROWS 100]",
    "session": "[PARTITION BY k SESSION {gap}]",
}
WINDOWS = PERIODIC | CHANGING

AGGREGATES = {
    "SUM": "SUM(v)",
    "COUNT": "COUNT(*)",
    "AVG": "AVG(v)",
    "MIN": "MIN(v)",
    "MAX": "MAX(v)",
    "VAR": "VAR(v)",
    "STDDEV": "STDDEV(v)",
    "FIRST": "FIRST(v)",
    "LAST": "LAST(v)",
    "MAX of strings": "MAX(s)",
    "COUNT(DISTINCT)": "COUNT(DISTINCT v)",
    "MEDIAN": "MEDIAN(v)",
    "QUANTILE": "QUANTILE(v, 0.9)",
    "APPROX_DISTINCT": "APPROX_DISTINCT(v)",
    "TOP_K": "TOP_K(v, 10)",
    "RECURRING_COUNTS": "RECURRING_COUNTS(v, 10)",
    "AGED_SUM": "AGED_SUM(v)",
    "REGR_SLOPE": "REGR_SLOPE(v)",
    "REGR_SLOPE FILLED": "REGR_SLOPE(v, 'FILLED')",
}

#: So many ticks are in a continuous window.
RANGE = 600
_JOIN = "FROM S [RANGE 600] AS A, T [RANGE 600] AS B WHERE A.j = B.j"
#: What else reports changes of continuous windows.
OPERATORS = {
    "SELECT": "SELECT k, v FROM S [RANGE 600]",
    "DISTINCT": "SELECT DISTINCT k, v FROM S [RANGE 600]",
    "join": f"SELECT ISTREAM A.k, B.v {_JOIN}",
    "groups over a join": f"SELECT ISTREAM A.k, SUM(B.v) AS a {_JOIN} GROUP BY A.k",
}


@dataclass(frozen=True)
class Lane:
    """A window and what is asked of it: an aggregate by key, or an operator over continuous windows."""

    window: str
    asked: str

    @property
    def streams(self) -> tuple[str, ...]:
        return ("S", "T") if "join" in self.asked else ("S",)

    def query(self, scale: Scale) -> str:
        if self.asked in OPERATORS:
            return OPERATORS[self.asked]
        window = WINDOWS[self.window].format(gap=scale.session_gap)
        return f"SELECT k, {AGGREGATES[self.asked]} AS a FROM S {window} GROUP BY k"


LANES = [
    *(Lane(window, aggregate) for window in WINDOWS for aggregate in AGGREGATES),
    *(Lane("continuous", operator) for operator in OPERATORS),
]


@dataclass(frozen=True)
class Scale:
    """How large streams are."""

    rows: int
    keys: int
    #: Rows of a tick: many where windows report at intervals, or results would outnumber rows.
    dense: int
    #: Rows of a tick where windows report changes.
    sparse: int

    @property
    def session_gap(self) -> int:
        """Three times the usual time between two rows of a key, which makes sessions of about 20 rows."""
        return 3 * self.keys // self.sparse


class Streams:
    """The streams S and T, dense and sparse, made once."""

    def __init__(self, scale: Scale) -> None:
        self.scale = scale
        self._dense = {"S": make_stream(scale, scale.dense, seed=0)}
        self._sparse = {name: make_stream(scale, scale.sparse, seed) for seed, name in enumerate(("S", "T"))}

    def first(self, lane: Lane, rows: int) -> dict[str, pa.Table]:
        """The first rows of each stream of a lane, so many in all."""
        streams = self._dense if lane.window in PERIODIC else self._sparse
        return {name: streams[name].slice(0, rows // len(lane.streams)) for name in lane.streams}


def make_stream(scale: Scale, rows_per_tick: int, seed: int) -> pa.Table:
    """Rows in the order of time, numbered by `n`; the rest at random. `j` meets about one row of another window."""
    rng, numbers = np.random.default_rng(seed), np.arange(scale.rows)
    names = pa.array([f"item {number:03d}" for number in range(1000)])
    keys, values, texts, partners = (
        rng.integers(0, limit, scale.rows) for limit in (scale.keys, 1000, 1000, RANGE * rows_per_tick)
    )
    return pa.table(
        [numbers // rows_per_tick, numbers, keys, values, names.take(pa.array(texts)), partners], schema=SCHEMA
    )


def engine_of(lane: Lane, scale: Scale) -> pw.Engine:
    """An engine that answers a lane; raises where Panewise refuses it."""
    pool = pw.Pool(dict.fromkeys(lane.streams, pw.StreamSchema(SCHEMA, "t")), bounded=True)
    pool.register("q", lane.query(scale))
    return pw.Engine(pool)


def answers(engine: pw.Engine, streams: dict[str, pa.Table]) -> pa.Table:
    """All results of complete streams."""
    for name, rows in streams.items():
        engine.feed(name, rows)
    return engine.finish()["q"]
