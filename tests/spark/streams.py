"""Streams as files, queries of every kind, and what a pipeline made of them."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet
from pyspark.sql import DataFrame, SparkSession

import panewise as pw
from panewise.runtime.spark.types import spark_schema

#: Queries of every kind; most of them with the same columns, so that a pipeline writes them together.
QUERIES = {
    "sliding": "SELECT k, SUM(v) AS s FROM S [RANGE 10 SLIDE 3] GROUP BY k",
    "lagged": "SELECT k, COUNT(*) AS s FROM S [RANGE 10 SLIDE 5 LAG 7] GROUP BY k HAVING COUNT(*) > 2",
    "landmark": "SELECT k, MIN(v) AS s FROM S [UNBOUNDED SLIDE 10] GROUP BY k",
    "cumulating": "SELECT k, MAX(v) AS s FROM S [CUMULATE 20 STEP 5] GROUP BY k",
    "filtered": "SELECT k, SUM(v + 1) AS s FROM S [RANGE 12 SLIDE 5] WHERE v > 0 GROUP BY k",
    "started": "SELECT k, LAST(v) AS s FROM S [RANGE 20 SLIDE 7 START AT 13] GROUP BY k",
    "holistic": "SELECT k, COUNT(DISTINCT w) AS s FROM S [RANGE 12 SLIDE 5] GROUP BY k",
    "sessions": "SELECT k, MAX(v) AS s FROM S [PARTITION BY k SESSION 1] GROUP BY k",
    "bridged": "SELECT k, MAX(v) AS s FROM S [SESSION 1] WHERE v > 0 GROUP BY k",
    "levels": "SELECT k, SUM(v) AS s FROM S [RANGES 40, 10 SLIDES 5, 2] GROUP BY k",
    "changes": "SELECT k, MIN(v) AS s FROM S [RANGE 20] GROUP BY k",
    "repeated": "SELECT RSTREAM k, MIN(v) AS s FROM S [RANGE 2] GROUP BY k",
    "rows": "SELECT k, MAX(v) AS s FROM S [ROWS 20] GROUP BY k",
    "blocks": "SELECT k, MAX(v) AS s FROM S [ROWS 20, 9 SLIDES 12, 4] GROUP BY k",
    "aged": "SELECT k, AGED_SUM(v) AS s FROM S [RANGES 20, 7 SLIDES 5, 2] GROUP BY k",
    "recurring": "SELECT RECURRING(k) AS s, RECURRING_COUNTS(w, 3) AS n FROM S [RANGES 16, 8, 4 SLIDES 4, 2, 1]",
    "lines": "SELECT k, REGR_SLOPE(v) AS s, REGR_R2(x) AS r FROM S [RANGES 40, 10 SLIDES 5, 2] GROUP BY k",
    "series": "SELECT REGR_SLOPE(v, 'FILLED') AS s, REGR_FORECAST(v, 5) AS r FROM S [RANGES 40, 10 SLIDES 5, 2]",
    "sketches": "SELECT k, APPROX_DISTINCT(w) AS s, TOP_K(w, 2) AS n FROM S [RANGES 20, 8 SLIDES 4, 2] GROUP BY k",
    "revised": "SELECT k, SUM(v) AS s FROM S [RANGE 10 SLIDE 3] GROUP BY k LATE REVISE 5",
}
#: Those whose results depend on the order of rows of one time.
ORDERED = ("rows", "blocks", "started")


def stream(rows: int = 400, seed: int = 1) -> pa.Table:
    """Integer time, in order, with NULL keys."""
    rng = np.random.default_rng(seed)
    keys = [None if n == 0 else f"k{n}" for n in rng.integers(0, 7, rows)]
    return pa.table(
        {
            "t": np.sort(rng.integers(0, rows // 4, rows)),
            "k": pa.array(keys, pa.string()),
            "v": rng.integers(-50, 50, rows),
            "w": pa.array([f"w{n}" for n in rng.integers(0, 9, rows)]),
            "x": rng.normal(size=rows),
        }
    )


def written(folder: Path, tables: Iterable[pa.Table], first: int = 0) -> Path:
    """Tables as files that Spark reads in their order."""
    folder.mkdir(parents=True, exist_ok=True)
    for number, table in enumerate(tables, start=first):
        draft, path = folder / f".{number}", folder / f"{number:05d}.parquet"
        pa.parquet.write_table(table, draft)
        os.utime(draft, (1_700_000_000 + number, 1_700_000_000 + number))
        os.rename(draft, path)
    return folder


def parts(table: pa.Table, count: int) -> list[pa.Table]:
    size = -(-table.num_rows // count)
    return [table.slice(number * size, size) for number in range(count)]


def reader(spark: SparkSession, folder: Path, schema: pa.Schema, files: int = 1) -> DataFrame:
    source = spark.readStream.schema(spark_schema(schema)).option("maxFilesPerTrigger", files)
    return source.parquet(str(folder))


def pooled(schema: pa.Schema, queries: Mapping[str, str], delay: int | str = 0, boundary: str = "(]") -> pw.Pool:
    pool = pw.Pool({"S": pw.StreamSchema(schema, time="t", delay=delay)}, boundary)
    for name, text in queries.items():
        pool.register(name, text)
    return pool


def plain(table: pa.Table) -> list[str]:
    """Rows without order, floats to nine digits."""
    rounded = ([round(v, 9) if isinstance(v, float) else v for v in row.values()] for row in table.to_pylist())
    return sorted(map(repr, rounded))
