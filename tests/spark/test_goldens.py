"""The golden queries through every runner: embedded = batch = stream, for several splits and numbers of shards."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet
import pytest
from pyspark.sql import SparkSession

import panewise as pw
from panewise.runtime.spark.types import spark_schema

from ..goldens.conftest import GOLDENS
from .shards import Shards
from .streams import parts, plain, reader, written

Pieces = dict[str, list[pa.Table]]

pytestmark = pytest.mark.slow
REPOSITORY = Path(__file__).parents[2]
#: Streams of fewer rows show nothing on Spark that its shards do not show without it.
FEW = 10
#: Of longer ones a beginning is read; what was said up to its last instant depends on nothing later.
MANY = 9_999


@dataclass(frozen=True, eq=False)
class Case:
    """A golden query as it was recorded, with what the embedded engine answered, which other systems confirmed."""

    query: str
    boundary: str
    until: Any
    streams: dict[str, pw.Stream]
    result: pa.Table

    @classmethod
    def read(cls, path: Path) -> Case:
        told = json.loads((path / "case.json").read_text())
        streams = {
            name: pw.Stream(_in_microseconds(pyarrow.parquet.read_table(path / "streams" / f"{name}.parquet")), *how)
            for name, how in told["streams"].items()
        }
        result = pyarrow.parquet.read_table(path / "result.parquet")
        return cls(told["query"], told["boundary"], told["until"], streams, result)

    def shortened(self) -> Case:
        if all(stream.arrow.num_rows <= MANY for stream in self.streams.values()):
            return self
        (name,) = self.streams
        stream = replace(self.streams[name], table=self.streams[name].arrow.slice(0, MANY))
        last = pc.max(stream.arrow[stream.time])
        result = self.result.filter(pc.less_equal(self.result["ts"], last))
        return replace(self, streams={name: stream}, until=last.as_py(), result=result)

    @property
    def kind(self) -> tuple[bool, bool]:
        """Whether rows are late, which they are by batch on Spark, and whether there are enough of them for it."""
        late = any(stream.delay is not None for stream in self.streams.values())
        return late, all(stream.arrow.num_rows >= FEW for stream in self.streams.values())

    def meets(self, other: Case) -> bool:
        """Whether both can be asked in one pool: where they read the same stream they mean the same rows."""
        shared = self.streams.keys() & other.streams.keys()
        return (self.boundary, self.until, self.kind) == (other.boundary, other.until, other.kind) and all(
            _same(self.streams[name], other.streams[name]) for name in shared
        )


@dataclass(frozen=True, eq=False)
class Group:
    """Golden queries that stand in one pool, each with its result."""

    cases: dict[str, Case]

    @property
    def streams(self) -> dict[str, pw.Stream]:
        return {name: stream for case in self.cases.values() for name, stream in case.streams.items()}

    @property
    def late(self) -> bool:
        return self.first.kind[0]

    @property
    def on_spark(self) -> bool:
        return self.first.kind[1]

    @property
    def first(self) -> Case:
        return next(iter(self.cases.values()))

    def over(self, stream: str) -> Group:
        """The queries that read nothing but one stream."""
        return Group({name: case for name, case in self.cases.items() if list(case.streams) == [stream]})

    def pool(self, prompt: bool = False) -> pw.Pool:
        """All queries; where they shall be prompt, streams in the order of time are answered batch by batch."""
        schemas = {name: _prompt(stream) if prompt else stream.schema for name, stream in self.streams.items()}
        pool = pw.Pool(schemas, self.first.boundary)
        for name, case in self.cases.items():
            pool.register(name, f"{case.query} ALLOW UNBOUNDED")
        return pool

    def check(self, name: str, found: pa.Table) -> None:
        assert plain(found) == plain(self.cases[name].result), self.cases[name].query


@pytest.fixture(scope="module")
def groups(tmp_path_factory: pytest.TempPathFactory) -> list[Group]:
    if not GOLDENS.is_dir():
        pytest.skip(f"the results of other systems are not at {GOLDENS}")
    folder = tmp_path_factory.mktemp("goldens")
    environment = {**os.environ, "RECORD_GOLDENS": str(folder)}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-m", "not slow", "tests/goldens"]
    subprocess.run(command, cwd=REPOSITORY, env=environment, check=True, capture_output=True)
    found: list[Group] = []
    for path in sorted(folder.iterdir()):
        case = Case.read(path).shortened()
        group = next((some for some in found if all(map(case.meets, some.cases.values()))), None)
        if group is None:
            found.append(group := Group({}))
        if case.query not in [other.query for other in group.cases.values()]:
            group.cases[f"q{len(group.cases)}"] = case
    assert sum(len(group.cases) for group in found) >= 50
    return found


def _in_microseconds(table: pa.Table) -> pa.Table:
    """Timestamps as Spark knows them."""
    kinds = [pa.timestamp("us", f.type.tz) if pa.types.is_timestamp(f.type) else f.type for f in table.schema]
    return table.cast(pa.schema([(f.name, kind) for f, kind in zip(table.schema, kinds, strict=True)]))


def _same(one: pw.Stream, other: pw.Stream) -> bool:
    return (one.time, one.delay) == (other.time, other.delay) and one.arrow.equals(other.arrow)


def _times(stream: pw.Stream) -> np.ndarray[Any, np.dtype[np.int64]]:
    return np.asarray(stream.arrow[stream.time].drop_null().cast(pa.int64()).to_numpy())


def _prompt(stream: pw.Stream) -> pw.StreamSchema:
    ordered = bool((np.diff(_times(stream)) >= 0).all())
    return replace(stream, delay=0).schema if ordered and stream.delay is None else stream.schema


def by_lateness(stream: pw.Stream) -> list[pa.Table]:
    """The rows in batches that begin with every late row: late by batch are then the same as late by row."""
    times, delay = _times(stream), stream.schema.delay_ticks
    assert delay is not None
    newest = np.maximum.accumulate(times)
    cuts = [0, *(np.flatnonzero(times[1:] < newest[:-1] - delay) + 1).tolist(), len(times)]
    return [stream.arrow.slice(a, b - a) for a, b in pairwise(cuts)]


def test_batch(spark: SparkSession, groups: list[Group]) -> None:
    for group in groups:
        if group.on_spark and not group.late:
            tables = {name: stream.arrow for name, stream in group.streams.items()}
            frames = {n: spark.createDataFrame(t, spark_schema(t.schema)).coalesce(1) for n, t in tables.items()}
            found = pw.spark.batch(group.pool(), frames, until=group.first.until)
            assert isinstance(found, dict)
            for name in group.cases:
                group.check(name, found[name].toArrow())


def streamed(spark: SparkSession, group: Group, folder: Path, pieces: Pieces, shards: int, state: str) -> None:
    frames = {
        name: reader(spark, written(folder / name, pieces[name]), stream.arrow.schema)
        for name, stream in group.streams.items()
    }
    pipeline = pw.spark.stream(
        group.pool(prompt=True),
        frames,
        checkpoint=folder / "checkpoint",
        trigger={"availableNow": True},
        shards=shards,
        max_skew=None,
        state=state,
    )
    pipeline.finish(group.first.until)
    for name in group.cases:
        group.check(name, pipeline.results(name).toArrow())


def test_stream(spark: SparkSession, groups: list[Group], tmp_path: Path) -> None:
    for number, group in enumerate(groups):
        if group.on_spark and not group.late:
            pieces = {name: parts(stream.arrow, 2) for name, stream in group.streams.items()}
            streamed(spark, group, tmp_path / str(number), pieces, 3, "rocksdb")


@pytest.mark.parametrize("stream", ["cars", "S"])
def test_stream_with_state_in_files(spark: SparkSession, groups: list[Group], tmp_path: Path, stream: str) -> None:
    """Such a pipeline has one stream."""
    (group,) = [g for g in groups if stream in g.streams and g.on_spark and not g.late]
    streamed(spark, group.over(stream), tmp_path, {stream: parts(group.streams[stream].arrow, 3)}, 1, "files")


def test_stream_with_late_rows(spark: SparkSession, groups: list[Group], tmp_path: Path) -> None:
    group = max((group for group in groups if group.late), key=lambda group: len(group.cases))
    pieces = {name: by_lateness(stream) for name, stream in group.streams.items()}
    streamed(spark, group, tmp_path, pieces, 2, "files")


def test_shards_without_spark(groups: list[Group]) -> None:
    """Few rows, or late ones, each a batch."""
    for group in groups:
        if group.late or not group.on_spark:
            shards = Shards(group.pool(), 2, restarts=True)
            for name, stream in group.streams.items():
                for row in range(stream.arrow.num_rows):
                    shards.batch(**{name: [stream.arrow.slice(row, 1)]})
            shards.finish(group.first.until)
            for name in group.cases:
                group.check(name, shards.results(name))
