"""The command in pipes and one-liners: other outputs, scripts from standard input, queries over a file, checks."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest
from typer.testing import CliRunner, Result

import panewise as pw
from panewise.cli.app import app
from panewise.core.errors import PanewiseError
from panewise.core.schema import StreamSchema
from panewise.runtime.local.files import read

ROWS = """ts,station,temperature
2026-01-31T07:00:01Z,x,20.5
2026-01-31T07:00:02Z,y,18.0
2026-01-31T07:01:03Z,x,21.5
"""
SCRIPT = """
CREATE STREAM readings (ts TIMESTAMP, station STRING, temperature DOUBLE) TIME ts FROM 'csv:readings.csv';
CREATE QUERY mean AS SELECT station, AVG(temperature) AS mean FROM readings [RANGE 1 MINUTE SLIDE 1 MINUTE]
  GROUP BY station;
CREATE QUERY all AS SELECT COUNT(*) AS n FROM readings [RANGE 1 MINUTE SLIDE 1 MINUTE];
CREATE QUERY kept AS SELECT MAX(temperature) AS top FROM readings [RANGE 1 MINUTE SLIDE 1 MINUTE] INTO 'json:out';
"""
MEAN = "SELECT station, AVG(temperature) AS mean FROM {} [RANGE 1 MINUTE SLIDE 1 MINUTE] GROUP BY station"
MEANS = [
    {"station": "x", "mean": 20.5, "w_start": "2026-01-31T07:00:00Z", "w_end": "2026-01-31T07:01:00Z"},
    {"station": "y", "mean": 18.0, "w_start": "2026-01-31T07:00:00Z", "w_end": "2026-01-31T07:01:00Z"},
    {"station": "x", "mean": 21.5, "w_start": "2026-01-31T07:01:00Z", "w_end": "2026-01-31T07:02:00Z"},
]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where a user stands: a file of readings, and a script about it."""
    (tmp_path / "readings.csv").write_text(ROWS)
    (tmp_path / "app.cql").write_text(SCRIPT)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def panewise(*arguments: str, given: str | None = None) -> Result:
    return CliRunner().invoke(app, arguments, input=given)


def refusal(*arguments: str, given: str | None = None) -> str:
    """Why the command refuses; `main` prints that and ends with 1."""
    problem = panewise(*arguments, given=given).exception
    assert isinstance(problem, PanewiseError)
    return str(problem)


@pytest.mark.parametrize("option", ["--version", "version"])
def test_the_version_is_told(option: str) -> None:
    assert panewise(option).stdout == f"{pw.__version__}\n"


@pytest.mark.parametrize("arguments", [("-h",), ("run", "-h"), ("query", "-h"), ("check", "-h")])
def test_help_is_short_to_ask_for(arguments: tuple[str, ...]) -> None:
    asked = panewise(*arguments)
    assert asked.exit_code == 0
    assert "Usage:" in asked.stdout


def test_shells_are_helped_to_complete() -> None:
    assert "--install-completion" in panewise("--help").stdout
    code = "import sys; sys.argv[0] = 'panewise'; from panewise.cli import main; main()"
    environment = {**os.environ, "_PANEWISE_COMPLETE": "complete_bash", "COMP_WORDS": "panewise ru", "COMP_CWORD": "1"}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, env=environment)
    assert done.stdout.split() == ["run"]


def test_run_prints_json_by_query(folder: Path) -> None:
    """Queries with INTO are written, as ever; their results are printed when asked for."""
    printed = json.loads(panewise("run", "app.cql", "--output", "json").stdout)
    assert printed["mean"] == MEANS
    assert list(printed) == ["mean", "all"]
    assert list(json.loads(panewise("run", "app.cql", "--output", "json", "--query", "kept").stdout)) == ["kept"]


def test_run_prints_csv_and_arrow_of_one_query(folder: Path) -> None:
    lines = panewise("run", "app.cql", "--output", "csv", "--query", "all").stdout.splitlines()
    assert lines[0] == '"n","w_start","w_end"'
    assert [line.partition(",")[0] for line in lines[1:]] == ["2", "1"]
    found = panewise("run", "app.cql", "--output", "arrow", "--query", "all").stdout_bytes
    assert pa.ipc.open_stream(io.BytesIO(found)).read_all()["n"].to_pylist() == [2, 1]
    assert refusal("run", "app.cql", "--output", "csv") == (
        "csv holds one result and there are 2; name one of them with --query: mean, all"
    )
    assert refusal("run", "app.cql", "--query", "men") == "there is no query 'men'; did you mean 'mean'?"


