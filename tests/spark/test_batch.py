"""Bounded DataFrames give what `pw.run` gives on the same rows."""

from __future__ import annotations

import math

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import panewise as pw
from panewise.core.errors import BindProblem, SchemaProblem
from panewise.runtime.spark.transfer.shard_numbers import labels_of, spark_hash

from .streams import ORDERED, QUERIES, plain, pooled, stream

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("boundary", ["(]", "[)"])
def test_every_kind_of_query_together(spark: SparkSession, boundary: str) -> None:
    table = stream()
    frame = spark.createDataFrame(table).repartition(3, "t").sortWithinPartitions("t")
    pool = pooled(table.schema, {n: q for n, q in QUERIES.items() if n not in ORDERED}, boundary=boundary)
    found = pw.spark.batch(pool, {"S": frame})
    assert isinstance(found, dict)
    for name in pool.queries:
        wanted = pw.run(QUERIES[name], {"S": table}, time="t", boundary=boundary)
        got = found[name].toArrow()
        assert plain(got) == plain(wanted), name
        assert got.schema.names == wanted.schema.names


@pytest.mark.parametrize("name", ORDERED)
def test_rows_in_their_order(spark: SparkSession, name: str) -> None:
    """Ties are in the order of arrival, which one partition keeps."""
    table = stream()
    frame = spark.createDataFrame(table).coalesce(1)
    found = pw.spark.batch(QUERIES[name], {"S": frame}, time="t")
    assert plain(found.toArrow()) == plain(pw.run(QUERIES[name], {"S": table}, time="t"))


@pytest.mark.parametrize("kind", [pa.int64(), pa.float64(), pa.int32(), pa.float32()])
def test_sums_that_spark_aggregates_are_ours(spark: SparkSession, kind: pa.DataType) -> None:
    """Panes made in the JVM: exact integers beyond doubles, floats rounded once, NaN, infinities, NULLs."""
    rng = np.random.default_rng(5)
    values = rng.integers(-(2**30), 2**30, 3000) * (2**20 if kind == pa.int64() else 1)
    column = (
        pa.array(values, pa.int64()).cast(kind, safe=False)
        if pa.types.is_integer(kind)
        else pa.array(rng.normal(size=3000) * 10.0 ** rng.integers(-3, 3, 3000), kind)
    )
    odd = [math.nan, math.inf, -math.inf, -0.0, None] if pa.types.is_floating(kind) else [None, 0]
    late = pa.array(odd, kind)
    times = pa.array([*np.sort(rng.integers(0, 600_000_000, 3000)), *range(700_000_000, 700_000_000 + len(odd))])
    table = pa.table(
        {
            "ts": times.cast(pa.timestamp("us", "UTC")),
            "k": pa.array([None if n == 0 else int(n) for n in rng.integers(0, 4, len(times))], pa.int32()),
            "v": pa.concat_arrays([column, late]),
        }
    )
    query = (
        "SELECT k, SUM(v) AS s, AVG(v) AS a, COUNT(v) AS n, COUNT(*) AS c, MIN(v) AS low, MAX(v) AS high "
        "FROM S [RANGES 5 MINUTES, 1 MINUTE SLIDES 1 MINUTE, 20 SECONDS] WHERE k IS NULL OR k <> 2 GROUP BY k"
    )
    found = pw.spark.batch(query, {"S": spark.createDataFrame(table).repartition(2)}, time="ts").toArrow()
    wanted = pw.run(query, {"S": table}, time="ts")
    assert found.num_rows == wanted.num_rows > 100
    order = [("w_level", "ascending"), ("w_end", "ascending"), ("k", "ascending")]
    for one, other in zip(found.sort_by(order).to_pylist(), wanted.sort_by(order).to_pylist(), strict=True):
        for name, value in one.items():
            if isinstance(value, float) and math.isfinite(value):
                assert abs(value - other[name]) <= 4 * math.ulp(max(abs(value), abs(other[name]))), name
            else:
                assert repr(value) == repr(other[name]), name


