"""Bad data is not an error: it is counted or it counts as what it is. rows in = used + late + rejected, always."""

from __future__ import annotations

import math
from typing import Any

import pyarrow as pa
import pytest

import panewise as pw
from panewise.reference import Accounting, execute

COUNT = "SELECT COUNT(*) AS n FROM S [RANGE 2 SLIDE 2]"
COUNT_SECONDS = "SELECT COUNT(*) AS n FROM S [RANGE 2 SECONDS SLIDE 2 SECONDS]"
BIG = 2**63 - 1
NANO = BIG // 1000 * 1000
NAN, INF = math.nan, math.inf


def answered(query: str, table: pa.Table, **options: Any) -> tuple[dict[str, list[Any]], Accounting]:
    """The columns of the result, times as numbers so that no calendar ends too early, and the account."""
    source = pw.Stream(table, "t", **options) if options else table
    outcome = execute(query, {"S": source}, time="t")
    columns = {}
    for name, column in zip(outcome.table.column_names, outcome.table.columns, strict=True):
        if pa.types.is_timestamp(column.type):
            column = column.cast(pa.int64())
        columns[name] = column.to_pylist()
    account = outcome.accounting["S"]
    assert account.rows_in == account.used + account.late + account.rejected
    return columns, account


def times(values: list[int | None], kind: pa.DataType) -> pa.Table:
    return pa.table({"t": pa.array(values, kind)})


@pytest.mark.parametrize(
    ("values", "kind", "rejected"),
    [
        pytest.param([None, 1, None], pa.int64(), 2, id="some NULL times"),
        pytest.param([None, None], pa.int64(), 2, id="only NULL times"),
        pytest.param([-BIG - 1, 1, BIG], pa.int64(), 2, id="int64 extremes"),
        pytest.param([2**61, 2**61 - 1, -(2**61), 1 - 2**61], pa.int64(), 2, id="the bounds of time"),
        pytest.param([2**64 - 1, 1], pa.uint64(), 1, id="uint64 extreme"),
        pytest.param([127, -128], pa.int8(), 0, id="int8 extremes"),
        pytest.param([], pa.int64(), 0, id="empty"),
    ],
)
def test_integer_times_are_used_or_rejected(values: list[int | None], kind: pa.DataType, rejected: int) -> None:
    rows, account = answered(COUNT, times(values, kind))
    assert account == Accounting(len(values), len(values) - rejected, 0, rejected)
    assert sum(rows["n"]) == len(values) - rejected


@pytest.mark.parametrize(
    ("unit", "values", "rejected"),
    [
        pytest.param("s", [BIG, -BIG, 0, None], 3, id="extremes in seconds"),
        pytest.param("ms", [BIG, -BIG, 0, None], 3, id="extremes in milliseconds"),
        pytest.param("us", [BIG, -BIG, 0, None], 3, id="extremes in microseconds"),
        pytest.param("ns", [NANO, -NANO, 0, None], 1, id="nanoseconds reach 1677 to 2262 only"),
        pytest.param("s", [253_402_300_799, 253_402_300_800, 400_000_000_000], 0, id="the year 9999 and after"),
        pytest.param("s", [], 0, id="empty"),
    ],
)
def test_timestamps_are_used_or_rejected(unit: str, values: list[int | None], rejected: int) -> None:
    rows, account = answered(COUNT_SECONDS, times(values, pa.timestamp(unit, "UTC")))
    assert account == Accounting(len(values), len(values) - rejected, 0, rejected)
    assert sum(rows["n"]) == len(values) - rejected


def test_nanoseconds_are_rounded_down_on_both_sides_of_1970_and_not_silently() -> None:
    with pytest.warns(pw.PanewiseWarning, match="finer than a microsecond"):
        rows, _ = answered("SELECT COUNT(*) AS n FROM S [RANGE 1 MICROSECOND]", times([-1, 1], pa.timestamp("ns")))
    assert (rows["ts"], rows["sign"]) == ([-1, 1], [1, -1]), "one after the other, at ticks -1 and 0"


def test_an_absurd_time_does_not_move_the_watermark() -> None:
    rows, account = answered(COUNT, times([1, BIG, 2, None, 3], pa.int64()), delay=0)
    assert (rows["n"], account) == ([2, 1], Accounting(5, 3, 0, 2))


def test_a_time_too_far_ahead_of_the_clock_is_rejected() -> None:
    table = times([0, 10**15], pa.timestamp("us"))
    _, account = answered(COUNT_SECONDS, table, delay="0 seconds", max_skew="1 hour", now=0)
    assert account == Accounting(2, 1, 0, 1)


@pytest.mark.parametrize(
    "window",
    [
        "RANGE 2305843009213693951",
        "RANGE 2305843009213693951 LAG 2305843009213693951",
        "CUMULATE 2305843009213693950 STEP 2305843009213693950",
        "SESSION 2305843009213693951",
        "ROWS 999999999999999999",
        "UNBOUNDED",
        "NOW",
    ],
)
def test_the_longest_windows_meet_the_furthest_times(window: str) -> None:
    rows, account = answered(f"SELECT COUNT(*) AS n FROM S [{window}]", times([2**61 - 1, 1 - 2**61], pa.int64()))
    assert account == Accounting(2, 2, 0, 0)
    assert max(rows["n"]) == 2 if window.startswith(("ROWS", "UNB")) else max(rows["n"]) == 1


