"""Files that workers read themselves: found once, in the order in which they came, and the same after a crash."""

from __future__ import annotations

import os
from collections.abc import Iterable
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet
import pytest
from pyspark.sql import SparkSession
from pyspark.sql.streaming.datasource import ReadAllAvailable

import panewise as pw
from panewise.core.errors import SourceProblem, StateProblem
from panewise.runtime.checkpoint import Checkpoint
from panewise.runtime.spark.files.file_log import FileLog
from panewise.runtime.spark.files.file_stream import FileStream, FolderListing, SourceFile
from panewise.runtime.spark.files.readers import read_split, split_files
from panewise.runtime.spark.files.source import FileStreamReader, FileTransfer
from panewise.runtime.spark.sources import byte_count
from panewise.runtime.spark.transfer.columns import compute_columns
from panewise.runtime.spark.transfer.plan import plan_transfer
from panewise.runtime.spark.transfer.slice import SlicingStage

from .streams import QUERIES, parts, plain, pooled, stream, written

ROWS = pa.table({"t": pa.array([1, 2, 3], pa.int64()), "v": pa.array([5, None, 7], pa.int64())})


def found(paths: Iterable[SourceFile]) -> list[str]:
    return [Path(file.path).name for file in sorted(paths)]


def put(path: Path, at: int, table: pa.Table = ROWS) -> Path:
    """A file that came at a second."""
    path.parent.mkdir(parents=True, exist_ok=True)
    pa.parquet.write_table(table, path)
    os.utime(path, (at, at))
    return path


def read(path: Path, schema: pa.Schema, root: Path | None = None) -> pa.Table:
    ((split,),) = split_files([SourceFile(0, str(path), 1)], 1)
    return pa.Table.from_batches(read_split(split, str(root or path.parent), schema), schema)


# ---- which files there are -----------------------------------------------------------------------------------------


def test_files_are_in_the_order_in_which_they_came(tmp_path: Path) -> None:
    put(tmp_path / "a.parquet", 30)
    put(tmp_path / "b.parquet", 10)
    put(tmp_path / "day=1" / "c.parquet", 20)
    for hidden in ("_SUCCESS", ".d.parquet", "_temporary/e.parquet"):
        put(tmp_path / hidden, 5)
    assert found(FolderListing(str(tmp_path)).files()) == ["b.parquet", "c.parquet", "a.parquet"]
    assert found(FolderListing(str(tmp_path / "a.parquet")).files()) == ["a.parquet"]
    assert found(FolderListing(str(tmp_path / "[ab].parquet")).files()) == ["b.parquet", "a.parquet"]


def test_a_folder_that_has_not_changed_is_not_listed_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put(tmp_path / "in" / "a.parquet", 10)
    os.utime(tmp_path / "in", (100, 100))
    listing, listed = FolderListing(str(tmp_path / "in")), []
    scandir = os.scandir

    def spied(folder: str) -> Any:
        listed.append(folder)
        return scandir(folder)

    monkeypatch.setattr(os, "scandir", spied)
    for _ in range(3):
        assert found(listing.files()) == ["a.parquet"]
    assert len(listed) == 1
    # A file that comes within the same tick of the clock as the last listing is seen nevertheless.
    put(tmp_path / "in" / "b.parquet", 20)
    assert found(listing.files()) == found(listing.files()) == ["a.parquet", "b.parquet"]
    assert len(listed) == 3


# ---- the log of files ----------------------------------------------------------------------------------------------


def test_the_log_tells_what_each_batch_read(tmp_path: Path) -> None:
    log = FileLog(tmp_path)
    files = [SourceFile(n, f"/in/{n} \N{SNOWMAN}", n) for n in range(200)]
    for file in files:
        assert log.append(7, [file])
        log.summarize(log.newest - 8)
    again = FileLog(tmp_path)
    assert (again.newest, again.entry(200).files, again.entry(200).at) == (200, (files[-1],), 7)
    assert again.paths() == log.paths() == {file.path for file in files}
    assert len(list(tmp_path.iterdir())) < 100


