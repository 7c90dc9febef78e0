"""Does a little of what the tests do with Spark, so that the classes of that can be archived: see the Makefile."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet

import panewise as pw

ROWS = pa.table({"t": [1, 2, 3], "k": ["a", "b", "a"], "v": [1, 2, 3]})


def main(folder: Path) -> None:
    session = pw.spark.local_session()
    (folder / "in").mkdir()
    pa.parquet.write_table(ROWS, folder / "in" / "rows.parquet")
    pool = pw.Pool({"S": pw.StreamSchema(ROWS.schema, time="t", delay=0)})
    pool.register("q", "SELECT k, SUM(v) AS s FROM S [RANGE 2 SLIDE 1] GROUP BY k")
    source = session.readStream.schema("t bigint, k string, v bigint").parquet(str(folder / "in"))
    bounded = {"availableNow": True}
    pw.spark.stream(pool, {"S": source}, checkpoint=folder / "checkpoint", trigger=bounded, shards=1).await_end()
    session.stop()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as name:
        main(Path(name))
