"""A whole script on Spark: its sources as streams, its queries as a pipeline, its targets as sinks."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from panewise.core.errors import SourceProblem
from panewise.cql import BoundScript
from panewise.engine import Pool
from panewise.runtime.pane_log import refuse_log
from panewise.runtime.spark.pipeline import Pipeline
from panewise.runtime.spark.sink_routing import OTHERS
from panewise.runtime.spark.sinks import Target
from panewise.runtime.spark.sources import stream_source
from panewise.runtime.spark.streaming import stream


def start_script(
    script: BoundScript,
    session: SparkSession,
    *,
    checkpoint: Path,
    base: Path,
    boundary: str | None = None,
    trigger: Mapping[str, Any] | None = None,
    per_batch: int | str | None = None,
    shards: int | None = None,
    state: str = "rocksdb",
    sinks: Mapping[str, Target] | None = None,
) -> Pipeline:
    """Start a script. Queries without a target keep their results in the checkpoint; `sinks` replaces targets."""
    pool = script_pool(script, boundary)
    panes = {name: query.panes for name, query in script.queries.items() if query.panes is not None}
    used = sorted({stream for registered in pool.queries.values() for stream in registered.streams})
    for name in used:
        if name not in script.sources:
            raise SourceProblem(f"stream {name!r} has no source to read", fix="add FROM 'parquet:...' to it")
    inputs = {
        name: stream_source(session, script.sources[name], script.streams[name], base, per_batch) for name in used
    }
    targets: dict[str, Target] = {name: query.into or "memory:" for name, query in script.queries.items()}
    targets |= {OTHERS: "memory:"} | dict(sinks or {})
    return stream(
        pool,
        inputs,
        checkpoint=checkpoint,
        sinks=targets,
        trigger=trigger,
        shards=shards,
        max_skew=None if "availableNow" in (trigger or {}) else "1 hour",
        state=state,
        base=base,
        panes=panes,
    )


def script_pool(script: BoundScript, boundary: str | None = None) -> Pool:
    """The queries of a script; a query that the engine cannot answer is refused with its place in the script."""
    pool = Pool(script.streams, script.boundary_or(boundary))
    for name, query in script.queries.items():
        registered = pool.prepare_query(name, query.query)
        if query.panes is not None:
            refuse_log(registered, query.panes, query.panes_place)
        pool.add_query(pool.prepare_query(name, query.alone))
    return pool
