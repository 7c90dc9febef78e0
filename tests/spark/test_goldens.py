"""The golden queries through every runner: embedded = batch = stream, for several splits and numbers of shards."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet
import pytest
from pyspark.sql import SparkSession

import panewise as pw

from ..goldens.conftest import GOLDENS
from .shards import Shards
from .streams import parts, plain, reader, written

pytestmark = pytest.mark.slow
REPOSITORY = Path(__file__).parents[2]


@dataclass(frozen=True, eq=False)
class Group:
    """Golden queries over the same rows, with what the embedded engine answered, which other systems confirmed."""

    table: pa.Table
    stream: str
    time: str
    delay: Any
    boundary: str
    until: Any
    queries: dict[str, str]
    results: dict[str, pa.Table]

    def pool(self) -> pw.Pool:
        schema = pw.StreamSchema(self.table.schema, self.time, self.delay)
        pool = pw.Pool({self.stream: schema}, self.boundary)
        for name, text in self.queries.items():
            pool.register(name, text)
        return pool

    def check(self, name: str, found: pa.Table) -> None:
        assert plain(found) == plain(self.results[name]), self.queries[name]


@pytest.fixture(scope="module")
def groups(tmp_path_factory: pytest.TempPathFactory) -> list[Group]:
    if not GOLDENS.is_dir():
        pytest.skip(f"the results of other systems are not at {GOLDENS}")
    folder = tmp_path_factory.mktemp("goldens")
    environment = {**os.environ, "RECORD_GOLDENS": str(folder)}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-m", "not slow", "tests/goldens"]
    subprocess.run(command, cwd=REPOSITORY, env=environment, check=True, capture_output=True)
    cases: dict[tuple[Any, ...], list[tuple[str, Path]]] = defaultdict(list)
    for path in sorted(folder.iterdir()):
        told = json.loads((path / "case.json").read_text())
        rows = (path / "input.parquet").read_bytes()
        cases[told["stream"], told["time"], told["delay"], told["boundary"], told["until"], rows].append(
            (told["query"], path)
        )
    found = []
    for (stream, time, delay, boundary, until, _), some in cases.items():
        queries = {f"q{n}": query for n, (query, _) in enumerate(some)}
        results = {f"q{n}": pyarrow.parquet.read_table(path / "result.parquet") for n, (_, path) in enumerate(some)}
        table = _in_microseconds(pyarrow.parquet.read_table(some[0][1] / "input.parquet"))
        found.append(Group(table, stream, time, delay, boundary, until, queries, results))
    assert sum(len(group.queries) for group in found) >= 20
    return found


def _in_microseconds(table: pa.Table) -> pa.Table:
    """Timestamps as Spark knows them."""
    kinds = [pa.timestamp("us", f.type.tz) if pa.types.is_timestamp(f.type) else f.type for f in table.schema]
    return table.cast(pa.schema([(f.name, kind) for f, kind in zip(table.schema, kinds, strict=True)]))


def test_batch(spark: SparkSession, groups: list[Group]) -> None:
    for group in groups:
        if group.delay is None:
            frame = spark.createDataFrame(group.table).coalesce(1)
            found = pw.spark.batch(group.pool(), {group.stream: frame}, until=group.until)
            assert isinstance(found, dict)
            for name in group.queries:
                group.check(name, found[name].toArrow())


def streamed(spark: SparkSession, group: Group, folder: Path, files: int, shards: int, state: str) -> None:
    source = written(folder / "in", parts(group.table, files))
    pipeline = pw.spark.stream(
        group.pool(),
        {group.stream: reader(spark, source, group.table.schema)},
        checkpoint=folder / "checkpoint",
        trigger={"availableNow": True},
        shards=shards,
        max_skew=None,
        state=state,
    )
    pipeline.finish(group.until)
    for name in group.queries:
        group.check(name, pipeline.results(name).toArrow())


@pytest.mark.parametrize(("files", "shards", "state"), [(1, 1, "rocksdb"), (3, 3, "files")])
def test_stream(spark: SparkSession, groups: list[Group], tmp_path: Path, files: int, shards: int, state: str) -> None:
    for number, group in enumerate(groups):
        if group.delay is None:
            streamed(spark, group, tmp_path / str(number), files, shards, state)


def test_stream_with_late_rows(spark: SparkSession, groups: list[Group], tmp_path: Path) -> None:
    """Rows are late by batch on Spark and by row embedded: the same where every row is a batch."""
    late = [group for group in groups if group.delay is not None and group.table.num_rows <= 25]
    on_spark = max(late, key=lambda group: len(group.queries))
    streamed(spark, on_spark, tmp_path, on_spark.table.num_rows, 2, "files")
    for group in late:
        if group.time == "t" and group.stream == "S" and pa.types.is_integer(group.table.schema.field("t").type):
            shards = Shards(group.pool(), 2, restarts=True)
            for row in range(group.table.num_rows):
                shards.batch(S=[group.table.slice(row, 1)])
            shards.finish()
            for name in group.queries:
                group.check(name, shards.results(name))
