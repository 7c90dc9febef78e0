"""A small application, the same wherever Spark runs: submitted to a cluster, sent to a Connect server, or started here.

`submitted.py FOLDER STATE` reads the rows in FOLDER/rows as a stream, then as a whole, and leaves the answers in
FOLDER/streamed and FOLDER/whole. It imports nothing of the tests, so that it can be shipped alone.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.feather
from pyspark.sql import SparkSession

import panewise as pw
from panewise.runtime import spark as ps
from panewise.runtime.spark.sources import source

SCHEMA = pw.StreamSchema(
    pa.schema([("t", pa.timestamp("us", "UTC")), ("card", pa.string()), ("amount", pa.float64())]),
    time="t",
    delay="30 seconds",
)
QUERIES = {
    "minute": "SELECT card, COUNT(*) AS n, SUM(amount) AS total FROM S [RANGE 1 MINUTE SLIDE 30 SECONDS] GROUP BY card",
    "large": "SELECT COUNT(*) AS n, MAX(amount) AS top FROM S [RANGE 2 MINUTES SLIDE 1 MINUTE] WHERE amount > 5",
}


def pool() -> pw.Pool:
    made = pw.Pool({"S": SCHEMA})
    for name, text in QUERIES.items():
        made.register(name, text)
    return made


def main(folder: Path, state: str) -> None:
    session = SparkSession.builder.getOrCreate()
    rows = source(session, "parquet:rows", SCHEMA, folder, streaming=True, per_batch=1)
    pipeline = ps.stream(
        pool(), {"S": rows}, checkpoint=folder / "checkpoint", trigger={"availableNow": True}, shards=2, state=state
    )
    pipeline.finish()
    for name in QUERIES:
        kept(folder / "streamed", name, pipeline.results(name).toArrow())
    whole = ps.batch(pool(), {"S": source(session, "parquet:rows", SCHEMA, folder, streaming=False)})
    assert isinstance(whole, dict)
    for name, results in whole.items():
        kept(folder / "whole", name, results.toArrow())
    session.stop()


def kept(folder: Path, name: str, table: pa.Table) -> None:
    folder.mkdir(exist_ok=True)
    pyarrow.feather.write_feather(table, folder / f"{name}.feather")


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
