"""`pw.spark.stream`: a pipeline over streaming DataFrames, checked and started."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from panewise.core.errors import BindProblem, SchemaProblem, StateProblem
from panewise.core.schema import StreamSchema
from panewise.core.time import Domain, Duration, DurationLike
from panewise.engine import Pool
from panewise.runtime.checkpoint import Checkpoint, PipelinePlan
from panewise.runtime.spark.dataframes import check_columns
from panewise.runtime.spark.files.file_stream import FileStream
from panewise.runtime.spark.pipeline import Pipeline
from panewise.runtime.spark.run import StreamInput
from panewise.runtime.spark.session import check_session, session_of
from panewise.runtime.spark.sink_routing import SinkRouting
from panewise.runtime.spark.sinks import Target
from panewise.runtime.spark.sources import stream_source
from panewise.runtime.spark.transfer.shard_numbers import labels_of


def stream(
    pool: Pool,
    streams: Mapping[str, DataFrame | FileStream | str],
    *,
    checkpoint: str | Path,
    sinks: Target | Mapping[str, Target] = "memory:",
    trigger: Mapping[str, Any] | None = None,
    shards: int | None = None,
    max_skew: DurationLike | None = "1 hour",
    state: str = "rocksdb",
    base: str | Path = ".",
    panes: Mapping[str, str] | None = None,
    per_batch: int | str | None = None,
) -> Pipeline:
    """Start a pipeline that answers the queries of a pool over streams, and return it running.

    A stream is a streaming DataFrame or an address. Parquet files at an address are read by Spark's Python workers, as
    columns: their rows never enter the JVM. `per_batch` limits what a batch takes of an address: so many files (or
    messages of Kafka), or as many files as have a size such as `"512 MB"`.

    `checkpoint` is a folder that the driver and all workers see; started again with the same one, the pipeline
    continues where it stopped. `sinks` maps queries to the targets of their results, and `"*"` to the target of all
    others, by set of columns and with a column `query`; a single target is for all of them. `trigger` is Spark's.
    `shards` is fixed when a checkpoint is new; it defaults to `spark.sql.shuffle.partitions`. Times further than
    `max_skew` after the wall clock are rejected. `state` is where shards keep their state: in Spark's own state store
    (`"rocksdb"`), or in files of the checkpoint (`"files"`), which needs a classic session, lets Spark itself cut the
    rows of a single DataFrame into panes, and lets shards write Parquet. `panes` maps queries to the logs of their
    finished panes, from which `pw.serve` answers lookups.
    """
    skew = None if max_skew is None else Duration.parse(max_skew).ticks(Domain.TIMESTAMP)
    session = check_session(session_of(streams.values()))
    inputs = {
        name: _stream_input(name, streams[name], pool.streams[name], session, Path(base), per_batch)
        for name in pool.streams
        if name in streams
    }
    if not inputs:
        raise SchemaProblem("there is no input for any stream", fix=f"give one for {', '.join(pool.streams)}")
    folder = Checkpoint(checkpoint)
    routing = SinkRouting.of(sinks, pool, folder, Path(base), panes or {})
    # A folder that is no checkpoint of Panewise is refused before anything is written there.
    folder.plan()
    folder.lease.acquire()
    try:
        plan = _plan(folder, pool, session, shards, state)
        pipeline = Pipeline(pool, plan, session, inputs, folder, routing, dict(trigger or {}), skew)
        pipeline.start()
    except BaseException:
        folder.lease.release()
        raise
    return pipeline


def _plan(checkpoint: Checkpoint, pool: Pool, session: SparkSession, shards: int | None, state: str) -> PipelinePlan:
    """The plan of a checkpoint, written if the checkpoint is new; refuses settings with which it cannot continue."""
    if state not in ("rocksdb", "files"):
        raise BindProblem(f"state {state!r} is unknown", fix="use 'rocksdb' or 'files'")
    for registered in pool.queries.values():
        if not registered.text:
            raise StateProblem(f"query {registered.name!r} has no text", fix="register it as CQL text")
    plan = checkpoint.plan()
    if plan is None:
        count = shards or int(session.conf.get("spark.sql.shuffle.partitions") or 1)
        return checkpoint.create(pool, labels_of(count), state)
    checkpoint.check_compatible(plan, pool, shards, state)
    return plan


def _stream_input(
    name: str,
    given: StreamInput | str,
    schema: StreamSchema,
    session: SparkSession,
    base: Path,
    per_batch: int | str | None,
) -> StreamInput:
    if isinstance(given, str):
        return stream_source(session, given, schema, base, per_batch)
    if isinstance(given, FileStream):
        return given
    frame = check_columns(name, given, schema)
    if not frame.isStreaming:
        raise SchemaProblem(f"the DataFrame of stream {name!r} is bounded", fix="use pw.spark.batch, or readStream")
    return frame
