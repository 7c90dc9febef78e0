"""The stream of the kill tests, as files: made without Panewise, so that the verifier can trust it.

Every file has a few rows for each key, a little out of order, with times of their own; among them are rows without a
usable time and, once a pipeline has done a batch, rows that are a day late.
"""

from __future__ import annotations

import os
import random
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet

START = datetime(2026, 1, 1, tzinfo=UTC)
#: Seconds of stream in a file, and how far out of order rows are within them.
FILE, DISORDER = 5, 2
KEYS = [f"k{number}" for number in range(8)]
#: Rows of this key are late by a day.
LATE = "late"
SCHEMA = pa.schema([("ts", pa.timestamp("us", "UTC")), ("k", pa.string()), ("v", pa.int64())])
#: Times that no stream has: none at all, and long ago and far ahead.
POISON = (None, datetime(1700, 1, 1, tzinfo=UTC), datetime(9999, 1, 1, tzinfo=UTC))

Row = tuple[datetime | None, str, int]


class Supply:
    """Writes the files of one stream and remembers what was in them."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.folder, self._random = folder, random.Random(seed)
        folder.mkdir(parents=True)
        self.files = 0
        self.good: list[tuple[datetime, str, int]] = []
        self.late = self.poison = 0

    @property
    def rows(self) -> int:
        return len(self.good) + self.late + self.poison

    def write(self, late: bool) -> None:
        """One more file, with late rows if a pipeline knows by now that they are."""
        draw, begin = self._random, START + timedelta(seconds=FILE * self.files)
        ticks = draw.sample(range(FILE * 1000), 24)
        fresh = [
            (begin + timedelta(milliseconds=tick), draw.choice(KEYS), draw.randrange(-50, 100))
            for tick in sorted(ticks)
        ]
        self.good += fresh
        rows: list[Row] = [*sorted(fresh, key=lambda row: row[0].timestamp() + draw.uniform(0, DISORDER))]
        if late:
            rows.append((begin - timedelta(days=1), LATE, 1))
            self.late += 1
        if self.files % 4 == 1:
            rows.insert(0, (draw.choice(POISON), draw.choice(KEYS), 7))
            self.poison += 1
        self._put(rows)

    def _put(self, rows: list[Row]) -> None:
        """A file that is there whole or not at all, and older than all that come after it."""
        columns: list[Any] = [list(column) for column in zip(*rows, strict=True)]
        table = pa.table([pa.array(c, f.type) for c, f in zip(columns, SCHEMA, strict=True)], schema=SCHEMA)
        draft, path = self.folder / f".{self.files}", self.folder / f"{self.files:05d}.parquet"
        pyarrow.parquet.write_table(table, draft)
        age = START.timestamp() + self.files
        os.utime(draft, (age, age))
        os.rename(draft, path)
        self.files += 1
