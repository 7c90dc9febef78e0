"""The command as a user meets it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest

SCRIPT = """
CREATE STREAM readings (t BIGINT, station STRING, temperature DOUBLE) TIME t {delay} FROM '{source}';
CREATE VIEW warm AS SELECT station, temperature FROM readings WHERE temperature >= 20;
CREATE QUERY mean AS SELECT station, AVG(temperature) AS mean FROM readings [RANGE 4 SLIDE 2] GROUP BY station
  INTO '{target}';
CREATE QUERY hot AS SELECT ISTREAM station FROM warm;
"""
ROWS = pa.table(
    {"t": [1, 2, 3, 6], "station": ["x", "y", "x", None], "temperature": [20.5, 18.0, 21.5, None]},
)


def panewise(*arguments: str | Path, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", "from panewise.cli import main; main()", *map(str, arguments)]
    environment = {**os.environ, "COLUMNS": "160", **environment}
    return subprocess.run(command, capture_output=True, text=True, check=False, env=environment)


def script(folder: Path, source: str, target: str = "parquet:out", delay: str = "") -> Path:
    path = folder / "app.cql"
    path.write_text(SCRIPT.format(source=source, target=target, delay=delay))
    return path


def write(folder: Path, kind: str) -> None:
    match kind:
        case "parquet":
            pa.parquet.write_table(ROWS, folder / "in.parquet")
        case "csv":
            pa.csv.write_csv(ROWS, folder / "in.csv")
        case "json":
            lines = ['{"t": 1, "station": "x", "temperature": 20.5}', '{"t": 2, "station": "y", "temperature": 18.0}']
            lines += ['{"t": 3, "station": "x", "temperature": 21.5, "extra": 1}', '{"t": 6, "station": null}']
            (folder / "in.json").write_text("\n".join(lines))


@pytest.mark.parametrize("kind", ["parquet", "csv", "json"])
def test_run_answers_a_script_over_files(tmp_path: Path, kind: str) -> None:
    write(tmp_path, kind)
    done = panewise("run", script(tmp_path, f"{kind}:in.{kind}"))
    assert done.returncode == 0, done.stderr
    assert "mean: 7 rows to" in done.stdout
    written = pa.parquet.read_table(tmp_path / "out" / "mean.parquet")
    assert written.to_pylist()[0] == {"station": "x", "mean": 20.5, "w_start": -2, "w_end": 2}
    assert "hot" in done.stdout


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["csv", "json"])
def test_run_writes_other_formats(tmp_path: Path, kind: str) -> None:
    write(tmp_path, "parquet")
    done = panewise("run", script(tmp_path, "parquet:in.parquet", f"{kind}:out"))
    assert done.returncode == 0, done.stderr
    assert len((tmp_path / "out" / f"mean.{kind}").read_text().splitlines()) == 7 + (kind == "csv")


FRAMES = """
CREATE STREAM readings (t BIGINT, station STRING, temperature DOUBLE) TIME t FROM 'parquet:in.parquet';
CREATE QUERY warm AS SELECT station, MAX(temperature) AS top FROM readings
  [FRAME WHILE temperature > 20 PARTITION BY station] INTO 'parquet:out';
