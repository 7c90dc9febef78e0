"""Panewise on Spark beside Spark's own windows, in one session.

`python -m benchmarks.promises.spark_cases CORES SETTINGS`

Prints one JSON line for each case: its name, and rows a second, or milliseconds.
"""

from __future__ import annotations

import copy
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

import panewise as pw

SCHEMA = pa.schema([("ts", pa.timestamp("us", "UTC")), ("key", pa.int32()), ("v", pa.float64())])
SPARK_SCHEMA = "ts timestamp, key int, v double"
PROVIDER = "spark.sql.streaming.stateStore.providerClass"
STORES = "org.apache.spark.sql.execution.streaming.state"
LEVELS = (
    "SELECT key, SUM(v) AS s, COUNT(*) AS c, MAX(v) AS m FROM S [RANGES 20 MINUTES, 10 MINUTES, 5 MINUTES, 2 MINUTES, "
    "1 MINUTE SLIDES 5 MINUTES, 2 MINUTES, 1 MINUTE, 1 MINUTE, 1 MINUTE] GROUP BY key"
)

#: Keeps keys for hours and hardly speaks of them.
LONG = "SELECT key, SUM(v) AS s FROM S [RANGES 2 HOURS, 5 MINUTES SLIDES 1 HOUR, 1 MINUTE] GROUP BY key"


@dataclass(frozen=True)
class SparkSettings:
    """Files of a minute each, read so many at a time."""

    rows: int
    files: int
    per_batch: int
    keys: int
    windows: int
    #: The files of a large batch.
    large: int = 2
    #: Where False, only the cases that show how speed grows with cores.
    all: bool = True


def write_files(folder: Path, settings: SparkSettings, seed: int, keys: int | None = None) -> Path:
    """Files of a minute each, with random keys and values."""
    rng = np.random.default_rng(seed)
    folder.mkdir(parents=True)
    for number in range(settings.files):
        times = np.sort(rng.integers(0, 60_000_000, settings.rows)) + number * 60_000_000
        some = rng.integers(0, keys or settings.keys, times.size).astype("int32")
        columns = [pa.array(times).cast(SCHEMA.field("ts").type), pa.array(some), pa.array(rng.random(times.size))]
        pyarrow.parquet.write_table(pa.table(columns, schema=SCHEMA), folder / f"{number:04d}.parquet")
    return folder


