"""The same answer from Arrow, pandas, polars and every way to hold a time."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import panewise as pw

COLUMNS: dict[str, list[Any]] = {"t": [1, 2, 4], "k": ["a", "b", None], "v": [1.5, None, 4.0]}
QUERY = "SELECT k, SUM(v) AS total, COUNT(*) AS n FROM S [RANGE 3 SLIDE 2] GROUP BY k"


@pytest.mark.parametrize("table", [pa.table, pa.record_batch, pd.DataFrame, pl.DataFrame], ids=lambda f: f.__module__)
def test_any_table_gives_the_same_answer(table: Any) -> None:
    expected = pw.run(QUERY, {"S": pa.table(COLUMNS)}, time="t")
    answered = pw.run(QUERY, {"S": table(COLUMNS)}, time="t")
    assert answered.to_pylist() == expected.to_pylist()
    assert answered.num_rows == 5


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
@pytest.mark.parametrize("zone", [None, "UTC", "Europe/Athens"])
def test_timestamps_of_any_unit_and_zone(unit: str, zone: str | None) -> None:
    kind = pa.timestamp(unit, zone)
    times = pa.array([0, 1, 2, 59, 61], pa.int64()).cast(pa.timestamp("s", zone)).cast(kind)
    answered = pw.run(
        "SELECT COUNT(*) AS n FROM S [RANGE 1 MINUTE SLIDE 1 MINUTE]", {"S": pa.table({"t": times})}, time="t"
    )
    assert answered.column_names == ["n", "w_start", "w_end"]
    assert answered.schema.field("w_end").type == pa.timestamp("us", zone)
    assert answered["w_end"].cast(pa.int64()).to_pylist() == [0, 60_000_000, 120_000_000]
    assert answered["n"].to_pylist() == [1, 3, 1]


@pytest.mark.parametrize("kind", [pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint64()])
def test_integers_of_any_width(kind: pa.DataType) -> None:
    answered = pw.run(
        "SELECT SUM(v) AS s FROM S [RANGE 2 SLIDE 2]",
        {"S": pa.table({"t": pa.array([1, 2, 3], kind), "v": pa.array([1, 2, 3], kind)})},
        time="t",
    )
    assert answered["s"].to_pylist() == [3, 3]
    assert answered.schema.field("s").type == pa.int64()


def test_dictionary_columns_are_decoded() -> None:
    coded = pa.table({"t": [1, 2], "k": pa.array(["a", "a"]).dictionary_encode()})
    answered = pw.run("SELECT k, COUNT(*) AS n FROM S [RANGE 2 SLIDE 2] GROUP BY k", {"S": coded}, time="t")
    assert answered.to_pylist() == [{"k": "a", "n": 2, "w_start": 0, "w_end": 2}]


def test_until_takes_a_number_a_text_or_a_datetime() -> None:
    numbers = {"S": pa.table({"t": [1, 2, 3]})}
    assert pw.run("SELECT COUNT(*) AS n FROM S [RANGE 1 SLIDE 1]", numbers, time="t", until=2).num_rows == 2
    moments = {"S": pa.table({"t": pa.array([0, 60_000_000], pa.timestamp("us", "UTC"))})}
    query = "SELECT COUNT(*) AS n FROM S [RANGE 1 MINUTE SLIDE 1 MINUTE]"
    for until in ("1970-01-01 00:00:30", datetime(1970, 1, 1, 0, 0, 30, tzinfo=UTC)):
        assert pw.run(query, moments, time="t", until=until).num_rows == 1


def test_an_added_column_gives_way_to_a_selected_one() -> None:
    answered = pw.run("SELECT t AS ts FROM S [ROWS 1]", {"S": pa.table({"t": [5]})}, time="t")
    assert answered.column_names == ["ts", "ts_", "sign", "expires_order"]


def test_far_away_clocks_are_rejected() -> None:
    times = pa.array([0, 10**15, None], pa.timestamp("us", "UTC"))
    stream = pw.Stream(pa.table({"t": times}), time="t", max_skew="1 hour", now=0)
    outcome = pw.reference.execute("SELECT COUNT(*) AS n FROM S [UNBOUNDED]", {"S": stream})
    assert outcome.table["n"].to_pylist() == [1]
    assert outcome.accounting["S"] == pw.reference.Accounting(rows_in=3, used=1, late=0, rejected=2)


def test_a_whole_tree_may_be_given_instead_of_text() -> None:
    from panewise.algebra import Column, Emit, Query, Source, Windowed
    from panewise.time import Domain
    from panewise.window import Varying

    source = Source("S", "S", (Column("S.t", pa.int64()),), "S.t")
    query = Query(Windowed(source, Varying(lambda t: t % 3, slide=1)), Emit.RSTREAM, Domain.INTEGER)
    answered = pw.run(query, {"S": pa.table({"t": [1, 2]})}, time="t")
    assert answered["w_end"].to_pylist() == [1, 2, 2]
