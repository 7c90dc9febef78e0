"""A pipeline in a process of its own, to be killed: `python -m tests.spark.victim FOLDER STATE`.

It reads FOLDER/in one file a batch and writes FOLDER/out. Where FOLDER/complete says that no more files will come, it
answers everything and leaves FOLDER/done behind.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pyarrow.parquet

import panewise as pw
from tests.spark.streams import pooled, reader

#: All with the same columns: their results share a folder.
QUERIES = {
    "sums": "SELECT k, SUM(v) AS s FROM S [RANGE 10 SLIDE 3] GROUP BY k",
    "sessions": "SELECT k, MAX(v) AS s FROM S [PARTITION BY k SESSION 1] GROUP BY k",
    "pairs": "SELECT A.k, B.v AS s FROM S [RANGE 4 SLIDE 2] A, S [RANGE 6 SLIDE 3] B WHERE A.k = B.k AND A.v < B.v",
    "rest": (
        "SELECT k, v % 9 AS s FROM S [RANGE 9 SLIDE 3] "
        "EXCEPT ALL SELECT k, v % 9 AS s FROM S [RANGE 6 SLIDE 3] WHERE v > 0"
    ),
}


def main(folder: Path, state: str) -> None:
    # Tasks whose Python worker is killed are tried again, as on a cluster.
    session = pw.spark.local_session(**{"spark.master": "local[2,6]", "spark.driver.memory": "1g"})
    schema = pyarrow.parquet.read_schema(next((folder / "in").glob("*.parquet")))
    pipeline = pw.spark.stream(
        pooled(schema, QUERIES),
        {"S": reader(session, folder / "in", schema)},
        checkpoint=folder / "checkpoint",
        sinks=f"parquet:{folder / 'out'}",
        trigger={"availableNow": True},
        shards=2,
        state=state,
    )
    if (folder / "complete").exists():
        pipeline.finish()
        (folder / "done").touch()
    else:
        pipeline.await_end()


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
