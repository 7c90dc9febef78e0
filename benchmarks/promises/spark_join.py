"""A windowed join on Spark beside Spark's own join of two streams, in one session."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from benchmarks.harness.figure import Figure, Finding, Points, Row
from benchmarks.promises.spark_cases import PROVIDER, STORES, Bench, SparkSettings, measured, told

JOIN = (
    "SELECT ISTREAM A.key, A.v AS a, B.v AS b FROM S [RANGE 60 SECONDS SLIDE 10 SECONDS] AS A, "
    "T [RANGE 60 SECONDS SLIDE 10 SECONDS] AS B WHERE A.key = B.key"
)
NEAR = "S.key = T.key AND T.ts >= S.ts - INTERVAL 60 SECONDS AND T.ts <= S.ts + INTERVAL 60 SECONDS"
OURS, OWN = "Panewise", "Spark's own join of streams"


def cases(cores: int, settings: SparkSettings) -> Iterator[tuple[str, float]]:
    with tempfile.TemporaryDirectory(prefix="panewise-bench-") as name:
        bench = Bench(cores, settings, Path(name))
        sides = {"S": bench.stream(), "T": bench.stream(bench.written("other", seed=1))}
        for store in ("HDFSBacked", "RocksDB") if settings.all else ("RocksDB",):
            bench.session.conf.set(PROVIDER, f"{STORES}.{store}StateStoreProvider")
            yield f"{OWN}, {store}", bench.theirs(own(sides), streams=2)
        yield OURS, bench.ours({"j": JOIN}, "rocksdb", {**sides})[0]


def own(sides: dict[str, DataFrame]) -> DataFrame:
    """The same time bound in Spark's words."""
    left, right = (side.withWatermark("ts", "10 seconds").alias(name) for name, side in sides.items())
    return left.join(right, F.expr(NEAR)).selectExpr("S.key", "S.v AS a", "T.v AS b")


def measure(settings: SparkSettings) -> Iterator[Row]:
    found = measured("benchmarks.promises.spark_join", 2, settings)
    for name, rate in found.items():
        yield Row(name.partition(",")[0], "RocksDB" if name == OURS else name.partition(", ")[2], rate)


def findings(points: Points) -> Iterator[Finding]:
    ours, best = points.of(OURS)[0], max(points.of(OWN))
    yield Finding(
        "A join of windows is as fast as Spark's own, whatever state store that has",
        f"{ours / best:.2f} times ({ours:,.0f} over {best:,.0f} rows a second)",
        ours >= best,
    )


FIGURE = Figure(
    title="Joins on Spark: what Panewise promises",
    claim="a join of two windows of 60 s that slide by 10 s is as fast as Spark's own join with the same bound",
    paper="no paper: the bound is our own, and meant for the size `full`. Two streams of files of a minute each, two "
    "files of each a batch; a row meets about one row of the other stream a minute. Rows of both streams a second "
    "are medians of whole batches after the first two, results written to Parquet, in one session on 2 cores",
    x="state store",
    y="rows a second",
    baseline=OWN,
    sizes={
        "smoke": SparkSettings(rows=500, files=2, per_batch=1, keys=500, windows=0, all=False),
        "seconds": SparkSettings(rows=20_000, files=10, per_batch=2, keys=20_000, windows=0),
        "full": SparkSettings(rows=100_000, files=12, per_batch=2, keys=100_000, windows=0),
    },
    measure=measure,
    findings=findings,
)


if __name__ == "__main__":
    told(cases)
