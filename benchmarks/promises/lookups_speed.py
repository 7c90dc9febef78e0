"""Lookups of a running engine: many windows at once and one by one, beside merging panes or adding rows anew."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from statistics import median
from time import perf_counter

import numpy as np
import pyarrow as pa
import pytest

import panewise as pw
from benchmarks.harness.draw import number
from benchmarks.harness.figure import Figure, Finding, Points, Row
from panewise.aggregate import Int64Array
from panewise.engine.lookups import archive, row_archive
from panewise.plan.rules.choose_index import IndexChoice
from panewise.stores.indexes import RecomputeIndex
from panewise.stores.row_indexes import RowRecomputeIndex

CHOSEN, MERGING = "as the planner chooses", "panes merged or rows added anew"
SCHEMA = pa.schema([("t", pa.int64()), ("k", pa.int64()), ("v", pa.int64())])
AGGREGATES = {"SUM": "SUM(v)", "MAX": "MAX(v)", "MEDIAN": "MEDIAN(v)"}
ONE, MANY, ALL = "one window of one key", "many windows of one key", "one window of all keys"


@dataclass(frozen=True)
class Settings:
    rows: int
    panes: int
    keys: int
    windows: int
    repeats: int


def measure(settings: Settings) -> Iterator[Row]:
    rng = np.random.default_rng(7)
    columns = [np.sort(rng.integers(0, settings.panes, settings.rows)), rng.integers(0, settings.keys, settings.rows)]
    table = pa.table([*columns, rng.integers(0, 1000, settings.rows)], schema=SCHEMA)
    for name, (call, window, reach) in cases(settings).items():
        starts = rng.integers(0, reach, settings.windows)
        ends = starts + reach
        pool = pw.Pool({"S": pw.StreamSchema(SCHEMA, "t", 0)})
        pool.register("q", f"SELECT k, {call} AS a FROM S [{window}] GROUP BY k")
        for series in (CHOSEN, MERGING):
            with pytest.MonkeyPatch.context() as patch:
                if series == MERGING:
                    patch.setattr(archive, "choose_index", lambda *_: IndexChoice(RecomputeIndex, "the baseline"))
                    rows = IndexChoice(RowRecomputeIndex, "the baseline")
                    patch.setattr(row_archive, "choose_row_index", lambda *_, rows=rows: rows)
                engine = pw.Engine(pool, keep=2 * settings.panes)
                engine.feed("S", table)
                engine.advance()
                some = settings.windows if series == CHOSEN else settings.windows // 1000 + 1
                for case, found in asked(engine, settings, starts[:some], ends[:some]).items():
                    yield Row(series, f"{name}: {case}", found)


def cases(settings: Settings) -> dict[str, tuple[str, str, int]]:
    """By name, what is computed, over which window, and how many ticks or rows this has: half of what is kept."""
    panes, rows = settings.panes // 2, settings.rows // 2
    over_time = {name: (call, f"RANGE {panes} SLIDE 1", panes) for name, call in AGGREGATES.items()}
    return over_time | {f"{name} of rows": (call, f"ROWS {rows}", rows) for name, call in AGGREGATES.items()}


def asked(engine: pw.Engine, settings: Settings, starts: Int64Array, ends: Int64Array) -> dict[str, float]:
    """Answers a second, by what is asked."""
    last, key = settings.panes - 2, {"k": [1]}
    for _ in range(2):  # so that the planner has seen what is asked, and kernels are compiled
        engine.lookup("q", between=(starts, ends), keys=key)
    return {
        ONE: rate(lambda: engine.lookup("q", at=last, keys=key), 1, 5 * settings.repeats),
        MANY: rate(lambda: engine.lookup("q", between=(starts, ends), keys=key), len(starts), settings.repeats),
        ALL: rate(lambda: engine.lookup("q", at=last), settings.keys, settings.repeats),
    }


def rate(ask: Callable[[], pa.Table], answers: int, repeats: int) -> float:
    """Answers a second."""
    taken = []
    for _ in range(repeats):
        began = perf_counter()
        ask()
        taken.append(perf_counter() - began)
    return answers / median(taken)


def findings(points: Points) -> Iterator[Finding]:
    for name in (name for call in AGGREGATES for name in (call, f"{call} of rows")):
        ours, theirs = (points.get(series, f"{name}: {MANY}") or 0.0 for series in (CHOSEN, MERGING))
        yield Finding(
            f"{name}: many windows at once are answered 100 times as fast as by merging panes or adding rows",
            f"{number(ours)} answers/s, {number(ours / max(theirs, 1e-9))} times as many",
            ours >= 100 * theirs,
        )


FIGURE = Figure(
    title="Lookups of a running engine",
    claim="sums and maxima of a million windows a second are answered from what is kept of a stream",
    paper="no paper: the whole way of a lookup, from the question to an Arrow table, over panes of one tick each, and "
    "over rows by their number",
    x="lookup",
    y="answers a second",
    baseline=MERGING,
    sizes={
        "smoke": Settings(rows=2000, panes=40, keys=5, windows=20, repeats=1),
        "seconds": Settings(rows=50_000, panes=500, keys=20, windows=20_000, repeats=3),
        "full": Settings(rows=1_000_000, panes=4000, keys=100, windows=200_000, repeats=5),
    },
    measure=measure,
    findings=findings,
    log=frozenset("y"),
)
