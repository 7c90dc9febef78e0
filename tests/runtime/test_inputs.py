"""The same answer from Arrow, pandas, polars and every way to hold a time."""

from __future__ import annotations

import math
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet
import pytest

import panewise as pw
from panewise.core.decoding import decode_table
from panewise.cql import bind_script
from panewise.runtime.local.files import read

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


WORDS = ["a", "b", None, "a"]
PRICES = [Decimal("1.00"), None, Decimal("2.50"), Decimal("1.00")]
LISTS = [["a", None], [], None, ["b"]]
ENCODED: dict[str, tuple[Any, list[Any]]] = {
    "dictionary": (pa.array(WORDS).dictionary_encode(), WORDS),
    "dictionary of numbers": (pa.array([3, 3, None, 4]).dictionary_encode(), [3, 3, None, 4]),
    "dictionary of views": (
        pa.DictionaryArray.from_arrays(pa.array([0, 1, None, 0]), pa.array(["a", "b"], pa.string_view())),
        WORDS,
    ),
    "run ends": (pc.run_end_encode(pa.array(["a", "a", None, "b"])), ["a", "a", None, "b"]),
    "run ends of views": (
        pa.RunEndEncodedArray.from_arrays(pa.array([3, 4], pa.int16()), pa.array(["a", None], pa.string_view())),
        ["a", "a", "a", None],
    ),
    "string view": (pa.array(WORDS, pa.string_view()), WORDS),
    "binary view": (pa.array([b"a", None, b"b", b""], pa.binary_view()), [b"a", None, b"b", b""]),
    "large string": (pa.array(WORDS, pa.large_string()), WORDS),
    "large binary": (pa.array([b"a", None, b"b", b""], pa.large_binary()), [b"a", None, b"b", b""]),
    "small decimal": (pa.array(PRICES, pa.decimal32(5, 2)), PRICES),
    "uuid": (pa.array([b"a" * 16, None, b"b" * 16, b"c" * 16], pa.uuid()), [b"a" * 16, None, b"b" * 16, b"c" * 16]),
    "list of dictionaries": (pa.array(LISTS, pa.list_(pa.dictionary(pa.int8(), pa.string()))), LISTS),
    "list view": (pa.array(LISTS, pa.list_view(pa.string())), LISTS),
    "large list of views": (pa.array(LISTS, pa.large_list(pa.string_view())), LISTS),
    "fixed list of views": (
        pa.array([["a"], None, [None], ["b"]], pa.list_(pa.string_view(), 1)),
        [["a"], None, [None], ["b"]],
    ),
    "struct of views": (
        pa.array([{"x": word} for word in WORDS], pa.struct([("x", pa.string_view())])),
        [{"x": word} for word in WORDS],
    ),
    "categorical": (pl.Series(WORDS, dtype=pl.Categorical), WORDS),
    "enum": (pl.Series(WORDS, dtype=pl.Enum(["b", "a"])), WORDS),
    "list of categoricals": (pl.Series(LISTS, dtype=pl.List(pl.Categorical)), LISTS),
    "array of enums": (
        pl.Series([["a"], ["b"], ["a"], ["a"]], dtype=pl.Array(pl.Enum(["a", "b"]), 1)),
        [["a"], ["b"], ["a"], ["a"]],
    ),
    "struct of categoricals": (
        pl.Series([{"x": word} for word in WORDS], dtype=pl.Struct({"x": pl.Categorical})),
        [{"x": word} for word in WORDS],
    ),
    "pandas categorical": (pd.Series(WORDS, dtype="category"), WORDS),
}


def beside(column: Any) -> Any:
    """A table of the library that a column is from."""
    columns = {"t": [1, 2, 3, 4], "v": [1, 2, 3, 4], "k": column}
    return {pl.Series: pl.DataFrame, pd.Series: pd.DataFrame}.get(type(column), pa.table)(columns)


@pytest.mark.parametrize("kind", ENCODED)
def test_how_values_are_held_does_not_matter(kind: str) -> None:
    """Encoded columns are as good as plain ones: unused, selected, as keys, counted, and in batches of any split."""
    column, plain = ENCODED[kind]
    table = beside(column)
    unused = pw.run("SELECT SUM(v) AS s FROM S [RANGE 4 SLIDE 4]", {"S": table}, time="t")
    assert unused["s"].to_pylist() == [10]
    selected = pw.run("SELECT k FROM S [ROWS 4]", {"S": table}, time="t")
    assert selected["k"].to_pylist() == plain
    keys = pw.run("SELECT k, SUM(v) AS s FROM S [RANGE 4 SLIDE 4] GROUP BY k", {"S": table}, time="t")
    sums: dict[str, int] = {}
    for number, value in enumerate(plain, start=1):
        sums[repr(value)] = sums.get(repr(value), 0) + number
    assert {repr(row["k"]): row["s"] for row in keys.to_pylist()} == sums
    arrow = pa.table(table)
    pool = pw.Pool({"S": pw.StreamSchema(arrow.schema, time="t", delay=0)})
    pool.register("q", "SELECT COUNT(DISTINCT k) AS n FROM S [RANGE 4 SLIDE 4]")
    engine = pw.Engine(pool)
    for start in (0, 1, 3):
        engine.feed("S", arrow.slice(start, {0: 1, 1: 2, 3: 1}[start]))
    assert engine.finish()["q"]["n"].to_pylist() == [len({repr(value) for value in plain if value is not None})]


