"""What has a meaning but is seldom meant is told as a warning."""

from __future__ import annotations

import warnings

import pyarrow as pa
import pytest

import panewise as pw
from panewise.core.errors import PanewiseWarning
from panewise.cql import bind_script

EVENTS = pa.table({"ts": pa.array([0, 60_000_000, 7_200_000_000], pa.timestamp("us", "UTC")), "k": ["a", "b", "a"]})
HOURLY = "SELECT date_trunc('hour', ts) AS h, COUNT(*) AS n FROM S GROUP BY date_trunc('hour', ts)"


def test_groups_of_time_without_a_window_are_told_of_one() -> None:
    with pytest.warns(
        PanewiseWarning, match=r"DATE_TRUNC\('hour', ts\) groups by time .* \[RANGE 1 HOUR SLIDE 1 HOUR\]"
    ):
        assert pw.run(HOURLY, {"S": EVENTS}, time="ts").num_rows == 4


@pytest.mark.parametrize("key", ["HOUR(ts)", "CAST(ts AS DATE)", "FLOOR(MINUTE(ts) / 5)", "DATE_TRUNC('MONTH', ts)"])
def test_any_part_of_the_time_is_told_of(key: str) -> None:
    with pytest.warns(PanewiseWarning, match=r"groups by time without a window.* \[RANGE \.\.\. SLIDE \.\.\.\]"):
        pw.run(f"SELECT k, COUNT(*) AS n FROM S WHERE k <> 'z' GROUP BY k, {key}", {"S": EVENTS}, time="ts")


def test_pools_and_scripts_tell_it_too() -> None:
    with pytest.warns(PanewiseWarning, match="query 'q': DATE_TRUNC"):
        pw.Pool({"S": pw.StreamSchema(EVENTS.schema, "ts", "0 s")}).register("q", HOURLY + " ALLOW UNBOUNDED")
    with pytest.warns(PanewiseWarning, match="query 'query_1': DATE_TRUNC"):
        bind_script(f"CREATE STREAM S (ts TIMESTAMP) TIME ts; {HOURLY}")


@pytest.mark.parametrize(
    "query",
    [
        "SELECT HOUR(ts) AS h, COUNT(*) AS n FROM S [RANGE 1 DAY SLIDE 1 DAY] GROUP BY HOUR(ts)",
        "SELECT ISTREAM HOUR(ts) AS h, COUNT(*) AS n FROM S GROUP BY HOUR(ts)",
        "SELECT k, COUNT(*) AS n FROM S GROUP BY k",
        "SELECT COUNT(*) AS n FROM S GROUP BY ts > TIMESTAMP '2024-01-01 00:00:00Z'",
        "SELECT UPPER(k) AS u, COUNT(*) AS n FROM S GROUP BY UPPER(k)",
    ],
)
def test_what_is_meant_is_not_told(query: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        pw.run(query, {"S": EVENTS}, time="ts")
