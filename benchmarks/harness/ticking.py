"""A running engine that is given one timestamp after another, and what that costs in time and memory."""

from __future__ import annotations

import gc
import tracemalloc
from collections.abc import Iterable
from statistics import mean, median
from time import perf_counter

import numpy as np
import pyarrow as pa

import panewise as pw
from benchmarks.data.streams import Longs, durations


class Run:
    """An engine that eats the rows of one timestamp after another and answers each time.

    `windows` are window clauses, a query each; all report `answer`.
    """

    def __init__(self, windows: Iterable[str], answer: str = "SUM(v)", policy: str = "cost") -> None:
        columns = pa.schema([("t", pa.int64()), ("v", pa.int64())])
        self.pool = pw.Pool({"S": pw.StreamSchema(columns, time="t")}, policy=policy)
        for number, window in enumerate(windows):
            self.pool.register(f"q{number}", f"SELECT {answer} AS answer FROM S {window}")
        self.engine = pw.Engine(self.pool)
        self.at = 0

    def tick(self, values: Longs) -> tuple[float, float]:
        """One more timestamp; the seconds to take its rows in, and to answer everything that is due."""
        return self.take(values), self.answer()

    def take(self, values: Longs) -> float:
        """The seconds to take in the rows of one more timestamp."""
        self.at += 1
        rows = pa.table({"t": np.full(len(values), self.at), "v": values})
        start = perf_counter()
        self.engine.feed("S", rows)
        return perf_counter() - start

    def answer(self) -> float:
        """The seconds to answer everything that is due."""
        start = perf_counter()
        self.engine.advance(self.at).families()
        return perf_counter() - start

    def fill(self, timestamps: int, values: Longs | None = None) -> None:
        """Complete the windows with few rows, or some each time: sums are as large as they would be with many."""
        each = 8 if values is None else len(values)
        times = np.repeat(np.arange(self.at + 1, self.at + 1 + timestamps), each)
        filling = durations(len(times)) if values is None else np.tile(values, timestamps)
        self.engine.feed("S", pa.table({"t": times, "v": filling}))
        self.at += timestamps
        self.engine.advance(self.at)

    def cost(self, values: Longs, timestamps: int, repeats: int) -> float:
        """Milliseconds a timestamp, everything included: the median of some averages."""
        return 1000 * median(mean(sum(self.tick(values)) for _ in range(timestamps)) for _ in range(repeats))

    def states(self, timestamps: int) -> int:
        """The most bytes that panes took after any of the next timestamps."""
        most = 0
        for _ in range(timestamps):
            self.fill(1)
            most = max(most, self.engine.nbytes)
        return most


def all_memory(run: Run, timestamps: int, values: Longs | None = None) -> int:
    """Bytes that Python allocates, and keeps, to fill the windows of a fresh run: panes, totals and bookkeeping."""
    tracemalloc.start()
    try:
        run.fill(timestamps, values)
        gc.collect()
        return tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
