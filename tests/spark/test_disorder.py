"""Real disorder on Spark: every row of a resolver's log is used, late or rejected, whatever the delay."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyspark.sql import SparkSession

import panewise as pw

from ..runtime.test_real_streams import QUERY, log
from .streams import parts, plain, reader, written

pytestmark = pytest.mark.slow
__all__ = ["log"]  # the fixture


def by_batch(pieces: list[pa.Table], delay: int) -> tuple[pa.Table, pw.Engine]:
    """The same batches in one engine, whose watermark moves between them as that of a pipeline does."""
    pool = pw.Pool({"dns": pw.StreamSchema(pieces[0].schema, "ts")})
    pool.register("q", QUERY)
    engine = pw.Engine(pool)
    said = []
    for piece in pieces:
        engine.feed("dns", piece)
        newest = pc.max(piece["ts"]).cast(pa.int64()).as_py()
        if newest is not None:
            engine.promise("dns", newest - delay * 1_000_000)
        said.append(engine.advance()["q"])
    said.append(engine.finish()["q"])
    return pa.concat_tables(said), engine


@pytest.mark.parametrize(("delay", "state"), [(0, "rocksdb"), (700, "files")])
def test_every_row_is_accounted_for(spark: SparkSession, tmp_path: Path, log: pa.Table, delay: int, state: str) -> None:
    poisoned = pa.concat_tables([log, pa.table({"ts": pa.nulls(3, log.schema.field("ts").type), "host": ["x"] * 3})])
    pieces = parts(poisoned, 8)
    pool = pw.Pool({"dns": pw.StreamSchema(log.schema, "ts", f"{delay} seconds")})
    pool.register("q", QUERY)
    pipeline = pw.spark.stream(
        pool,
        {"dns": reader(spark, written(tmp_path / "in", pieces), log.schema)},
        checkpoint=tmp_path / "checkpoint",
        trigger={"availableNow": True},
        shards=3,
        state=state,
    )
    pipeline.finish()
    metrics = pipeline.metrics
    assert metrics.rows_in == poisoned.num_rows == metrics.used + metrics.late + metrics.rejected
    assert metrics.rejected == 3
    wanted, engine = by_batch(pieces, delay)
    assert plain(pipeline.results("q").toArrow()) == plain(wanted)
    assert (metrics.late, metrics.partly_late) == (engine.accounting["dns"].late, engine.accounting["dns"].partly_late)
    if delay == 700:
        assert metrics.late == 0
        assert plain(wanted) == plain(pw.reference.run(QUERY, {"dns": log}, time="ts"))
