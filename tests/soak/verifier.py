"""What the queries of the kill tests should have answered, computed from the rows with nothing of Panewise.

It knows the definitions from the documentation only: a window at instant t holds the rows of (t - range, t].
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from itertools import groupby
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset

Row = tuple[datetime, str, int]
Answers = Counter[tuple[Any, ...]]

#: The script that drivers run. Each query writes a folder named after it.
SCRIPT = """
CREATE STREAM S (ts TIMESTAMP, k STRING, v BIGINT) TIME ts DELAY 5 SECONDS FROM 'parquet:S';
CREATE STREAM T (ts TIMESTAMP, k STRING, v BIGINT) TIME ts DELAY 5 SECONDS FROM 'parquet:T';
CREATE QUERY sums AS
  SELECT k, COUNT(*) AS n, SUM(v) AS s, MAX(v) AS m
  FROM S [RANGES 60 SECONDS, 20 SECONDS SLIDES 20 SECONDS, 10 SECONDS] GROUP BY k
  INTO 'parquet:out/sums' PANES INTO 'parquet:panes/sums';
CREATE QUERY distincts AS
  SELECT DISTINCT k, v % 7 AS r FROM S [RANGE 30 SECONDS SLIDE 15 SECONDS] INTO 'parquet:out/distincts';
CREATE QUERY frames AS
  SELECT k, COUNT(*) AS n, SUM(v) AS s FROM S [FRAME WHILE v > 20 PARTITION BY k] GROUP BY k INTO 'parquet:out/frames';
CREATE QUERY lasts AS
  SELECT ISTREAM k, SUM(v) AS s FROM S [PARTITION BY k ROWS 3] GROUP BY k ALLOW UNBOUNDED
  INTO 'parquet:out/lasts';
"""
#: Only where the state serves two streams.
PAIRS = """
CREATE QUERY pairs AS
  SELECT S.k, S.v AS a, T.v AS b FROM S [RANGE 10 SECONDS SLIDE 10 SECONDS], T [RANGE 20 SECONDS SLIDE 10 SECONDS]
  WHERE S.k = T.k
  INTO 'parquet:out/pairs';
