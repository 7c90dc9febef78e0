"""A small application, the same wherever Spark runs: submitted to a cluster, sent to a Connect server, or started here.

`submitted.py FOLDER STATE` answers the rows in FOLDER/rows as a stream and as a whole, and leaves the answers in
FOLDER/streamed and FOLDER/whole. It imports nothing of the tests, so that it can be shipped alone.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.feather
from pyspark.sql import SparkSession

import panewise as pw
from panewise import spark as ps
from panewise.runtime.spark.sources import source

SCHEMA = pw.StreamSchema(
    pa.schema([("t", pa.timestamp("us", "UTC")), ("card", pa.string()), ("amount", pa.float64())]),
    time="t",
    delay="30 seconds",
)
QUERIES = {
    "minute": "SELECT card, COUNT(*) AS n, SUM(amount) AS total FROM S [RANGE 1 MINUTE SLIDE 30 SECONDS] GROUP BY card",
    "large": "SELECT COUNT(*) AS n, MAX(t) AS last FROM S [RANGE 2 MINUTES SLIDE 1 MINUTE] WHERE amount > 5",
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
        keep(folder / "streamed", name, pipeline.results(name).toArrow())
    whole = ps.batch(pool(), {"S": source(session, "parquet:rows", SCHEMA, folder, streaming=False)})
    assert isinstance(whole, dict)
    for name, results in whole.items():
        keep(folder / "whole", name, results.toArrow())
    workers = session.range(2).mapInArrow(package, "path string").distinct().collect()
    (folder / "packages.json").write_text(json.dumps({"driver": pw.__file__, "workers": [row[0] for row in workers]}))
    session.stop()


def keep(folder: Path, name: str, table: pa.Table) -> None:
    folder.mkdir(exist_ok=True)
    pyarrow.feather.write_feather(table, folder / f"{name}.feather")


def package(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Where a worker has Panewise from."""
    import panewise

    for _ in batches:
        yield pa.record_batch({"path": [panewise.__file__]})


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