def test_a_column_that_is_missing_or_of_another_type(spark: SparkSession) -> None:
    table = stream(10)
    pool = pooled(table.schema, {"q": QUERIES["sliding"]})
    with pytest.raises(SchemaProblem, match="stream 'S': the DataFrame has no column 'v'"):
        pw.spark.batch(pool, {"S": spark.createDataFrame(table.drop_columns(["v"]))})
    text = table.set_column(2, "v", table["v"].cast(pa.string()))
    with pytest.raises(SchemaProblem, match=r"column 'v' is STRING in the DataFrame, but was declared BIGINT; cast it"):
        pw.spark.batch(pool, {"S": spark.createDataFrame(text)})
    with pytest.raises(SchemaProblem, match="no input for stream 'S'"):
        pw.spark.batch(pool, {})
    with pytest.raises(SchemaProblem, match="time column is not named"):
        pw.spark.batch(QUERIES["sliding"], {"S": spark.createDataFrame(table)})
    varying = "SELECT DISTINCT k FROM S [RANGE (ABS(now) % 4) SLIDE 2]"
    with pytest.raises(BindProblem, match="the engine does not answer"):
        pw.spark.batch(varying, {"S": spark.createDataFrame(table)}, time="t")


def test_rows_without_a_usable_time_are_left_out(spark: SparkSession) -> None:
    times = pa.array([None, 0, 60_000_000, -(2**60)], pa.int64()).cast(pa.timestamp("us", "UTC"))
    table = pa.table({"ts": times, "v": [1, 2, 4, 8]})
    query = "SELECT SUM(v) AS s FROM S [RANGE 2 MINUTES SLIDE 2 MINUTES]"
    found = pw.spark.batch(query, {"S": spark.createDataFrame(table)}, time="ts").toArrow()
    assert sum(found["s"].to_pylist()) == 6


@pytest.mark.parametrize(
    "queries",
    [
        ["SELECT k, SUM(v) AS s FROM S [RANGE 5 SLIDE 5] GROUP BY k"],
        ["SELECT k, MEDIAN(v) AS m FROM S [RANGE 5 SLIDE 5] GROUP BY k"],
        [
            "SELECT k, SUM(v) AS s FROM S [RANGE 5 SLIDE 5] GROUP BY k",
            "SELECT COUNT(*) AS n FROM S [RANGE 5 SLIDE 5] WHERE v > 1",
        ],
    ],
    ids=["panes by Spark", "panes by us", "two queries"],
)
def test_an_observation_tells_how_many_rows_have_no_usable_time(spark: SparkSession, queries: list[str]) -> None:
    """Rows that no filter wants are counted too."""
    table = pa.table({"t": pa.array([1, None, 3, None, 7]), "k": ["a", "b", "a", "b", "a"], "v": [1, 2, 3, 4, 5]})
    pool = pw.Pool({"S": pw.StreamSchema(table.schema, "t")}, bounded=True)
    for number, query in enumerate(queries):
        pool.register(f"q{number}", query)
    for found in pw.spark.batch(pool, {"S": spark.createDataFrame(table).repartition(2)}).values():
        found.collect()
        observed = found._jdf.queryExecution().observedMetrics().apply("panewise S")
        assert (observed.getAs("rows_in"), observed.getAs("rejected")) == (5, 2)


def test_text_and_quoted_names_are_the_same_on_both_hosts(spark: SparkSession) -> None:
    table = pa.table({"t": [1, 2, 3], "id.orig_h": ["it's", "a\\b", "a\\b"], "Customer Name": ["x", "y", "x"]})
    query = (
        'SELECT "Customer Name" AS c, COUNT(DISTINCT "id.orig_h") AS n, MAX(\'it\'\'s \\\\ \\n "x" `y` \\d\') AS s '
        "FROM S [RANGE 4 SLIDE 4] WHERE `id.orig_h` IN ('it''s', 'it\\'s', 'a\\\\b') GROUP BY \"Customer Name\""
    )
    found = pw.spark.batch(query, {"S": spark.createDataFrame(table)}, time="t").toArrow()
    wanted = pw.run(query, {"S": table}, time="t")
    assert plain(found) == plain(wanted)
    assert wanted.to_pylist()[0] | {"n": 2, "s": 'it\'s \\ \n "x" `y` d'} == wanted.to_pylist()[0]


