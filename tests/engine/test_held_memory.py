"""Windows that keep rows keep the memory of hardly more rows than they need."""

from __future__ import annotations

import gc
import tracemalloc

import numpy as np
import pyarrow as pa
import pytest

import panewise as pw
from panewise.engine import portions
from panewise.engine.panes.holding_family import HoldingFamily

SCHEMA = pa.schema([("t", pa.int64()), ("k", pa.int64()), ("v", pa.int64())])
RATE, RANGE, KEYS = 10, 2000, 50
#: The words of a row besides the argument of SUM.
WORDS = 5


def rows(start: int, count: int) -> pa.Table:
    numbers = np.arange(start, start + count)
    return pa.table({"t": numbers // RATE, "k": numbers * 7 % KEYS, "v": numbers % 1000}, schema=SCHEMA)


def allocated() -> int:
    """The memory of arrays, those of NumPy and those of Arrow."""
    gc.collect()
    return tracemalloc.get_traced_memory()[0] + int(pa.total_allocated_bytes())


def engine_of(window: str) -> pw.Engine:
    pool = pw.Pool({"S": pw.StreamSchema(SCHEMA, "t", delay=0)}, bounded=True)
    pool.register("q", f"SELECT k, SUM(v) AS s FROM S {window} GROUP BY k")
    return pw.Engine(pool)


def feed(engine: pw.Engine, start: int, count: int) -> None:
    engine.feed("S", rows(start, count))
    engine.advance()


@pytest.mark.parametrize("batch", [1_000, 7_000, 50_000])
@pytest.mark.parametrize(
    ("window", "kept"), [(f"[RANGE {RANGE}]", RANGE * RATE), ("[PARTITION BY k ROWS 400]", 400 * KEYS)]
)
def test_memory_between_turns_is_that_of_the_rows_in_the_window(
    window: str, kept: int, batch: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However they are fed. What rows were cut out of counts, too: a slice of an array keeps all of it."""
    # Laws that run in the same process make portions of three rows; those that wait would keep the whole batch.
    monkeypatch.setattr(portions, "PORTION_ROWS", 1 << 16)
    feed(engine_of(window), 0, batch)  # loads the kernels, which would be traced
    engine, found = engine_of(window), []
    tracemalloc.start()
    try:
        before = allocated()
        for start in range(0, 6 * kept, batch):
            feed(engine, start, batch)
            if start > 5 * kept - batch:
                found.append(allocated() - before)
    finally:
        tracemalloc.stop()
    (family,) = engine._families.values()
    assert isinstance(family, HoldingFamily)
    assert kept - RATE <= len(family.held) <= kept + RATE
    # The engine itself takes some memory, however few rows there are.
    assert max(found) < 1.5 * kept * 8 * (1 + WORDS) + 100_000
