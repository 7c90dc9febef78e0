"""Delta tables as source and sink. Delta has no build for our Spark yet, so these run on an older one, apart."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from tests.spark import answers, delta_tables
from tests.spark.conftest import SETTINGS
from tests.spark.processes import completed

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
#: What `make delta-spark` fetched, if it did.
SPARK = ROOT / ".venv" / "delta-spark"
JARS = sorted((ROOT / ".venv" / "connectors" / "delta").glob("*.jar"))
DELTA = {
    "spark.jars": ",".join(map(str, JARS)),
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    # Delta reads its own log with as many tasks.
    "spark.databricks.delta.snapshotPartitions": "1",
}


STATES = ["rocksdb", "files"]


@pytest.fixture(scope="module")
def answered(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder in which the application has run, once for each kind of state."""
    if not SPARK.is_dir() or not JARS:
        pytest.skip("Delta is not here: run 'make delta-spark'")
    folder = tmp_path_factory.mktemp("delta")
    command = [str(SPARK / "pyspark" / "bin" / "spark-submit")]
    command += [part for name, value in (SETTINGS | DELTA).items() for part in ("--conf", f"{name}={value}")]
    env = {"PYTHONPATH": os.pathsep.join(map(str, [SPARK, ROOT])), "SPARK_HOME": str(SPARK / "pyspark")}
    completed([*command, str(delta_tables.__file__), str(folder), *STATES], folder, env)
    return folder


@pytest.mark.parametrize("state", STATES)
def test_a_batch_done_twice_leaves_every_row_once(state: str, answered: Path) -> None:
    answers.compare(answered / state, "streamed")
    told = json.loads((answered / state / "told.json").read_text())
    assert told == {"spark": "4.2.0", "calls": [0, 1, 1, 2], "versions": 3, "rows_in": answers.ROWS.num_rows}