def test_two_writers_never_write_one_entry(tmp_path: Path) -> None:
    one, other = FileLog(tmp_path), FileLog(tmp_path)
    assert one.append(1, [SourceFile(1, "/a", 1)])
    assert not other.append(2, [SourceFile(1, "/b", 1)])
    assert other.entry(1) == one.entry(1)


@pytest.mark.parametrize("damage", ["", "{}", '{"at": 1, "files": [], "fingerprint": "x"}'])
def test_a_damaged_log_is_refused(tmp_path: Path, damage: str) -> None:
    FileLog(tmp_path).append(1, [SourceFile(1, "/a", 1)])
    (tmp_path / "000000000001.json").write_text(damage)
    with pytest.raises(StateProblem, match="is damaged or missing"):
        FileLog(tmp_path).paths()


# ---- what is in them -----------------------------------------------------------------------------------------------


def test_every_type_is_read(tmp_path: Path) -> None:
    at = datetime(2024, 1, 1, tzinfo=UTC)
    table = pa.table(
        {
            "i": pa.array([1, None], pa.int32()),
            "u": pa.array([1, 2], pa.uint32()),
            "d": pa.array([Decimal("1.50"), None], pa.decimal128(10, 2)),
            "s": pa.array(["x", None]).dictionary_encode(),
            "ts": pa.array([at, None], pa.timestamp("ns", "UTC")),
            "day": pa.array([date(2024, 1, 1), None]),
            "b": pa.array([b"x", None]),
            "l": pa.array([[1, None], None], pa.list_(pa.int64())),
            "f": pa.array([1.5, float("nan")], pa.float32()),
            "o": pa.array([True, None]),
            "r": pa.array([{"a": 1}, None], pa.struct([("a", pa.int64())])),
        }
    )
    declared = {"i": pa.int64(), "u": pa.int64(), "s": pa.string(), "ts": pa.timestamp("us", "UTC"), "f": pa.float64()}
    schema = pa.schema([(field.name, declared.get(field.name, field.type)) for field in table.schema])
    found_rows, wanted = read(put(tmp_path / "a.parquet", 1, table), schema), table.to_pydict() | {"ts": [at, None]}
    assert found_rows.schema == schema
    # NaN is not equal to itself.
    assert found_rows.drop_columns(["f"]).to_pydict() == {name: wanted[name] for name in schema.names if name != "f"}
    assert str(found_rows["f"].to_pylist()) == "[1.5, nan]"


def test_columns_may_be_missing_or_in_the_names_of_folders(tmp_path: Path) -> None:
    schema = pa.schema([("v", pa.int64()), ("day", pa.date32()), ("city", pa.string()), ("none", pa.float64())])
    path = put(tmp_path / "day=2024-01-02" / "city=K%C3%B6ln" / "a.parquet", 1)
    wanted = {"v": [5, None, 7], "day": [date(2024, 1, 2)] * 3, "city": ["Köln"] * 3, "none": [None] * 3}
    assert read(path, schema, tmp_path).to_pydict() == wanted
    path = put(tmp_path / "city=__HIVE_DEFAULT_PARTITION__" / "a.parquet", 1)
    assert read(path, schema, tmp_path)["city"].to_pylist() == [None] * 3


@pytest.mark.parametrize("size", [0, 3, 200])
def test_a_file_that_cannot_be_read_is_named(tmp_path: Path, size: int) -> None:
    path = put(tmp_path / "a b.parquet", 1)
    path.write_bytes(path.read_bytes()[:size])
    with pytest.raises(SourceProblem, match=r"the file /.*/a b\.parquet cannot be read: "):
        read(path, ROWS.schema)
    path.unlink()
    with pytest.raises(SourceProblem, match=r"the file /.*/a b\.parquet has vanished"):
        read(path, ROWS.schema)


