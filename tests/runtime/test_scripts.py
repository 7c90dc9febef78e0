"""What a script need not say, or may say once: columns, kinds of addresses, which end of windows is in."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest

from panewise.core.errors import BindProblem, PanewiseError
from panewise.cql import parse_script, render
from panewise.runtime.local import HOST
from panewise.runtime.local.script import answer, describe_inferred_columns, load, shared_pool

TRIPS = pa.table(
    {
        "ts": pa.array([0, 60, 300, 600], pa.timestamp("s")).cast(pa.timestamp("us", "UTC")),
        "fare": [1.5, 2.5, 3.0, 4.0],
        "riders": pa.array([1, 2, 3, 4], pa.int32()),
        "zone": ["a", "b", "a", None],
    }
)
COUNTED = "SELECT zone, COUNT(*) AS n, SUM(fare) AS paid FROM trips [RANGE 5min SLIDE 5min] GROUP BY zone"


def written(folder: Path, text: str) -> Path:
    path = folder / "app.cql"
    path.write_text(text)
    return path


def answers(folder: Path, text: str, **said: Any) -> Any:
    script = load(written(folder, text))
    return [each.outcome.table.to_pylist() for each in answer(script, folder, HOST, **said)]


@pytest.fixture
def trips(tmp_path: Path) -> Path:
    pa.parquet.write_table(TRIPS, tmp_path / "trips.parquet")
    pa.csv.write_csv(TRIPS.set_column(0, "ts", TRIPS["ts"].cast(pa.timestamp("us"))), tmp_path / "trips.csv")
    rows = [f'{{"ts": "{row["ts"]:%Y-%m-%d %H:%M:%S}", "fare": {row["fare"]}}}' for row in TRIPS.to_pylist()]
    (tmp_path / "trips.json").write_text("\n".join(rows))
    return tmp_path


@pytest.mark.parametrize("source", ["parquet:trips.parquet", "trips.parquet", "csv:trips.csv", "trips.csv"])
def test_columns_that_are_not_declared_are_those_of_the_files(trips: Path, source: str) -> None:
    declared = "CREATE STREAM trips (ts TIMESTAMP, fare DOUBLE, riders INT, zone STRING) TIME ts FROM"
    kind = "csv" if "csv" in source else "parquet"
    wanted = answers(trips, f"{declared} '{kind}:trips.{kind}'; {COUNTED}")
    found = answers(trips, f"CREATE STREAM trips TIME ts FROM '{source}'; {COUNTED}")
    assert found == wanted
    assert sum(row["n"] for row in found[0]) == 4


def test_inferred_columns_are_told(trips: Path) -> None:
    script = load(written(trips, f"CREATE STREAM trips TIME ts DELAY 1min FROM 'trips.parquet'; {COUNTED}"))
    told = "stream trips: ts TIMESTAMP, fare DOUBLE, riders INT, zone STRING, as in 'parquet:trips.parquet'"
    assert describe_inferred_columns(script) == [told]
    assert script.streams["trips"].delay_ticks == 60_000_000


def test_json_is_inferred_and_text_without_a_zone_is_utc(trips: Path) -> None:
    script = load(written(trips, "CREATE STREAM trips TIME ts FROM 'trips.json'; SELECT fare FROM trips"))
    assert script.streams["trips"].schema == pa.schema([("ts", pa.timestamp("us", "UTC")), ("fare", pa.float64())])


def test_a_folder_is_inferred_from_its_first_file(trips: Path) -> None:
    (trips / "day").mkdir()
    for number in (2, 1):
        pa.parquet.write_table(TRIPS, trips / "day" / f"{number}.parquet")
    (found,) = answers(trips, f"CREATE STREAM trips TIME ts FROM 'parquet:day'; {COUNTED}")
    assert sum(row["n"] for row in found) == 8


@pytest.mark.parametrize(
    ("kind", "plain"),
    [
        (pa.timestamp("ns"), pa.timestamp("us")),
        (pa.timestamp("ms", "Europe/London"), pa.timestamp("us", "UTC")),
        (pa.uint32(), pa.int64()),
        (pa.large_string(), pa.string()),
        (pa.dictionary(pa.int8(), pa.string()), pa.string()),
        (pa.list_(pa.int64()), pa.list_(pa.int64())),
    ],
)
def test_inferred_types_are_such_as_can_be_declared(tmp_path: Path, kind: pa.DataType, plain: pa.DataType) -> None:
    pa.parquet.write_table(pa.table({"t": [1], "v": pa.nulls(1, kind)}), tmp_path / "s.parquet")
    script = load(written(tmp_path, "CREATE STREAM s TIME t FROM 's.parquet'; SELECT COUNT(*) FROM s [ROWS 1]"))
    assert script.streams["s"].schema.field("v").type == plain
    assert len(answer(script, tmp_path, HOST)) == 1


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("kafka:host:9092/trips", "column 34, in CREATE STREAM: the columns of 'kafka:host:9092/trips' are not known"),
        ("parquet:s3://bucket/trips", "the columns of 'parquet:s3://bucket/trips' are not known before it is read"),
        ("parquet:empty", "line 1, column 34, in CREATE STREAM: 'parquet:empty' holds no .parquet files; check"),
        ("parquet:nowhere", "'parquet:nowhere' does not exist; check the path"),
        ("csv:trips.parquet", "'csv:trips.parquet' cannot be read"),
        ("trips.xls", "'trips.xls' is no address Panewise knows; use parquet:path, csv:path or json:path"),
    ],
)
def test_columns_that_cannot_be_inferred_must_be_declared(trips: Path, source: str, message: str) -> None:
    (trips / "empty").mkdir()
    with pytest.raises(PanewiseError) as told:
        load(written(trips, f"CREATE STREAM trips TIME ts FROM '{source}'; {COUNTED}"))
    assert message in str(told.value)


def test_an_inferred_stream_needs_its_time_column(trips: Path) -> None:
    with pytest.raises(PanewiseError, match="column 26, in CREATE STREAM: there is no time column 'at'"):
        load(written(trips, f"CREATE STREAM trips TIME at FROM 'trips.csv'; {COUNTED}"))


@pytest.mark.parametrize("address", ["kafka:host:9092/trips", "delta:trips", "rate:5"])
def test_what_only_spark_reads_says_so(trips: Path, address: str) -> None:
    text = f"CREATE STREAM trips (ts TIMESTAMP, zone STRING, fare DOUBLE) TIME ts FROM '{address}'; {COUNTED}"
    with pytest.raises(PanewiseError, match="is read and written by Spark only; run the script with --spark"):
        answers(trips, text)


@pytest.mark.parametrize("said", ["WITH BOUNDARY '[)'", "with boundary '[)'", "WINDOWS INCLUDE START"])
def test_a_script_says_which_end_of_windows_is_in(trips: Path, said: str) -> None:
    text = f"CREATE STREAM trips TIME ts FROM 'trips.csv'; {COUNTED}"
    wanted = answers(trips, text, boundary="[)")
    assert answers(trips, f"{said}; {text}") == wanted != answers(trips, text)
    assert answers(trips, f"{said}; {text}", boundary="[)") == wanted
    assert shared_pool(load(written(trips, f"{said}; {text}")), HOST).boundary.value == "[)"


def test_the_usual_boundary_can_be_said_too(trips: Path) -> None:
    text = f"CREATE STREAM trips TIME ts FROM 'trips.csv'; {COUNTED}"
    assert answers(trips, f"WINDOWS INCLUDE END; {text}") == answers(trips, text)


def test_a_boundary_that_contradicts_the_script_is_refused(trips: Path) -> None:
    with pytest.raises(BindProblem, match=r"the boundary is '\(\]' here and '\[\)' in the script; give it once"):
        answers(trips, f"WITH BOUNDARY '[)'; CREATE STREAM trips TIME ts FROM 'trips.csv'; {COUNTED}", boundary="(]")


def test_what_need_not_be_said_survives_being_written_again() -> None:
    script = parse_script("WINDOWS INCLUDE START; CREATE STREAM s TIME ts DELAY 5s FROM 'a.csv'; SELECT * FROM s")
    assert render(script).startswith("WITH BOUNDARY '[)';\nCREATE STREAM `s` TIME `ts` DELAY 5 SECONDS FROM 'a.csv';\n")
    assert parse_script(render(script)) == script
