"""Rows a second of recurring items, against the number of different values."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from statistics import median
from time import perf_counter

import numpy as np
import pyarrow as pa

import panewise as pw
from benchmarks.harness.figure import Figure, Finding, Points, Row

LEVELS = "[RANGES 32, 16, 8, 4, 2 SLIDES 8, 4, 2, 1, 1]"
CALLS = {"SUM": "SUM(v)", "AGED_SUM": "AGED_SUM(v)", "RECURRING": "RECURRING(v)"}
CALLS["RECURRING_COUNTS"] = "RECURRING_COUNTS(v, 10)"
GROUPED = "RECURRING, 1000 groups"


@dataclass(frozen=True)
class Settings:
    values: tuple[int, ...]
    #: Of 40 timestamps together.
    rows: int
    repeats: int


def measure(settings: Settings) -> Iterator[Row]:
    rng, times = np.random.default_rng(3), np.arange(settings.rows) * 40 // settings.rows
    groups = rng.integers(0, 1000, settings.rows)
    for count in settings.values:
        # Far apart, so that they are hashed: close integers would be looked up in a table.
        values = rng.integers(0, count, settings.rows) * 1_000_003
        s = pa.table({"t": times, "k": groups, "v": values})
        for name, call in CALLS.items():
            yield Row(name, count, speed(f"SELECT {call} AS r FROM S {LEVELS}", s, settings.repeats))
        grouped = f"SELECT k, RECURRING(v) AS r FROM S {LEVELS} GROUP BY k"
        yield Row(GROUPED, count, speed(grouped, s.take(np.arange(0, settings.rows, 8)), settings.repeats))


def speed(cql: str, s: pa.Table, repeats: int) -> float:
    """Millions of rows a second, answers included; the median of some runs after one to warm up."""
    taken = []
    for _ in range(1 + repeats):
        pool = pw.Pool({"S": pw.StreamSchema(s.schema, time="t")})
        pool.register("q", cql)
        engine = pw.Engine(pool)
        start = perf_counter()
        for batch in s.to_batches(max_chunksize=1_000_000):
            engine.feed("S", batch)
            engine.advance()["q"]
        engine.finish()["q"]
        taken.append(perf_counter() - start)
    return float(s.num_rows / median(taken[1:]) / 1e6)


def findings(points: Points) -> Iterator[Finding]:
    most = points.xs[-1]
    found = points.get("RECURRING", most) or 0
    yield Finding(
        "Wanted: 5 M rows/s with 100,000 different values and five levels",
        f"{found:.1f} M rows/s with {most:,} values, {found / (points.get('SUM', most) or 1):.2f} of the speed of SUM",
        found >= 5,
    )
    grouped = points.of(GROUPED)
    yield Finding(
        "Wanted: many groups with few values are acceptable (no number given)",
        f"{grouped[0]:.2f} to {grouped[-1]:.2f} M rows/s in 1,000 groups, of which each gets few rows a timestamp and "
        "says up to five lists: lists are what takes time",
        min(grouped) > 0.05,
    )


FIGURE = Figure(
    title="Recurring items: rows a second against the number of different values",
    claim="recurring items over 100,000 different values and five levels take in at least 5 M rows a second",
    paper="not in the paper, whose figures have a handful of items. Here 40 timestamps of as many rows each; values "
    "are uniform, so that lists of all that recurs are long, and part of the cost; groups are given every eighth row",
    x="different values",
    y="M rows/s",
    baseline="SUM",
    sizes={
        "smoke": Settings(values=(100, 1000), rows=20_000, repeats=1),
        "seconds": Settings(values=(1000, 100_000), rows=4_000_000, repeats=3),
        "full": Settings(values=(100, 1000, 10_000, 100_000), rows=4_000_000, repeats=5),
    },
    measure=measure,
    findings=findings,
    log=frozenset("xy"),
)
