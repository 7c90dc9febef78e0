"""Topics as source and sink, on a real broker: JSON in, JSON out."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

import panewise as pw
from panewise import spark as ps
from panewise.runtime.spark.sources import source
from tests.spark import answers
from tests.spark.submitted import QUERIES, SCHEMA, pool

pytestmark = pytest.mark.slow

DOCUMENTED = Path(__file__).parents[2] / "docs" / "deploy.md"

#: Values that are no row: not JSON, cut off, of another shape, without a time, with a time that is none; and none.
MALFORMED = ["payment", '{"t": "2024-01-01T00:00:01Z", "ca', "[1]", '{"card": "a"}', '{"t": "soon", "card": "a"}', None]


@dataclass
class Topic:
    """A topic as its writers and readers see it."""

    spark: SparkSession
    server: str
    name: str

    @property
    def address(self) -> str:
        return f"kafka:{self.server}/{self.name}"

    def write(self, values: list[str | None], key: str | None = None) -> None:
        """Values with a key stay in order; without one they are spread over the topic, and meet again in any order."""
        frame = self.spark.createDataFrame([(key, value) for value in values], "key string, value string")
        frame = frame.coalesce(1) if key else frame.repartition(2)
        frame.write.format("kafka").options(**{"kafka.bootstrap.servers": self.server, "topic": self.name}).save()

    def read(self) -> DataFrame:
        options = {"kafka.bootstrap.servers": self.server, "subscribe": self.name, "includeHeaders": "true"}
        return self.spark.read.format("kafka").options(**options).load()

    def results(self, schema: pa.Schema) -> pa.Table:
        """The values, read with the columns they were written with."""
        declared = pw.StreamSchema(schema, time="w_end")
        return source(self.spark, self.address, declared, Path(), streaming=False).toArrow().cast(schema)


def as_json(rows: pa.Table) -> list[str | None]:
    return [json.dumps(row | {"t": row["t"].isoformat()}) for row in rows.to_pylist()]


@dataclass
class Answered:
    """A pipeline after its end, and the topics that it wrote to."""

    pipeline: ps.Pipeline
    topics: dict[str, Topic]


@pytest.fixture(scope="module", params=["rocksdb", "files"])
def answered(
    request: pytest.FixtureRequest, spark: SparkSession, kafka: str, tmp_path_factory: pytest.TempPathFactory
) -> Answered:
    """From one topic to two others; some rows came before the pipeline started, and some while it ran."""
    state, folder = str(request.param), tmp_path_factory.mktemp("kafka")
    payments, *others = (Topic(spark, kafka, f"{state}-{name}") for name in ("payments", *QUERIES))
    topics = dict(zip(QUERIES, others, strict=True))
    first, second = map(as_json, answers.halves())
    payments.write([*first, *MALFORMED])
    rows = source(spark, payments.address, SCHEMA, folder, streaming=True)
    sinks: dict[str, Any] = {"minute": [topics["minute"].address, "memory:"], "large": topics["large"].address}
    pipeline = ps.stream(pool(), {"S": rows}, checkpoint=folder, sinks=sinks, shards=2, state=state)
    pipeline.query.processAllAvailable()
    # Those that come while it runs may come in several batches.
    payments.write(second, key="in order")
    pipeline.finish()
    return Answered(pipeline, topics)


def test_topics_are_answered_into_topics(answered: Answered) -> None:
    want = answers.expected("minute")
    assert answers.plain(answered.topics["minute"].results(want.schema)) == answers.plain(want)


def test_microseconds_of_results_are_written(answered: Answered) -> None:
    want = answers.expected("large")
    assert answers.plain(answered.topics["large"].results(want.schema)) == answers.plain(want)


def test_several_sinks_get_the_same(answered: Answered) -> None:
    want = answers.expected("minute")
    found = answered.pipeline.results("minute").toArrow().cast(want.schema)
    assert answers.plain(found) == answers.plain(want)


def test_malformed_values_are_counted(answered: Answered) -> None:
    told, rows = answered.pipeline.metrics, answers.ROWS.num_rows
    assert (told.rows_in, told.used, told.late, told.rejected) == (rows + len(MALFORMED), rows, 0, len(MALFORMED))


def test_readers_can_tell_batches_apart(answered: Answered) -> None:
    values = answered.topics["minute"].read().select("headers").distinct().collect()
    found = {(header["key"], int(header["value"])) for value in values for header in value["headers"]}
    assert found >= {("batch", 0), ("batch", answered.pipeline.metrics.batch)}
    assert {key for key, _ in found} == {"batch"}


def test_the_documented_application_runs(spark: SparkSession, kafka: str, tmp_path: Path) -> None:
    """But to an end, and on two shards."""
    (code,) = re.findall(r"```python\n(.*?)```", DOCUMENTED.read_text(encoding="utf-8"), re.DOTALL)
    for old, new in {
        "broker:9092": kafka,
        "/shared": str(tmp_path),
        "shards=8": 'shards=2, trigger={"availableNow": True}',
    }.items():
        assert old in code
        code = code.replace(old, new)
    Topic(spark, kafka, "payments").write(as_json(answers.ROWS))
    names: dict[str, Any] = {}
    exec(code, names)
    want = pw.run(names["pool"].queries["busy"].text, {"payments": answers.ROWS}, time="t")
    found = answers.plain(Topic(spark, kafka, "busy").results(want.schema))
    assert found
    assert set(found) < set(answers.plain(want))
