"""Every row is used, late or rejected, and counted once, in the state of the batch that read it; without Spark."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import panewise as pw
from panewise.core.accounting import Accounting
from panewise.runtime.checkpoint import Checkpoint
from panewise.runtime.spark.metrics import COUNTED_COLUMNS, ProgressListener
from panewise.runtime.spark.transfer.row_filters import FilterCombinations, count_by_pane

from .shards import Shards

SCHEMA = pa.schema([("t", pa.int64()), ("k", pa.string()), ("v", pa.int64())])


def rows(*items: tuple[int | None, str, int]) -> pa.Table:
    columns = list(zip(*items, strict=True))
    return pa.table([pa.array(c, f.type) for c, f in zip(columns, SCHEMA, strict=True)], schema=SCHEMA)


def shards(**queries: str) -> Shards:
    pool = pw.Pool({"S": pw.StreamSchema(SCHEMA, "t", 0)})
    for name, text in queries.items():
        pool.register(name, text)
    return Shards(pool, 3, restarts=True)


ON_TIME = rows((1, "a", 1), (50, "b", 2))
LATE = rows((2, "a", 3), (None, "a", 4), (51, "c", 5))


def test_a_late_row_that_three_queries_want_counts_once() -> None:
    found = shards(
        sliding="SELECT k, SUM(v) AS s FROM S [RANGE 10 SLIDE 5] GROUP BY k",
        filtered="SELECT COUNT(*) AS n FROM (SELECT * FROM S WHERE v > 2) AS P [RANGE 6 SLIDE 3]",
        sessions="SELECT k, MAX(v) AS m FROM S [PARTITION BY k SESSION 1] GROUP BY k",
    )
    found.batch(S=[ON_TIME])
    found.batch(S=[LATE])
    assert found.accounting == Accounting(rows_in=5, used=3, late=1, rejected=1)
    assert found.late_by_query == {"sliding": 1, "filtered": 1, "sessions": 1}


def test_a_row_that_one_query_can_still_use_is_not_late() -> None:
    found = shards(
        brief="SELECT k, SUM(v) AS s FROM S [RANGE 10 SLIDE 5] GROUP BY k",
        lasting="SELECT k, SUM(v) AS s FROM S [RANGE 1000 SLIDE 5] GROUP BY k",
    )
    found.batch(S=[ON_TIME])
    found.batch(S=[LATE])
    assert found.accounting == Accounting(rows_in=5, used=4, late=0, rejected=1, partly_late=1)
    assert found.late_by_query == {"brief": 1}


def test_a_late_row_of_a_self_join_counts_once() -> None:
    found = shards(
        pairs="SELECT A.k, B.v FROM S [RANGE 4 SLIDE 2] A, S [RANGE 6 SLIDE 3] B WHERE A.k = B.k",
        sums="SELECT k, SUM(v) AS s FROM S [RANGE 10 SLIDE 5] GROUP BY k",
    )
    found.batch(S=[ON_TIME])
    found.batch(S=[LATE])
    assert found.accounting == Accounting(rows_in=5, used=3, late=1, rejected=1)
    assert found.late_by_query == {"pairs": 1, "sums": 1}


@pytest.mark.slow
def test_late_rows_are_counted_for_any_number_of_filters() -> None:
    text = "SELECT COUNT(*) AS n FROM (SELECT * FROM S WHERE v < {}) AS P [RANGE 6 SLIDE 3]"
    found = shards(**{f"q{n}": text.format(n) for n in range(130)})
    found.batch(S=[ON_TIME])
    found.batch(S=[LATE])
    assert found.accounting == Accounting(rows_in=5, used=3, late=1, rejected=1)
    assert found.late_by_query == {f"q{n}": 1 for n in range(4, 130)}


def test_rows_that_are_all_rejected_are_counted_too() -> None:
    found = shards(q="SELECT k, SUM(v) AS s FROM S [RANGE 10 SLIDE 5] GROUP BY k")
    found.batch(S=[rows((None, "a", 1), (None, "b", 2))])
    found.batch(S=[ON_TIME])
    assert found.accounting == Accounting(rows_in=4, used=2, rejected=2)


@given(st.lists(st.lists(st.booleans(), min_size=4, max_size=4), max_size=150), st.lists(st.integers(0, 5), min_size=4))
def test_combinations_of_filters_are_numbered(passing: list[list[bool]], ends: list[int]) -> None:
    wants = FilterCombinations()
    numbers = wants.number_rows([np.array(flags) for flags in passing], 4)
    again = wants.number_rows([np.array(flags[::-1]) for flags in passing], 4)
    for place in range(4):
        expected = [filter_ for filter_, flags in enumerate(passing) if flags[place]]
        assert wants.combinations[numbers[place]] == expected
        assert again[3 - place] == numbers[place]
    entries = zip(*(column.tolist() for column in count_by_pane(np.array(ends[:4]), numbers)), strict=True)
    pairs = list(zip(ends[:4], numbers.tolist(), strict=True))
    assert {(end, who): count for end, who, count in entries} == {pair: pairs.count(pair) for pair in pairs}


def heard(listener: ProgressListener, batch: int, **said: Any) -> None:
    row = dict.fromkeys(COUNTED_COLUMNS, 0) | {"mark": None} | said
    observed = {"panewise": SimpleNamespace(asDict=lambda: row)}
    listener.record_progress(
        SimpleNamespace(batchId=batch, timestamp="now", durationMs={"x": 1}, observedMetrics=observed)
    )


@pytest.mark.parametrize("damage", ["cut", "gone", "foreign"])
def test_totals_are_right_whatever_happens_to_the_file_of_metrics(tmp_path: Path, damage: str) -> None:
    checkpoint = Checkpoint(tmp_path)
    checkpoint.lease.acquire()
    listener = ProgressListener(checkpoint, timed=False)
    heard(listener, 0, rows_in=10, late=2, rejected=1, rows_out=5, rows=5)
    heard(listener, 1, rows_in=30, late=2, rejected=3, rows_out=9, rows=4)
    text = checkpoint.metrics.read_bytes()
    match damage:
        case "cut":
            checkpoint.metrics.write_bytes(text[: len(text) // 2])
        case "gone":
            checkpoint.metrics.unlink()
        case "foreign":
            checkpoint.metrics.write_bytes(b'[1]\n{"batch": 99}\n\xff\xfe\n')
    again = ProgressListener(checkpoint, timed=False)
    heard(again, 2, rows_in=50, late=4, rejected=3, rows_out=12, rows=3)
    # A batch that brought no shard anything tells nothing.
    heard(again, 3, **dict.fromkeys(COUNTED_COLUMNS))
    again.record_batch(4, {})
    last = again.last
    assert (last.batch, last.rows_in, last.used, last.late, last.rejected, last.rows_out) == (2, 50, 43, 4, 3, 12)
    assert json.loads(checkpoint.metrics.read_bytes().splitlines()[-1])["rows_in"] == 50
    checkpoint.lease.release()


def test_late_rows_by_query_are_told_by_shards(tmp_path: Path) -> None:
    checkpoint = Checkpoint(tmp_path)
    checkpoint.lease.acquire()
    checkpoint.lateness.mkdir()
    (checkpoint.lateness / "0.json").write_text('{"a": 1, "b": 2}')
    (checkpoint.lateness / "1.json").write_text('{"b": 3}')
    (checkpoint.lateness / "2.json").write_text('{"b"')
    listener = ProgressListener(checkpoint, timed=False)
    heard(listener, 0, rows_in=10, late=5)
    assert listener.last.late_by_query == {"a": 1, "b": 5}
    checkpoint.lease.release()
