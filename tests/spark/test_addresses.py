"""Scripts name sources and sinks by addresses: files of every format, a rate, the console, several at once."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest
from pyspark.sql import DataFrame, SparkSession

import panewise as pw
from panewise.core.errors import SourceProblem

pytestmark = pytest.mark.slow

ROWS = pa.table({"t": [1, 2, 3, 6], "k": ["x", "y", "x", None], "v": [20, 18, 21, None]})
QUERY = "SELECT k, SUM(v) AS s FROM S [RANGE 4 SLIDE 2] GROUP BY k"
ANSWER = sorted(map(str, pw.run(QUERY, {"S": ROWS}, time="t").to_pylist()))


def script(folder: Path, source: str, into: str = "memory:") -> Path:
    path = folder / "app.cql"
    path.write_text(
        f"CREATE STREAM S (t BIGINT, k STRING, v BIGINT) TIME t DELAY 0 FROM '{source}';\n"
        f"CREATE QUERY q AS {QUERY} INTO '{into}';"
    )
    return path


def written(folder: Path, kind: str) -> None:
    """The rows, and one that is malformed where the format lets it be."""
    (folder / "in").mkdir()
    match kind:
        case "parquet":
            pa.parquet.write_table(ROWS, folder / "in" / "a.parquet")
        case "csv":
            pa.csv.write_csv(ROWS, folder / "in" / "a.csv")
            with open(folder / "in" / "a.csv", "a") as file:
                file.write("soon,z,1\n")
        case "json":
            lines = ['{"t": 1, "k": "x", "v": 20, "extra": 7}', '{"t": 2, "k": "y", "v": 18}']
            lines += ['{"t": 3, "k": "x", "v": 21}', '{"t": 6, "k": null}', '{"t": 6, "k']
            (folder / "in" / "a.json").write_text("\n".join(lines))


def start(spark: SparkSession, path: Path, **options: Any) -> Any:
    bounded: dict[str, Any] = {"trigger": {"availableNow": True}, "shards": 1}
    return pw.script(path).start(spark, checkpoint=path.parent / "checkpoint", **(bounded | options))


@pytest.mark.parametrize(("kind", "state"), [("parquet", "rocksdb"), ("csv", "files"), ("json", "rocksdb")])
def test_files_in_and_out(spark: SparkSession, tmp_path: Path, kind: str, state: str) -> None:
    written(tmp_path, kind)
    pipeline = start(spark, script(tmp_path, f"{kind}:in", f"{kind}:out"), state=state)
    assert "rows are sliced" in pipeline.explain()
    pipeline.finish()
    malformed = int(kind != "parquet")
    assert (pipeline.metrics.rows_in, pipeline.metrics.rejected) == (ROWS.num_rows + malformed, malformed)
    schema = "k string, s bigint, w_start bigint, w_end bigint, batch bigint"
    options = {"header": "true"} if kind == "csv" else {}
    found = spark.read.format(kind).schema(schema).options(**options).load(str(tmp_path / "out")).drop("batch")
    assert sorted(str(row.asDict()) for row in found.collect()) == ANSWER


def test_inferred_columns_a_boundary_and_several_sinks_at_once(
    spark: SparkSession, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    written(tmp_path, "parquet")
    rows: list[str] = []

    def heard(results: DataFrame, batch: int) -> None:
        rows.extend(str(row.asDict()) for row in results.collect())

    sinks: Any = {"q": [heard, "console:", "noop:", "memory:", "json:lines"]}
    path = tmp_path / "app.cql"
    path.write_text(f"WITH BOUNDARY '[)'; CREATE STREAM S TIME t DELAY 0 FROM 'parquet:in'; CREATE QUERY q AS {QUERY}")
    pipeline = start(spark, path, sinks=sinks)
    pipeline.finish()
    wanted = sorted(map(str, pw.run(QUERY, {"S": ROWS}, time="t", boundary="[)").to_pylist()))
    assert sorted(rows) == wanted != ANSWER
    assert sorted(map(str, pipeline.results("q").toArrow().to_pylist())) == wanted
    assert "q, batch " in capfd.readouterr().out
    assert spark.read.json(str(tmp_path / "lines")).count() == len(wanted)


def test_a_rate(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "app.cql"
    path.write_text(
        "CREATE STREAM S (at TIMESTAMP, n BIGINT) TIME at DELAY 0 SECONDS FROM 'rate:200';\n"
        "CREATE QUERY q AS SELECT COUNT(*) AS n FROM S [RANGE 1 SECOND];"
    )
    pipeline = start(spark, path, trigger={"processingTime": "1 second"}, state="files")
    # The first 200 rows change the count, all but the first of them in two results; from then on as many leave as come.
    for _ in range(120):
        if pipeline.metrics.rows_out >= 1 + 2 * 199:
            break
        assert not pipeline.await_end(timeout=0.5)
    pipeline.stop()
    assert max(pipeline.results("q").toArrow()["n"].to_pylist()) == 200


@pytest.mark.parametrize(
    ("source", "into", "sentence"),
    [
        ("ftp:in", "memory:", "'ftp:in' is no address Panewise knows"),
        ("rate:fast", "memory:", "'rate:fast' is no number of rows a second"),
        ("parquet:nowhere", "memory:", "'parquet:nowhere' cannot be read"),
        ("parquet:in", "elsewhere", "'elsewhere' is no address Panewise knows"),
    ],
)
def test_a_wrong_address_is_one_sentence(
    spark: SparkSession, tmp_path: Path, source: str, into: str, sentence: str
) -> None:
    written(tmp_path, "parquet")
    with pytest.raises(SourceProblem, match=sentence):
        start(spark, script(tmp_path, source, into))


def test_the_command_runs_a_script_to_its_end(tmp_path: Path) -> None:
    written(tmp_path, "csv")
    script(tmp_path, "csv:in")
    command = [sys.executable, "-c", "from panewise.cli import main; main()", "run", "--spark", "app.cql"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, check=False)
    assert done.returncode == 0, done.stderr
    assert "5 rows in = 4 used + 0 late + 1 rejected" in done.stdout
    script(tmp_path, "csv:nowhere")
    failed = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, check=False)
    assert (failed.returncode, failed.stderr.count("\n")) == (1, 1), failed.stderr
    assert "does not exist" in failed.stderr


def test_the_command_follows_aloud_without_a_terminal_and_its_results_are_found(tmp_path: Path) -> None:
    """A line at the start, a line a batch, results as they come; another process reads them and asks for health."""
    written(tmp_path, "parquet")
    path = script(tmp_path, "parquet:in")
    path.write_text(path.read_text().replace(" INTO 'memory:'", ""))
    log, panewise = tmp_path / "log", [sys.executable, "-c", "from panewise.cli import main; main()"]
    settings = ["--checkpoint", "ck", "--conf", "spark.sql.shuffle.partitions=1"]
    with open(log, "w") as out:
        process = subprocess.Popen(
            [*panewise, "run", "--follow", "app.cql", *settings], stdout=out, stderr=subprocess.STDOUT, cwd=tmp_path
        )
    try:
        ending = time.monotonic() + 180
        while "w_end" not in log.read_text():
            assert process.poll() is None, log.read_text()
            assert time.monotonic() < ending, log.read_text()
            time.sleep(0.5)
        health = subprocess.run([*panewise, "status", "ck"], capture_output=True, text=True, cwd=tmp_path, check=False)
    finally:
        process.terminate()
    assert process.wait(60) == 0, log.read_text()
    assert health.returncode == 0, health.stdout
    assert "runs, process" in health.stdout
    assert "started: S from parquet:in; queries q; checkpoint ck" in log.read_text()
    assert "batch 0: 4 rows in" in log.read_text()
    found = subprocess.run(
        [*panewise, "results", "ck", "q", "--output", "json"], capture_output=True, text=True, cwd=tmp_path, check=False
    )
    assert {"k": "x", "s": 20, "w_start": -2, "w_end": 2} in json.loads(found.stdout)
