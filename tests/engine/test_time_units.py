"""A second is a second, whatever unit a time column counts in."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import panewise as pw
from panewise.core.errors import SchemaProblem, TimeProblem

UNITS = ("s", "ms", "us", "ns")
#: Around 1970, and in our days.
EPOCHS = (-3, 1_767_600_000)
SECONDS = [0, 1, 2, 4, 5, 9, 10, 11, 12, 31, 32, 60]
VALUES = [0.0, 5.0, 10.0, 18.0, 27.5, 40.0, 1.0, 3.0, 5.0, -2.0, -4.0, 8.0]

LINES = "REGR_SLOPE(v) AS slope, REGR_INTERCEPT(v) AS zero, REGR_R2(v) AS fit"
SHAPED = f"{LINES}, REGR_SLOPE(n) AS whole, REGR_SLOPE(v, t) AS plain, REGR_SLOPE(v, w) AS other"
SERIES = (
    "REGR_SLOPE(v, 'SKIPPED', '1 SECOND') AS skipped, REGR_SLOPE(v, 'FILLED', '2 SECONDS') AS filled, "
    "REGR_FORECAST(v, '5 SECONDS') AS soon, REGR_FORECAST(n, '5 SECONDS') AS whole_soon, "
    "REGR_FORECAST(v, '1 MINUTE', 'FILLED', '1 SECOND') AS later"
)

#: Every window and every clause that has to do with time.
QUERIES = {
    "sliding": f"SELECT {SHAPED}, {SERIES} FROM S [RANGE 10 SECONDS SLIDE 5 SECONDS]",
    "continuous": f"SELECT {SHAPED} FROM S [RANGE 10 SECONDS]",
    "lagging": f"SELECT {SHAPED} FROM S [RANGE 10 SECONDS SLIDE 5 SECONDS LAG 2 SECONDS]",
    "started": f"SELECT {SHAPED} FROM S [RANGE 10 SECONDS SLIDE 4 SECONDS START AT '1969-12-31 23:59:59']",
    "landmark": f"SELECT {SHAPED} FROM S [UNBOUNDED SLIDE 10 SECONDS]",
    "cumulating": f"SELECT {SHAPED} FROM S [CUMULATE 1 MINUTE STEP 10 SECONDS]",
    "until": f"SELECT {SHAPED} FROM S [UNTIL '2026-01-05 08:00:11']",
    "rows": f"SELECT {SHAPED} FROM S [ROWS 4]",
    "partitioned": f"SELECT k, {SHAPED} FROM S [PARTITION BY k ROWS 3] GROUP BY k",
    "session": f"SELECT {SHAPED} FROM S [SESSION 3 SECONDS]",
    "frames": f"SELECT {SHAPED} FROM S [FRAME WHILE v > 0]",
    "delta": f"SELECT {SHAPED} FROM S [FRAME DELTA v > 12]",
    "levels": f"SELECT {SHAPED}, {SERIES} FROM S [RANGES 20 SECONDS, 10 SECONDS SLIDES 10 SECONDS, 5 SECONDS]",
    "aged": "SELECT AGED_SUM(v, 'EXPONENTIAL', '4 SECONDS') AS half, AGED_AVG(v, 'POLYNOMIAL', 2) AS power"
    " FROM S [RANGES 20 SECONDS, 10 SECONDS SLIDES 10 SECONDS, 5 SECONDS]",
    "now": "SELECT ISTREAM v FROM S [NOW]",
    "changes": "SELECT v FROM S [RANGE 2 SECONDS]",
    "times": "SELECT MIN(t) AS low, MAX(w) AS high, FIRST(t) AS head FROM S [RANGE 10 SECONDS SLIDE 5 SECONDS]",
    "nested": "SELECT SUM(v) AS total FROM (SELECT RSTREAM AVG(v) AS v FROM S [RANGE 4 SECONDS SLIDE 2 SECONDS])"
    " AS T [RANGE 10 SECONDS SLIDE 5 SECONDS]",
    "joined": "SELECT REGR_SLOPE(a.v, a.t) AS slope FROM S [RANGE 10 SECONDS] AS a, S [RANGE 5 SECONDS] AS b"
    " WHERE a.k = b.k",
    "empty": "SELECT COUNT(*) AS n, REGR_SLOPE(v) AS slope FROM S [RANGE 2 SECONDS SLIDE 2 SECONDS] EMIT EMPTY",
    "revised": f"SELECT {LINES} FROM S [RANGE 10 SECONDS SLIDE 5 SECONDS] LATE REVISE 5 SECONDS",
}


def items(unit: str, epoch: int = 0) -> pa.Table:
    kind = pa.timestamp(unit)
    times = pa.array([epoch + t for t in SECONDS], pa.timestamp("s")).cast(kind)
    columns = {"t": times, "w": times, "k": ["a", "b"] * 6, "v": VALUES, "n": [int(2 * v) for v in VALUES]}
    return pa.table(columns)


def plain(table: pa.Table) -> pa.Table:
    """Timestamps in microseconds."""
    kinds = [pa.timestamp("us", f.type.tz) if pa.types.is_timestamp(f.type) else f.type for f in table.schema]
    return table.cast(pa.schema([f.with_type(kind) for f, kind in zip(table.schema, kinds, strict=True)]))


def same(found: pa.Table, wanted: pa.Table) -> None:
    """Equal but for the order in which levels speak, and for roundings."""
    found, wanted = plain(found), plain(wanted)
    if "w_level" in wanted.column_names:
        found, wanted = (side.sort_by([("w_level", "ascending"), ("w_end", "ascending")]) for side in (found, wanted))
    assert found.schema.equals(wanted.schema)
    for name in wanted.column_names:
        if pa.types.is_floating(wanted[name].type):
            sides = [np.array(side[name].to_pylist(), np.float64) for side in (found, wanted)]
            np.testing.assert_allclose(sides[0], sides[1], rtol=1e-9, atol=1e-9, err_msg=name)
        else:
            assert found[name].to_pylist() == wanted[name].to_pylist(), name


@pytest.mark.parametrize("epoch", EPOCHS)
@pytest.mark.parametrize("name", QUERIES)
def test_answers_do_not_depend_on_the_unit_of_the_time_column(name: str, epoch: int) -> None:
    wanted = pw.run(QUERIES[name], {"S": items("us", epoch)}, time="t")
    assert wanted.num_rows
    for unit in UNITS:
        streams = {"S": items(unit, epoch)}
        same(pw.run(QUERIES[name], streams, time="t"), wanted)
        same(pw.reference.run(QUERIES[name], streams, time="t"), wanted)


@pytest.mark.parametrize("unit", UNITS)
def test_a_slope_is_a_second(unit: str) -> None:
    times = pa.array([1, 2, 3], pa.timestamp("s")).cast(pa.timestamp(unit))
    stream = pa.table({"t": times, "v": [1.0, 2.0, 3.0]})
    asked = "SELECT REGR_SLOPE(v) AS s FROM S [RANGE 10 SECONDS SLIDE 10 SECONDS]"
    assert pw.run(asked, {"S": stream}, time="t")["s"].to_pylist() == [1.0]
    stream = pa.table({"t": pa.array([0, 1, 2], pa.timestamp("s")).cast(pa.timestamp(unit)), "v": [0.0, 5.0, 10.0]})
    asked = "SELECT REGR_FORECAST(v, '5 SECONDS') AS f FROM S [RANGE 3 SECONDS SLIDE 3 SECONDS]"
    assert pw.run(asked, {"S": stream}, time="t", boundary="[)")["f"].to_pylist() == [40.0]


def test_a_slope_over_nanoseconds_is_per_second() -> None:
    pandas = pytest.importorskip("pandas")
    times = pandas.to_datetime([1, 2, 3], unit="s")
    frame = pandas.DataFrame({"t": times, "v": [1.0, 2.0, 3.0]}).astype({"t": "datetime64[ns]"})
    asked = "SELECT REGR_SLOPE(v) AS s FROM S [RANGE 10 SECONDS SLIDE 10 SECONDS]"
    assert pw.run(asked, {"S": frame}, time="t")["s"].to_pylist() == [1.0]


def test_a_forecast_may_lie_beyond_the_time_that_nanoseconds_can_say() -> None:
    times = pa.array([2**63 - 3_000_000_001, 2**63 - 2_000_000_001, 2**63 - 1_000_000_001], pa.timestamp("ns"))
    whole = pa.table({"t": times.cast(pa.timestamp("us"), safe=False).cast(pa.timestamp("ns")), "v": [0.0, 1.0, 2.0]})
    asked = "SELECT REGR_FORECAST(v, '200000 DAYS') AS f FROM S [RANGE 10 SECONDS SLIDE 10 SECONDS]"
    found = [how(asked, {"S": whole}, time="t")["f"].to_pylist() for how in (pw.run, pw.reference.run)]
    assert found[0] == pytest.approx(found[1], rel=1e-12)
    assert found[0][0] > 1.7e10


@pytest.mark.filterwarnings("ignore::panewise.PanewiseWarning")
@pytest.mark.parametrize("unit", UNITS)
def test_delays_skews_lookups_and_ends_do_not_depend_on_the_unit(unit: str) -> None:
    asked = f"SELECT COUNT(*) AS n, {LINES} FROM S [RANGE 10 SECONDS SLIDE 5 SECONDS]"

    def answers(kind: str) -> list[Any]:
        rows = items(kind, EPOCHS[1]).take([0, 2, 1, 5, 3, 4, 6, 7, 9, 8, 10, 11])
        stream = pw.Stream(rows, time="t", delay="2 seconds", max_skew="10 seconds", now=EPOCHS[1] * 1_000_000)
        outcome = pw.reference.execute(asked, {"S": stream}, until="2026-01-05 08:00:20")
        pool = pw.Pool({"S": pw.StreamSchema(rows.schema, time="t", delay="2 seconds")})
        pool.register("q", asked)
        engine = pw.Engine(pool, keep="1 minute", grain="1 second")
        engine.feed("S", rows)
        said = engine.advance("2026-01-05 08:00:20")["q"]
        looked = engine.lookup("q", at=datetime(2026, 1, 5, 8, 0, 12, tzinfo=UTC))
        many = engine.lookup("q", at=np.array(["2026-01-05T08:00:12"], f"datetime64[{kind}]"))
        return [pw.run(asked, {"S": stream}), outcome.table, said, looked, many, engine.accounting, outcome.accounting]

    for found, wanted in zip(answers(unit), answers("us"), strict=True):
        if isinstance(wanted, pa.Table):
            assert wanted.num_rows
            same(found, wanted)
        else:
            assert found == wanted


FINE = "2026-01-05 08:00:12.1234567"


@pytest.mark.parametrize(
    "given",
    [
        lambda: pw.run(f"SELECT v FROM S [UNTIL '{FINE}']", {"S": items("ns")}, time="t"),
        lambda: pw.run("SELECT v FROM S [RANGE 1 SECOND]", {"S": items("ns")}, time="t", until=FINE),
        lambda: pw.run("SELECT v FROM S [UNBOUNDED START AT '07:00:00.1234567']", {"S": items("ns")}, time="t"),
    ],
)
def test_an_instant_finer_than_a_tick_is_refused(given: Any) -> None:
    with pytest.raises(TimeProblem, match="finer than a microsecond"):
        given()


@pytest.mark.parametrize("unit", ["s", "ms", "ns"])
def test_a_pool_on_spark_counts_in_microseconds(unit: str) -> None:
    from panewise.runtime.spark.types import spark_schema

    with pytest.raises(SchemaProblem, match=f"timestamps in {unit} were declared, but those of Spark are in us"):
        spark_schema(items(unit).schema)


def test_instants_of_an_array_finer_than_a_tick_are_refused() -> None:
    pool = pw.Pool({"S": pw.StreamSchema(items("ns").schema, time="t", delay="0 seconds")})
    pool.register("q", "SELECT COUNT(*) AS n FROM S [RANGE 10 SECONDS SLIDE 5 SECONDS]")
    engine = pw.Engine(pool, keep="1 minute", grain="1 second")
    engine.feed("S", items("ns"))
    with pytest.raises(TimeProblem, match="finer than a microsecond"):
        engine.lookup("q", at=np.array(["1970-01-01T00:00:12.123456789"], "datetime64[ns]"))
    with pytest.raises(TimeProblem, match="outside of time"):
        engine.lookup("q", at=np.array([2**62], "datetime64[s]"))