def test_what_is_not_a_result_stays_out_of_the_output(folder: Path) -> None:
    """The account of late rows goes to standard error, so that the output can be piped."""
    (folder / "late.cql").write_text(SCRIPT.replace("TIME ts", "TIME ts DELAY 0 SECONDS"))
    lines = ROWS.splitlines(keepends=True)
    (folder / "readings.csv").write_text("".join([lines[0], lines[3], lines[1]]))
    done = panewise("run", "late.cql", "--output", "json")
    assert json.loads(done.stdout)
    assert "2 rows in = 1 used + 1 late" in done.stderr


def test_a_script_comes_from_standard_input(folder: Path) -> None:
    for command in (("run", "-", "--output", "json"), ("explain", "-"), ("check", "-")):
        done = panewise(*command, given=SCRIPT)
        assert done.exit_code == 0, done.exception
        assert done.stdout


def test_a_script_without_queries_says_so(folder: Path) -> None:
    done = panewise("run", "-", given=SCRIPT.partition("CREATE QUERY")[0])
    assert done.exit_code == 0
    assert done.stderr == "- has no queries, so nothing is answered\n"


def test_json_files_have_the_times_that_the_server_gives(folder: Path) -> None:
    """And can be read again as they were."""
    assert panewise("run", "app.cql").exit_code == 0
    lines = [json.loads(line) for line in (folder / "out" / "kept.json").read_text().splitlines()]
    assert lines[0] == {"top": 20.5, "w_start": "2026-01-31T07:00:00Z", "w_end": "2026-01-31T07:01:00Z"}
    kind = pa.timestamp("us", "UTC")
    declared = StreamSchema(pa.schema([("top", pa.float64()), ("w_start", kind), ("w_end", kind)]), "w_end")
    assert read("json:out", declared, folder)["w_end"].to_pylist()[0].isoformat() == "2026-01-31T07:01:00+00:00"


@pytest.mark.parametrize("name", ["S", "readings"])
@pytest.mark.parametrize("kind", ["csv", "json", "parquet"])
def test_one_query_over_a_file(folder: Path, kind: str, name: str) -> None:
    """The time column is guessed, and said."""
    table = pa.csv.read_csv(folder / "readings.csv")
    if kind == "parquet":
        pa.parquet.write_table(table, folder / "readings.parquet")
    elif kind == "json":
        rows = zip(ROWS.split()[1:], table.to_pylist(), strict=True)
        lines = (json.dumps({**row, "ts": line.partition(",")[0]}) for line, row in rows)
        (folder / "readings.json").write_text("\n".join(lines))
    done = panewise("query", f"readings.{kind}", MEAN.format(name), "--output", "json")
    assert done.exit_code == 0, done.exception
    assert [(row["station"], row["mean"]) for row in json.loads(done.stdout)] == [("x", 20.5), ("y", 18), ("x", 21.5)]
    assert done.stderr.startswith("time: ts (")


@pytest.mark.parametrize(
    ("columns", "guess", "reason"),
    [
        ({"a": ["x"], "at": ["2026-01-31T07:00:01"]}, "at", "it reads as a timestamp"),
        ({"day": ["Monday"], "on": ["2026-01-31"]}, "on", "it reads as a timestamp"),
        ({"n": [1], "T": [2]}, "T", "an integer of that name"),
        ({"n": [1]}, None, "no column looks like time; name one with --time: n"),
    ],
)
def test_time_is_guessed_from_types_values_and_names(columns: dict[str, list[str]], guess: str, reason: str) -> None:
    from panewise.cli.querying import guess_time, with_timestamps

    table = pa.table(columns)
    if guess is None:
        with pytest.raises(PanewiseError) as problem:
            guess_time(table)
        assert str(problem.value) == reason
        return
    assert guess_time(table) == (guess, reason)
    assert pw.Stream(with_timestamps(table, guess), guess).arrow.num_rows == 1


GOOD, BAD = "2026-01-31 07:00:01", "31st of January"


