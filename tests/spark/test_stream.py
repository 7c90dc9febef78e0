"""Streaming DataFrames give what `pw.run` gives, for any split into batches, any shards, and across restarts."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import panewise as pw

from .streams import ORDERED, QUERIES, parts, plain, pooled, reader, stream, written

pytestmark = pytest.mark.slow


@pytest.mark.parametrize(("state", "shards", "files"), [("rocksdb", 3, 1), ("files", 2, 2)])
def test_every_kind_of_query(spark: SparkSession, tmp_path: Path, state: str, shards: int, files: int) -> None:
    """Half of the stream, a restart from the checkpoint, the other half, the end."""
    table = stream()
    pieces = parts(table, 4)
    # Where a batch reads several files, Spark decides which of them comes first, and so which of two equal times.
    queries = {n: q for n, q in QUERIES.items() if files == 1 or n not in ORDERED}
    pool = pooled(table.schema, queries)
    for first in (0, 2):
        source = written(tmp_path / "in", pieces[first : first + 2], first)
        pipeline = pw.spark.stream(
            pool,
            {"S": reader(spark, source, table.schema, files)},
            checkpoint=tmp_path / "checkpoint",
            trigger={"availableNow": True},
            shards=shards,
            state=state,
        )
        pipeline.await_end()
        if first:
            pipeline.finish()
        pipeline.stop()
    for name, text in queries.items():
        wanted = pw.run(text, {"S": table}, time="t")
        assert plain(pipeline.results(name).toArrow()) == plain(wanted), name
    metrics = pipeline.metrics
    assert (metrics.rows_in, metrics.used, metrics.late, metrics.rejected) == (table.num_rows, table.num_rows, 0, 0)
    assert metrics.watermark == table["t"].to_pylist()[-1]
    assert metrics.state_bytes > 0
    assert metrics.rows_out == sum(pipeline.results(name).count() for name in queries)
    lines = (tmp_path / "checkpoint" / "metrics.jsonl").read_text().splitlines()
    assert len(lines) >= 4
