"""The cases of `speed` that are about rows, keys and states."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from statistics import median
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa

import panewise as pw
from benchmarks.data.streams import Longs
from benchmarks.data.windows import Levels, clause
from benchmarks.harness.figure import Row
from benchmarks.harness.timing import timed

#: Series of `speed`: what Panewise does, and what the named baseline does in the same run.
OURS, BESIDE = "Panewise", "baseline"

FIVE_LEVELS = "[RANGES 600, 300, 60, 30, 10 SLIDES 60, 30, 10, 10, 5]"
#: Ticks of a pane where states are weighed.
PANE = 100


@dataclass(frozen=True)
class RowSettings:
    rows: int
    ticks: int
    keys: int
    many_keys: int
    #: The width, in panes of one tick, of the window for MAX against SUM.
    panes: int
    repeats: int


def row_cases(settings: RowSettings) -> Iterator[Row]:
    yield from against_duckdb(settings)
    yield from other_keys(settings)
    yield from state_bytes(settings)
    yield from maximum_against_sum(settings)
    yield from snapshots(settings)


def against_duckdb(settings: RowSettings) -> Iterator[Row]:
    """a: SUM, COUNT and MAX over five levels, beside one pass of DuckDB that only makes the panes."""
    for doubles in (False, True):
        table = made(settings, settings.keys, doubles)
        million = settings.rows / 1e6
        ours = million / middle(settings.repeats, answered, table, FIVE_LEVELS)
        theirs = million / middle(settings.repeats, panes_by_duckdb, table)
        rate, ratio = ("a3", "a4") if doubles else ("a1", "a2")
        yield Row(OURS, rate, ours)
        yield Row(BESIDE, rate, theirs)
        yield Row(OURS, ratio, ours / theirs)


def other_keys(settings: RowSettings) -> Iterator[Row]:
    """c: keys that are strings, and many keys; those report at few instants, or results would outnumber rows."""
    table = made(settings, settings.keys)
    names = pa.array([f"key {number:05d}" for number in range(settings.keys)])
    named = table.set_column(0, "k", names.take(table["k"].combine_chunks()))
    many = made(settings, settings.many_keys)
    for case, rows, window in (
        ("c1", named, FIVE_LEVELS),
        ("c2", many, f"[RANGE {settings.ticks} SLIDE {settings.ticks // 2}]"),
    ):
        yield Row(OURS, case, settings.rows / 1e6 / middle(settings.repeats, answered, rows, window))


def state_bytes(settings: RowSettings) -> Iterator[Row]:
    """c: what is held for every key in every pane."""
    weighed = {}
    for times, series in ((1, "MB of state"), (2, "MB of state, twice the keys")):
        for levels in range(1, 6):
            keys = times * settings.many_keys
            held = weighed[keys, levels] = filled(keys, levels).nbytes
            yield Row(series, f"L{levels}", held / 1e6)
    each = [held / keys / levels for (keys, levels), held in weighed.items()]
    yield Row(OURS, "c3", each[0])
    yield Row(OURS, "c4", max(each) / each[0])


def maximum_against_sum(settings: RowSettings) -> Iterator[Row]:
    """d: a window of many panes that slides by one of them, which is when MAX may have to look for a new one."""
    table = pa.table({"t": np.arange(2 * settings.panes), "v": integers(2 * settings.panes)})

    def work(call: str) -> None:
        engine = engine_of(table, f"SELECT {call} AS answer FROM S [RANGE {settings.panes} SLIDE 1]")
        engine.feed("S", table)
        engine.advance(len(table)).families()

    greatest, total = (middle(settings.repeats, work, call) for call in ("MAX(v)", "SUM(v)"))
    yield Row(OURS, "d1", greatest / total)
    yield Row(OURS, "d2", 1e6 * greatest / len(table))
    yield Row(BESIDE, "d2", 1e6 * total / len(table))


def snapshots(settings: RowSettings) -> Iterator[Row]:
    """g: state to bytes and back, where the engine can do that already."""
    engine: Any = filled(settings.many_keys, levels=2)
    if not hasattr(engine, "snapshot"):
        return
    saved = engine.snapshot()
    yield Row(OURS, "g1", middle(settings.repeats, engine.snapshot))
    yield Row(OURS, "g2", middle(settings.repeats, type(engine).restore, saved))
    yield Row(OURS, "g3", engine.nbytes / 1e6)


def middle(repeats: int, work: Callable[..., object], *arguments: object) -> float:
    """The median of the seconds that some calls take."""
    return median(timed(lambda _: work(*arguments), 1) for _ in range(repeats))


# ---- streams and engines -------------------------------------------------------------------------------------------


def made(settings: RowSettings, keys: int, doubles: bool = False) -> pa.Table:
    """Rows in time order; keys and values at random."""
    rng, rows = np.random.default_rng(3), settings.rows
    times = np.sort(rng.integers(1, settings.ticks + 1, rows))
    values = rng.normal(100.0, 25.0, rows) if doubles else integers(rows)
    return pa.table({"k": rng.integers(0, keys, rows), "t": times, "v": values})


def integers(rows: int) -> Longs:
    return np.random.default_rng(4).integers(-1_000_000, 1_000_000, rows)


def engine_of(table: pa.Table, query: str) -> pw.Engine:
    pool = pw.Pool({"S": pw.StreamSchema(table.schema, time="t")})
    pool.register("q", query)
    return pw.Engine(pool)


def grouped(window: str) -> str:
    return f"SELECT k, SUM(v) AS s, COUNT(*) AS c, MAX(v) AS m FROM S {window} GROUP BY k"


def answered(table: pa.Table, window: str) -> pa.Table:
    """All results of a complete input."""
    engine = engine_of(table, grouped(window))
    engine.feed("S", table)
    return engine.finish()["q"]


def panes_by_duckdb(table: pa.Table) -> pa.Table:
    with duckdb.connect(config={"threads": 1}) as connection:
        connection.register("S", table)
        query = "SELECT k, t // 5 AS p, sum(v), count(*), max(v) FROM S GROUP BY k, p"
        return connection.sql(query).to_arrow_table()


def filled(keys: int, levels: int) -> pw.Engine:
    """An engine whose every level adds one pane, with all keys in each."""
    nested: Levels = [(PANE * (level + 1), PANE) for level in range(levels)]
    codes, values = np.arange(keys), integers(keys)
    engine = None
    for pane in range(1, levels + 1):
        rows = pa.table({"k": codes, "t": np.full(keys, PANE * pane), "v": values})
        engine = engine or engine_of(rows, grouped(clause(nested)))
        engine.feed("S", rows)
        engine.advance(PANE * pane)
    assert engine is not None
    return engine
