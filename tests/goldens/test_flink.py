"""Flink's window aggregates over disordered rows, one of them late for the windows that had closed."""

from __future__ import annotations

import json
from collections import Counter
from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import panewise as pw

from .table_functions import window_clause

#: Over a session that is not partitioned, Flink answers GROUP BY with a changelog: +I for the first row of a group,
#: then -U and +U for each further one. The transcript kept the +I rows alone; these are the last +U of the groups
#: that have any (SESSION_EVENT_TIME_BEFORE_ROWS and _AFTER_ROWS of WindowAggregateTestPrograms.java).
UPDATED = {
    "window-aggregate-session-event-time": {
        ("a", "2020-10-10T00:00:01"): {"cnt": 6, "sum_a_int": 18, "distinct_comment": 3},
        ("b", "2020-10-10T00:00:01"): {"cnt": 2, "sum_a_int": 9, "distinct_comment": 2},
        ("d", "2020-10-10T00:00:40"): {"cnt": 2, "sum_a_int": 24, "distinct_comment": 2},
    }
}


@pytest.mark.filterwarnings("ignore:.*came too late:panewise.PanewiseWarning")
def test_every_case(goldens: Path, subtests: pytest.Subtests) -> None:
    transcript = json.loads((goldens / "flink" / "window_aggregate_cases.json").read_text())
    rows = [row | {"ts": datetime.fromisoformat(row["ts"])} for row in transcript["input"]]
    stream = pw.Stream(pa.Table.from_pylist(rows), time="ts", delay="1 second")
    for name, case in transcript["cases"].items():
        with subtests.test(name):
            query = f"""
                SELECT name, COUNT(*) AS cnt, SUM(a_int) AS sum_a_int, COUNT(DISTINCT comment) AS distinct_comment
                FROM S [{window_clause(case["window"])}] GROUP BY name"""
            found = pw.run(query, {"S": stream}, boundary="[)")
            assert _bag(found.to_pylist()) == _bag(_expected(name, case))


def _expected(name: str, case: dict[str, Any]) -> list[dict[str, Any]]:
    updates = UPDATED.get(name, {})
    final = [row | updates.get((row["name"], row["window_start"]), {}) for row in case["expected"]]
    return [
        {key: value for key, value in row.items() if not key.startswith("window_")}
        | {f"w_{end}": datetime.fromisoformat(row[f"window_{end}"]) for end in ("start", "end")}
        for row in final
    ]


def _bag(rows: list[dict[str, Any]]) -> Counter[tuple[tuple[str, Any], ...]]:
    return Counter(tuple(sorted(row.items())) for row in rows)
