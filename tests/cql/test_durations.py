"""Lengths of time as people write them, in queries and in Python."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import panewise as pw
from panewise.core.errors import PanewiseError, TimeProblem
from panewise.core.time import UNITS, Domain, Duration
from panewise.cql import parse_query, render

FIVE_MINUTES = ["5 MINUTES", "5 minute", "5 min", "5 mins", "5min", "'5 minutes'", "'5min'", "'5' MINUTES", "300s"]
FIVE_MINUTES += ["300 sec", "300 secs", "INTERVAL '5' MINUTE", "INTERVAL '5 minutes'", "INTERVAL 5 MINUTES", "300000ms"]
OTHERS = {
    "1h": "1 HOUR",
    "1 hr": "1 HOUR",
    "2hrs": "2 HOURS",
    "1.5h": "1.5 HOURS",
    "5d": "5 DAYS",
    "7us": "7 MICROSECONDS",
}
OTHERS |= {"1 week": "1 WEEK", "2 WEEKS": "2 WEEKS", "5s": "5 SECONDS", "5": "5", "'5'": "5", "-5s": "-5 SECONDS"}
EVENTS = pa.table({"ts": pa.array([0, 60_000_000, 600_000_000], pa.timestamp("us", "UTC")), "v": [1, 2, 3]})


@pytest.mark.parametrize("written", FIVE_MINUTES)
def test_minutes_are_read_however_they_are_written(written: str) -> None:
    plain, found = (f"SELECT SUM(v) AS s FROM S [RANGE {d} SLIDE {d}]" for d in ("5 MINUTES", written))
    assert pw.run(found, {"S": EVENTS}, time="ts").equals(pw.run(plain, {"S": EVENTS}, time="ts"))


@pytest.mark.parametrize(("written", "canonical"), OTHERS.items())
def test_units_have_one_canonical_name(written: str, canonical: str) -> None:
    assert f"[RANGE {canonical} SLIDE {canonical}]" in render(
        parse_query(f"SELECT v FROM S [RANGE {written} SLIDE {written}]")
    )


@pytest.mark.parametrize(
    ("length", "ticks"),
    [
        (timedelta(minutes=5), 300_000_000),
        (timedelta(days=-1, microseconds=1), 1 - UNITS["DAY"]),
        (pd.Timedelta("5min"), 300_000_000),
        (pd.Timedelta(7, "us"), 7),
        (np.timedelta64(5, "m"), 300_000_000),
        (np.timedelta64(2, "W"), 2 * UNITS["WEEK"]),
        (np.timedelta64(3, ("s", 25)), 75_000_000),
        (np.timedelta64(5_000, "ns"), 5),
        (np.timedelta64(10**12, "as"), 1),
        ("5min", 300_000_000),
        ("1h", UNITS["HOUR"]),
    ],
)
def test_durations_of_python_are_exact(length: Any, ticks: int) -> None:
    assert Duration.parse(length).ticks(Domain.TIMESTAMP) == ticks


@pytest.mark.parametrize("length", [pd.Timedelta(1, "ns"), np.timedelta64(1500, "ns")])
def test_what_is_finer_than_a_tick_is_refused(length: Any) -> None:
    with pytest.raises(TimeProblem, match="not a whole number of ticks"):
        Duration.parse(length).ticks(Domain.TIMESTAMP)


@pytest.mark.parametrize(
    "length", [np.timedelta64(1, "M"), np.timedelta64(1, "Y"), np.timedelta64(5), np.timedelta64("NaT"), pd.NaT]
)
def test_what_has_no_fixed_length_is_refused(length: Any) -> None:
    with pytest.raises(TimeProblem, match=r"no fixed length|not a duration"):
        Duration.parse(length)


@pytest.mark.parametrize("delay", [timedelta(minutes=5), pd.Timedelta("5min"), np.timedelta64(5, "m"), "5min"])
def test_delay_and_skew_take_durations_of_python(delay: Any) -> None:
    stream = pw.Stream(EVENTS, "ts", delay=delay, max_skew=delay, now=0)
    assert stream.schema.delay_ticks == stream.horizon == 300_000_000
    assert pw.StreamSchema(EVENTS.schema, "ts", delay) == pw.StreamSchema(EVENTS.schema, "ts", stream.schema.delay)


def test_no_delay_at_all_is_a_duration_of_python() -> None:
    assert pw.Stream(EVENTS, "ts", delay=timedelta(0)).schema.delay_ticks == 0
    assert pw.Stream(EVENTS, "ts", delay=np.timedelta64(0, "s")).schema.delay_ticks == 0


def test_keep_and_grain_take_durations_of_python() -> None:
    pool = pw.Pool({"S": pw.StreamSchema(EVENTS.schema, "ts", timedelta(0))})
    pool.register("q", "SELECT SUM(v) AS s FROM S [RANGE 5min SLIDE 5min]")
    engine = pw.Engine(pool, keep={"S": pd.Timedelta("1h")}, grain=timedelta(minutes=1))
    engine.feed("S", EVENTS)
    found = engine.lookup("SELECT SUM(v) AS s FROM S [RANGE '6 min']", at="1970-01-01 00:06:00")
    assert found.column("s").to_pylist() == [2]


def test_a_timedelta_on_integer_time_is_refused() -> None:
    with pytest.raises(PanewiseError, match="has a unit, but the time column is an integer"):
        pw.Stream(pa.table({"t": [1]}), "t", delay=timedelta(minutes=5))
