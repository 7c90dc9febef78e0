"""Values and types that are odd: NaN, lists, intervals, zones, squares too large for a double."""

from __future__ import annotations

import math
from datetime import timedelta
from pathlib import Path

import pyarrow as pa
import pytest

import panewise as pw
from tests.meaning.examples import rows


def test_nan_stays_equal_to_itself() -> None:
    streams = {"S": pa.table({"t": [1, 2, 3], "v": [math.nan, 1.0, 2.0]})}
    assert len(rows("SELECT SUM(v) AS s FROM S [UNBOUNDED]", streams)) == 1


def test_intervals_and_nested_lists_pass_through() -> None:
    streams = {"S": pa.table({"t": [1], "x": [[["a", "b"]]]})}
    assert rows("SELECT x, INTERVAL 1 DAY AS d FROM S [ROWS 1]", streams, "x", "d") == [
        ([["a", "b"]], timedelta(days=1))
    ]


def test_types_do_not_depend_on_the_zone_of_the_machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("TZ", "America/New_York")
    moment = pa.table({"t": pa.array([0], pa.timestamp("us", "UTC"))})
    query = "SELECT t FROM S [ROWS 1] UNION ALL SELECT t + INTERVAL 1 HOUR FROM S [ROWS 1]"
    assert pw.run(query, {"S": moment}, time="t").num_rows == 2


@pytest.mark.parametrize(("call", "answer"), [("VAR_POP(x)", math.inf), ("STDDEV_POP(x)", 0.5e200)])
def test_squares_too_large_for_a_double(call: str, answer: float) -> None:
    """The variance is infinite, the deviation is not; both used to be a bare OverflowError."""
    s = pa.table({"t": [1, 2], "x": [0.0, 1e200]})
    (row,) = pw.run(f"SELECT {call} AS c FROM S [RANGE 2 SLIDE 2]", {"S": s}, time="t").to_pylist()
    assert row["c"] == answer


@pytest.mark.parametrize("call", ["FIRST(x)", "LAST(x)", "MEDIAN(x)", "QUANTILE(x, 1)"])
def test_there_is_one_zero_in_windows_that_keep_rows(call: str) -> None:
    """Values that are picked out of the rows came as they were."""
    table = pa.table({"t": [1, 2], "x": [0.0, -0.0]})
    assert repr(rows(f"SELECT RSTREAM {call} AS y FROM S [ROWS 1]", {"S": table}, "y")) == "[(0.0,), (0.0,)]"