def test_a_value_of_another_type_is_refused(tmp_path: Path) -> None:
    path = put(tmp_path / "a.parquet", 1, pa.table({"v": ["x"]}))
    with pytest.raises(SourceProblem, match="cannot be read: Failed to parse string"):
        read(path, pa.schema([("v", pa.int64())]))


def test_tasks_share_files_and_row_groups_in_their_order(tmp_path: Path) -> None:
    big = pa.table({"v": range(40_000)})
    pa.parquet.write_table(big, tmp_path / "big.parquet", row_group_size=5000)
    small = [put(tmp_path / f"{n}.parquet", n) for n in range(3)]
    files = [SourceFile(n, str(path), path.stat().st_size) for n, path in enumerate([*small, tmp_path / "big.parquet"])]
    tasks = split_files(files, 3)
    assert len(tasks) == 3
    schema = pa.schema([("v", pa.int64())])
    rows = [batch for task in tasks for split in task for batch in read_split(split, str(tmp_path), schema)]
    assert pa.Table.from_batches(rows)["v"].to_pylist() == [5, None, 7] * 3 + list(range(40_000))
    assert split_files([], 3) == []


# ---- batches -------------------------------------------------------------------------------------------------------


def opened(tmp_path: Path, **limits: Any) -> FileStreamReader:
    """The reader of a folder, as after a start."""
    schema = pw.StreamSchema(ROWS.schema, "t", 0)
    pool = pw.Pool({"S": schema})
    pool.register("q", "SELECT SUM(v) AS s FROM S [RANGE 2 SLIDE 1]")
    layout = plan_transfer(pool, 2, columnar=["S"])
    files = FileStream("parquet", str(tmp_path / "in"), schema, **limits)
    (transfer,) = layout.transfers
    reading = FileTransfer(files, SlicingStage(layout, transfer, (0, 1)), 2)
    return FileStreamReader(reading, str(tmp_path / "checkpoint"), None)


def next_batch(reader: FileStreamReader, start: dict[str, int]) -> tuple[dict[str, int], list[str]]:
    end = reader.latestOffset(start, reader.getDefaultReadLimit())
    splits = [split for partition in reader.partitions(start, end) for split in partition.splits]
    return end, list(dict.fromkeys(Path(split.path).name for split in splits))


def test_a_batch_takes_what_its_limit_allows(tmp_path: Path) -> None:
    for number in range(5):
        put(tmp_path / "in" / f"{number}.parquet", number)
    size = (tmp_path / "in" / "0.parquet").stat().st_size
    for limits, first in (({"max_files": 2}, 2), ({"max_bytes": 3 * size}, 3), ({"max_bytes": 1}, 1), ({}, 5)):
        reader = opened(tmp_path / str(limits), **limits)
        (tmp_path / str(limits)).mkdir()
        (tmp_path / str(limits) / "in").symlink_to(tmp_path / "in")
        _, names = next_batch(reader, reader.initialOffset())
        assert names == [f"{number}.parquet" for number in range(first)]
    reader = opened(tmp_path, max_files=1)
    end = reader.latestOffset(reader.initialOffset(), ReadAllAvailable())
    assert len(reader._opened_log().entry(end["entry"]).files) == 5


def test_a_batch_is_read_again_as_it_was(tmp_path: Path) -> None:
    """Killed after the entry was written, and before Spark had the offset; or after that."""
    put(tmp_path / "in" / "a.parquet", 10)
    end, names = next_batch(opened(tmp_path), {"entry": 0})
    put(tmp_path / "in" / "early.parquet", 5)
    again = opened(tmp_path)
    assert next_batch(again, {"entry": 0}) == (end, names) == ({"entry": 1}, ["a.parquet"])
    assert next_batch(again, end) == ({"entry": 2}, ["early.parquet"])
    assert next_batch(again, {"entry": 2}) == ({"entry": 2}, [])
    assert next_batch(opened(tmp_path), {"entry": 2}) == ({"entry": 2}, [])