@pytest.mark.parametrize("kind", ENCODED)
def test_a_slice_of_an_encoded_column_is_decoded_alone(kind: str) -> None:
    column, plain = ENCODED[kind]
    arrow = pa.table(beside(column)).slice(1, 2)
    assert decode_table(arrow)["k"].to_pylist() == plain[1:3]


def test_encoded_columns_of_files_are_plain(tmp_path: Path) -> None:
    table = pa.table({"t": [1, 2], "k": pa.array(["a", None]).dictionary_encode(), "l": pa.array([["x"], []])})
    pa.parquet.write_table(table, tmp_path / "in.parquet")
    found = read("parquet:in.parquet", pw.StreamSchema(table.schema, time="t"), tmp_path)
    assert found.schema.types == [pa.int64(), pa.string(), pa.list_(pa.string())]
    assert found.to_pylist() == table.to_pylist()


def test_encoded_times_are_times() -> None:
    times = pa.array([1, 1, 2]).dictionary_encode()
    answered = pw.run("SELECT COUNT(*) AS n FROM S [RANGE 1 SLIDE 1]", {"S": pa.table({"t": times})}, time="t")
    assert answered["n"].to_pylist() == [2, 1]


NAN = float("nan")
MISSING: dict[str, tuple[Any, bool]] = {
    "pandas": (lambda: pd.DataFrame({"t": [1, 2], "v": [1.0, NAN]}), True),
    "pandas, 32 bits": (lambda: pd.DataFrame({"t": [1, 2], "v": pd.Series([1.0, NAN], dtype="float32")}), True),
    "pandas, objects": (lambda: pd.DataFrame({"t": [1, 2], "v": pd.Series([1.0, NAN], dtype=object)}), True),
    "pandas, nullable": (lambda: pd.DataFrame({"t": [1, 2], "v": pd.array([1.0, None], dtype="Float64")}), True),
    "pandas, Arrow": (lambda: _arrow_backed([1.0, None]), True),
    "pandas, NaN in Arrow": (lambda: _arrow_backed([1.0, NAN]), False),
    "polars": (lambda: pl.DataFrame({"t": [1, 2], "v": [1.0, None]}), True),
    "polars, NaN": (lambda: pl.DataFrame({"t": [1, 2], "v": [1.0, NAN]}), False),
    "polars, filled": (lambda: pl.DataFrame({"t": [1, 2], "v": [1.0, NAN]}).fill_nan(None), True),
    "Arrow": (lambda: pa.table({"t": [1, 2], "v": [1.0, None]}), True),
    "Arrow, NaN": (lambda: pa.table({"t": [1, 2], "v": [1.0, NAN]}), False),
}


def _arrow_backed(values: list[Any]) -> pd.DataFrame:
    return pd.DataFrame({"t": [1, 2], "v": pd.array(pa.array(values), dtype=pd.ArrowDtype(pa.float64()))})


@pytest.mark.parametrize("source", MISSING)
def test_null_is_what_the_source_calls_missing_and_nan_is_a_number(source: str) -> None:
    """One rule; where pandas keeps numbers in NumPy arrays, it has no other word for missing than NaN."""
    make, missing = MISSING[source]
    table = make()
    if isinstance(table, pd.DataFrame):
        assert table["v"].isna().tolist() == [False, missing]
    query = "SELECT COUNT(v) AS n, SUM(v) AS s, MAX(v) AS m, AVG(v) AS a FROM S [RANGE 2 SLIDE 2]"
    (row,) = pw.run(query, {"S": table}, time="t").to_pylist()
    assert row["n"] == (1 if missing else 2)
    assert [math.isnan(row[name]) for name in "sma"] == [not missing] * 3


