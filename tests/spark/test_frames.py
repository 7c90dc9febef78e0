"""Frames on Spark say what `pw.run` says, bounded and streaming, across a restart inside open frames."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import panewise as pw

from .streams import parts, plain, reader, stream, written

pytestmark = pytest.mark.slow

S = stream(240, seed=5)
QUERIES = {
    "threshold": "SELECT k, SUM(v) AS s FROM S [FRAME WHILE v > -20 FOR AT LEAST 3 ROWS PARTITION BY k]",
    "liberal": "SELECT w, k FROM S [FRAME WHILE v > -20 EXTENT LIBERAL PARTITION BY k, w]",
    "boundary": "SELECT COUNT(*) AS n FROM S [FRAME EVERY 40 OF v PARTITION BY k]",
    "delta": "SELECT k, AVG(x) AS m FROM S [FRAME DELTA v > 60 PARTITION BY k] WHERE x > 0",
    "aggregate": "SELECT k, MAX(x) AS m FROM S [FRAME COUNT(*) >= 5 PARTITION BY k] GROUP BY k, w",
    "trend": "SELECT ISTREAM * FROM S [FRAME RISING v PARTITION BY k]",
    "between": "SELECT k, LAST(v) AS v FROM S [FRAME START WHEN v > 30 END WHEN v < 0 PARTITION BY k]",
    "fragments": "SELECT k, SUM(v) AS s FROM S [FRAME WHILE v > -40 FRAGMENTS EVERY 3 ROWS PARTITION BY k]",
    "everywhere": "SELECT COUNT(*) AS n FROM S [FRAME WHILE v > -20]",
}


T = stream(160, seed=6)
FILLED = {
    "messages": "SELECT COUNT(*) AS n FROM S [FRAME WHILE v > -20 PARTITION BY k] FILL WITH T ON T.k = S.k TO END + 3",
    "listed": "SELECT T.w FROM S [FRAME WHILE v > -30 FRAGMENTS EVERY 2 PARTITION BY k] FILL WITH T ON T.k = S.k",
    "anywhere": "SELECT T.w, SUM(T.v) AS s FROM S [FRAME COUNT(*) >= 9 PARTITION BY k] FILL WITH T GROUP BY T.w",
}


def pool() -> pw.Pool:
    found = pw.Pool({"S": pw.StreamSchema(S.schema, time="t", delay=0)})
    for name, text in QUERIES.items():
        found.register(name, text)
    return found


def check(name: str, found: pa.Table) -> None:
    assert plain(found) == plain(pw.run(QUERIES[name], {"S": S}, time="t")), name


def test_bounded(spark: SparkSession) -> None:
    found = pw.spark.batch(pool(), {"S": spark.createDataFrame(S)})
    assert isinstance(found, dict)
    for name in QUERIES:
        check(name, found[name].toArrow())


def test_the_longest_frame_of_bounded_rows(spark: SparkSession) -> None:
    cql = "SELECT k FROM S [FRAME WHILE v > -20 MAXIMUM PARTITION BY k]"
    found = pw.spark.batch(cql, {"S": spark.createDataFrame(S)}, time="t")
    assert not isinstance(found, dict)
    assert plain(found.toArrow()) == plain(pw.run(cql, {"S": S}, time="t"))


def test_filling(spark: SparkSession, tmp_path: Path) -> None:
    """Both streams in halves, with a restart while frames wait to be filled."""
    found = pw.Pool({name: pw.StreamSchema(S.schema, time="t", delay=0) for name in ("S", "T")})
    for name, text in FILLED.items():
        found.register(name, text)
    pieces = {"S": parts(S, 2), "T": parts(T, 2)}
    for half in (0, 1):
        rows = {
            name: reader(spark, written(tmp_path / name, [some[half]], half), S.schema) for name, some in pieces.items()
        }
        pipeline = pw.spark.stream(
            found, rows, checkpoint=tmp_path / "checkpoint", trigger={"availableNow": True}, shards=2
        )
        pipeline.await_end()
        if half:
            pipeline.finish()
        pipeline.stop()
    for name, text in FILLED.items():
        wanted = plain(pw.run(text, {"S": S, "T": T}, time="t"))
        assert plain(pipeline.results(name).toArrow()) == wanted, name
        bounded = pw.spark.batch(text, {"S": spark.createDataFrame(S), "T": spark.createDataFrame(T)}, time="t")
        assert not isinstance(bounded, dict)
        assert plain(bounded.toArrow()) == wanted, name


@pytest.mark.parametrize("state", ["rocksdb"])
def test_streaming(spark: SparkSession, tmp_path: Path, state: str) -> None:
    """Half of the stream, a restart from the checkpoint, the other half, the end."""
    for half, piece in enumerate(parts(S, 2)):
        rows = reader(spark, written(tmp_path / "S", [piece], half), S.schema)
        pipeline = pw.spark.stream(
            pool(),
            {"S": rows},
            checkpoint=tmp_path / "checkpoint",
            trigger={"availableNow": True},
            shards=2,
            state=state,
        )
        pipeline.await_end()
        if half:
            pipeline.finish()
        pipeline.stop()
    for name in QUERIES:
        check(name, pipeline.results(name).toArrow())
