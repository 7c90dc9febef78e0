"""Joins, distincts and differences on Spark say what `pw.run` says, bounded and streaming, across a restart."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import panewise as pw
from panewise.cql import bind_script
from panewise.runtime.spark.script import script_pool

from .streams import parts, plain, reader, stream, written

pytestmark = pytest.mark.slow

S, T = stream(160, seed=1), stream(160, seed=2)
QUERIES = {
    "join": "SELECT A.k, A.v AS av, B.v AS bv FROM S [RANGE 4 SLIDE 2] AS A, T [RANGE 4 SLIDE 2] AS B WHERE A.k = B.k",
    "counted": "SELECT ISTREAM A.w, B.k FROM S [ROWS 5] AS A, T [RANGE 3] AS B WHERE A.w = B.w AND A.v < B.v",
    "grouped": (
        "SELECT A.w, COUNT(*) AS n, SUM(B.v) AS s FROM S [UNBOUNDED] AS A, T [RANGE 6 SLIDE 3] AS B WHERE A.w = B.w "
        "AND A.v = B.v GROUP BY A.w ALLOW UNBOUNDED"
    ),
    "distinct": "SELECT DISTINCT k, w FROM S [RANGE 5 SLIDE 5]",
    "difference": "SELECT k, w FROM S [RANGE 9 SLIDE 3] EXCEPT ALL SELECT k, w FROM T [RANGE 6 SLIDE 3]",
    "inner": (
        "SELECT k, COUNT(*) AS n FROM (SELECT ISTREAM DISTINCT k, w FROM S [RANGE 5]) AS D [RANGE 8 SLIDE 4] GROUP BY k"
    ),
}


def pool() -> pw.Pool:
    found = pw.Pool({name: pw.StreamSchema(S.schema, time="t", delay=0) for name in ("S", "T")})
    for name, text in QUERIES.items():
        found.register(name, text)
    return found


def check(name: str, found: pa.Table) -> None:
    wanted = pw.run(QUERIES[name], {"S": S, "T": T}, time="t")
    assert plain(found) == plain(wanted), name


def test_an_endless_query_of_a_script_is_refused_where_it_stands() -> None:
    script = bind_script(
        "CREATE STREAM S (t BIGINT, k STRING) TIME t DELAY 0;\nCREATE QUERY q AS\n  SELECT DISTINCT k FROM S;",
    )
    with pytest.raises(pw.PanewiseError, match=r"^line 2, column 1: .* grows for ever: DISTINCT .* ALLOW UNBOUNDED$"):
        script_pool(script)


def test_bounded(spark: SparkSession) -> None:
    found = pw.spark.batch(pool(), {"S": spark.createDataFrame(S), "T": spark.createDataFrame(T)})
    assert isinstance(found, dict)
    for name in QUERIES:
        check(name, found[name].toArrow())


def test_streaming(spark: SparkSession, tmp_path: Path) -> None:
    """Half of both streams, a restart from the checkpoint, the other half, the end."""
    pieces = {"S": parts(S, 4), "T": parts(T, 4)}
    for first in (0, 2):
        frames = {
            name: reader(spark, written(tmp_path / name, some[first : first + 2], first), S.schema)
            for name, some in pieces.items()
        }
        pipeline = pw.spark.stream(
            pool(), frames, checkpoint=tmp_path / "checkpoint", trigger={"availableNow": True}, shards=2
        )
        pipeline.await_end()
        if first:
            pipeline.finish()
        pipeline.stop()
    for name in QUERIES:
        check(name, pipeline.results(name).toArrow())