@pytest.mark.parametrize("scheme", ["parquet", "csv", "json"])
def test_nan_and_null_of_files(tmp_path: Path, scheme: str) -> None:
    """In texts nothing at all is NULL, and NaN is written as NaN."""
    table = pa.table({"t": [1, 2, 3], "v": [1.0, NAN, None]})
    match scheme:
        case "parquet":
            pa.parquet.write_table(table, tmp_path / "in.parquet")
        case "csv":
            (tmp_path / "in.csv").write_text("t,v\n1,1.0\n2,NaN\n3,\n")
        case "json":
            (tmp_path / "in.json").write_text('{"t":1,"v":1.0}\n{"t":2,"v":NaN}\n{"t":3,"v":null}\n')
    found = read(f"{scheme}:in.{scheme}", pw.StreamSchema(table.schema, time="t"), tmp_path)
    assert repr(found["v"].to_pylist()) == "[1.0, nan, None]"


def test_until_takes_a_number_a_text_or_a_datetime() -> None:
    numbers = {"S": pa.table({"t": [1, 2, 3]})}
    assert pw.run("SELECT COUNT(*) AS n FROM S [RANGE 1 SLIDE 1]", numbers, time="t", until=2).num_rows == 2
    moments = {"S": pa.table({"t": pa.array([0, 60_000_000], pa.timestamp("us", "UTC"))})}
    query = "SELECT COUNT(*) AS n FROM S [RANGE 1 MINUTE SLIDE 1 MINUTE]"
    for until in ("1970-01-01 00:00:30", datetime(1970, 1, 1, 0, 0, 30, tzinfo=UTC)):
        assert pw.run(query, moments, time="t", until=until).num_rows == 1


def test_an_added_column_gives_way_to_a_selected_one_aloud() -> None:
    table = pa.table({"ts": [5], "sign": [1]})
    with pytest.warns(pw.PanewiseWarning, match="the instant of a result is called 'ts_', whether .* 'sign_'; give"):
        answered = pw.run("SELECT * FROM S [ROWS 1]", {"S": table}, time="ts")
    assert answered.column_names == ["ts", "sign", "ts_", "sign_", "expires_order"]
    with pytest.warns(pw.PanewiseWarning, match="is called 'ts_'") as heard:
        pw.run("SELECT ts FROM S [ROWS 1]", {"S": table}, time="ts")
    assert heard[0].filename == __file__
    pool = pw.Pool({"S": pw.StreamSchema(table.schema, time="ts")})
    with pytest.warns(pw.PanewiseWarning, match="query 'q': selected columns have the names of added ones"):
        pool.register("q", "SELECT * FROM S [ROWS 1]")
    pw.Engine.restore(pw.Engine(pool).snapshot())  # has been said once
    with pytest.warns(pw.PanewiseWarning, match="query 'all': selected columns"):
        bind_script("CREATE STREAM S (ts BIGINT) TIME ts; CREATE QUERY all AS SELECT * FROM S [ROWS 1]")
    assert pw.run("SELECT ts AS at FROM S [ROWS 1]", {"S": table}, time="ts").column_names[:2] == ["at", "ts"]


@pytest.mark.parametrize(
    ("query", "names"),
    [
        ("SELECT v, v, v FROM S [NOW]", ["v", "v_2", "v_3"]),
        ("SELECT v, v + 1 AS v FROM S [NOW]", ["v", "v_2"]),
        ("SELECT k AS a, v AS a FROM S [NOW]", ["a", "a_2"]),
        ("SELECT S.v, P.v, S.v FROM S [NOW], S AS P [NOW]", ["S.v", "P.v", "S.v_2"]),
        ("SELECT COUNT(*), COUNT(*) FROM S [RANGE 1 SLIDE 1]", ["COUNT(*)", "COUNT(*)_2"]),
    ],
)
def test_columns_that_come_again_get_readable_names(query: str, names: list[str]) -> None:
    table = pa.table({"t": [1], "k": ["a"], "v": [1]})
    assert pw.run(query, {"S": table}, time="t").column_names[: len(names)] == names


def test_far_away_clocks_are_rejected() -> None:
    times = pa.array([0, 10**15, None], pa.timestamp("us", "UTC"))
    stream = pw.Stream(pa.table({"t": times}), time="t", max_skew="1 hour", now=0)
    outcome = pw.reference.execute("SELECT COUNT(*) AS n FROM S [UNBOUNDED]", {"S": stream})
    assert outcome.table["n"].to_pylist() == [1]
    assert outcome.accounting["S"] == pw.reference.Accounting(rows_in=3, used=1, late=0, rejected=2)


def test_a_whole_tree_may_be_given_instead_of_text() -> None:
    from panewise.algebra import Column, Emit, Query, Source, Windowed
    from panewise.core.time import Domain
    from panewise.window import Varying

    source = Source("S", "S", (Column("S.t", pa.int64()),), "S.t")
    query = Query(Windowed(source, Varying(lambda t: t % 3, slide=1)), Emit.RSTREAM, Domain.INTEGER)
    answered = pw.run(query, {"S": pa.table({"t": [1, 2]})}, time="t")
    assert answered["w_end"].to_pylist() == [1, 2, 2]
