"""What Panewise promises about every kind of window with every aggregate, beside DuckDB, pandas, Polars and Esper."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from statistics import median
from typing import TypeAlias

import panewise as pw
from benchmarks.harness.draw import number
from benchmarks.harness.figure import Figure, Finding, Points, Row
from benchmarks.harness.timing import rows_within, timed
from benchmarks.promises.lanes_duckdb import connect, duckdb_text
from benchmarks.promises.lanes_esper import WARM_ROWS, esper_version, esper_work
from benchmarks.promises.lanes_frames import pandas_work, polars_work
from benchmarks.promises.lanes_queries import AGGREGATES, LANES, Lane, Scale, Streams, answers, engine_of

OURS, DUCKDB, PANDAS, POLARS, ESPER = "Panewise", "DuckDB", "pandas", "Polars", "Esper"
REFUSED = "refused by Panewise"
RATE, TIMES_DUCKDB, TIMES_SUM, TIMES_JOIN = "M rows/s", "x DuckDB", "x the time of SUM", "x the time of the join"

Work: TypeAlias = Callable[[], object]
System: TypeAlias = Callable[[Lane, Streams, int], Work | None]


@dataclass(frozen=True)
class Settings:
    """Streams of so many rows; each system has so many seconds for all repeats of a lane, or is given fewer rows."""

    rows: int
    keys: tuple[int, ...]
    dense: int
    sparse: int
    repeats: int
    limit: float

    def scales(self) -> list[Scale]:
        return [Scale(self.rows, keys, self.dense, self.sparse) for keys in self.keys]


@dataclass(frozen=True)
class Bar:
    """A bound for everything that is asked of a window: at least so many rows, or at most so many times the time."""

    window: str
    asked: tuple[str, ...]
    bound: float
    unit: str

    @property
    def at_most(self) -> bool:
        return self.unit in (TIMES_SUM, TIMES_JOIN)

    def value_of(self, points: Points, keys: int, asked: str) -> float | None:
        ours = points.get(OURS, place(keys, self.window, asked))
        beside = {
            RATE: 1.0,
            TIMES_DUCKDB: points.get(DUCKDB, place(keys, self.window, asked)),
            TIMES_SUM: points.get(OURS, place(keys, self.window, "SUM")),
            TIMES_JOIN: points.get(OURS, place(keys, self.window, "join")),
        }[self.unit]
        if ours is None or beside is None:
            return None
        return beside / ours if self.at_most else ours / beside

    def finding(self, points: Points, keys: int) -> Finding | None:
        """The worst of what is asked decides; None where nothing was measured."""
        values = {asked: self.value_of(points, keys, asked) for asked in self.asked}
        known = {asked: value for asked, value in values.items() if value is not None}
        if not known:
            return None
        worst = (max if self.at_most else min)(known, key=lambda asked: known[asked])
        failed = [a for a, value in known.items() if (value > self.bound if self.at_most else value < self.bound)]
        compared = (OURS, DUCKDB) if self.unit == TIMES_DUCKDB else (OURS,)
        few = any(points.get(*first_rows(series, place(keys, self.window, worst))) for series in compared)
        told = f"{worst} {number(known[worst])}{', over the first rows only' if few else ''}"
        return Finding(
            f"{keys} keys, {self}", told + f"; {len(failed)} of {len(known)} fail" * bool(failed), not failed
        )

    def __str__(self) -> str:
        asked = "all aggregates" if self.asked == tuple(AGGREGATES) else ", ".join(self.asked)
        return f"{self.window}, {asked}: {'at most' if self.at_most else 'at least'} {number(self.bound)} {self.unit}"


SIMPLE = ("SUM", "COUNT", "AVG", "MIN", "MAX", "STDDEV")
BARS = [
    Bar("sliding", ("VAR", "STDDEV", "FIRST", "LAST"), 1.5, TIMES_SUM),
    Bar("sliding", ("COUNT(DISTINCT)", "MEDIAN", "QUANTILE", "MAX of strings", "APPROX_DISTINCT"), 3, RATE),
    Bar("sliding", ("TOP_K", "RECURRING_COUNTS", "REGR_SLOPE FILLED"), 1, RATE),
    Bar("sliding", ("AGED_SUM",), 5, RATE),
    Bar("sliding", tuple(AGGREGATES), 1.0, TIMES_DUCKDB),
    *(
        bar
        for window in ("continuous", "now", "counted", "partitioned")
        for bar in (
            Bar(window, SIMPLE, 3, RATE),
            Bar(window, SIMPLE, 2, TIMES_DUCKDB),
            Bar(window, ("MEDIAN", "COUNT(DISTINCT)"), 0.5, RATE),
            Bar(window, ("MEDIAN", "COUNT(DISTINCT)"), 1.0, TIMES_DUCKDB),
        )
    ),
    Bar("session", SIMPLE, 5, RATE),
    *(Bar(window, SIMPLE, 10, RATE) for window in ("landmark", "landmark with SLIDE", "cumulating")),
    Bar("continuous", ("SELECT", "DISTINCT", "join"), 3, RATE),
    Bar("continuous", ("groups over a join",), 2, TIMES_JOIN),
]


def place(keys: int, window: str, asked: str) -> str:
    """Where a lane stands in the record: the panel, row and column of the heat map."""
    return f"{keys} keys, {window}, {asked}"


def first_rows(series: str, x: str) -> tuple[str, str]:
    """Where the record says how many rows were measured, if it was not all of them."""
    return f"rows of {series}", f"{x}: the first rows only"


def measure(settings: Settings) -> Iterator[Row]:
    for scale in settings.scales():
        streams = Streams(scale)
        for lane in LANES:
            yield from measure_lane(lane, streams, settings)


def measure_lane(lane: Lane, streams: Streams, settings: Settings) -> Iterator[Row]:
    """M rows a second of every system that answers a lane, and how many rows that took where it was not all."""
    x = place(streams.scale.keys, lane.window, lane.asked)
    try:
        runs = {name: run for name, system in SYSTEMS.items() if (run := timer(system, lane, streams))}
    except pw.PanewiseError:
        yield Row(REFUSED, x, 1.0)
        return
    rows = settings.rows * len(lane.streams)
    counts = {name: rows_within(settings.limit / settings.repeats, rows, run) for name, run in runs.items()}
    taken: dict[str, list[float]] = {name: [] for name in runs}
    for _ in range(settings.repeats):  # in turns, so that a busy machine is busy for all
        for name, run in runs.items():
            taken[name].append(run(counts[name]))
    for name, count in counts.items():
        yield Row(name, x, count / 1e6 / median(taken[name]))
        if count < rows:
            yield Row(*first_rows(name, x), count)


def timer(system: System, lane: Lane, streams: Streams) -> Callable[[int], float] | None:
    """The seconds that a system takes for the first rows of a lane, or None where it has no answer."""
    if system(lane, streams, 1) is None:
        return None

    def run(rows: int) -> float:
        work = system(lane, streams, rows)
        assert work is not None
        return timed(lambda _: work(), 1)

    return run


# ---- systems: each prepares its work for the first rows of a lane, or has no answer ----------------------------------


def ours(lane: Lane, streams: Streams, rows: int) -> Work | None:
    return partial(answers, engine_of(lane, streams.scale), streams.first(lane, rows))


def by_duckdb(lane: Lane, streams: Streams, rows: int) -> Work | None:
    text = duckdb_text(lane, streams.scale)
    if text is None:
        return None
    connection = connect(streams.first(lane, rows))

    def work() -> object:
        with connection:
            return connection.sql(text).to_arrow_table()

    return work


def by_pandas(lane: Lane, streams: Streams, rows: int) -> Work | None:
    return pandas_work(lane, streams.first(lane, rows)["S"])


def by_polars(lane: Lane, streams: Streams, rows: int) -> Work | None:
    return polars_work(lane, streams.first(lane, rows)["S"])


def by_esper(lane: Lane, streams: Streams, rows: int) -> Work | None:
    return esper_work(lane, *(streams.first(lane, count)["S"] for count in (rows, WARM_ROWS)))


SYSTEMS: dict[str, System] = {
    OURS: ours,
    DUCKDB: by_duckdb,
    PANDAS: by_pandas,
    POLARS: by_polars,
    ESPER: by_esper,
}


def findings(points: Points) -> Iterator[Finding]:
    for keys in sorted({int(str(x).split()[0]) for x in points.xs}):
        yield from filter(None, (bar.finding(points, keys) for bar in BARS))
    compared = ", ".join(f"{name} {version_of(name) or 'is not installed'}" for name in (DUCKDB, PANDAS, POLARS, ESPER))
    yield Finding("what we compare with is named", compared, True)


def version_of(name: str) -> str | None:
    if name == ESPER:
        return esper_version()
    try:
        return version(name.lower())
    except PackageNotFoundError:
        return None


FIGURE = Figure(
    title="Every window with every aggregate: what Panewise promises",
    claim="every window with every aggregate is answered at millions of rows a second, as fast as DuckDB or faster",
    paper="no paper: these bounds are our own, and meant for the size `full`: 1 M rows, 200 and 10,000 keys, 100 rows "
    "a tick where windows report at intervals and 10 elsewhere, all results included, one thread. DuckDB repeats rows "
    "for each window that they are in, or uses OVER, which gives a value for each row and none where rows leave; its "
    "quantile rounds up where ours rounds down, and its most frequent values are approximate. pandas and Polars are "
    "given frames of their own, and answer where they have such a window; Polars leaves out windows that begin before "
    "the first row. Esper is sent one row after another, made before the clock runs, and its results are taken by a "
    "listener: one for each group that a row enters or makes others leave, where we report changes once a tick. A lane "
    "that would take too long is measured over the first rows of its stream",
    x="lane",
    y="M rows/s; 1 where Panewise refuses; the number of rows where it was not all of them",
    baseline=DUCKDB,
    sizes={
        "smoke": Settings(rows=100, keys=(5,), dense=1, sparse=1, repeats=1, limit=0.1),
        "seconds": Settings(rows=100_000, keys=(200,), dense=100, sparse=10, repeats=3, limit=0.6),
        "full": Settings(rows=1_000_000, keys=(200, 10_000), dense=100, sparse=10, repeats=3, limit=20),
    },
    measure=measure,
    findings=findings,
    plot="heat map",
)
