"""`pw.spark.batch`: the answers to queries over bounded DataFrames."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import partial, reduce
from itertools import groupby
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from panewise.core.errors import SchemaProblem, did_you_mean
from panewise.core.time import Boundary
from panewise.engine import Pool
from panewise.runtime.spark.dataframes import BoundedTransfer, check_columns, declared, unpack_results
from panewise.runtime.spark.files.file_stream import FileStream
from panewise.runtime.spark.files.source import file_messages
from panewise.runtime.spark.run import StreamInput
from panewise.runtime.spark.run_context import Channel, RunContext, result_schemas
from panewise.runtime.spark.session import check_session, session_of
from panewise.runtime.spark.shard import OUTPUT_SCHEMA, Shard, emit_results, read_message, take_messages
from panewise.runtime.spark.sources import bounded_source, undeclared_source
from panewise.runtime.spark.transfer.layout import TIME_COLUMN, Layout, StreamTransfer
from panewise.runtime.spark.transfer.shard_numbers import labels_of
from panewise.runtime.spark.transfer.slice import SlicingStage


def batch(
    queries: Pool | str,
    streams: Mapping[str, DataFrame | str],
    *,
    time: str | None = None,
    boundary: str | Boundary = "(]",
    until: int | str | datetime | None = None,
    base: str | Path = ".",
) -> DataFrame | dict[str, DataFrame]:
    """Answer queries over bounded input: one DataFrame for one SELECT, or one for each query of a pool.

    A stream is a DataFrame or an address relative to `base`; Parquet files at an address are read by Spark's Python
    workers, so that their rows never enter the JVM.

    The input is complete, so nothing is late; rows whose time is NULL or outside the allowed years are left out. The
    run ends when every item has left all its windows, or at an instant. A pool's queries are answered together in one
    pass.
    """
    session = check_session(session_of(streams.values()))
    pool = queries if isinstance(queries, Pool) else _pool(queries, streams, time, boundary, session, Path(base))
    inputs = {name: _bounded_input(name, streams, pool, session, Path(base)) for name in _streams_of(pool)}
    shards = int(session.conf.get("spark.sql.shuffle.partitions") or 1)
    schemas = result_schemas(pool)
    channels = [Channel(name, schema) for name, schema in schemas.items()]
    columnar = [name for name, given in inputs.items() if isinstance(given, FileStream)]
    context = RunContext.of("batch", pool, shards, channels, columnar=columnar)
    labels = labels_of(shards)
    sent = [_messages(session, context.layout, each, labels, inputs[each.stream]) for each in context.layout.transfers]
    parted = (
        reduce(lambda one, other: one.union(other), sent)
        .repartition(shards, "shard")
        .sortWithinPartitions("shard", "place")
    )
    answers = parted.mapInArrow(AnsweringStage(context, None if until is None else str(until)), OUTPUT_SCHEMA)
    if len(schemas) > 1:
        # Each query's DataFrame reads from these, so that all together are answered in one pass.
        answers = answers.persist()
    found = {name: unpack_results(answers, number, schema) for number, (name, schema) in enumerate(schemas.items())}
    return found if isinstance(queries, Pool) else found["query"]


def _messages(
    session: SparkSession, layout: Layout, transfer: StreamTransfer, labels: tuple[int, ...], given: StreamInput
) -> DataFrame:
    if isinstance(given, FileStream):
        return file_messages(session, given, SlicingStage(layout, transfer, labels))
    slicing = BoundedTransfer(layout, transfer, labels)
    return slicing.messages(_with_observation(slicing, given))


def _with_observation(slicing: BoundedTransfer, frame: DataFrame) -> DataFrame:
    """The rows to be sliced, with an observation that counts them and those without a usable time.

    A DataFrame is computed later and elsewhere, so that no warning is possible here; Spark reports to its listeners.
    """
    counts = F.count(F.lit(1)).alias("rows_in"), F.count_if(F.col(TIME_COLUMN).isNull()).alias("rejected")
    return slicing.rows(frame).observe(f"panewise {slicing.transfer.stream}", *counts)


def _pool(
    text: str,
    streams: Mapping[str, DataFrame | str],
    time: str | None,
    boundary: str | Boundary,
    session: SparkSession,
    base: Path,
) -> Pool:
    if time is None:
        raise SchemaProblem("the time column is not named", fix='pass time="..." or a pw.Pool')
    frames = {
        name: undeclared_source(session, given, base) if isinstance(given, str) else given
        for name, given in streams.items()
    }
    pool = Pool({name: declared(name, frame, time) for name, frame in frames.items()}, boundary, bounded=True)
    pool.register("query", text)
    return pool


def _streams_of(pool: Pool) -> list[str]:
    if not pool.queries:
        raise SchemaProblem("the pool has no queries", fix="register one first")
    return sorted({stream for registered in pool.queries.values() for stream in registered.streams})


def _bounded_input(
    name: str, streams: Mapping[str, DataFrame | str], pool: Pool, session: SparkSession, base: Path
) -> StreamInput:
    if name not in streams:
        raise SchemaProblem(f"there is no input for stream {name!r}", fix=did_you_mean(name, streams or [name]))
    given = streams[name]
    if isinstance(given, str):
        return bounded_source(session, given, pool.streams[name], base)
    return check_columns(name, given, pool.streams[name])


@dataclass(frozen=True, eq=False)
class AnsweringStage:
    """The function of a stage: the messages to some shards in, all their results out."""

    context: RunContext
    until: str | None

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        rows = (
            (label.as_py(), payload) for b in batches for label, payload in zip(b["shard"], b["payload"], strict=True)
        )
        for label, mine in groupby(rows, key=lambda row: row[0]):
            shard = Shard(self.context.build_engine((q.name, q.text, q.since) for q in self.context.known.values()))
            take_messages(shard, self.context, [read_message(payload.as_buffer()) for _, payload in mine])
            until: Any = self.until
            for results in emit_results(shard, self.context, partial(shard.engine.finish, until)):
                yield pa.RecordBatch.from_pandas(results.as_row(label), preserve_index=False)