CREATE QUERY crowds AS SELECT COUNT(*) AS n FROM readings [FRAME DENSITY 3 PER 4];
"""


@pytest.mark.slow
def test_run_and_explain_a_script_of_frames(tmp_path: Path) -> None:
    """One query that the engine follows, and one that is answered by its meaning."""
    write(tmp_path, "parquet")
    path = tmp_path / "frames.cql"
    path.write_text(FRAMES)
    done = panewise("run", path)
    assert done.returncode == 0, done.stderr
    assert "warm: 1 rows to" in done.stdout
    frame = {"frame_id": 1, "w_start": 1, "w_end": 3, "duration": 2, "count": 2, "final": True}
    assert pa.parquet.read_table(tmp_path / "out" / "warm.parquet").to_pylist() == [
        {"station": "x", "top": 21.5, **frame}
    ]
    assert "crowds" in done.stdout
    told = panewise("explain", path)
    assert told.returncode == 0, told.stderr
    assert "frames [FRAME WHILE readings.temperature > 20 PARTITION BY readings.station]  (monotonic)" in told.stdout
    assert "warm: frames [FRAME WHILE" in told.stdout


@pytest.mark.slow
def test_run_reads_a_folder_in_name_order(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    pa.parquet.write_table(ROWS.slice(2), tmp_path / "in" / "b.parquet")
    pa.parquet.write_table(ROWS.slice(0, 2), tmp_path / "in" / "a.parquet")
    done = panewise("run", script(tmp_path, "parquet:in"), "--boundary", "[)", "--until", "4")
    assert done.returncode == 0, done.stderr
    assert pa.parquet.read_table(tmp_path / "out" / "mean.parquet").num_rows == 3


@pytest.mark.slow
def test_run_accounts_for_late_rows(tmp_path: Path) -> None:
    pa.parquet.write_table(ROWS.take([3, 0, 1, 2]), tmp_path / "in.parquet")
    done = panewise("run", script(tmp_path, "parquet:in.parquet", delay="DELAY 0"))
    # The query over all of time wants every row, whenever it comes.
    assert (
        "readings: 4 rows in = 4 used + 0 late + 0 rejected; 3 of the used were late for some instants" in done.stdout
    )


def test_explain_names_operators_patterns_and_stores(tmp_path: Path) -> None:
    done = panewise("explain", script(tmp_path, "parquet:in.parquet"))
    assert done.returncode == 0, done.stderr
    assert "mean: the whole result at each instant; weak non-monotonic" in done.stdout
    assert "window [RANGE 4 SLIDE 2], logical  (weakest non-monotonic)" in done.stdout
    assert "AVG(readings.temperature) in two-stacks: AVG rounds, so nothing is subtracted" in done.stdout
    assert "hot: what came in whenever it changes; monotonic" in done.stdout


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (("parquet:in.parquet", "parquet:no.parquet"), "error: 'parquet:no.parquet' does not exist; check the path"),
        (("parquet:in.parquet", "ftp:in"), "error: 'ftp:in' is no address Panewise knows; use parquet:path"),
        (
            ("station STRING", "station NONSENSE"),
            "line 2, column 43, in CREATE STREAM: 'NONSENSE' is not a column type",
        ),
        (("AVG(temperature)", "AVG(temprature)"), "there is no column 'temprature'; did you mean 'temperature'?"),
        (("temperature DOUBLE", "temperature BIGINT"), "'parquet:in.parquet' cannot be read:"),
        (("INTO 'parquet:out'", "INTO 'parquet:in.parquet'"), "'parquet:in.parquet' cannot be written:"),
    ],
)
def test_a_mistake_is_one_sentence(tmp_path: Path, change: tuple[str, str], sentence: str) -> None:
    write(tmp_path, "parquet")
    path = script(tmp_path, "parquet:in.parquet")
    path.write_text(path.read_text().replace(*change))
    done = panewise("run", path)
    assert done.returncode == 1
    assert sentence in " ".join(done.stderr.split())
    assert "Traceback" not in done.stderr


def test_a_missing_script_is_one_sentence(tmp_path: Path) -> None:
    done = panewise("run", tmp_path / "none.cql")
    assert done.returncode == 1
    assert "cannot be read: No such file or directory" in " ".join(done.stderr.split())


@pytest.mark.slow
def test_the_demo_ends_by_itself() -> None:
    done = panewise("demo", "--rows", "1000")
    assert done.returncode == 0, done.stderr
    assert "1,000 rows in = " in done.stdout
    assert "latecomer" in done.stdout


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["csv", "json"])
@pytest.mark.parametrize("zone", ["", "Z"])
def test_text_without_a_zone_is_utc(tmp_path: Path, kind: str, zone: str) -> None:
    rows = {
        "csv": f"ts,v\n2026-01-31 07:00:01{zone},1\n",
        "json": f'{{"ts": "2026-01-31 07:00:01{zone}", "v": 1}}\n',
    }
    (tmp_path / f"in.{kind}").write_text(rows[kind])
    path = tmp_path / "app.cql"
    path.write_text(
        f"CREATE STREAM s (ts TIMESTAMP, v BIGINT) TIME ts FROM '{kind}:in.{kind}';"
        "SELECT SUM(v) AS total FROM s [RANGE 1 MINUTE SLIDE 1 MINUTE]"
    )
    done = panewise("run", path)
    assert done.returncode == 0, done.stderr
    assert "2026-01-31 07:01:00" in done.stdout


@pytest.mark.slow
def test_a_warning_is_one_sentence_too(tmp_path: Path) -> None:
    write(tmp_path, "parquet")
    path = script(tmp_path, "parquet:in.parquet")
    path.write_text(
        f"{path.read_text()}\nCREATE VIEW at AS SELECT t AS ts FROM readings; CREATE QUERY whole AS SELECT * FROM at;"
    )
    done = panewise("run", path)
    assert done.returncode == 0, done.stderr
    sentence = (
        "warning: query 'whole': selected columns have the names of added ones, so that the instant of a result is"
    )
    assert done.stderr.startswith(sentence)
    assert len(done.stderr.splitlines()) == 1
