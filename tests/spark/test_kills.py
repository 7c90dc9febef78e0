"""Killed at random moments and started again, a pipeline leaves every result exactly once."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import pyarrow as pa
import pyarrow.dataset
import pytest

import panewise as pw

from . import victim
from .streams import parts, plain, stream, written

REPOSITORY = Path(__file__).parents[2]
#: A driver finds so many files that none has read, more than it can read before it is killed.
AHEAD = 8


def start(folder: Path, state: str) -> subprocess.Popen[bytes]:
    with open(folder / "log", "ab") as log:
        command = [sys.executable, "-m", "tests.spark.victim", str(folder), state]
        return subprocess.Popen(command, cwd=REPOSITORY, stdout=log, stderr=log, start_new_session=True)


def kill(process: subprocess.Popen[bytes]) -> None:
    """Driver, JVM and workers at once, as when a machine loses power."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def workers(group: int) -> list[int]:
    """The Python workers of a driver."""
    found = []
    for entry in Path("/proc").iterdir():
        with suppress(OSError, ProcessLookupError, ValueError):
            if os.getpgid(int(entry.name)) == group and b"pyspark.daemon" in (entry / "cmdline").read_bytes():
                found.append(int(entry.name))
    return found


def committed(folder: Path) -> int:
    """How many batches are done."""
    return max((int(path.name) + 1 for path in (folder / "checkpoint/spark/commits").glob("[0-9]*")), default=0)


def live(process: subprocess.Popen[bytes], folder: Path, choice: random.Random, patient: bool) -> None:
    """Let a driver live for a while: while it starts and begins its first batch, or until it has done one or more."""
    before, ending = committed(folder), time.monotonic() + 120
    while patient and committed(folder) == before and process.poll() is None and time.monotonic() < ending:
        time.sleep(0.1)
    with suppress(subprocess.TimeoutExpired):
        process.wait(choice.uniform(0, 3) if patient else choice.uniform(3.5, 8))


def supplied(folder: Path, pieces: Sequence[pa.Table], there: int) -> int:
    """Put further files where drivers have read those that are there; how many there are then."""
    wanted = max(there, min(committed(folder) + AHEAD, len(pieces)))
    written(folder / "in", pieces[there:wanted], there)
    return wanted


@pytest.mark.slow
@pytest.mark.parametrize(("state", "kills"), [("rocksdb", 20), ("files", 3)])
def test_every_result_exactly_once(tmp_path: Path, state: str, kills: int) -> None:
    pieces = parts(stream(5000, seed=3), 200)
    choice = random.Random(kills)
    killed = shot = there = 0
    while killed < kills and there < len(pieces):
        there = supplied(tmp_path, pieces, there)
        process = start(tmp_path, state)
        # On two busy cores a driver needs 20 seconds for its first batch: three of four die sooner.
        live(process, tmp_path, choice, patient=killed % 4 == 1)
        if process.poll() is None and choice.random() < 0.4 and (alive := workers(process.pid)):
            with suppress(ProcessLookupError):
                os.kill(choice.choice(alive), signal.SIGKILL)
                shot += 1
            time.sleep(choice.uniform(0, 1.5))
        killed += process.poll() is None
        kill(process)
    (tmp_path / "complete").touch()
    for _ in range(3):
        if not (tmp_path / "done").exists():
            process = start(tmp_path, state)
            process.wait(300)
            kill(process)
    log = (tmp_path / "log").read_text()
    assert (tmp_path / "done").exists(), log[-3000:]
    assert killed >= kills, f"only {killed} drivers and {shot} workers were killed before the end"
    assert there > AHEAD, "nobody was killed after a batch"
    found = pyarrow.dataset.dataset(tmp_path / "out", partitioning="hive").to_table()
    table = pa.concat_tables(pieces[:there])
    # However often a batch was done, its rows have been counted once.
    counted = json.loads((tmp_path / "checkpoint" / "metrics.jsonl").read_text().splitlines()[-1])
    assert counted["rows_in"] == counted["used"] == table.num_rows
    assert counted["rows_out"] == found.num_rows
    for name, text in victim.QUERIES.items():
        mine = found.filter(pyarrow.compute.equal(found["query"], name)).drop_columns(["query", "batch"])
        assert plain(mine) == plain(pw.run(text, {"S": table}, time="t")), name
