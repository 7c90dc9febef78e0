"""What keeps a script from running on Spark is said before Spark starts, and nothing is left behind."""

from __future__ import annotations

from pathlib import Path

import pytest

from panewise.cli.preflight import refuse_start
from panewise.core.errors import SourceProblem, StateProblem
from panewise.cql import BoundScript
from panewise.engine import Pool
from panewise.runtime.checkpoint import Checkpoint
from panewise.runtime.local.script import load

STREAM = "CREATE STREAM S (t BIGINT, v BIGINT) TIME t FROM '{}';"
QUERY = "CREATE QUERY q AS SELECT SUM(v) AS s FROM S [RANGE 4 SLIDE 2] INTO '{}';"


def script(folder: Path, source: str = "parquet:in", target: str = "parquet:out") -> BoundScript:
    path = folder / "app.cql"
    path.write_text(STREAM.format(source) + QUERY.format(target))
    return load(path)


@pytest.fixture(autouse=True)
def _unconfigured(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("PYSPARK_SUBMIT_ARGS", "SPARK_CONF_DIR", "SPARK_HOME"):
        monkeypatch.delenv(name, raising=False)


def test_missing_folders_are_found_before_spark_starts(tmp_path: Path) -> None:
    with pytest.raises(SourceProblem, match="stream 'S': 'parquet:in' does not exist; check the path, which is rel"):
        refuse_start(script(tmp_path), tmp_path, tmp_path / "ck", "(]", {})
    assert not (tmp_path / "ck").exists()


def test_foreign_checkpoints_are_found_before_spark_starts(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    found, folder = script(tmp_path), tmp_path / "ck"
    folder.mkdir()
    (folder / "spark.log").touch()
    refuse_start(found, tmp_path, folder, "(]", {})
    (folder / "thesis.tex").touch()
    with pytest.raises(StateProblem, match=r"'.*ck' is no checkpoint of Panewise; give an empty folder, or a new one"):
        refuse_start(found, tmp_path, folder, "(]", {})
    Checkpoint(folder).create(Pool(found.streams, "[)"), (0,), "rocksdb")
    with pytest.raises(StateProblem, match="was written with boundary"):
        refuse_start(found, tmp_path, folder, "(]", {})
    refuse_start(found, tmp_path, folder, "[)", {})


def test_missing_connectors_are_found_before_spark_starts(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    read, written = script(tmp_path, "kafka:localhost:9092/s"), script(tmp_path, target="kafka:localhost:9092/s")
    for found in (read, written):
        with pytest.raises(
            SourceProblem, match=r"needs a connector .* add --packages org.apache.spark:spark-sql-kafka-0"
        ):
            refuse_start(found, tmp_path, None, "(]", {})
        refuse_start(found, tmp_path, None, "(]", {"spark.jars.packages": "org.apache.spark:spark-sql-kafka-0-10"})


def test_a_missing_or_old_java_is_found_before_spark_starts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "in").mkdir()
    found = script(tmp_path)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "java"))
    with pytest.raises(
        SourceProblem, match=r"there is no Java in JAVA_HOME=.*; install Java 17 or 21 and set JAVA_HOME"
    ):
        refuse_start(found, tmp_path, None, "(]", {})
    (tmp_path / "java" / "bin").mkdir(parents=True)
    java = tmp_path / "java" / "bin" / "java"
    java.write_text("#!/bin/sh\necho 'openjdk version \"1.8.0_392\"' >&2\n")
    java.chmod(0o755)
    with pytest.raises(SourceProblem, match=r"Java 8 in '.*' is too old for Spark"):
        refuse_start(found, tmp_path, None, "(]", {})