def test_columns_of_lists_structs_and_maps_and_nan(spark: SparkSession) -> None:
    """A type written down twice is one type, also where nobody reads the column; NaN is a number, as in Arrow."""
    inner = pa.struct([("A", pa.int64()), ("b c", pa.list_(pa.string()))])
    table = pa.table(
        {
            "t": [1, 2, 3, 4],
            "st": pa.array([{"A": 1, "b c": ["x", None]}, None, {"A": None, "b c": []}, {"A": 1, "b c": None}], inner),
            "tags": pa.array([["a"], ["a"], None, ["b", None]], pa.list_(pa.string())),
            "m": pa.array([[("a", 1)], None, [], [("b", None)]], pa.map_(pa.string(), pa.int64())),
            "v": [1.0, math.nan, None, 2.0],
        }
    )
    frame = spark.createDataFrame(table)
    pool = pw.Pool({"S": pw.StreamSchema(table.schema, time="t")}, bounded=True)
    pool.register("unused", "SELECT COUNT(v) AS n, SUM(v) AS s FROM S [RANGE 2 SLIDE 2]")
    pool.register("listed", "SELECT tags, st FROM S [NOW]")
    pool.register("grouped", "SELECT tags, COUNT(*) AS n FROM S [RANGE 4 SLIDE 4] GROUP BY tags")
    pool.register("fields", "SELECT S.st.A AS a, COUNT(st.`b c`) AS n FROM S [RANGE 4 SLIDE 4] GROUP BY st.A")
    found = pw.spark.batch(pool, {"S": frame})
    assert isinstance(found, dict)
    for name, query in pool.queries.items():
        wanted = pw.run(str(query.text), {"S": table}, time="t")
        assert sorted(map(repr, found[name].toArrow().to_pylist())) == sorted(map(repr, wanted.to_pylist())), name
    alone = pw.spark.batch("SELECT COUNT(*) AS n FROM S [RANGE 4 SLIDE 4]", {"S": frame}, time="t")
    assert [row["n"] for row in alone.collect()] == [4]
    other = table.schema.set(1, pa.field("st", pa.struct([("A", pa.int64()), ("b c", pa.list_(pa.int64()))])))
    pool = pw.Pool({"S": pw.StreamSchema(other, time="t")}, bounded=True)
    pool.register("q", "SELECT COUNT(*) AS n FROM S [RANGE 4 SLIDE 4]")
    with pytest.raises(
        SchemaProblem, match="column 'st' is STRUCT<`A`: BIGINT, `B C`: ARRAY<STRING>> in the DataFrame"
    ):
        pw.spark.batch(pool, {"S": frame})


@pytest.mark.parametrize(
    ("setting", "value"), [("spark.sql.ansi.enabled", "false"), ("spark.sql.session.timeZone", "Europe/Berlin")]
)
def test_a_session_in_which_expressions_mean_something_else_is_refused(
    spark: SparkSession, setting: str, value: str
) -> None:
    other = spark.newSession()
    other.conf.set(setting, value)
    frame = other.createDataFrame(pa.table({"t": [1], "v": [2]}))
    with pytest.raises(pw.PanewiseError, match=f"{setting} is '{value}' in this Spark session"):
        pw.spark.batch("SELECT v FROM S [NOW]", {"S": frame}, time="t")


def test_numbers_of_shards_land_on_different_partitions(spark: SparkSession) -> None:
    numbers = [*range(100), 2**31 - 1, -(2**31), -1]
    rows = spark.createDataFrame([(number,) for number in numbers], "n int").selectExpr("HASH(n) AS h").collect()
    assert [spark_hash(number) for number in numbers] == [row["h"] for row in rows]
    for shards in (1, 2, 7, 64):
        assert [spark_hash(label) % shards for label in labels_of(shards)] == list(range(shards))
