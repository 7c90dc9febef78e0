"""Stanford STREAM's own regression tests in our CQL: every change it reported, at the instant it reported it.

STREAM never learns that time goes on after its last item, so our runs stop there too (`until`).
Views are written as sub-queries, and the time column, which STREAM keeps out of `*`, is left out by name.
"""

from __future__ import annotations

import csv
import gzip
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pytest

import panewise as pw


@dataclass(frozen=True)
class Case:
    """A query, the file each of its streams is read from, and what of our answer STREAM's file leaves out."""

    query: str
    files: dict[str, str]
    unsaid: tuple[str, ...] = ()


#: Names of the columns of each file; STREAM keeps only their types in it.
COLUMNS = {"S1": "t A", "S2": "t G A", "S3": "t A B C D", "R1": "t s A"}
READERS = {"i": int, "f": float, "b": str, "c4": str}

#: A name means the same file in all of them: runners that take all queries together have all streams in sight.
CASES = {
    "test1": Case("SELECT A, B, C, D FROM V", {"V": "S3"}),
    "test7": Case("SELECT A FROM S [ROWS 2]", {"S": "S1"}),
    "test8": Case("SELECT A FROM S [NOW]", {"S": "S1"}),
    "test2": Case("SELECT A, B FROM (SELECT A div 2 AS A, A AS B FROM S WHERE (A div 2) * 2 = A) VS", {"S": "S1"}),
    "test3": Case("SELECT X.A, Y.A FROM S AS X, T AS Y WHERE X.A = Y.A", {"S": "S1", "T": "S1"}),
    # STREAM emits an instant of an Rstream when the next one begins, and so never the last one.
    "test4": Case(
        "RSTREAM(SELECT S.A, T.A FROM S [NOW], T WHERE S.A = T.A)",
        {"S": "S1", "T": "S1"},
        unsaid=("[9999]:+:9999, 9999",),
    ),
    "test5": Case("SELECT G, SUM(A), COUNT(A), MAX(A), MIN(A) FROM U GROUP BY G", {"U": "S2"}),
    "test6": Case("SELECT DISTINCT A div 2 FROM S", {"S": "S1"}),
    # A relation of STREAM's is a file of insertions and deletions; here it is the difference of the two.
    "test9": Case("SELECT A FROM R WHERE s = '+' EXCEPT ALL SELECT A FROM R WHERE s = '-'", {"R": "R1"}),
    "test10": Case("SELECT G, A FROM U [PARTITION BY G ROWS 1]", {"U": "S2"}),
}


#: The reference needs seconds for this one.
SLOW = ("test5",)


@pytest.mark.parametrize("name", [pytest.param(n, marks=[pytest.mark.slow] if n in SLOW else []) for n in CASES])
def test_whole_files(goldens: Path, name: str) -> None:
    agree(goldens, name, CASES[name])


def agree(goldens: Path, name: str, case: Case) -> None:
    folder = goldens / "stanford_stream"
    streams = {stream: read(folder / "data", file) for stream, file in case.files.items()}
    last = max(int(table.column("t")[-1].as_py()) for table in streams.values())
    found = pw.run(case.query, streams, time="t", until=last)
    assert lines(found) == reported(folder / "sample-out" / f"{name}.gz") + Counter(case.unsaid)


def read(folder: Path, file: str) -> pa.Table:
    with gzip.open(folder / f"{file}.dat.gz", "rt") as text:
        types, *rows = csv.reader(text)
    columns = zip(*rows, strict=True)
    typed = ([READERS[kind](value) for value in column] for kind, column in zip(types, columns, strict=True))
    return pa.table(dict(zip(COLUMNS[file].split(), typed, strict=True)))


def reported(path: Path) -> Counter[str]:
    """STREAM's lines `[ts]:sign:values`."""
    with gzip.open(path, "rt") as text:
        return Counter(line.strip() for line in text if line.strip())


def lines(table: pa.Table) -> Counter[str]:
    """Our results the way STREAM writes them; the order inside one instant is nobody's promise."""
    added = ("ts", "sign", "expires_at", "expires_order")
    chosen = [name for name in table.column_names if name not in added]
    return Counter(
        f"[{row['ts']}]:{'-' if row.get('sign') == -1 else '+'}:{', '.join(str(row[name]) for name in chosen)}"
        for row in table.to_pylist()
    )