def test_available_now_ends_with_what_was_there(tmp_path: Path) -> None:
    put(tmp_path / "in" / "a.parquet", 10)
    put(tmp_path / "in" / "b.parquet", 20)
    reader = opened(tmp_path, max_files=1)
    reader.prepareForTriggerAvailableNow()
    put(tmp_path / "in" / "c.parquet", 30)
    ends = [{"entry": 0}]
    for _ in range(3):
        ends.append(next_batch(reader, ends[-1])[0])
    assert ends[1:] == [{"entry": 1}, {"entry": 2}, {"entry": 2}]


def test_a_file_that_vanished_is_missed_unless_it_never_could_be_read(tmp_path: Path) -> None:
    path = put(tmp_path / "in" / "a.parquet", 10)
    reader = opened(tmp_path)
    end = reader.latestOffset({"entry": 0}, ReadAllAvailable())
    path.unlink()
    with pytest.raises(SourceProblem, match=r"the file /.*/a\.parquet has vanished"):
        reader.partitions({"entry": 0}, end)
    Checkpoint(tmp_path / "checkpoint").record_unreadable(str(path))
    assert reader.partitions({"entry": 0}, end) == []


def test_a_checkpoint_of_another_source_is_refused(tmp_path: Path) -> None:
    with pytest.raises(StateProblem, match="another kind of source"):
        opened(tmp_path).latestOffset({"logOffset": 3}, ReadAllAvailable())


def test_rows_without_a_usable_time_are_counted() -> None:
    schema = pa.schema([("at", pa.timestamp("us", "UTC")), ("v", pa.int64())])
    pool = pw.Pool({"S": pw.StreamSchema(schema, "at", "0 seconds")})
    pool.register("q", "SELECT SUM(10 / v) AS s FROM S [RANGE 2 SECONDS SLIDE 1 SECOND] WHERE v > 0")
    (transfer,) = plan_transfer(pool, 1, columnar=["S"]).transfers
    times = pa.array([0, None, 9_000_000, 10**17, -(10**17)], pa.int64()).cast(schema.field("at").type)
    batch = pa.record_batch([times, pa.array([0, 1, 2, 3, 4])], schema=schema)
    (all_in,) = compute_columns(iter([batch]), transfer, None)
    assert all_in["t"].to_pylist() == [0, 9_000_000, None, None, None]
    (before,) = compute_columns(iter([batch]), transfer, 5_000_000)
    assert before["t"].to_pylist() == [0, None, None, None, None]


@pytest.mark.parametrize(("text", "size"), [("512 MB", 512 << 20), ("2gb", 2 << 30), ("7 B", 7)])
def test_sizes(text: str, size: int) -> None:
    assert byte_count(text) == size


@pytest.mark.parametrize("text", ["", "12", "MB", "0 MB", "-1 MB", "1 parsec"])
def test_what_is_no_size(text: str) -> None:
    with pytest.raises(SourceProblem, match="is no size"):
        byte_count(text)


# ---- on Spark ------------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(("state", "shards", "per_batch"), [("rocksdb", 3, 1), ("files", 2, "1 GB")])
def test_every_kind_of_query(
    spark: SparkSession, tmp_path: Path, state: str, shards: int, per_batch: int | str
) -> None:
    """Half of the stream, a restart from the checkpoint, the other half, the end; ordered, since files are read so."""
    table = stream()
    pieces, pool = parts(table, 4), pooled(table.schema, QUERIES)
    for first in (0, 2):
        written(tmp_path / "in", pieces[first : first + 2], first)
        pipeline = pw.spark.stream(
            pool,
            {"S": "parquet:in"},
            checkpoint=tmp_path / "checkpoint",
            trigger={"availableNow": True},
            shards=shards,
            state=state,
            per_batch=per_batch,
            base=tmp_path,
        )
        pipeline.await_end()
        if first:
            pipeline.finish()
        pipeline.stop()
    for name, text in QUERIES.items():
        assert plain(pipeline.results(name).toArrow()) == plain(pw.run(text, {"S": table}, time="t")), name
    metrics = pipeline.metrics
    assert (metrics.rows_in, metrics.used, metrics.late, metrics.rejected) == (table.num_rows, table.num_rows, 0, 0)
    assert "stream S: workers read its files" in pipeline.explain()


