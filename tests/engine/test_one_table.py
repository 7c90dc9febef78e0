"""All answers of a moment as one table."""

from __future__ import annotations

import pyarrow as pa

import panewise as pw
from panewise.engine.outputs import Emission

SCHEMA = pa.schema([("t", pa.int64()), ("k", pa.string()), ("v", pa.int64())])
QUERIES = {
    "sums": "SELECT k, SUM(v) AS a FROM S [RANGE 4 SLIDE 2] GROUP BY k",
    "again": "SELECT k, SUM(v) AS a FROM S [RANGE 4 SLIDE 2] GROUP BY k",
    "means": "SELECT k, AVG(v) AS a FROM S [RANGE 4 SLIDE 2] GROUP BY k",
    "levels": "SELECT k, SUM(v) AS a FROM S [RANGES 4, 2 SLIDES 2, 1] GROUP BY k",
    "changes": "SELECT k, SUM(v) AS a FROM S [RANGE 3] GROUP BY k",
    "rows": "SELECT v, k AS query FROM S [RANGE 3] WHERE v > 15",
    "silent": "SELECT v FROM S [RANGE 3] WHERE v > 100",
    "frames": "SELECT MAX(v) AS a FROM S [FRAME WHILE v < 25 PARTITION BY k]",
}


def emitted() -> dict[str, Emission]:
    pool = pw.Pool({"S": pw.StreamSchema(SCHEMA, time="t")}, bounded=True)
    for name, text in QUERIES.items():
        pool.register(name, text)
    engine = pw.Engine(pool)
    engine.feed("S", pa.table([[1, 2, 2, 3, 5], list("abaab"), [10, 20, 30, 5, 40]], schema=SCHEMA))
    return {"some": engine.advance(2), "none": engine.advance(2), "rest": engine.finish()}


def test_has_the_rows_of_each_query() -> None:
    """Names that stand for several types have a column for each type, with underscores."""
    for emission in emitted().values():
        whole = emission.table()
        rows = {name: [row for row in whole.to_pylist() if row["query"] == name] for name in emission}
        assert whole.num_rows == sum(map(len, rows.values()))
        for name, table in emission.items():
            values = [sorted(map(str, (v for v in row.values() if v is not None))) for row in table.to_pylist()]
            found = [sorted(str(v) for k, v in row.items() if v is not None and k != "query") for row in rows[name]]
            assert found == values


def test_types_stay_as_they_are() -> None:
    schema = emitted()["rest"].table().schema
    assert schema.names[0] == "query"
    assert {schema.field("a").type, schema.field("a_").type} == {pa.int64(), pa.float64()}


def test_without_results_there_are_no_rows() -> None:
    assert emitted()["none"].table().num_rows == 0