"""
#: The columns of each answer that are compared; bounds of windows in microseconds.
COLUMNS = {
    "sums": ("k", "n", "s", "m", "w_start", "w_end"),
    "distincts": ("k", "r", "w_start", "w_end"),
    "frames": ("k", "n", "s", "w_start", "w_end"),
    "lasts": ("k", "s", "ts"),
    "pairs": ("k", "a", "b", "w_end"),
}


def expected(s: Sequence[Row], t: Sequence[Row]) -> dict[str, Answers]:
    """The answers to every query."""
    return {
        "sums": Counter([*_sums(s, 60, 20), *_sums(s, 20, 10)]),
        "distincts": Counter(_distincts(s)),
        "frames": Counter(_frames(s)),
        "lasts": Counter(_lasts(s)),
        "pairs": Counter(_pairs(s, t)),
    }


def found(folder: Path, name: str, ignored: str) -> Answers:
    """What a pipeline wrote for a query, but for the rows of one key."""
    table = pyarrow.dataset.dataset(folder / "out" / name, format="parquet", partitioning="hive").to_table()
    columns = [_plain(table.column(column)) for column in COLUMNS[name]]
    return Counter(row for row in zip(*columns, strict=True) if row[0] != ignored)


def panes(folder: Path, ignored: str) -> dict[tuple[str, int, int], int]:
    """How many rows the log of finished panes counts for each key and pane."""
    table = pyarrow.dataset.dataset(folder / "panes/sums", format="parquet", partitioning="hive").to_table()
    counted: Counter[tuple[str, int, int]] = Counter()
    columns = (_plain(table.column(name)) for name in ("k", "pane_start", "pane_end", "count"))
    for k, begin, end, n in zip(*columns, strict=True):
        if k != ignored:
            counted[k, begin, end] += n
    return counted


def miscounted(logged: dict[tuple[str, int, int], int], rows: Sequence[Row]) -> list[tuple[str, int, int]]:
    """Panes that have not as many rows as there are, and the keys whose panes have not all of them."""
    times = {key: sorted(_tick(row[0]) for row in mine) for key, mine in _by_key(rows)}
    wrong = [
        (key, begin, end)
        for (key, begin, end), n in logged.items()
        if sum(begin < tick <= end for tick in times.get(key, [])) != n
    ]
    totals = Counter[str]()
    for (key, _, _), n in logged.items():
        totals[key] += n
    return wrong + [(key, 0, 0) for key, mine in times.items() if totals[key] != len(mine)]


def account(checkpoint: Path) -> dict[str, int]:
    """The last account that a pipeline kept."""
    last = json.loads((checkpoint / "metrics.jsonl").read_text().splitlines()[-1])
    return {name: last[name] for name in ("rows_in", "used", "late", "rejected")}


def _plain(column: pa.ChunkedArray) -> list[Any]:
    """Values, with times as microseconds whichever unit and zone their file has."""
    if pa.types.is_timestamp(column.type):
        column = column.cast(pa.timestamp("us", column.type.tz)).cast(pa.int64())
    values: list[Any] = column.to_pylist()
    return values


def _tick(time: datetime) -> int:
    return (time.astimezone(UTC) - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)


def _by_key(rows: Iterable[Row]) -> Iterator[tuple[str, list[Row]]]:
    ordered = sorted(rows, key=lambda row: (row[1], row[0]))
    return ((key, list(mine)) for key, mine in groupby(ordered, key=lambda row: row[1]))


def _instants(rows: Sequence[Row], wide: int, slide: int) -> Iterator[tuple[int, int, list[Row]]]:
    """The windows that hold any row: where they begin and end, and their rows."""
    width, step = wide * 1_000_000, slide * 1_000_000
    held: dict[int, list[Row]] = defaultdict(list)
    for row in rows:
        tick = _tick(row[0])
        first = -(-tick // step) * step
        for instant in range(first, tick + width, step):
            held[instant].append(row)
    return ((instant - width, instant, mine) for instant, mine in sorted(held.items()))


def _sums(rows: Sequence[Row], wide: int, slide: int) -> Iterator[tuple[Any, ...]]:
    for begin, end, held in _instants(rows, wide, slide):
        for key, mine in _by_key(held):
            values = [row[2] for row in mine]
            yield key, len(values), sum(values), max(values), begin, end


def _distincts(rows: Sequence[Row]) -> Iterator[tuple[Any, ...]]:
    for begin, end, held in _instants(rows, 30, 15):
        # The remainder has the sign of what is divided, as in SQL.
        for key, rest in {(key, v - 7 * int(v / 7)) for _, key, v in held}:
            yield key, rest, begin, end


def _frames(rows: Sequence[Row]) -> Iterator[tuple[Any, ...]]:
    for key, mine in _by_key(rows):
        for high, run in groupby(mine, key=lambda row: row[2] > 20):
            if high:
                held = list(run)
                yield key, len(held), sum(row[2] for row in held), _tick(held[0][0]), _tick(held[-1][0])


def _lasts(rows: Sequence[Row]) -> Iterator[tuple[Any, ...]]:
    for key, mine in _by_key(rows):
        before = None
        for place, row in enumerate(mine):
            total = sum(other[2] for other in mine[max(0, place - 2) : place + 1])
            if total != before:
                yield key, total, _tick(row[0])
            before = total


def _pairs(s: Sequence[Row], t: Sequence[Row]) -> Iterator[tuple[Any, ...]]:
    theirs = {end: held for _, end, held in _instants(t, 20, 10)}
    for _, end, held in _instants(s, 10, 10):
        for _, key, a in held:
            for _, other, b in theirs.get(end, []):
                if key == other:
                    yield key, a, b, end
