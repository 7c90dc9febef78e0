"""Rows that are in no result are told of: by a warning, in the metadata of the table, and as rows."""

from __future__ import annotations

import json
import warnings
from typing import Any

import pyarrow as pa
import pyarrow.parquet
import pytest

import panewise as pw

QUERY = "SELECT COUNT(*) AS n FROM S [RANGE 4 SLIDE 4]"
LATE = pa.table({"t": [1, 2, 9, 3, 8], "v": [1, 2, 3, 4, 5]})
TIMELESS = pa.table({"t": [1, None, 2**62, 5]})


def heard(query: str, streams: dict[str, Any], **options: Any) -> tuple[pa.Table, list[str]]:
    """The results, and what Panewise warned of, pointing here."""
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        table = pw.run(query, streams, **options)
    assert all(each.category is pw.PanewiseWarning and each.filename == __file__ for each in found)
    return table, [str(each.message) for each in found]


def test_late_rows_are_warned_of_once_with_a_way_out() -> None:
    table, said = heard(QUERY, {"S": pw.Stream(LATE, time="t", delay=2)})
    assert said == [
        "stream 'S': 1 of 5 rows came too late; use a larger delay or LATE REVISE, and pw.execute to see the late rows"
    ]
    assert pw.Accounting.of(table) == {"S": pw.Accounting(rows_in=5, used=4, late=1)}


def test_rows_without_a_usable_time_are_warned_of() -> None:
    table, said = heard(QUERY, {"S": TIMELESS}, time="t")
    assert said == ["stream 'S': 2 of 4 rows have no usable time; repair times that are NULL or too far away"]
    assert pw.Accounting.of(table) == {"S": pw.Accounting(rows_in=4, used=2, rejected=2)}


def test_nat_of_pandas_is_warned_of() -> None:
    import pandas as pd

    frame = pd.DataFrame({"t": pd.to_datetime(["2026-01-01", None, "2026-01-02"]), "v": [1, 2, 3]})
    _, said = heard("SELECT SUM(v) AS s FROM S [RANGE 1 DAY SLIDE 1 DAY]", {"S": frame}, time="t")
    assert said == ["stream 'S': 1 of 3 rows has no usable time; repair times that are NULL or too far away"]


def test_one_warning_names_every_stream_that_lost_rows() -> None:
    streams = {"S": pw.Stream(LATE, time="t", delay=2), "T": TIMELESS, "U": LATE}
    query = "SELECT S.v FROM S [RANGE 4 SLIDE 4], T [RANGE 4 SLIDE 4] WHERE S.t = T.t"
    table, said = heard(query, streams, time="t")
    assert len(said) == 1
    assert "stream 'S': 1 of 5 rows came too late; stream 'T': 2 of 4 rows have no usable time; use" in said[0]
    assert sorted(pw.Accounting.of(table)) == ["S", "T"]


@pytest.mark.parametrize("streams", [{"S": LATE}, {"S": pw.Stream(LATE, time="t", delay=8)}])
def test_nothing_is_said_where_every_row_was_used(streams: dict[str, Any]) -> None:
    table, said = heard(QUERY, streams, time="t")
    assert said == []
    assert pw.Accounting.of(table)["S"] == pw.Accounting(rows_in=5, used=5)


@pytest.mark.parametrize("query", [QUERY, "SELECT t FROM S [RANGE 4]", "SELECT COUNT(*) AS n FROM S [SESSION 2]"])
def test_engine_reference_and_execute_give_the_same_account(query: str) -> None:
    streams = {"S": pw.Stream(LATE, time="t", delay=2)}
    table, _ = heard(query, streams)
    outcome = pw.execute(query, streams)
    assert pw.Accounting.of(table) == outcome.accounting
    assert pw.Accounting.of(pw.reference.run(query, streams)) == pw.reference.execute(query, streams).accounting
    assert isinstance(outcome, pw.Outcome)
    assert outcome.late["S"].num_rows == outcome.accounting["S"].late


def test_the_account_is_json_under_a_key_of_its_own_and_survives_a_file(tmp_path: Any) -> None:
    table, _ = heard(QUERY, {"S": TIMELESS}, time="t")
    counts = {"rows_in": 4, "used": 2, "late": 0, "rejected": 2, "partly_late": 0}
    assert json.loads(table.schema.metadata[b"panewise.accounting"]) == {"S": counts}
    pa.parquet.write_table(table, tmp_path / "t.parquet")
    assert pw.Accounting.of(pa.parquet.read_table(tmp_path / "t.parquet"))["S"].rejected == 2
    assert pw.Accounting.of(pa.table({"a": [1]})) == {}


def test_the_warning_can_be_made_an_error() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error", pw.PanewiseWarning)
        with pytest.raises(pw.PanewiseWarning, match="no usable time"):
            pw.run(QUERY, {"S": TIMELESS}, time="t")
