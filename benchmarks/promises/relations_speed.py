"""What Panewise promises about joins and distincts in one process, beside negative tuples."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from statistics import median

import numpy as np
import pyarrow as pa

import panewise as pw
from benchmarks.figures.consistent.joins import NegativeJoin
from benchmarks.harness.figure import Figure, Finding, Points, Row

SCHEMA = pa.schema([("t", pa.int64()), ("k", pa.int64())])
OURS, NEGATIVE = "Panewise", "negative tuples, one by one"


@dataclass(frozen=True)
class Settings:
    """Windows of so many rows, or as many ticks with a row each; streams of so many batches."""

    window: int
    batch: int
    batches: int
    #: Tuples for which negative tuples are measured.
    slow: int


@dataclass(frozen=True)
class Case:
    query: str
    streams: tuple[str, ...]
    at_least: float


CASES = {
    "counted join": Case("SELECT ISTREAM A.k FROM S [ROWS {n}] AS A, T [ROWS {n}] AS B WHERE A.k = B.k", ("S", "T"), 0),
    "sliding join": Case(
        "SELECT ISTREAM A.k FROM S [RANGE {n}] AS A, T [RANGE {n}] AS B WHERE A.k = B.k", ("S", "T"), 2e6
    ),
    "sliding distinct": Case("SELECT ISTREAM DISTINCT k FROM S [RANGE {n}]", ("S",), 2e6),
    "landmark distinct": Case("SELECT ISTREAM DISTINCT k FROM S [UNBOUNDED] ALLOW UNBOUNDED", ("S",), 10e6),
}


def measure(settings: Settings) -> Iterator[Row]:
    for name, case in CASES.items():
        yield Row(OURS, name, ours(case, settings))
    yield Row(NEGATIVE, "counted join", negative(settings))


def ours(case: Case, settings: Settings) -> float:
    """Tuples a second: the median of batches after the first two, with all results."""
    schema = pw.StreamSchema(SCHEMA, "t", 0)
    pool = pw.Pool(dict.fromkeys(case.streams, schema))
    pool.register("q", case.query.format(n=settings.window))
    engine, times = pw.Engine(pool), []
    for number in range(settings.batches):
        batches = {name: batch(settings, number, seed) for seed, name in enumerate(case.streams)}
        began = time.perf_counter()
        for name, rows in batches.items():
            engine.feed(name, rows)
        engine.advance()["q"].num_rows  # noqa: B018
        times.append(time.perf_counter() - began)
    return settings.batch * len(case.streams) / median(times[2:] or times)


def batch(settings: Settings, number: int, seed: int) -> pa.Table:
    """A row a tick, whose key meets about one row of the other window."""
    rng = np.random.default_rng((seed, number))
    times = np.arange(number * settings.batch, (number + 1) * settings.batch)
    return pa.table([times, rng.integers(0, settings.window, settings.batch)], schema=SCHEMA)


def negative(settings: Settings) -> float:
    """Tuples a second where every expired tuple goes through the join again, and takes its results back."""
    streams = [batch(settings, 0, seed)["k"].to_pylist() for seed in (0, 1)]
    join = NegativeJoin(settings.window)
    fill = min(settings.window, settings.batch - settings.slow // 2)
    for place in range(fill):
        join.arrive(0, streams[0][place])
        join.arrive(1, streams[1][place])
    join.limit = fill
    began = time.perf_counter()
    for place in range(fill, fill + settings.slow // 2):
        join.arrive(0, streams[0][place % settings.batch])
        join.arrive(1, streams[1][place % settings.batch])
    return settings.slow / (time.perf_counter() - began)


def findings(points: Points) -> Iterator[Finding]:
    for name, case in CASES.items():
        found = points.get(OURS, name)
        if found is not None and case.at_least:
            told = f"{found / 1e6:.1f} M tuples/s"
            yield Finding(f"{name}: at least {case.at_least / 1e6:.0f} M tuples/s", told, found >= case.at_least)
    ours_, theirs = points.get(OURS, "counted join"), points.get(NEGATIVE, "counted join")
    if ours_ is not None and theirs is not None:
        told = f"{ours_ / theirs:,.0f} times"
        claim = "Expiry by order is more than two orders of magnitude faster (here with about one result a key)"
        yield Finding(claim, told, ours_ >= 100 * theirs)


FIGURE = Figure(
    title="Speed of joins and distincts: what Panewise promises",
    claim="rows that know when they leave cost a fraction of negative tuples",
    paper='"Consistent results" section 6: joins over counted windows of 10 K tuples are more than two orders of '
    "magnitude faster with expiration orders than with negative tuples. The other bounds are our own: streams with a "
    "tuple a tick, joins that find about one partner, windows of 10 K tuples, one core. Negative tuples are slow where "
    "keys have many results, which figure 8 shows",
    x="case",
    y="tuples a second",
    baseline=NEGATIVE,
    sizes={
        "smoke": Settings(window=100, batch=500, batches=3, slow=100),
        "seconds": Settings(window=10_000, batch=50_000, batches=6, slow=2_000),
        "full": Settings(window=10_000, batch=200_000, batches=12, slow=20_000),
    },
    measure=measure,
    findings=findings,
    log=frozenset("y"),
)
