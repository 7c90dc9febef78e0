"""Pipelines that run elsewhere, as the command shows them: queries, health and results, without Spark."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet
import pytest
from typer.testing import CliRunner

import panewise as pw
from panewise.cli.app import app
from panewise.cli.controlling import absolute_address, results_of
from panewise.core.errors import PanewiseError
from panewise.runtime.checkpoint import Checkpoint
from panewise.runtime.dead_letters import DeadLetter

SCHEMA = pa.schema([("t", pa.int64()), ("k", pa.string()), ("v", pa.int64())])
SUMS = "SELECT k, SUM(v) AS s FROM S [RANGE 4 SLIDE 2] GROUP BY k"
FAILED = {"op": "suspend", "reason": "'x' is no INT", "row": {"k": "'x'"}, "batch": 3, "at": "2026-01-01"}


@pytest.fixture
def checkpoint(tmp_path: Path) -> Checkpoint:
    """A pipeline with three queries: one has a folder of its own, two share theirs, one of which is suspended."""
    made = Checkpoint(tmp_path / "ck")
    made.create(pw.Pool({"S": pw.StreamSchema(SCHEMA, "t")}), (0,), "rocksdb")
    made.control.append_commands(
        [{"op": "register", "name": name, "text": SUMS, "start": "backfill"} for name in ("own", "peak", "bad")]
    )
    made.control.append_commands([FAILED | {"name": "bad"}])
    made.targets.write_text(json.dumps({"own": f"parquet:{tmp_path / 'out'}", "*": "memory:"}))
    write(tmp_path / "out" / "batch=2", [{"k": "b", "s": 2}])
    write(tmp_path / "out" / "batch=10", [{"k": "c", "s": 3}])
    shared = [{"query": name, "k": "a", "s": number} for number, name in enumerate(("peak", "bad"))]
    write(made.folder / "results" / "together-1", shared, batch="batch=0")
    return made


def write(folder: Path, rows: Sequence[dict[str, Any]], batch: str = "") -> None:
    (folder / batch).mkdir(parents=True)
    pa.parquet.write_table(pa.Table.from_pylist(list(rows)), folder / batch / "part-0.parquet")
    (folder / batch / "_SUCCESS").touch()


def command(*arguments: str | Path) -> tuple[int, str]:
    done = CliRunner().invoke(app, list(map(str, arguments)))
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    return done.exit_code, done.output


def test_results_are_found_wherever_they_were_written(checkpoint: Checkpoint) -> None:
    rows = {
        name: [t.to_pylist() for t in results_of(checkpoint.folder, name, False)] for name in ("own", "peak", "bad")
    }
    assert rows == {
        "own": [[{"k": "b", "s": 2}], [{"k": "c", "s": 3}]],
        "peak": [[{"k": "a", "s": 0}]],
        "bad": [[{"k": "a", "s": 1}]],
    }
    code, told = command("results", checkpoint.folder, "own", "--output", "json")
    assert (code, json.loads(told)) == (0, [{"k": "b", "s": 2}, {"k": "c", "s": 3}])
    with pytest.raises(PanewiseError, match="there is no query 'peek'; did you mean 'peak'"):
        command("results", checkpoint.folder, "peek")


def test_results_follow_as_batches_come(checkpoint: Checkpoint) -> None:
    coming = results_of(checkpoint.folder, "own", follow=True, poll=0)
    assert [next(coming).num_rows, next(coming).num_rows] == [1, 1]
    write(checkpoint.folder.parent / "out" / "batch=11", [{"k": "d", "s": 4}, {"k": "e", "s": 5}])
    assert next(coming).num_rows == 2


def test_results_that_are_no_files_are_refused_with_the_place_they_go_to(checkpoint: Checkpoint) -> None:
    checkpoint.targets.write_text(json.dumps({"own": "kafka:localhost:9092/out", "*": None}))
    with pytest.raises(PanewiseError, match="the results of 'own' go to kafka:localhost:9092/out"):
        command("results", checkpoint.folder, "own")
    with pytest.raises(PanewiseError, match="the results of 'peak' go to a function of the pipeline"):
        command("results", checkpoint.folder, "peak")


def test_list_and_status_tell_of_suspended_queries_with_reason_and_row(checkpoint: Checkpoint) -> None:
    code, told = command("list", checkpoint.folder)
    assert code == 0
    assert "suspended: 'x' is no INT" in told
    assert "in batch 3, on k='x'" in told
    code, told = command("list", checkpoint.folder, "--json")
    queries = json.loads(told)["queries"]
    assert {name: query["state"] for name, query in queries.items()} == {
        "own": "runs",
        "peak": "runs",
        "bad": "suspended",
    }
    assert queries["bad"]["row"] == {"k": "'x'"}
    checkpoint.dead_letters.suspend_sink(DeadLetter("own", "its sink fails: no"))
    assert json.loads(command("list", checkpoint.folder, "--json")[1])["queries"]["own"]["state"] == "suspended"


def test_the_exit_code_of_status_tells_health(checkpoint: Checkpoint) -> None:
    """Well is what runs or is finished, with no query suspended."""
    code, told = command("status", checkpoint.folder)
    assert code == 1
    assert "stopped" in told
    checkpoint.control.append_commands([{"op": "revoke", "name": "bad"}])
    assert command("status", checkpoint.folder)[0] == 1
    checkpoint.lease.acquire()
    metrics = {"batch": 4, "at": "2026-01-01T00:00:00Z", "watermark": 9, "lag_seconds": 3.0, "rows_in": 5, "used": 3}
    metrics |= {"late": 1, "rejected": 1, "rows_out": 7}
    checkpoint.metrics.write_text(json.dumps(metrics) + '\n{"batch": 5, "cut')
    code, told = command("status", checkpoint.folder)
    checkpoint.lease.release()
    assert code == 0
    assert "5 rows in = 3 used + 1 late + 1 rejected; 7 rows out" in told
    assert "3 s behind" in told
    checkpoint.control.append_commands([{"op": "finish"}])
    code, told = command("status", checkpoint.folder, "--json")
    assert (code, json.loads(told)["health"]) == (0, "finished")


def test_register_and_resume_leave_requests_for_the_pipeline(checkpoint: Checkpoint, tmp_path: Path) -> None:
    code, told = command("register", checkpoint.folder, "more", SUMS, "--into", f"csv:{tmp_path / 'x'}", "--wait", "0")
    assert code == 0
    assert "more is registered, once the pipeline runs" in told
    assert "panewise results" in told
    command("resume", checkpoint.folder, "bad", "--wait", "0")
    asked = [(each["op"], each["name"], each.get("into")) for each in checkpoint.control.pending_requests()]
    assert asked == [("register", "more", f"csv:{tmp_path / 'x'}"), ("resume", "bad", None)]
    with pytest.raises(PanewiseError, match="query 'own' is not suspended"):
        command("resume", checkpoint.folder, "own")
    assert absolute_address("parquet:out") == f"parquet:{Path('out').absolute()}"
    assert absolute_address("kafka:server/out") == "kafka:server/out"
