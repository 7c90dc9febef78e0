"""What a user would write in DuckDB for the lanes.

Windows that report at intervals are a GROUP BY of rows that were repeated for each window they are in; those that
report changes are OVER, which gives a value for each row that enters and none where rows leave. Both have columns `k`,
`e` (the instant) and `a` (the answer).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import duckdb
import pyarrow as pa

from benchmarks.promises.lanes_queries import Lane, Scale

CALLS = {
    "SUM": "sum(v)",
    "COUNT": "count(*)",
    "AVG": "avg(v)",
    "MIN": "min(v)",
    "MAX": "max(v)",
    "VAR": "var_samp(v)",
    "STDDEV": "stddev_samp(v)",
    "FIRST": "arg_min(v, n)",
    "LAST": "arg_max(v, n)",
    "MAX of strings": "max(s)",
    "COUNT(DISTINCT)": "count(DISTINCT v)",
    "MEDIAN": "median(v)",
    "QUANTILE": "quantile_disc(v, 0.9)",
    "APPROX_DISTINCT": "approx_count_distinct(v)",
    "TOP_K": "approx_top_k(v, 10)",
    "REGR_SLOPE": "regr_slope(v, t)",
}
#: Where OVER orders rows by number. By time, rows of an instant have no order, which FIRST and LAST need.
NUMBERED_CALLS = CALLS | {"FIRST": "first_value(v)", "LAST": "last_value(v)"}


@dataclass(frozen=True)
class Grouped:
    """Rows of `source` with the end `e` of each window they are in; groups of `keys` are the answers."""

    rows: str
    keys: str = "k, e"
    #: What is selected of the keys, where it is not all of them.
    shown: str = ""
    #: Into which tier a row falls, and the level of its window, for aggregates that depend on them.
    tier: str = "0"
    level: str = "0"

    def text(self, asked: str) -> str | None:
        match asked:
            case "RECURRING_COUNTS":
                return self._recurring()
            case "REGR_SLOPE FILLED":
                return self._filled()
            case "AGED_SUM":
                return self._answer(f"sum(v * CASE {self.tier} WHEN 0 THEN 1.0::DOUBLE ELSE 0.5::DOUBLE END)")
        return self._answer(CALLS[asked])

    def of(self, source: str) -> str:
        return self.rows.format(source=source)

    def _answer(self, call: str) -> str:
        return f"SELECT {self.shown or self.keys}, {call} AS a FROM ({self.of('S')}) GROUP BY {self.keys}"

    def _recurring(self) -> str:
        counts = (
            f"SELECT {self.keys}, v, count(*) AS c, count(DISTINCT {self.tier}) > {self.level} AS recurs "
            f"FROM ({self.of('S')}) GROUP BY {self.keys}, v"
        )
        items = "list({'item': v, 'count': c} ORDER BY c DESC, v) FILTER (recurs)"
        return f"SELECT {self.keys}, coalesce({items}[:10], []) AS a FROM ({counts}) GROUP BY {self.keys}"

    def _filled(self) -> str:
        """Each value of a series holds until the next one, and the last one until the end of the window."""
        return (
            "WITH means AS (SELECT k, t, avg(v) AS v FROM S GROUP BY k, t), "
            f"held AS (SELECT *, lead(t, 1, e + 1) OVER (PARTITION BY {self.keys} ORDER BY t) AS until "
            f"FROM ({self.of('means')})) "
            f"SELECT {self.keys}, regr_slope(v, x) AS a "
            f"FROM (SELECT *, unnest(generate_series(t, until - 1)) AS x FROM held) GROUP BY {self.keys}"
        )


@dataclass(frozen=True)
class PerRow:
    """A value for each row by OVER."""

    frame: str
    order: str = "t"

    def text(self, asked: str) -> str | None:
        call = (NUMBERED_CALLS if self.order == "n" else CALLS).get(asked)
        over = f"OVER (PARTITION BY k ORDER BY {self.order} {self.frame})"
        return f"SELECT k, t AS e, n, {call} {over} AS a FROM S" if call else None


@dataclass(frozen=True)
class Refreshed:
    """A landmark at intervals: OVER by instants, and each group again at all instants after its first one."""

    slide: int

    def text(self, asked: str) -> str | None:
        call = CALLS.get(asked)
        if call is None:
            return None
        rows = f"SELECT *, {_end('t', self.slide)} AS e FROM S"
        values = f"SELECT k, e, {call} OVER (PARTITION BY k ORDER BY e) AS a FROM ({rows})"
        return (
            f"WITH known AS (SELECT k, e, any_value(a) AS a FROM ({values}) GROUP BY k, e), "
            f"instants AS (SELECT unnest(generate_series(min(e), max(e), {self.slide})) AS e FROM known), "
            "groups AS (SELECT DISTINCT k FROM known) "
            "SELECT k, e, a FROM (SELECT k, e FROM instants, groups) ASOF JOIN known USING (k, e)"
        )


def _end(time: str, slide: int) -> str:
    """The first instant at or after a time."""
    return f"({time} + {slide - 1}) // {slide} * {slide}"


def _hop(range: int, slide: int, further: str = "") -> str:
    first = _end("t", slide)
    return (
        f"SELECT *{further}, unnest(generate_series({first}, {first} + {range - slide}, {slide})) AS e FROM {{source}}"
    )


def _sessions(gap: int) -> Grouped:
    """Each session of a key is told apart by how many began before."""
    begins = f"coalesce(t - lag(t) OVER (PARTITION BY k ORDER BY t) > {gap}, false)::INT"
    numbered = (
        f"SELECT *, sum(begins) OVER (PARTITION BY k ORDER BY t) AS number FROM (SELECT *, {begins} AS begins FROM S)"
    )
    return Grouped(numbered, "k, number", shown=f"k, max(t) + {gap} AS e")


Text = Grouped | PerRow | Refreshed
WINDOWS: dict[str, Callable[[Scale], Text]] = {
    "sliding": lambda _: Grouped(_hop(600, 60)),
    "hierarchy": lambda _: Grouped(
        f"{_hop(600, 60, ', 1 AS level')} UNION ALL {_hop(60, 10, ', 0 AS level')}",
        "level, k, e",
        tier="(t <= e - 60)::INT",
        level="any_value(level)",
    ),
    "tumbling": lambda _: Grouped(f"SELECT *, {_end('t', 60)} AS e FROM {{source}}"),
    "cumulating": lambda _: Grouped(
        f"SELECT *, unnest(generate_series({_end('t', 60)}, {_end('t', 600)}, 60)) AS e FROM {{source}}"
    ),
    "landmark with SLIDE": lambda _: Refreshed(60),
    "landmark": lambda _: PerRow("RANGE UNBOUNDED PRECEDING"),
    "continuous": lambda _: PerRow("RANGE BETWEEN 599 PRECEDING AND CURRENT ROW"),
    "now": lambda _: Grouped("SELECT *, t AS e FROM {source}"),
    "counted": lambda _: PerRow("RANGE BETWEEN 999 PRECEDING AND CURRENT ROW", "n"),
    "partitioned": lambda _: PerRow("ROWS BETWEEN 99 PRECEDING AND CURRENT ROW", "n"),
    "session": lambda scale: _sessions(scale.session_gap),
}

_PAIRS = "FROM S AS A JOIN T AS B ON A.j = B.j AND B.t BETWEEN A.t - 599 AND A.t + 599"
#: Rows that enter, and for SELECT and DISTINCT also those that leave, at their instants.
OPERATORS = {
    "SELECT": "SELECT k, v, t AS e, 1 AS sign FROM S UNION ALL SELECT k, v, t + 600, -1 FROM S ORDER BY e",
    "DISTINCT": """
        WITH near AS (SELECT k, v, t, t - lag(t) OVER by_time AS before, lead(t) OVER by_time - t AS after
                      FROM S WINDOW by_time AS (PARTITION BY k, v ORDER BY t))
        SELECT k, v, t AS e, 1 AS sign FROM near WHERE before IS NULL OR before > 600
        UNION ALL SELECT k, v, t + 600, -1 FROM near WHERE after IS NULL OR after > 600 ORDER BY e""",
    "join": f"SELECT A.k, B.v, greatest(A.t, B.t) AS e {_PAIRS} ORDER BY e",
    "groups over a join": f"""
        WITH pairs AS (SELECT A.k, B.v, greatest(A.t, B.t) AS enters, least(A.t, B.t) + 600 AS leaves {_PAIRS}),
             steps AS (SELECT k, enters AS e, v, 1 AS n FROM pairs UNION ALL SELECT k, leaves, -v, -1 FROM pairs),
             summed AS (SELECT k, e, sum(v) AS v, sum(n) AS n FROM steps GROUP BY k, e)
        SELECT k, e, sum(v) OVER so_far AS a FROM summed
        WINDOW so_far AS (PARTITION BY k ORDER BY e) QUALIFY sum(n) OVER so_far > 0 ORDER BY e""",
}


def duckdb_text(lane: Lane, scale: Scale) -> str | None:
    """The query, or None where there is none."""
    return OPERATORS.get(lane.asked) or WINDOWS[lane.window](scale).text(lane.asked)


def connect(streams: dict[str, pa.Table]) -> duckdb.DuckDBPyConnection:
    """DuckDB with one thread, and streams as Arrow tables, which Panewise is given too."""
    connection = duckdb.connect(config={"threads": 1})
    for name, rows in streams.items():
        connection.register(name, rows)
    return connection
