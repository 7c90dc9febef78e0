"""What the small application is given, and what it must answer, wherever it runs."""

from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet

import panewise as pw
from tests.spark.submitted import QUERIES, SCHEMA

_START = datetime(2024, 1, 1, tzinfo=UTC)
#: Ten minutes of payments, out of order by less than the delay.
ROWS = pa.Table.from_pylist(
    [
        {
            "t": _START + timedelta(seconds=second - second * 7 % 20, microseconds=second * 1_001),
            "card": "abc"[second % 11 % 3],
            "amount": second * 37 % 101 / 8,
        }
        for second in range(600)
    ],
    schema=SCHEMA.schema,
)


def halves() -> list[pa.Table]:
    """The rows in two parts, for two batches."""
    return [ROWS.slice(0, 300), ROWS.slice(300)]


def given(folder: Path) -> None:
    """Put the rows where the application reads them; Spark goes by the times of files."""
    (folder / "rows").mkdir(parents=True)
    for number, half in enumerate(halves()):
        path = folder / "rows" / f"{number}.parquet"
        pyarrow.parquet.write_table(half, path)
        os.utime(path, (number, number))


def expected(name: str) -> pa.Table:
    return pw.run(QUERIES[name], {"S": ROWS}, time=SCHEMA.time)


def plain(table: pa.Table) -> list[str]:
    """Rows to compare: in any order, but each as often as it is there."""
    return sorted(map(repr, table.to_pylist()))


def compare(folder: Path, kind: str) -> None:
    """Everything the application left in a folder is what `pw.run` says."""
    for name in QUERIES:
        want = expected(name)
        found = pyarrow.feather.read_table(folder / kind / f"{name}.feather").cast(want.schema)
        assert plain(found) == plain(want), f"{name}, {kind}"
