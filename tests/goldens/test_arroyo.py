"""Arroyo's SQL tests over two small files: the same answers from our CQL.

Arroyo read its files in batches and lost nothing to lateness, so a bare table, which is complete, is the same input.
"""

from __future__ import annotations

import gzip
import json
from collections import Counter
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import panewise as pw

Row = dict[str, Any]
HOURLY = "[RANGE 1 HOUR SLIDE 1 HOUR]"
SUMMARY = "MIN(counter) AS min, MAX(counter) AS max, SUM(counter) AS sum, COUNT(*) AS count, AVG(counter) AS avg"


@dataclass(frozen=True)
class Case:
    """A query and what the golden calls the bounds of its windows; bounds it does not name are not in it."""

    query: str
    bounds: dict[str, str] = field(default_factory=dict)


def most_active_driver(window: str) -> str:
    """ROW_NUMBER() OVER (PARTITION BY window ORDER BY count DESC, driver_id DESC) = 1, as a join with the maximum."""
    trips = f"SELECT driver_id, COUNT(*) AS count FROM cars [{window}] GROUP BY driver_id"
    return f"""
        SELECT MAX(T.driver_id) AS driver_id, T.count AS count, 1 AS row_number
        FROM ({trips}) T, (SELECT MAX(count) AS most FROM ({trips}) A) M
        WHERE T.count = M.most GROUP BY T.count"""


def drivers(event: str) -> str:
    return f"SELECT COUNT(DISTINCT driver_id) AS drivers FROM cars {HOURLY} WHERE event_type = '{event}'"


START_END = {"w_start": "start", "w_end": "end"}
CASES = {
    "hourly_by_event_type": Case(
        f"SELECT event_type, COUNT(*) AS count FROM cars {HOURLY} GROUP BY event_type", {"w_start": "hour"}
    ),
    "tight_watermark": Case(f"SELECT COUNT(*) AS count FROM cars {HOURLY}", {"w_end": "timestamp"}),
    # Arroyo's month is thirty days, counted from the epoch.
    "month_loose_watermark": Case(
        "SELECT COUNT(*) AS count FROM cars [RANGE 30 DAYS SLIDE 30 DAYS]", {"w_start": "month"}
    ),
    "sliding_window_end": Case(
        """SELECT COUNT(*) AS count, MIN(counter) AS min, MAX(counter) AS max
           FROM impulse [RANGE 10 SECONDS SLIDE 2 SECONDS]""",
        START_END,
    ),
    "most_active_driver_last_hour": Case(most_active_driver("RANGE 1 HOUR SLIDE 1 MINUTE"), START_END),
    # Arroyo's windows start on the grid of the slide, ours end on it: an hour after, which is 20 minutes off it.
    "most_active_driver_last_hour_unaligned": Case(
        most_active_driver("RANGE 1 HOUR SLIDE 40 MINUTES START AT '1970-01-01 00:20:00'"), START_END
    ),
    "global_session_window": Case("SELECT COUNT(*) AS rows FROM impulse [SESSION 20 SECONDS]", START_END),
    "session_window": Case(
        """SELECT user_id, COUNT(*) AS rows
           FROM (SELECT CASE WHEN counter % 10 = 0 THEN 0 ELSE counter END AS user_id FROM impulse) U
                [PARTITION BY user_id SESSION 20 SECONDS]
           GROUP BY user_id""",
        START_END,
    ),
    # Both sides are asked at the same instants, so the condition that their windows be equal is always met.
    "windowed_inner_join": Case(
        f"SELECT D.drivers, P.drivers AS pickups FROM ({drivers('dropoff')}) D, ({drivers('pickup')}) P",
        {"w_start": "hour"},
    ),
    # There is no outer join; counting each kind in one pass gives what the FULL OUTER JOIN of the two counts gives.
    "windowed_outer_join": Case(
        f"""SELECT NULLIF(COUNT(DISTINCT CASE WHEN event_type = 'dropoff' THEN driver_id END), 0) AS drivers,
                   NULLIF(COUNT(DISTINCT CASE WHEN event_type = 'pickup' THEN driver_id END), 0) AS pickups
            FROM cars {HOURLY}""",
        {"w_start": "hour"},
    ),
    "reinvoke_window_function": Case(
        f"""SELECT COUNT(DISTINCT driver_id) AS drivers
            FROM (SELECT driver_id, COUNT(*) AS pickups FROM cars {HOURLY} WHERE event_type = 'pickup'
                  GROUP BY driver_id) P
            WHERE pickups > 2""",
        START_END,
    ),
    "aggregates": Case(f"SELECT {SUMMARY} FROM impulse"),
    "grouped_aggregates": Case(f"SELECT counter % 5 AS counter_mod, {SUMMARY} FROM impulse GROUP BY 1"),
    # The slide is longer than the stream: one instant, after the last item, instead of 7,932.
    "active_drivers": Case(
        """SELECT COUNT(*) AS drivers
           FROM (SELECT driver_id FROM cars [UNBOUNDED SLIDE 30 DAYS] GROUP BY driver_id HAVING COUNT(*) > 85) A"""
    ),
}
SLOW = {"most_active_driver_last_hour"}


@pytest.mark.parametrize("name", [pytest.param(n, marks=pytest.mark.slow) if n in SLOW else n for n in CASES])
def test_golden(goldens: Path, name: str) -> None:
    case = CASES[name]
    streams = {stream: _stream(goldens / "arroyo" / "inputs" / f"{stream}.json.gz") for stream in ("cars", "impulse")}
    found = pw.run(case.query, streams, time="timestamp", boundary="[)")
    expected = _read(goldens / "arroyo" / "golden" / f"{name}.json.gz")
    assert _answers(found.to_pylist(), case.bounds) == _bag([_timed(_final(row)) for row in expected])


def test_every_golden_has_a_query(goldens: Path) -> None:
    assert {path.name.removesuffix(".json.gz") for path in (goldens / "arroyo" / "golden").iterdir()} == set(CASES)


def _answers(rows: list[Row], bounds: dict[str, str]) -> Counter[tuple[tuple[str, Any], ...]]:
    """Whole results as they are; of signed changes what they amount to in the end."""
    added = ("w_start", "w_end", "ts", "sign", "expires_at")
    named = [{bounds.get(n, n): v for n, v in row.items() if n in bounds or n not in added} for row in rows]
    came = _bag([row for row, shown in zip(named, rows, strict=True) if shown.get("sign") != -1])
    went = _bag([row for row, shown in zip(named, rows, strict=True) if shown.get("sign") == -1])
    return came - went


def _final(row: Row) -> Row:
    """Debezium's goldens hold the final state only: every row is created, none is updated."""
    if "op" not in row:
        return row
    assert (row["op"], row["before"]) == ("c", None)
    return dict(row["after"])


def _stream(path: Path) -> pa.Table:
    return pa.Table.from_pylist([_timed(row) for row in _read(path)])


def _timed(row: Row) -> Row:
    """The row with its times as times; all of them are in UTC, whether they say so or not."""
    times = {"timestamp", "hour", "month", "start", "end"}
    return {n: datetime.fromisoformat(v).replace(tzinfo=UTC) if n in times else v for n, v in row.items()}


def _read(path: Path) -> list[Row]:
    with gzip.open(path, "rt") as text:
        return [json.loads(line) for line in text if line.strip()]


def _bag(rows: list[Row]) -> Counter[tuple[tuple[str, Any], ...]]:
    return Counter(tuple(sorted(row.items())) for row in rows)