@pytest.mark.parametrize("suffix", ["", " EMIT EMPTY"])
def test_an_empty_stream_has_no_results_but_all_columns(suffix: str) -> None:
    query = "SELECT COUNT(*) AS n, SUM(v) AS s, MAX(t) AS m FROM S [RANGE 2 SLIDE 1]" + suffix
    rows, account = answered(query, pa.table({"t": pa.array([], pa.int64()), "v": pa.array([], pa.float64())}))
    assert (rows, account) == ({"n": [], "s": [], "m": [], "w_start": [], "w_end": []}, Accounting(0, 0, 0, 0))


def test_a_column_of_nulls_aggregates_to_null_and_counts_zero() -> None:
    calls = "SUM(v), AVG(v), MIN(v), MAX(v), MEDIAN(v), QUANTILE(v, 0.5), STDDEV(v), FIRST(v), LAST(v), REGR_SLOPE(v)"
    query = (
        f"SELECT k, COUNT(*) AS n, COUNT(v) AS c, COUNT(DISTINCT v) AS d, {calls} FROM S [RANGE 1 SLIDE 1] GROUP BY k"
    )
    table = pa.table({"t": [1, 1], "k": pa.array([None, None], pa.string()), "v": pa.array([None, None], pa.float64())})
    rows, account = answered(query, table)
    assert [list(rows.values())[i] for i in range(4)] == [[None], [2], [0], [0]]
    assert [list(rows.values())[i] for i in range(4, 14)] == [[None]] * 10
    assert account.used == 2


def test_nan_is_one_key_and_so_is_zero() -> None:
    table = pa.table({"t": [1, 1, 1, 1, 1], "x": [NAN, -NAN, 0.0, -0.0, None]})
    rows, _ = answered("SELECT x, COUNT(*) AS n FROM S [RANGE 1 SLIDE 1] GROUP BY x", table)
    assert sorted(zip(map(str, rows["x"]), rows["n"], strict=True)) == [("0.0", 2), ("None", 1), ("nan", 2)]
    rows, _ = answered("SELECT DISTINCT x FROM S [RANGE 1 SLIDE 1]", table)
    assert sorted(map(str, rows["x"])) == ["0.0", "None", "nan"]
    rows, _ = answered("SELECT ISTREAM x FROM S [PARTITION BY x ROWS 1]", table)
    assert sorted(map(str, rows["x"])) == ["0.0", "None", "nan"]


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        pytest.param([INF, 1.0], {"s": INF, "a": INF, "low": 1.0, "high": INF, "d": NAN}, id="infinity"),
        pytest.param([INF, -INF], {"s": NAN, "a": NAN, "low": -INF, "high": INF, "d": NAN}, id="both infinities"),
        pytest.param([NAN, 1.0], {"s": NAN, "a": NAN, "low": 1.0, "high": NAN, "d": NAN}, id="NaN is the largest"),
        pytest.param([1.7e308, 1.7e308], {"s": INF, "a": INF, "low": 1.7e308, "high": 1.7e308, "d": 0.0}, id="largest"),
        pytest.param([-1.7e308, -1.7e308], {"s": -INF, "a": -INF, "d": 0.0}, id="smallest"),
    ],
)
def test_floats_at_the_edge(values: list[float], expected: dict[str, float]) -> None:
    query = "SELECT SUM(x) AS s, AVG(x) AS a, MIN(x) AS low, MAX(x) AS high, STDDEV(x) AS d FROM S [RANGE 1 SLIDE 1]"
    rows, account = answered(query, pa.table({"t": [1, 1], "x": values}))
    assert {name: str(rows[name][0]) for name in expected} == {name: str(value) for name, value in expected.items()}
    assert account.used == 2


@pytest.mark.parametrize(
    "value", [[1, 2], [], {"a": [1]}, {"a": None}, b"\xff\x00", "", "\x00", "'; --"], ids=lambda value: repr(value)
)
def test_any_value_is_a_key(value: object) -> None:
    rows, _ = answered(
        "SELECT x, COUNT(*) AS n FROM S [RANGE 1 SLIDE 1] GROUP BY x", pa.table({"t": [1, 1], "x": [value] * 2})
    )
    assert (rows["x"], rows["n"]) == ([value], [2])


def test_any_name_is_a_column() -> None:
    table = pa.table({"t": [1], "a b": [2], "x.y": [3], "#row": [4], "SELECT": [5], "w_end": [6]})
    rows, _ = answered("SELECT `a b`, `x.y`, `#row`, `SELECT`, `w_end` FROM S [RANGE 1 SLIDE 1]", table)
    assert [values[0] for values in rows.values()] == [2, 3, 4, 5, 6, 0, 1]
    assert list(rows)[-2:] == ["w_start", "w_end_"]
