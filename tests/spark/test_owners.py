"""Two drivers on one checkpoint: the second is refused, the first goes on, and nothing is lost or twice."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset
import pytest
from pyspark.sql import SparkSession

import panewise as pw
from panewise.core.errors import StateProblem

from . import victim
from .streams import parts, plain, pooled, reader, stream, written
from .test_kills import kill, start

TABLE = stream(600, seed=7)
PIECES = parts(TABLE, 6)


def started(spark: SparkSession, folder: Path, state: str, **trigger: Any) -> Any:
    return pw.spark.stream(
        pooled(TABLE.schema, victim.QUERIES),
        {"S": reader(spark, folder / "in", TABLE.schema)},
        checkpoint=folder / "checkpoint",
        sinks=f"parquet:{folder / 'out'}",
        trigger=trigger,
        shards=2,
        state=state,
    )


@pytest.mark.slow
@pytest.mark.parametrize("state", ["rocksdb", "files"])
def test_a_second_driver_is_refused_and_the_first_goes_on(spark: SparkSession, tmp_path: Path, state: str) -> None:
    written(tmp_path / "in", PIECES[:2])
    first = started(spark, tmp_path, state, processingTime="0 seconds")
    with pytest.raises(StateProblem, match=r"checkpoint '.*' is in use by process \d+ on \S+ since"):
        started(spark, tmp_path, state, availableNow=True)
    second = start(tmp_path, state)
    written(tmp_path / "in", PIECES[2:4], 2)
    first.query.processAllAvailable()
    assert second.wait(300) != 0
    kill(second)
    said = (tmp_path / "log").read_text()
    assert "StateProblem: checkpoint" in said
    assert "is in use by process" in said
    written(tmp_path / "in", PIECES[4:5], 4)
    first.query.processAllAvailable()
    first.stop()
    assert first.metrics.rows_in == 500
    written(tmp_path / "in", PIECES[5:], 5)
    again = started(spark, tmp_path, state, availableNow=True)
    again.finish()
    assert again.metrics.rows_in == again.metrics.used == TABLE.num_rows
    found = pyarrow.dataset.dataset(tmp_path / "out", partitioning="hive").to_table()
    for name, text in victim.QUERIES.items():
        mine = found.filter(pc.equal(found["query"], name)).drop_columns(["query", "batch"])
        assert plain(mine) == plain(pw.run(text, {"S": TABLE}, time="t")), name


@pytest.mark.slow
def test_a_driver_that_has_lost_its_checkpoint_stops_with_one_sentence(spark: SparkSession, tmp_path: Path) -> None:
    written(tmp_path / "in", PIECES[:1])
    pipeline = started(spark, tmp_path, "files", processingTime="0 seconds")
    pipeline.query.processAllAvailable()
    # As if another machine had not heard of it for long.
    (tmp_path / "checkpoint" / "owners" / "00000002.json").write_text("{}")
    with pytest.raises(StateProblem, match="this pipeline has lost its checkpoint to another process; it stops here"):
        pipeline.await_end(60)
    assert not pipeline.query.isActive
    before = pa.table({"name": sorted(path.name for path in (tmp_path / "checkpoint" / "state").rglob("*"))})
    written(tmp_path / "in", PIECES[1:2], 1)
    with pytest.raises(StateProblem, match="has lost its checkpoint"):
        pipeline.register("late", "SELECT COUNT(*) AS n FROM S [RANGE 10 SLIDE 3]")
    assert before["name"].to_pylist() == sorted(p.name for p in (tmp_path / "checkpoint" / "state").rglob("*"))
