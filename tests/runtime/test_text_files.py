"""What is said of text files: the first thing that is wrong, by value and column, with a way out."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import panewise as pw
from panewise.core.errors import SourceProblem
from panewise.runtime.local.files import read

SCHEMA = pa.schema([("ts", pa.timestamp("us", "UTC")), ("v", pa.int64())])
NOON = 1_404_216_000


def found(folder: Path, scheme: str, text: str, schema: pa.Schema = SCHEMA) -> pa.Table:
    (folder / f"in.{scheme}").write_text(text)
    return read(f"{scheme}:in.{scheme}", pw.StreamSchema(schema, time="ts"), folder)


@pytest.mark.parametrize("zone", ["", "Z", "+02:00", "+0200", "-05"])
def test_a_bad_value_is_named_whatever_zone_the_times_have(tmp_path: Path, zone: str) -> None:
    for _ in range(5):  # columns are read side by side, and any of them may be the first to fail
        with pytest.raises(SourceProblem, match=r"'csv:in.csv' cannot be read: 'abc' in column 'v' is no BIGINT"):
            found(tmp_path, "csv", f"ts,v\n2014-07-01T10:00:00{zone},5\n2014-07-01T11:00:00{zone},abc\n")


@pytest.mark.parametrize("scheme", ["csv", "json"])
def test_times_with_zones_and_without_may_stand_in_one_column(tmp_path: Path, scheme: str) -> None:
    """Those without are UTC."""
    times = ["2014-07-01T14:00:00+02:00", "2014-07-01 12:00:00", "2014-07-01T12:00Z", "2014-07-01 07:00:00.0-0500"]
    lines = [f"{time},1" if scheme == "csv" else f'{{"ts": "{time}", "v": 1}}' for time in times]
    table = found(tmp_path, scheme, "\n".join([*(["ts,v"] if scheme == "csv" else []), *lines]))
    assert table["ts"].cast(pa.int64()).to_pylist() == [NOON * 1_000_000] * 4
    assert table.schema == SCHEMA


@pytest.mark.parametrize("value", ["01/07/2014", "01/07/2014 10:00", "7/1/2014", "1404208800", "2014-13-01", "noon"])
@pytest.mark.parametrize("scheme", ["csv", "json"])
def test_a_date_in_another_form_is_named_with_the_form_to_write(tmp_path: Path, scheme: str, value: str) -> None:
    text = f"ts,v\n2014-07-01,1\n{value},2\n" if scheme == "csv" else f'{{"ts": "{value}", "v": 1}}\n'
    sentence = f"'{value}' in column 'ts' is no time; write times as 2014-07-31 16:05:00, .* pd.to_datetime"
    with pytest.raises(SourceProblem, match=sentence):
        found(tmp_path, scheme, text)


def test_a_zone_where_none_was_declared(tmp_path: Path) -> None:
    schema = pa.schema([("ts", pa.timestamp("us")), ("v", pa.int64())])
    with pytest.raises(
        SourceProblem, match=r"'2014-07-01T10:00:00Z' in column 'ts' has a zone.*; declare ts TIMESTAMP"
    ):
        found(tmp_path, "csv", "ts,v\n2014-07-01T10:00:00Z,1\n", schema)


def test_a_value_of_another_type_is_named_with_its_column(tmp_path: Path) -> None:
    schema = SCHEMA.append(pa.field("ok", pa.bool_())).append(pa.field("x", pa.float64()))
    with pytest.raises(SourceProblem, match="'yes' in column 'ok' is no BOOLEAN; check the file"):
        found(tmp_path, "csv", "v,ok,ts,x\n1,yes,2014-07-01,1\n", schema)
    with pytest.raises(SourceProblem, match="'1,5' in column 'x' is no DOUBLE; check the file"):
        found(tmp_path, "csv", 'v,ok,ts,x\n1,true,2014-07-01,"1,5"\n', schema)