@pytest.mark.slow
def test_bounded_files_joins_and_a_dataframe_beside_them(spark: SparkSession, tmp_path: Path) -> None:
    table = stream(120)
    written(tmp_path / "in", parts(table, 3))
    queries = {"sum": QUERIES["filtered"], "rows": QUERIES["changes"]}
    found_tables = pw.spark.batch(pooled(table.schema, queries), {"S": "parquet:in"}, base=tmp_path)
    assert isinstance(found_tables, dict)
    for name, text in queries.items():
        assert plain(found_tables[name].toArrow()) == plain(pw.run(text, {"S": table}, time="t"))
    join = "SELECT S.k, S.v, R.v AS w FROM S [RANGE 3], R [RANGE 2] WHERE S.k = R.k"
    other = spark.createDataFrame(table.to_pandas()).selectExpr("t", "k", "v", "w", "x")
    answer: Any = pw.spark.batch(join, {"S": f"parquet:{tmp_path / 'in'}", "R": other}, time="t")
    assert plain(answer.toArrow()) == plain(pw.run(join, {"S": table, "R": table}, time="t"))


@pytest.mark.slow
def test_a_query_that_fails_on_a_row_is_suspended_and_the_others_continue(spark: SparkSession, tmp_path: Path) -> None:
    table = pa.table({"t": [1, 2, 3], "v": [1, 0, 2]})
    written(tmp_path / "in", [table])
    queries = {
        "bad": "SELECT SUM(10 / v) AS s FROM S [RANGE 4 SLIDE 2]",
        "good": "SELECT SUM(10 / v) AS s FROM S [RANGE 4 SLIDE 2] WHERE v <> 0",
    }
    pipeline = pw.spark.stream(
        pooled(table.schema, queries),
        {"S": f"parquet:{tmp_path / 'in'}"},
        checkpoint=tmp_path / "checkpoint",
        trigger={"availableNow": True},
        shards=1,
    )
    pipeline.finish()
    assert list(pipeline.suspended) == ["bad"]
    assert "divides by zero" in pipeline.suspended["bad"].reason
    assert pipeline.suspended["bad"].row["v"] == "0"
    wanted = pw.run(queries["good"], {"S": table}, time="t")
    assert plain(pipeline.results("good").toArrow()) == plain(wanted)


@pytest.mark.slow
def test_a_broken_file_stops_the_pipeline_until_it_is_gone(spark: SparkSession, tmp_path: Path) -> None:
    written(tmp_path / "in", [ROWS])
    broken = put(tmp_path / "in" / "broken.parquet", 1_800_000_000)
    broken.write_bytes(b"PAR1")

    def start() -> pw.spark.Pipeline:
        return pw.spark.stream(
            pooled(ROWS.schema, {"q": "SELECT SUM(v) AS s FROM S [RANGE 2 SLIDE 1]"}),
            {"S": f"parquet:{tmp_path / 'in'}"},
            checkpoint=tmp_path / "checkpoint",
            trigger={"availableNow": True},
            shards=1,
            state="files",
        )

    pipeline = start()
    with pytest.raises(SourceProblem, match=r"the file /.*/broken\.parquet cannot be read"):
        pipeline.await_end()
    pipeline.stop()
    broken.unlink()
    pipeline = start()
    pipeline.finish()
    assert (pipeline.metrics.rows_in, pipeline.metrics.rejected) == (3, 0)
