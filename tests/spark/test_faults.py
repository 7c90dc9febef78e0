"""Damage and shortage: one clear sentence, and nothing lost that was committed."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

import panewise as pw
from panewise.core.errors import PanewiseError, SourceProblem, StateProblem
from panewise.runtime.checkpoint import Checkpoint
from panewise.runtime.spark.transfer.shard_numbers import labels_of

from .streams import parts, plain, pooled, reader, stream, written

pytestmark = pytest.mark.slow

QUERY = "SELECT k, SUM(v) AS s FROM S [RANGE 10 SLIDE 3] GROUP BY k"
#: With a join and a difference running beside the query that is looked at.
QUERIES = {
    "q": QUERY,
    "pairs": "SELECT A.k, B.w FROM S [RANGE 4 SLIDE 4] AS A, S [ROWS 9] AS B WHERE A.k = B.k AND A.v < B.v",
    "rest": "SELECT k, w FROM S [RANGE 9 SLIDE 3] EXCEPT ALL SELECT k, w FROM S [RANGE 6 SLIDE 3] WHERE v > 0",
}
TABLE = stream()
PIECES = parts(TABLE, 4)
DEFAULTS: dict[str, Any] = {"trigger": {"availableNow": True}, "shards": 2}


def started(spark: SparkSession, folder: Path, state: str, **options: Any) -> Any:
    return pw.spark.stream(
        pooled(TABLE.schema, QUERIES | options.pop("queries", {})),
        {"S": reader(spark, folder / "in", TABLE.schema)},
        **(DEFAULTS | {"checkpoint": folder / "checkpoint", "state": state} | options),
    )


def run(spark: SparkSession, folder: Path, state: str, **options: Any) -> Any:
    pipeline = started(spark, folder, state, **options)
    try:
        pipeline.await_end()
    finally:
        pipeline.stop()
    return pipeline


def complete(spark: SparkSession, folder: Path, state: str, **options: Any) -> None:
    """From here on all goes well, and every result is there once."""
    pipeline = started(spark, folder, state, **options)
    pipeline.finish()
    assert all_of(pipeline) == {name: plain(pw.run(text, {"S": TABLE}, time="t")) for name, text in QUERIES.items()}


def all_of(pipeline: Any) -> dict[str, list[str]]:
    return {name: plain(pipeline.results(name).toArrow()) for name in QUERIES}


STATES = pytest.mark.parametrize("state", ["rocksdb", "files"])


@pytest.mark.parametrize(
    ("state", "file"),
    [("rocksdb", "spark/state/**/*.changelog"), ("files", "state/*/head-*"), ("files", "state/*/[cp]*")],
)
def test_a_truncated_state_file(spark: SparkSession, tmp_path: Path, state: str, file: str) -> None:
    written(tmp_path / "in", PIECES[:2])
    done = run(spark, tmp_path, state)
    before = all_of(done)
    shutil.copytree(tmp_path / "checkpoint", tmp_path / "copy")
    damaged = max((tmp_path / "checkpoint").glob(file), key=lambda path: path.stat().st_mtime_ns)
    damaged.write_bytes(damaged.read_bytes()[: damaged.stat().st_size // 2])
    for checksum in damaged.parent.glob(f".{damaged.name}.crc"):
        checksum.unlink()
    written(tmp_path / "in", PIECES[2:], 2)
    with pytest.raises(StateProblem, match=r"the state .*(damaged|incomplete)"):
        run(spark, tmp_path, state)
    assert all_of(done) == before
    # A copy of the checkpoint goes on where it was.
    shutil.rmtree(tmp_path / "checkpoint")
    shutil.copytree(tmp_path / "copy", tmp_path / "checkpoint")
    complete(spark, tmp_path, state)


@STATES
def test_a_deleted_part_of_the_checkpoint(spark: SparkSession, tmp_path: Path, state: str) -> None:
    written(tmp_path / "in", PIECES[:2])
    run(spark, tmp_path, state)
    shutil.copytree(tmp_path / "checkpoint", tmp_path / "copy")
    where = tmp_path / "checkpoint" / ("spark/state/0" if state == "rocksdb" else "state")
    shutil.rmtree(next(path for path in sorted(where.iterdir()) if path.is_dir() and path.name.isdigit()))
    written(tmp_path / "in", PIECES[2:], 2)
    with pytest.raises(StateProblem, match=r"state .*(damaged|incomplete|missing)"):
        run(spark, tmp_path, state)
    shutil.rmtree(tmp_path / "checkpoint")
    shutil.copytree(tmp_path / "copy", tmp_path / "checkpoint")
    complete(spark, tmp_path, state)


def test_a_source_file_that_vanishes(spark: SparkSession, tmp_path: Path) -> None:
    written(tmp_path / "in", PIECES)
    lost = tmp_path / "in" / "00003.parquet"

    def vanishing(results: DataFrame, batch: int) -> None:
        results.write.format("noop").mode("overwrite").save()
        if batch == 1 and lost.exists():
            lost.rename(tmp_path / "lost")

    with pytest.raises(SourceProblem, match=r"the file \S*00003.parquet has vanished; put it back"):
        run(spark, tmp_path, "rocksdb", sinks=[vanishing, "memory:"])
    (tmp_path / "lost").rename(lost)
    complete(spark, tmp_path, "rocksdb", sinks=[vanishing, "memory:"])


@STATES
def test_a_corrupt_source_file_may_be_removed_as_told(
    spark: SparkSession, tmp_path: Path, state: str, caplog: pytest.LogCaptureFixture
) -> None:
    corrupt = written(tmp_path / "in", PIECES) / "00001.parquet"
    corrupt.write_bytes(corrupt.read_bytes()[:100])
    with pytest.raises(SourceProblem, match=r"the file \S*00001.parquet cannot be read; repair or remove it"):
        run(spark, tmp_path, state)
    corrupt.unlink()
    pipeline = started(spark, tmp_path, state)
    pipeline.finish()
    left = pa.concat_tables([PIECES[0], *PIECES[2:]])
    assert all_of(pipeline) == {name: plain(pw.run(text, {"S": left}, time="t")) for name, text in QUERIES.items()}
    assert "00001.parquet could not be read and has been removed: going on without its rows" in caplog.text


@contextmanager
def small_disk(folder: Path) -> Iterator[Callable[[int], None]]:
    """A file system of one megabyte, and how to give it more."""
    folder.mkdir()

    def mount(*options: str) -> bool:
        done = subprocess.run(["mount", *options, str(folder)], capture_output=True, check=False)
        return done.returncode == 0

    if shutil.which("mount") is None or not mount("-t", "tmpfs", "-o", "size=1m", "tmpfs"):
        pytest.skip("mounting a small file system needs root")
    try:
        yield lambda megabytes: None if mount("-o", f"remount,size={megabytes}m") else pytest.skip("no remount")
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=False)


@STATES
def test_a_full_disk(spark: SparkSession, tmp_path: Path, state: str) -> None:
    written(tmp_path / "in", PIECES[:1])
    with small_disk(tmp_path / "disk") as resize:
        checkpoint = tmp_path / "disk" / "checkpoint"
        run(spark, tmp_path, state, checkpoint=checkpoint)
        filler = tmp_path / "disk" / "filler"
        with open(filler, "wb", buffering=0) as file, suppress(OSError):
            while True:
                file.write(b"x" * 4096)
        written(tmp_path / "in", PIECES[1:], 1)
        with pytest.raises(PanewiseError, match=r"the disk is full|No space left|cannot be written"):
            run(spark, tmp_path, state, checkpoint=checkpoint)
        filler.unlink()
        resize(64)
        complete(spark, tmp_path, state, checkpoint=checkpoint)


@STATES
def test_the_end_is_come_to_again(spark: SparkSession, tmp_path: Path, state: str) -> None:
    """Whoever dies while everything is answered answers it again; after that nothing is taken in."""
    written(tmp_path / "in", PIECES)
    ended: list[int] = []

    def failing(results: DataFrame, batch: int) -> None:
        results.write.format("noop").mode("overwrite").save()
        if (tmp_path / "checkpoint" / "commands" / "00000002.json").exists() and not ended:
            ended.append(batch)
            raise RuntimeError("the power is gone")

    with pytest.raises(Exception, match=r"the power is gone|FOREACH_BATCH_USER_FUNCTION_ERROR"):
        started(spark, tmp_path, state, sinks=[failing, "memory:"]).finish()
    assert ended
    for _ in range(2):
        complete(spark, tmp_path, state, sinks=[failing, "memory:"])
    written(tmp_path / "in", PIECES[:1], len(PIECES))
    with pytest.raises(StateProblem, match="finished"):
        run(spark, tmp_path, state, sinks=[failing, "memory:"])
    with pytest.raises(StateProblem, match="the pipeline is finished"):
        run(spark, tmp_path, state, sinks=[failing, "memory:"], queries={"q": QUERY.replace("SUM", "MAX")})


@STATES
def test_a_draft_of_the_first_offsets(spark: SparkSession, tmp_path: Path, state: str) -> None:
    """Killed while Spark wrote them, nothing had begun yet."""
    written(tmp_path / "in", PIECES)
    checkpoint = Checkpoint(tmp_path / "checkpoint")
    checkpoint.create(pooled(TABLE.schema, QUERIES), labels_of(2), state)
    (checkpoint.spark / "offsets").mkdir(parents=True)
    (checkpoint.spark / "offsets" / ".0.draft.tmp").write_text("v1")
    complete(spark, tmp_path, state)


def test_a_control_log_that_cannot_be_written(spark: SparkSession, tmp_path: Path) -> None:
    """A query that would need other panes is refused, and those that stand are answered further."""
    written(tmp_path / "in", PIECES[:2])
    pipeline = started(spark, tmp_path, "rocksdb", trigger={"processingTime": "0 seconds"})
    pipeline.query.processAllAvailable()
    commands = tmp_path / "checkpoint" / "commands"
    (commands / "00000002.json").symlink_to(commands / "nowhere")
    commands.rename(tmp_path / "aside")
    commands.write_text("not a folder")
    with pytest.raises(StateProblem, match="cannot be written"):
        pipeline.register("other", "SELECT w, SUM(x) AS s FROM S [RANGE 7 SLIDE 2] GROUP BY w")
    assert list(pipeline.list()) == list(QUERIES)
    commands.unlink()
    (tmp_path / "aside").rename(commands)
    (commands / "00000002.json").unlink()
    pipeline.stop()
    written(tmp_path / "in", PIECES[2:], 2)
    complete(spark, tmp_path, "rocksdb")


def test_a_damaged_log_of_spark_is_refused_by_name(spark: SparkSession, tmp_path: Path) -> None:
    written(tmp_path / "in", PIECES[:2])
    run(spark, tmp_path, "rocksdb")
    log = tmp_path / "checkpoint" / "spark"
    for name in ("metadata", "offsets/1", "commits/1", "sources/1/1"):
        whole = (log / name).read_bytes()
        (log / name).write_bytes(whole[: len(whole) // 2])
        with pytest.raises(
            StateProblem, match=rf"{name}' is damaged: it is cut off, or Spark did not write it; restore"
        ):
            run(spark, tmp_path, "rocksdb")
        (log / name).write_bytes(whole)
    written(tmp_path / "in", PIECES[2:], 2)
    complete(spark, tmp_path, "rocksdb")


def test_a_foreign_or_damaged_checkpoint(spark: SparkSession, tmp_path: Path) -> None:
    written(tmp_path / "in", PIECES[:1])
    (tmp_path / "foreign" / "spark" / "offsets").mkdir(parents=True)
    with pytest.raises(StateProblem, match="is no checkpoint of Panewise"):
        run(spark, tmp_path, "files", checkpoint=tmp_path / "foreign")
    run(spark, tmp_path, "files")
    plan = tmp_path / "checkpoint" / "plan.json"
    text = plan.read_text()
    plan.write_text(text[: len(text) // 2])
    with pytest.raises(StateProblem, match=r"plan.json' is damaged"):
        run(spark, tmp_path, "files")
    plan.write_text(text.replace('"shards": 2', '"shards": 3'))
    with pytest.raises(StateProblem, match="fingerprint is wrong"):
        run(spark, tmp_path, "files")
    plan.write_text(text)
    with pytest.raises(StateProblem, match="the checkpoint has 2 shards, not 5; their number is fixed; leave shards"):
        run(spark, tmp_path, "files", shards=5)
    with pytest.raises(StateProblem, match="written with state='files'"):
        run(spark, tmp_path, "rocksdb")
    pool = pw.Pool({"S": pw.StreamSchema(TABLE.schema.append(pa.field("y", pa.int64())), time="t", delay=0)})
    pool.register("q", QUERY)
    wider = spark.readStream.schema("t bigint, k string, v bigint, w string, x double, y bigint")
    with pytest.raises(StateProblem, match="stream 'S' is declared otherwise than in the checkpoint"):
        pw.spark.stream(pool, {"S": wider.parquet(str(tmp_path / "in"))}, checkpoint=tmp_path / "checkpoint")
    with pytest.raises(StateProblem, match="no folder of a mounted file system"):
        run(spark, tmp_path, "files", checkpoint="s3://bucket/checkpoint")


def test_bad_arguments(spark: SparkSession, tmp_path: Path) -> None:
    written(tmp_path / "in", PIECES[:1])
    cases: list[tuple[dict[str, Any], str]] = [
        ({"sinks": {"nobody": "memory:"}}, "there is a sink for 'nobody', but no such query"),
        ({"sinks": "ftp:somewhere"}, "'ftp:somewhere' is no sink Panewise knows"),
        ({"sinks": "kafka:server"}, "names no topic"),
        ({"state": "paper"}, "state 'paper' is unknown"),
        ({"max_skew": "soon"}, "soon"),
    ]
    for number, (options, message) in enumerate(cases):
        with pytest.raises(PanewiseError, match=message):
            run(spark, tmp_path, options.pop("state", "files"), checkpoint=tmp_path / f"never{number}", **options)
    pool = pooled(TABLE.schema, {"q": QUERY})
    with pytest.raises(PanewiseError, match="the DataFrame of stream 'S' is bounded"):
        pw.spark.stream(pool, {"S": spark.createDataFrame(TABLE)}, checkpoint=tmp_path / "never")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_stops_it_after_the_running_batch(tmp_path: Path, number: int) -> None:
    written(tmp_path / "in", PIECES)
    script = tmp_path / "app.cql"
    script.write_text(
        "CREATE STREAM S (t BIGINT, k STRING, v BIGINT, w STRING, x DOUBLE) TIME t DELAY 0 FROM 'parquet:in';\n"
        f"CREATE QUERY q AS {QUERY} INTO 'parquet:out';"
    )
    command = [sys.executable, "-c", "from panewise.cli import main; main()", "run", "--follow"]
    command += ["--checkpoint", str(tmp_path / "checkpoint"), str(script)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=os.environ)
    ending = time.monotonic() + 90
    while not list((tmp_path / "out").glob("batch=*/*.parquet")) and time.monotonic() < ending:
        time.sleep(0.2)
    process.send_signal(number)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    assert "400 rows in = 400 used" in out