@pytest.mark.parametrize("named", [[], ["--time", "ts"]], ids=["guessed", "named"])
@pytest.mark.parametrize(
    ("times", "row", "value"),
    [
        ([BAD, GOOD, GOOD], 1, BAD),
        ([GOOD, GOOD, BAD], 3, BAD),
        ([GOOD, "", BAD, GOOD], 3, BAD),
        ([GOOD] * 2500 + [BAD] + [GOOD] * 10, 2501, BAD),
        ([GOOD, f"{GOOD}Z"], 2, f"{GOOD}Z"),
    ],
    ids=["the first", "the last", "after one that is missing", "after many", "a zone"],
)
def test_a_time_that_cannot_be_read_is_named_with_its_row(
    folder: Path, named: list[str], times: list[str], row: int, value: str
) -> None:
    (folder / "bad.csv").write_text("\n".join(["ts,n", *(f"{time},x" for time in times)]))
    done = panewise("query", "bad.csv", "SELECT COUNT(*) AS n FROM S [RANGE 1 MINUTE SLIDE 1 MINUTE]", *named)
    assert done.exit_code == 1
    said = f"column 'ts' looks like time, but row {row:,} has {value!r}, which is no timestamp like the others"
    assert said in str(done.exception)


def test_the_first_of_several_timestamps_is_time(folder: Path) -> None:
    (folder / "two.csv").write_text("made,sent\n2026-01-31 07:00:01,2026-02-01 07:00:01\n")
    query = "SELECT COUNT(*) AS n FROM two [RANGE 1 MINUTE SLIDE 1 MINUTE]"
    done = panewise("query", "two.csv", query, "--output", "json")
    assert done.stderr == "time: made (the first of 2 timestamps; --time names another)\n"
    named = panewise("query", "two.csv", query, "--output", "json", "--time", "sent")
    assert named.stderr == ""
    assert [json.loads(found.stdout)[0]["w_end"] for found in (done, named)] == [
        "2026-01-31T07:01:00",
        "2026-02-01T07:01:00",
    ]


def test_check_binds_everything_without_reading(folder: Path) -> None:
    (folder / "readings.csv").unlink()
    done = panewise("check", "app.cql")
    assert (done.exit_code, done.stdout) == (0, "ok: 1 stream, 3 queries\n")


def test_check_tells_every_wrong_query_and_ends_with_1(folder: Path) -> None:
    (folder / "app.cql").write_text(SCRIPT.replace("AVG(temperature)", "AVG(temp)").replace("MAX(t", "MAXX(t"))
    done = panewise("check", "app.cql")
    assert done.exit_code == 1
    first, second = done.stderr.splitlines()
    assert first.startswith("app.cql: line 3, column 42, in SELECT: there is no column 'temp'")
    assert second.startswith("app.cql: line 6, ")
    assert "MAXX" in second


def test_check_stops_at_a_wrong_declaration(folder: Path) -> None:
    """What depends on it would be wrong too."""
    (folder / "app.cql").write_text(SCRIPT.replace("station STRING", "station STRIN"))
    done = panewise("check", "app.cql")
    assert done.exit_code == 1
    (line,) = done.stderr.splitlines()
    assert "'STRIN' is not a column type" in line


def test_csv_has_no_room_for_lists(folder: Path) -> None:
    query = "SELECT TOP_K(station, 1) AS top FROM S [RANGE 1 MINUTE SLIDE 1 MINUTE]"
    assert refusal("query", "readings.csv", query, "--output", "csv") == (
        "csv cannot hold column 'top'; use --output json"
    )


def test_the_demo_runs_without_spark() -> None:
    done = panewise("demo", "--embedded", "--rows", "1000")
    assert done.exit_code == 0, done.exception
    assert "1,000 rows in = " in done.stdout
    assert "visits" in done.stdout


def test_a_warning_is_a_sentence(folder: Path) -> None:
    """As errors are, without the line of ours that raised it."""
    lines = ROWS.splitlines()
    (folder / "readings.csv").write_text("\n".join([*lines, ",z,1.0"]))
    code = "from panewise.cli import main; main()"
    query = ["query", "readings.csv", "SELECT COUNT(*) AS n FROM S [RANGE 1 MINUTE SLIDE 1 MINUTE]", "--time", "ts"]
    done = subprocess.run([sys.executable, "-c", code, *query], capture_output=True, text=True, check=True)
    (line,) = done.stderr.splitlines()
    assert line.startswith("warning: ")
    assert "1 of 4 rows has no usable time" in line
