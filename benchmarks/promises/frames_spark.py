"""Frames on Spark, streaming and batch, beside what Spark has of its own, in one session."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812

import panewise as pw
from benchmarks.harness.figure import Figure, Finding, Points, Row
from benchmarks.promises.spark_cases import SPARK_SCHEMA, Bench, SparkSettings, measured, told

#: Rows of a key are independent, so that a frame has 200 rows on average, as many as those of `frames_speed`.
HOLDS = "v < 0.995"
FRAMES = f"SELECT key, AVG(v) AS mean FROM S [FRAME WHILE {HOLDS} FOR AT LEAST 5 ROWS PARTITION BY key]"
OURS, OWN = "Panewise", "Spark's own"
STREAM, BATCH = "stream", "batch"
#: Rows a second that were promised for the stream.
PROMISED = 1.0e6


def cases(cores: int, settings: SparkSettings) -> Iterator[tuple[str, float]]:
    with tempfile.TemporaryDirectory(prefix="panewise-bench-") as name:
        bench = Bench(cores, settings, Path(name))
        yield f"{OWN}, {STREAM}", bench.theirs(sessions(bench))
        yield f"{OURS}, {STREAM}", bench.ours({"f": FRAMES}, "rocksdb")[0]
        rows = bench.session.read.schema(SPARK_SCHEMA).parquet(str(bench.source))
        yield f"{OWN}, {BATCH}", bench.bounded(islands(rows))
        batch = pw.spark.batch(FRAMES, {"S": rows}, time="ts")
        assert isinstance(batch, DataFrame)
        yield f"{OURS}, {BATCH}", bench.bounded(batch)


def sessions(bench: Bench) -> DataFrame:
    """The nearest that Spark has for streams: rows that satisfy the condition, until none comes for a while.

    That is 5.3 times what lies between two rows of a key, so that a session has 200 rows on average too.
    """
    gap = round(5.3 * 60_000 * bench.settings.keys / bench.settings.rows)
    rows = bench.stream().withWatermark("ts", "10 seconds").where(HOLDS)
    return rows.groupBy(F.session_window("ts", f"{gap} milliseconds"), "key").agg(F.avg("v"), F.count("*"))


def islands(rows: DataFrame) -> DataFrame:
    """The same frames in Spark's words, for rows that are all there: those after as many that fail belong together."""
    fails = F.when(F.expr(HOLDS), 0).otherwise(1)
    order = Window.partitionBy("key").orderBy("ts").rowsBetween(Window.unboundedPreceding, Window.currentRow)
    runs = rows.withColumn("run", F.sum(fails).over(order)).where(HOLDS).groupBy("key", "run")
    spans = runs.agg(F.avg("v").alias("mean"), F.min("ts"), F.max("ts"), F.count("*").alias("count"))
    return spans.where("count >= 5")


def measure(settings: SparkSettings) -> Iterator[Row]:
    for name, rate in measured("benchmarks.promises.frames_spark", 2, settings).items():
        series, _, case = name.partition(", ")
        yield Row(series, case, rate)


def findings(points: Points) -> Iterator[Finding]:
    (stream, batch), (sessions, islands) = points.of(OURS), points.of(OWN)
    yield Finding("Threshold frames by key, stream: at least 1 M rows/s", f"{stream:,.0f} rows/s", stream >= PROMISED)
    yield Finding(
        "Stream: as fast as Spark's own session windows over the rows that satisfy the condition, another answer",
        f"{stream / sessions:.2f} times ({stream:,.0f} over {sessions:,.0f} rows/s)",
        stream >= sessions,
    )
    yield Finding(
        "Batch: as fast as the same frames by Spark's own window functions",
        f"{batch / islands:.2f} times ({batch:,.0f} over {islands:,.0f} rows/s)",
        batch >= islands,
    )


FIGURE = Figure(
    title="Frames on Spark: what Panewise promises",
    claim="threshold frames by key on Spark keep up with a million rows a second",
    paper="no paper: these bounds are our own, and meant for the size `full`. Files of a minute each, 5 files a batch, "
    f"1,000 keys, frames where {HOLDS} for at least 5 rows, with the average. Rows a second of the stream are medians "
    "of whole batches after the first two, results written to Parquet; of the batch, medians of three runs after the "
    "first. Spark has no frames of streams: session windows stand beside them. One session on 2 cores",
    x="how",
    y="rows a second",
    baseline=OWN,
    sizes={
        "smoke": SparkSettings(rows=2000, files=3, per_batch=1, keys=50, windows=0),
        "seconds": SparkSettings(rows=200_000, files=12, per_batch=2, keys=1000, windows=0),
        "full": SparkSettings(rows=1_000_000, files=20, per_batch=5, keys=1000, windows=0),
    },
    measure=measure,
    findings=findings,
)


if __name__ == "__main__":
    told(cases)
