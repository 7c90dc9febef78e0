"""The small application from a Delta table to Delta tables, with a batch that is done twice.

`delta_tables.py FOLDER STATE ...` does it once for each kind of state. `test_delta` runs it on the Spark that Delta is
built for, which is another one than that of the other tests.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from panewise import spark as ps
from panewise.runtime.spark.sources import source
from tests.spark import answers
from tests.spark.submitted import QUERIES, SCHEMA, keep, pool


def main(folder: Path, states: list[str]) -> None:
    session = SparkSession.builder.getOrCreate()
    for half in answers.halves():
        session.createDataFrame(half).coalesce(1).write.format("delta").mode("append").save(str(folder / "rows"))
    for state in states:
        (folder / state).mkdir()
        (folder / state / "told.json").write_text(json.dumps(answer(session, folder / state, state)))
    session.stop()


def answer(session: SparkSession, folder: Path, state: str) -> dict[str, Any]:
    """Two batches, of which the second is done twice, and the end; what there is to tell of it."""
    calls: list[int] = []
    with pipeline(session, folder, state, calls) as first:
        first.await_end()
    for name in ("1", ".1.crc"):
        (folder / "checkpoint" / "spark" / "commits" / name).unlink()
    again = pipeline(session, folder, state, calls)
    again.finish()
    for name in QUERIES:
        keep(folder / "streamed", name, session.read.format("delta").load(str(folder / name)).toArrow())
    history = session.sql(f"DESCRIBE HISTORY delta.`{folder / 'minute'}`")
    return {"spark": session.version, "calls": calls, "versions": history.count(), "rows_in": again.metrics.rows_in}


def pipeline(session: SparkSession, folder: Path, state: str, calls: list[int]) -> ps.Pipeline:
    def noted(_: DataFrame, batch: int) -> None:
        calls.append(batch)

    rows = source(session, "delta:../rows", SCHEMA, folder, streaming=True, per_batch=1)
    sinks: dict[str, Any] = {"minute": ["delta:minute", noted], "large": "delta:large"}
    checkpoint, trigger = folder / "checkpoint", {"availableNow": True}
    return ps.stream(
        pool(), {"S": rows}, checkpoint=checkpoint, sinks=sinks, trigger=trigger, shards=2, state=state, base=folder
    )


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
