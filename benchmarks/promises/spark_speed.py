"""What Panewise promises on Spark, beside Spark's own windows in the same session."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from benchmarks.harness.figure import Figure, Finding, Points, Row
from benchmarks.promises.spark_cases import SparkSettings, measured

CASES = "benchmarks.promises.spark_cases"
OWN = "Spark's own tumbling window"


@dataclass(frozen=True)
class Promise:
    """A case over another, and the bound of that ratio."""

    words: str
    case: str
    over: str
    at_least: float | None = None
    at_most: float | None = None

    def finding(self, points: Points) -> Finding | None:
        ours, theirs = points.get("measured", self.case), points.get("measured", self.over)
        if ours is None or theirs is None:
            return None
        ratio = ours / theirs
        holds = (self.at_least is None or ratio >= self.at_least) and (self.at_most is None or ratio <= self.at_most)
        bound = f"at least {self.at_least}" if self.at_least is not None else f"at most {self.at_most}"
        told = f"{ratio:.2f} times ({ours:,.0f} over {theirs:,.0f})"
        return Finding(f"{self.words}: {bound}", told, holds)


PROMISES = (
    Promise("5 levels, files read by workers, over Spark's one tumbling window", "levels read", "spark tumbling", 1.5),
    Promise("the same with large batches", "levels read, large batches", "spark tumbling, large batches", at_least=3.0),
    Promise("5 levels of a DataFrame, over Spark's one tumbling window", "levels rocksdb", "spark tumbling", 0.8),
    Promise("5 levels, files read by workers, over Spark's one sliding window", "levels read", "spark sliding", 3.0),
    Promise(
        "many windows, files read by workers, over Spark's one tumbling window", "windows read", "spark tumbling", 1.2
    ),
    Promise("bounded DataFrame, 5 levels, over Spark's own GROUP BY of one", "levels batch", "spark batch", 1.0),
    Promise("bounded files, 5 levels, over Spark's own GROUP BY of one", "levels batch, read", "spark batch", 2.0),
    Promise("commit with 10 x keys in the state over 1 x", "commit 10 x keys", "commit 1 x keys", at_most=1.5),
    Promise(
        "5 levels with large batches on 2 cores over 1 core",
        "levels read, large batches",
        "levels read, large batches, 1 core",
        1.6,
    ),
)


def measure(settings: SparkSettings) -> Iterator[Row]:
    found = measured(CASES, 2, settings)
    if settings.all:
        found |= {f"{case}, 1 core": value for case, value in measured(CASES, 1, replace(settings, all=False)).items()}
    for case, value in found.items():
        yield Row("measured", case, value)
        yield Row(OWN, case, found["spark tumbling"])


def findings(points: Points) -> Iterator[Finding]:
    for promise in PROMISES:
        found = promise.finding(points)
        if found is not None:
            yield found


FIGURE = Figure(
    title="Speed on Spark: what Panewise promises",
    claim="five nested windows on Spark cost no more than the one tumbling window that Spark has of its own",
    paper="no paper: these bounds are our own, and meant for the size `full`. 1,000 keys, a minute of 1 M rows a file, "
    "5 files a batch (small batches: 1, large ones: 20), SUM, COUNT and MAX of doubles; many windows are 1,000 random "
    "ones over 100 keys. Rows a second are medians of whole batches after the first two, results written to Parquet, "
    "all in one session on 2 cores; commits are milliseconds, states bytes",
    x="case",
    y="rows a second, or the unit of the case",
    baseline=OWN,
    sizes={
        "smoke": SparkSettings(rows=2000, files=4, per_batch=1, keys=50, windows=10, large=2, all=False),
        "seconds": SparkSettings(rows=200_000, files=12, per_batch=2, keys=1000, windows=100, large=4),
        "full": SparkSettings(rows=1_000_000, files=80, per_batch=5, keys=1000, windows=1000, large=20),
    },
    measure=measure,
    findings=findings,
    log=frozenset("y"),
)