class Bench:
    """A session and a stream of files."""

    def __init__(self, cores: int, settings: SparkSettings, folder: Path) -> None:
        self.settings, self.folder = settings, folder
        config = {"spark.master": f"local[{cores}]", "spark.driver.memory": "6g", "spark.sql.shuffle.partitions": "2"}
        config |= {
            PROVIDER: f"{STORES}.RocksDBStateStoreProvider",
            "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
        }
        self.session: SparkSession = pw.spark.local_session(folder / "spark.log", **config)
        self.source = self.written("source", seed=0)
        self.runs = 0

    def written(self, name: str, seed: int, keys: int | None = None) -> Path:
        return write_files(self.folder / name, self.settings, seed, keys)

    def stream(self, source: Path | None = None) -> DataFrame:
        reader = self.session.readStream.schema(SPARK_SCHEMA).option("maxFilesPerTrigger", self.settings.per_batch)
        return reader.parquet(str(source or self.source))

    def address(self, source: Path | None = None) -> str:
        """The same files, for workers to read."""
        return f"parquet:{source or self.source}"

    def fresh(self) -> Path:
        self.runs += 1
        return self.folder / f"run{self.runs}"

    def steady(self, progress: list[Any], streams: int = 1) -> float:
        """Rows a second: the median of whole batches after the first two, which warm up."""
        whole = self.settings.rows * self.settings.per_batch * streams
        times = [p.durationMs["triggerExecution"] for p in progress if p.numInputRows == whole]
        return float(whole / median(times[2:] or times) * 1000)

    def own(self, window: Column) -> float:
        """Spark's own window."""
        grouped = self.stream().withWatermark("ts", "10 seconds").groupBy(window, "key")
        return self.theirs(grouped.agg(F.sum("v"), F.count("*"), F.max("v")))

    def theirs(self, frame: DataFrame, streams: int = 1) -> float:
        folder = self.fresh()
        writer = frame.writeStream.format("parquet")
        query = (
            writer.options(path=str(folder / "out"), checkpointLocation=str(folder / "c"))
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()
        return self.steady(list(query.recentProgress), streams)

    def ours(
        self, queries: dict[str, str], state: str, inputs: dict[str, DataFrame | str] | None = None
    ) -> tuple[float, Any]:
        folder, inputs = self.fresh(), inputs or {"S": self.stream()}
        pool = pw.Pool(dict.fromkeys(inputs, pw.StreamSchema(SCHEMA, "ts", "10 seconds")))
        for name, text in queries.items():
            pool.register(name, text)
        pipeline = pw.spark.stream(
            pool,
            inputs,
            checkpoint=folder / "checkpoint",
            sinks=f"parquet:{folder / 'out'}",
            trigger={"availableNow": True},
            state=state,
            per_batch=self.settings.per_batch,
        )
        pipeline.await_end()
        progress = list(pipeline.query.recentProgress)
        pipeline.stop()
        # Spark counts the messages of files that workers read; shards count rows.
        lines = map(json.loads, (folder / "checkpoint" / "metrics.jsonl").read_text().splitlines())
        rows = {line["batch"]: line["batch_rows_in"] for line in lines}
        whole = self.settings.rows * self.settings.per_batch * len(inputs)
        times = [p.durationMs["triggerExecution"] for p in progress if rows.get(p.batchId) == whole]
        return float(whole / median(times[2:] or times) * 1000), (pipeline.metrics, progress)

    def batches_of(self, files: int) -> Bench:
        """The same bench, with so many files a batch."""
        other = copy.copy(self)
        other.settings = replace(self.settings, per_batch=files)
        return other

    def bounded(self, frame: DataFrame) -> float:
        """Rows a second of a batch: the median of three runs after one that warms up."""
        times = []
        for _ in range(4):
            began = time.monotonic()
            frame.write.format("noop").mode("overwrite").save()
            times.append(time.monotonic() - began)
        return self.settings.rows * self.settings.files / median(times[1:])


def windows(count: int) -> dict[str, str]:
    """That many different windows, which say less than they hear."""
    rng = np.random.default_rng(3)
    said = "SELECT key, SUM(v) AS s, COUNT(*) AS c, MAX(v) AS m FROM S"
    lengths = [(int(rng.integers(1, 121)) * 10, int(rng.choice([300, 600, 1200]))) for _ in range(count)]
    return {f"q{n}": f"{said} [RANGE {r} SECONDS SLIDE {s} SECONDS] GROUP BY key" for n, (r, s) in enumerate(lengths)}


def cases(cores: int, settings: SparkSettings) -> Iterator[tuple[str, float]]:
    with tempfile.TemporaryDirectory(prefix="panewise-bench-") as name:
        bench = Bench(cores, settings, Path(name))
        tumbling = F.window("ts", "60 seconds")
        read = {"S": bench.address()}
        yield "spark tumbling", bench.own(tumbling)
        yield "levels read", bench.ours({"m": LEVELS}, "files", dict(read))[0]
        if not settings.all:
            large = bench.batches_of(settings.large)
            yield "levels read, large batches", large.ours({"m": LEVELS}, "files", dict(read))[0]
            return
        yield "levels read, RocksDB", bench.ours({"m": LEVELS}, "rocksdb", dict(read))[0]
        for files in (1, settings.large):
            other, size = bench.batches_of(files), "small batches" if files == 1 else "large batches"
            yield f"spark tumbling, {size}", other.own(tumbling)
            yield f"levels read, {size}", other.ours({"m": LEVELS}, "files", dict(read))[0]
        yield "levels files", bench.ours({"m": LEVELS}, "files")[0]
        yield "spark sliding", bench.own(F.window("ts", "60 seconds", "10 seconds"))
        yield "levels rocksdb", bench.ours({"m": LEVELS}, "rocksdb")[0]
        few = {"S": bench.address(bench.written("few", seed=2, keys=100))}
        rate, (metrics, _) = bench.ours(windows(settings.windows), "files", dict(few))
        yield "windows read", rate
        yield "windows in and out", rate * (1 + metrics.rows_out / max(metrics.rows_in, 1))
        rows = bench.session.read.schema(SPARK_SCHEMA).parquet(str(bench.source))
        yield "spark batch", bench.bounded(rows.groupBy(tumbling, "key").agg(F.sum("v"), F.count("*"), F.max("v")))
        yield "levels batch", bench.bounded(pw.spark.batch(LEVELS, {"S": rows}, time="ts"))
        yield "levels batch, read", bench.bounded(pw.spark.batch(LEVELS, dict(read), time="ts"))
        yield from commits(bench)


def commits(bench: Bench) -> Iterator[tuple[str, float]]:
    """Milliseconds to commit the state of the same batch, when the state already has more and more keys.

    Those came in the first two minutes and stay for two hours; batches of the second half touch none of them.
    """
    for times in (1, 10):
        few = F.expr(
            f"CAST(IF(ts < TIMESTAMP'1970-01-01 00:02:00', (key + hash(v)) % {2000 * times}, key % 100) AS INT)"
        )
        _, (metrics, progress) = bench.ours({"m": LONG}, "rocksdb", {"S": bench.stream().withColumn("key", few)})
        last = [sum(s.commitTimeMs for s in p.stateOperators) for p in progress if p.numInputRows > 1]
        yield f"commit {times} x keys", float(median(last[len(last) // 2 :]))
        yield f"state {times} x keys", float(metrics.state_bytes)


def measured(module: str, cores: int, settings: SparkSettings) -> dict[str, float]:
    """The cases of a module, run in a process of their own: a JVM has as many cores as it was started with."""
    command = [sys.executable, "-m", module, str(cores), json.dumps(asdict(settings))]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(done.stderr[-2000:])
    return dict(json.loads(line) for line in done.stdout.splitlines() if line.startswith("["))


def told(cases: Callable[[int, SparkSettings], Iterator[tuple[str, float]]]) -> None:
    """What such a process prints."""
    for case, value in cases(int(sys.argv[1]), SparkSettings(**json.loads(sys.argv[2]))):
        print(json.dumps([case, value]), flush=True)


if __name__ == "__main__":
    told(cases)
