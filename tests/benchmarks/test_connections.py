"""Traces of connections: what files hold, whatever they are called there, and that no row is lost or made up."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from benchmarks.data.connections import CONNECTION, dealt, generated, kdd99, lbl, populated
from benchmarks.figures.consistent.replay import QUERIES, Replay

LBL = """\
748162802.427995 1.24383 smtp 2001 542 1 2 SF L
748162802.803033 ? nntp ? ? 3 4 REJ
748162805.0 0.5 ftp-data 7 0 1 5 SF L N
"""


def test_lbl_has_a_line_for_each_connection(tmp_path: Path) -> None:
    path = tmp_path / "lbl-conn-7"
    path.write_text(LBL, encoding="ascii")
    found = lbl(path, 10)
    assert found.schema == CONNECTION
    assert [list(row.values()) for row in found.to_pylist()] == [
        [1244, "smtp", 2001, 542, 1, 2, "SF", "L"],
        [None, "nntp", None, None, 3, 4, "REJ", ""],
        [500, "ftp-data", 7, 0, 1, 5, "SF", "L N"],
    ]
    assert lbl(path, 2) == found.slice(0, 2)


def test_bytes_stand_for_the_hosts_of_kdd99(tmp_path: Path) -> None:
    path = tmp_path / "kdd.gz"
    rest = ",".join(["0"] * 30)
    lines = [
        f"{n},tcp,http,SF,{sent},{received},0,0,0,0,0,1,{rest}" for n, sent, received in ((5, 181, 0), (6, 9, 181))
    ]
    path.write_bytes(gzip.compress("\n".join(lines).encode()))
    found = kdd99(path, 10)
    assert found.schema == CONNECTION
    assert [list(row.values()) for row in found.to_pylist()] == [
        [5, "tcp", 181, 0, 2, None, "SF", "1"],
        [6, "tcp", 9, 181, 1, 2, "SF", "1"],
    ]
    assert len(kdd99(path, 1)) == 1


@pytest.mark.parametrize("rows", [1, 2, 89, 1000, 10_007])
def test_dealt_rows_are_the_same_and_come_from_everywhere(rows: int) -> None:
    places = dealt(pa.table({"place": np.arange(rows)}))["place"].to_numpy()
    assert sorted(places) == list(range(rows))
    for few in (10, 100, 1000):
        for start in range(0, rows - few, few):
            gaps = np.diff(np.sort(places[start : start + few]), prepend=0, append=rows)
            assert gaps.max() <= 3 * rows / few


def test_only_the_most_used_protocols_are_left() -> None:
    trace = pa.table({"protocol": ["a", "b", "c", "b", "c", "b"]})
    assert populated(trace, 2)["protocol"].to_pylist() == ["b", "c", "b", "c", "b"]
    assert populated(trace, 5) == trace


@pytest.mark.parametrize("operation", QUERIES)
@pytest.mark.parametrize("window", ["[RANGE 2 SLIDE 1]", "[ROWS 50]", "[PARTITION BY protocol ROWS 20]", "[UNBOUNDED]"])
def test_every_query_is_replayed_over_every_kind_of_window(operation: str, window: str) -> None:
    replay = Replay(operation, window, generated(300))
    replay.fill([100, 100])
    assert replay.wave(100) > 0
    assert replay.wave(100, ordered=True) > 0
    assert (replay.rows, replay.at) == (400, 103)
    assert all(account.used == 400 for account in replay.engine.accounting.values())
