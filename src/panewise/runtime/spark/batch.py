"""`pw.spark.batch`: the answers to queries over bounded DataFrames."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import partial, reduce
from itertools import groupby
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from panewise.core.errors import SchemaProblem, did_you_mean
from panewise.core.time import Boundary
from panewise.engine import Pool
from panewise.runtime.spark.dataframes import BoundedTransfer, check_columns, declared, unpack_results
from panewise.runtime.spark.run_context import Channel, RunContext, result_schemas
from panewise.runtime.spark.session import check_session
from panewise.runtime.spark.shard import OUTPUT_SCHEMA, Shard, emit_results, read_message, take_messages
from panewise.runtime.spark.transfer.layout import TIME_COLUMN
from panewise.runtime.spark.transfer.shard_numbers import labels_of


def batch(
    queries: Pool | str,
    streams: Mapping[str, DataFrame],
    *,
    time: str | None = None,
    boundary: str | Boundary = "(]",
    until: int | str | datetime | None = None,
) -> DataFrame | dict[str, DataFrame]:
    """Answer queries over bounded DataFrames: one DataFrame for one SELECT, or one for each query of a pool.

    The input is complete, so nothing is late; rows whose time is NULL or outside the allowed years are left out. The
    run ends when every item has left all its windows, or at an instant. A pool's queries are answered together in one
    pass.
    """
    pool = queries if isinstance(queries, Pool) else _pool(queries, streams, time, boundary)
    frames = {name: _declared_dataframe(name, streams, pool) for name in _streams_of(pool)}
    session = check_session(next(iter(frames.values())).sparkSession)
    shards = int(session.conf.get("spark.sql.shuffle.partitions") or 1)
    schemas = result_schemas(pool)
    context = RunContext.of("batch", pool, shards, [Channel(name, schema) for name, schema in schemas.items()])
    labels = labels_of(session, shards)
    slicings = [BoundedTransfer(context.layout, transfer, labels) for transfer in context.layout.transfers]
    sent = [slicing.messages(_with_observation(slicing, frames[slicing.transfer.stream])) for slicing in slicings]
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


def _with_observation(slicing: BoundedTransfer, frame: DataFrame) -> DataFrame:
    """The rows to be sliced, with an observation that counts them and those without a usable time.

    A DataFrame is computed later and elsewhere, so that no warning is possible here; Spark reports to its listeners.
    """
    counts = F.count(F.lit(1)).alias("rows_in"), F.count_if(F.col(TIME_COLUMN).isNull()).alias("rejected")
    return slicing.rows(frame).observe(f"panewise {slicing.transfer.stream}", *counts)


def _pool(text: str, streams: Mapping[str, DataFrame], time: str | None, boundary: str | Boundary) -> Pool:
    if time is None:
        raise SchemaProblem("the time column is not named", fix='pass time="..." or a pw.Pool')
    pool = Pool({name: declared(name, frame, time) for name, frame in streams.items()}, boundary, bounded=True)
    pool.register("query", text)
    return pool


def _streams_of(pool: Pool) -> list[str]:
    if not pool.queries:
        raise SchemaProblem("the pool has no queries", fix="register one first")
    return sorted({stream for registered in pool.queries.values() for stream in registered.streams})


def _declared_dataframe(name: str, streams: Mapping[str, DataFrame], pool: Pool) -> DataFrame:
    if name not in streams:
        raise SchemaProblem(f"there is no DataFrame for stream {name!r}", fix=did_you_mean(name, streams or [name]))
    return check_columns(name, streams[name], pool.streams[name])


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
            for frame in emit_results(shard, self.context, label, partial(shard.engine.finish, until)):
                yield pa.RecordBatch.from_pandas(frame, preserve_index=False)
