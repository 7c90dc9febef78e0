""" "Subsuming windows" section 4: joins and distincts of many windows, shared and each for itself."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import median

import numpy as np
import pyarrow as pa

import panewise as pw
from benchmarks.harness.figure import Figure, Finding, Points, Row

SCHEMA = pa.schema([("t", pa.int64()), ("k", pa.int64()), ("v", pa.int64())])
#: Of the pairs few are wanted, so that finding them is the work and not writing them down.
QUERIES = {
    "join": (
        ("S", "T"),
        "SELECT ISTREAM A.k FROM S [RANGE {n}] A, T [RANGE {n}] B WHERE A.k = B.k AND A.v + 90 < B.v",
    ),
    "distinct": (("S",), "SELECT ISTREAM DISTINCT k FROM S [RANGE {n}]"),
}
ALONE = "join, each alone"


@dataclass(frozen=True)
class Settings:
    """Numbers of windows, the widest with so many rows of as many keys a window holds once or tens of times."""

    windows: tuple[int, ...]
    widest: int
    batch: int
    batches: int


def measure(settings: Settings) -> Iterator[Row]:
    for count in settings.windows:
        widths = np.linspace(settings.widest / 10, settings.widest, count).astype(int)
        for name, (streams, query) in QUERIES.items():
            queries = [query.format(n=width) for width in widths]
            keys = settings.widest if name == "join" else max(settings.widest // 40, 1)
            yield Row(f"{name}, shared", count, taken([queries], streams, keys, settings))
            yield Row(f"{name}, each alone", count, taken([[q] for q in queries], streams, keys, settings))


def taken(pools: Sequence[Sequence[str]], streams: Sequence[str], keys: int, settings: Settings) -> float:
    """Milliseconds for a batch in all pools together: the median of all but the first two."""
    engines = [engine(queries, streams) for queries in pools]
    times = []
    for number in range(settings.batches):
        batches = {name: rows(settings.batch, number, seed, keys) for seed, name in enumerate(streams)}
        began = time.perf_counter()
        for each in engines:
            for name, batch in batches.items():
                each.feed(name, batch)
            for table in each.advance().values():
                table.num_rows  # noqa: B018
        times.append(time.perf_counter() - began)
    return 1000 * median(times[2:] or times)


def engine(queries: Sequence[str], streams: Sequence[str]) -> pw.Engine:
    pool = pw.Pool({name: pw.StreamSchema(SCHEMA, "t", 0) for name in streams})
    for number, query in enumerate(queries):
        pool.register(f"q{number}", query)
    return pw.Engine(pool)


def rows(count: int, number: int, seed: int, keys: int) -> pa.Table:
    """A row a tick."""
    rng = np.random.default_rng((seed, number))
    times = np.arange(number * count, (number + 1) * count)
    return pa.table([times, rng.integers(0, keys, count), rng.integers(0, 100, count)], schema=SCHEMA)


def findings(points: Points) -> Iterator[Finding]:
    most = points.xs[-1]
    for name in QUERIES:
        shared, alone = (points.get(f"{name}, {how}", most) for how in ("shared", "each alone"))
        if shared and alone:
            told = f"{alone / shared:.1f} times faster for {most} windows"
            yield Finding(f"(our bound) A shared {name} is at least twice as fast", told, alone >= 2 * shared)
    growth = points.growth("join, shared")
    yield Finding(
        "A tuple is probed once for all windows of the other stream",
        f"{float(most) / float(points.xs[0]):.0f} times the windows take {growth:.1f} times as long",
        growth < float(most) / float(points.xs[0]) / 2,
    )


FIGURE = Figure(
    title="Subsuming windows, section 4: joins and distincts of many windows",
    claim="joins and distincts that differ in their windows cost a fraction of as many operators",
    paper="a tuple is probed once against the group of windows of the other stream, and a match found at level k is a "
    "result of all wider ones; of distinct rows, only those that leave a window without a younger equal go on to the "
    "next. The paper measures neither. Streams with a tuple a tick, windows of even steps up to the widest",
    x="windows",
    y="milliseconds a batch",
    baseline=ALONE,
    sizes={
        "smoke": Settings((1, 3), widest=100, batch=300, batches=3),
        "seconds": Settings((1, 5, 20), widest=10_000, batch=20_000, batches=6),
        "full": Settings((1, 5, 20, 100), widest=10_000, batch=50_000, batches=8),
    },
    measure=measure,
    findings=findings,
    log=frozenset("xy"),
)
