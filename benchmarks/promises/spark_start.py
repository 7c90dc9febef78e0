"""How long a new pipeline on Spark takes to its first answer, by phase, beside Spark's own window."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import median

from pyspark.sql import functions as F  # noqa: N812

import panewise as pw
from benchmarks.harness.figure import Figure, Finding, Points, Row
from benchmarks.promises.spark_cases import LEVELS, SCHEMA, SPARK_SCHEMA, SparkSettings, write_files

OURS, OWN = "Panewise", "Spark's own tumbling window"
SESSION, STARTED, ANSWER = "session", "pipeline started", "first answer"
BOUND = 10.0


def phases(series: str, settings: SparkSettings) -> dict[str, float]:
    """Seconds from the beginning of this process to the end of each phase."""
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="panewise-bench-") as name:
        folder = Path(name)
        write_files(folder / "in", settings, seed=0)
        found = {}
        session = pw.spark.local_session(folder / "spark.log")
        found[SESSION] = time.monotonic() - began
        if series == OURS:
            pool = pw.Pool({"S": pw.StreamSchema(SCHEMA, "ts", "10 seconds")})
            pool.register("q", LEVELS)
            inputs = {"S": f"parquet:{folder / 'in'}"}
            pipeline = pw.spark.stream(pool, inputs, checkpoint=folder / "c", sinks=f"parquet:{folder / 'out'}")
            found[STARTED] = time.monotonic() - began
        else:
            rows = session.readStream.schema(SPARK_SCHEMA).parquet(str(folder / "in"))
            grouped = (
                rows.withWatermark("ts", "10 seconds").groupBy(F.window("ts", "60 seconds"), "key").agg(F.sum("v"))
            )
            writer = grouped.writeStream.format("parquet").options(path=str(folder / "out"))
            query = writer.option("checkpointLocation", str(folder / "c")).start()
            found[STARTED] = time.monotonic() - began
        while not any((folder / "out").rglob("[!._]*.parquet")):
            time.sleep(0.02)
        found[ANSWER] = time.monotonic() - began
        pipeline.stop() if series == OURS else query.stop()
    return found


def measure(settings: SparkSettings) -> Iterator[Row]:
    """Medians of several processes, one after the other: a JVM starts once in each."""
    for series in (OURS, OWN):
        command = [sys.executable, "-m", "benchmarks.promises.spark_start", series, json.dumps(vars(settings))]
        runs = []
        for _ in range(settings.windows):
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            if done.returncode:
                raise RuntimeError(done.stderr[-2000:])
            runs.append(json.loads(done.stdout.splitlines()[-1]))
        for phase in (SESSION, STARTED, ANSWER):
            yield Row(series, phase, median(run[phase] for run in runs))


def findings(points: Points) -> Iterator[Finding]:
    taken = points.get(OURS, ANSWER), points.get(OURS, SESSION)
    if None not in taken:
        seconds = float(taken[0] or 0) - float(taken[1] or 0)
        yield Finding(
            f"The first answer comes at most {BOUND:.0f} s after the session", f"{seconds:.1f} s", seconds <= BOUND
        )


FIGURE = Figure(
    title="The first answer on Spark: what Panewise promises",
    claim="a new pipeline has its first answer ten seconds after its session",
    paper="no paper: the bound is our own. Five nested windows over files, in a new process each time; seconds since "
    "its beginning, medians",
    x="phase",
    y="seconds",
    baseline=OWN,
    sizes={
        "smoke": SparkSettings(rows=2000, files=3, per_batch=1, keys=50, windows=1),
        "seconds": SparkSettings(rows=100_000, files=4, per_batch=1, keys=1000, windows=1),
        "full": SparkSettings(rows=100_000, files=4, per_batch=1, keys=1000, windows=5),
    },
    measure=measure,
    findings=findings,
)

if __name__ == "__main__":
    print(json.dumps(phases(sys.argv[1], SparkSettings(**json.loads(sys.argv[2])))))
