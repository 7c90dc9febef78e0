"""Queries join and leave a running pipeline, from this process and from others; restarts remember them."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import panewise as pw
from panewise.core.errors import BindProblem, SourceProblem, StateProblem
from panewise.runtime.checkpoint import Checkpoint
from panewise.runtime.control import ControlLog
from panewise.runtime.spark.sink_routing import SinkRouting

from .streams import parts, plain, pooled, reader, stream, written

SUMS = "SELECT k, SUM(v) AS s FROM S [RANGE 20 SLIDE 10] GROUP BY k"
WIDE = "SELECT k, SUM(v) AS s FROM S [RANGE 40 SLIDE 20] GROUP BY k"
OTHER = "SELECT w, SUM(v) AS s FROM S [RANGE 20 SLIDE 20] WHERE v > 0 GROUP BY w"


def panewise(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", "from panewise.cli import main; main()", *map(str, arguments)]
    environment = {**os.environ, "COLUMNS": "200"}
    return subprocess.run(command, capture_output=True, text=True, check=False, env=environment)


def until(condition: Callable[[], bool], seconds: float = 60) -> None:
    ending = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < ending, "it did not happen in time"
        time.sleep(0.1)


class Live:
    """A pipeline over a folder into which files are put one by one."""

    def __init__(self, spark: SparkSession, folder: Path, state: str) -> None:
        self.spark, self.folder, self.state = spark, folder, state
        self.table = stream()
        self.pieces = parts(self.table, 8)
        self.put = 0
        self.pipeline = self.start({"sums": SUMS})

    def start(self, queries: dict[str, str]) -> pw.spark.Pipeline:
        source = written(self.folder / "in", [], 0)
        return pw.spark.stream(
            pooled(self.table.schema, queries),
            {"S": reader(self.spark, source, self.table.schema)},
            checkpoint=self.folder / "checkpoint",
            shards=2,
            state=self.state,
        )

    def feed(self, pieces: int = 1) -> None:
        """Put files, and wait until they have been read."""
        for _ in range(pieces):
            written(self.folder / "in", [self.pieces[self.put]], self.put)
            self.put += 1
        fed = sum(piece.num_rows for piece in self.pieces[: self.put])
        until(lambda: self.pipeline.metrics.rows_in >= fed)

    def results(self, name: str) -> pa.Table:
        return self.pipeline.results(name).toArrow()


@pytest.fixture(params=["rocksdb", "files"])
def live(spark: SparkSession, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Live]:
    found = Live(spark, tmp_path, request.param)
    yield found
    found.pipeline.stop()


@pytest.mark.slow
def test_queries_join_and_leave(live: Live) -> None:
    """One that needs nothing new, one that needs other columns, one from another process, one that starts now."""
    # After one file all panes are still kept that the wider window asks for, however files fall into batches.
    live.feed(1)
    before = live.pipeline.query
    live.pipeline.register("wide", WIDE)
    assert live.pipeline.query is before, "panes for it are there already"
    with pytest.raises(BindProblem, match="the name 'wide' is taken"):
        live.pipeline.register("wide", SUMS)
    with pytest.raises(BindProblem, match="there is no query 'wider'; did you mean 'wide'"):
        live.pipeline.revoke("wider")
    live.feed(2)
    live.pipeline.register("other", OTHER)
    checkpoint = live.folder / "checkpoint"
    done = panewise("register", checkpoint, "now", SUMS.replace("SUM(v)", "MAX(v)"), "--start-now")
    assert done.returncode == 0, done.stderr
    assert "now is registered" in done.stdout
    assert set(live.pipeline.list()) == {"sums", "wide", "other", "now"}
    live.feed(2)
    done = panewise("revoke", checkpoint, "wide")
    assert "wide is revoked" in done.stdout
    listed = panewise("list", checkpoint).stdout
    assert "sums" in listed
    assert "wide" not in listed
    newest = live.table["t"].to_pylist()[sum(p.num_rows for p in live.pieces[:3]) - 1]
    live.pipeline.stop()
    # The script never spoke of those that joined later, and still a restart remembers them.
    live.pipeline = live.start({"sums": SUMS})
    assert set(live.pipeline.list()) == {"sums", "other", "now"}
    live.feed(3)
    live.pipeline.finish()
    assert plain(live.results("sums")) == plain(pw.run(SUMS, {"S": live.table}, time="t"))
    wanted = pw.run(OTHER, {"S": live.table}, time="t").to_pylist()
    found = live.results("other").to_pylist()
    assert found
    assert all(row in wanted for row in found if row["w_start"] > newest)
    wide = pw.run(WIDE, {"S": live.table}, time="t").to_pylist()
    assert all(row in wide for row in live.results("wide").to_pylist())
    assert min(row["w_end"] for row in live.results("now").to_pylist()) > newest
    with pytest.raises(StateProblem, match="the pipeline is finished"):
        live.pipeline.register("more", SUMS)


@pytest.mark.slow
@pytest.mark.parametrize("live", ["rocksdb"], indirect=True)
def test_a_changed_script_keeps_what_it_can(live: Live, caplog: pytest.LogCaptureFixture) -> None:
    live.feed(3)
    live.pipeline.stop()
    live.pipeline = live.start({"sums": SUMS, "wide": WIDE})
    live.feed(2)
    live.pipeline.stop()
    with caplog.at_level("INFO", logger="panewise.pipeline"):
        live.pipeline = live.start({"sums": SUMS, "wide": OTHER})
    assert "the state of 'wide' is dropped: the script has changed" in caplog.text
    live.feed(3)
    live.pipeline.finish()
    assert plain(live.results("sums")) == plain(pw.run(SUMS, {"S": live.table}, time="t"))


@pytest.mark.slow
@pytest.mark.parametrize("live", ["files"], indirect=True)
def test_what_another_process_asks_for_may_be_refused(live: Live) -> None:
    checkpoint = live.folder / "checkpoint"
    done = panewise("register", checkpoint, "bad", "SELECT nothing FROM S [RANGE 3]")
    assert done.returncode == 1
    assert "nothing" in done.stderr
    done = panewise("revoke", checkpoint, "nobody")
    assert "there is no query 'nobody'" in done.stderr
    done = panewise("list", live.folder / "nowhere")
    assert "is no checkpoint of a pipeline" in done.stderr
    # What slips through is refused by the pipeline itself, which goes on.
    identity = live.pipeline._checkpoint.control.request("register", name="sums", text=WIDE, start="backfill")
    until(lambda: live.pipeline._checkpoint.control.request_status(identity) is not None)
    assert "is taken" in str(live.pipeline._checkpoint.control.request_status(identity))


@pytest.mark.slow
@pytest.mark.parametrize("live", ["rocksdb"], indirect=True)
def test_requests_and_commands_that_make_no_sense_stop_nobody(live: Live, caplog: pytest.LogCaptureFixture) -> None:
    control = live.pipeline._checkpoint.control
    (control.requests / "00000001.json").write_text("[1, 2]")
    (control.requests / "00000002.json").write_text('{"op": "register"}')
    (control.requests / "00000003.json").write_text('{"id"')
    (control.commands / "1x.json").write_text('{"number": 9, "commands": [{"op": "register"}]}')
    asked = [control.request("dance"), control.request("register", name="q"), control.request("revoke", name=["sums"])]
    until(lambda: all(control.request_status(identity) is not None for identity in asked))
    told = [str(control.request_status(identity)) for identity in asked]
    assert "op 'dance' is unknown" in told[0]
    assert told[1:] == ["register needs text and start, as text", "revoke needs name, as text"]
    assert "00000001.json' is passed over" in caplog.text
    live.feed(2)
    assert live.pipeline.query.isActive
    assert sorted(live.pipeline.list()) == ["sums"]


def test_the_control_log_is_ordered_and_idempotent(tmp_path: Path) -> None:
    log, other = ControlLog(tmp_path), ControlLog(tmp_path)
    log.prepare()
    first = log.request("register", name="a", text="A", start="backfill")
    second = other.request("register", name="b", text="B", start="now")
    assert [request["id"] for request in log.pending_requests()] == [first, second]
    assert log.append_commands([{"op": "register", "name": "a", "text": "A", "start": "backfill", "id": first}]) == 1
    assert other.append_commands([{"op": "register", "name": "a", "text": "other", "start": "now"}]) == 2
    other.refuse(second, "no")
    assert log.pending_requests() == []
    assert (log.request_status(first), log.request_status(second), log.request_status("?")) == ("", "no", None)
    assert {name: query.text for name, query in other.active_queries().items()} == {"a": "A"}
    (log.commands / "00000002.json").write_text('{"number": 2, "comm')
    with pytest.raises(StateProblem, match="the control log is damaged"):
        ControlLog(tmp_path).active_queries()


def test_a_query_may_not_join_with_a_sink_that_another_one_has_or_that_nobody_knows(tmp_path: Path) -> None:
    pool = pooled(stream().schema, {"sums": SUMS})
    targets = {"sums": "parquet:out", "loud": "kafka:server/topic"}
    outlets = SinkRouting(targets, Checkpoint(tmp_path / "ck"), tmp_path, {})
    wide = pool.prepare_query("wide", WIDE)
    outlets.with_target("wide", f"parquet:{tmp_path / 'other'}").refuse_conflicts(wide, pool)
    outlets.with_target("wide", "kafka:server/topic").refuse_conflicts(wide, pool)
    with pytest.raises(BindProblem, match="is where 'sums' writes; give each a folder of its own"):
        outlets.with_target("wide", f"parquet:{tmp_path / 'out'}").refuse_conflicts(wide, pool)
    with pytest.raises(SourceProblem, match="'ftp:out' is no sink Panewise knows"):
        outlets.with_target("wide", "ftp:out").refuse_conflicts(wide, pool)
