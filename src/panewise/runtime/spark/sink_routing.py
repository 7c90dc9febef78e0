"""Which sinks take the results of each query: its own, or those it shares with all others that have the same
columns."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from panewise.core.errors import BindProblem, StateProblem, did_you_mean
from panewise.engine import Pool
from panewise.engine.pool import RegisteredQuery
from panewise.engine.state.pane_log import logged_plan
from panewise.engine.state.snapshot import fingerprint
from panewise.runtime.atomic_files import write_atomic
from panewise.runtime.checkpoint import Checkpoint
from panewise.runtime.pane_log import Header, log_of, rows_of
from panewise.runtime.spark.run import ChannelSinks
from panewise.runtime.spark.run_context import Channel, RunContext, query_schema, result_schemas, shared_schema
from panewise.runtime.spark.sinks import (
    DeltaSink,
    FileSink,
    PaneLogSink,
    Sink,
    SuspendableSink,
    Target,
    batch_column,
    sinks_of,
)
from panewise.runtime.spark.sources import resolve_path, split_address
from panewise.runtime.spark.types import spark_schema

#: Addresses of folders, which take the results of one query.
_FOLDER_SCHEMES = ("parquet", "csv", "json", "delta")
#: Stands for all queries that have no sink of their own.
OTHERS = "*"


@dataclass(frozen=True, eq=False)
class SinkRouting:
    """The sinks of a pipeline by query, with `"*"` for all others."""

    targets: Mapping[str, Target]
    checkpoint: Checkpoint
    base: Path
    #: Queries whose finished panes are logged, and the addresses of the logs.
    panes: Mapping[str, str]

    @classmethod
    def of(
        cls,
        sinks: Target | Mapping[str, Target],
        pool: Pool,
        checkpoint: Checkpoint,
        base: Path,
        panes: Mapping[str, str],
    ) -> SinkRouting:
        named = dict(sinks) if isinstance(sinks, Mapping) else {OTHERS: sinks}
        for name in named:
            if name != OTHERS and name not in pool.queries:
                fix = did_you_mean(name, pool.queries)
                raise BindProblem(f"there is a sink for {name!r}, but no such query", fix=fix)
        for name, address in panes.items():
            if name not in pool.queries:
                fix = did_you_mean(name, pool.queries)
                raise BindProblem(f"there is a pane log for {name!r}, but no such query", fix=fix)
            logged_plan(pool.queries[name])
            log_of(address, base)
        return cls(named, checkpoint, base, dict(panes))

    def channels(self, pool: Pool) -> list[Channel]:
        """One for each query with its own sink, then one for each set of columns among all others."""
        schemas = result_schemas(pool)
        own = [Channel(name, schema) for name, schema in schemas.items() if name in self.targets]
        shared: list[Channel] = []
        if OTHERS in self.targets:
            for name, schema in schemas.items():
                channel = Channel(None, shared_schema(schema))
                if name not in self.targets and channel not in shared:
                    shared.append(channel)
        logged = [Channel(n, rows_of(pool, n).schema, panes=True) for n in self.panes if n in pool.queries]
        return own + shared + logged

    def sinks(self, context: RunContext, writer: str) -> ChannelSinks:
        """The sinks of each channel; `writer` names the pipeline to sinks that record their writer."""
        found: list[tuple[Sink, ...]] = []
        for channel in context.channels:
            if channel.panes:
                found.append((self._pane_log_sink(context.known[str(channel.query)], context, writer),))
                continue
            name = channel.query or _shared_folder_name(channel)
            target = self.targets[channel.query or OTHERS]
            memory = self.checkpoint.results(name)
            found.append(sinks_of(name, target, self.base, writer, memory, shared=channel.query is None))
        paths = [sink.path for sinks in found for sink in sinks if isinstance(sink, FileSink | DeltaSink)]
        for path in {path for path in paths if paths.count(path) > 1}:
            raise BindProblem(f"several queries would write to '{path}'", fix="give each a folder of its own")
        for sink in (sink for sinks in found for sink in sinks if isinstance(sink, FileSink)):
            sink.clear_drafts()
        letters = self.checkpoint.dead_letters
        return tuple(
            sinks if channel.query is None or channel.panes else (SuspendableSink(channel.query, sinks, letters),)
            for channel, sinks in zip(context.channels, found, strict=True)
        )

    def _pane_log_sink(self, registered: RegisteredQuery, context: RunContext, writer: str) -> FileSink:
        """The log of a query, begun or continued by this pipeline."""
        log = log_of(self.panes[registered.name], self.base)
        if log.header() is None and any(self.checkpoint.spark.glob("offsets/[0-9]*")):
            raise StateProblem(
                f"the panes of {registered.name!r} that are finished already cannot be logged any more",
                fix="log panes from the start, with an empty checkpoint",
            )
        log.claim(Header.of(registered, Pool(context.streams, context.boundary), writer))
        return PaneLogSink("parquet", str(log.folder))

    def refuse_conflicts(self, registered: RegisteredQuery, pool: Pool) -> None:
        """Refuse a query that would write to the target of another one, or to the pane log of an earlier one."""
        if (target := self.targets.get(registered.name)) is not None:
            sinks_of(registered.name, target, self.base, "", self.checkpoint.results(registered.name))
            mine = _first_address(target, self.base) or ""
            for name, other in self.targets.items():
                if (
                    name != registered.name
                    and mine.partition(":")[0] in _FOLDER_SCHEMES
                    and _first_address(other, self.base) == mine
                ):
                    raise BindProblem(f"{mine!r} is where {name!r} writes", fix="give each a folder of its own")
        if registered.name in self.panes:
            found = log_of(self.panes[registered.name], self.base).header()
            if found is not None and Header.of(registered, pool, found.writer) != found:
                raise BindProblem(
                    f"the pane log of {registered.name!r} holds the panes of another query", fix="choose another name"
                )

    def can_serve(self, registered: RegisteredQuery, pool: Pool, context: RunContext) -> bool:
        """Whether the channels of a run can take the results of one more query."""
        if registered.name in self.targets:
            return any(channel.query == registered.name for channel in context.channels)
        schema = shared_schema(query_schema(pool, registered))
        return context.channel_of(registered.name, schema) is not None or OTHERS not in self.targets

    def write_targets(self) -> None:
        """Record the addresses of results, for processes that read them; a function has no address."""
        found = {name: _first_address(target, self.base) for name, target in self.targets.items()}
        write_atomic(self.checkpoint.targets, json.dumps(found).encode())

    def with_target(self, name: str, into: str | None) -> SinkRouting:
        """The same routing, with a sink of its own for a query that was registered with one."""
        return self if into is None else replace(self, targets=dict(self.targets) | {name: into})

    def deliver_waiting(self, session: SparkSession, name: str, writer: str) -> None:
        """Write the waiting results of a query to its sinks."""
        sinks = sinks_of(name, self.targets[name], self.base, writer, self.checkpoint.results(name))
        SuspendableSink(name, sinks, self.checkpoint.dead_letters).deliver_waiting(session)

    def memory_results(self, session: SparkSession, registered: RegisteredQuery, pool: Pool) -> DataFrame:
        """The results of a query that `memory:` has kept."""
        own, alone = query_schema(pool, registered), registered.name in self.targets
        schema = own if alone else shared_schema(own)
        folder = self.checkpoint.results(registered.name if alone else _shared_folder_name(Channel(None, schema)))
        if not any(folder.glob("*/*.parquet")):
            return session.createDataFrame([], spark_schema(own))
        found = session.read.parquet(str(folder)).drop(batch_column(schema.names))
        if alone:
            return found
        return found.where(F.col("query") == registered.name).drop("query").toDF(*own.names)


def _first_address(target: Target, base: Path) -> str | None:
    """The first address among the sinks of a query."""
    several = [target] if isinstance(target, str) or callable(target) else target
    for scheme, rest in (split_address(each) for each in several if isinstance(each, str)):
        return f"{scheme}:{resolve_path(rest, base)}" if scheme in _FOLDER_SCHEMES else f"{scheme}:{rest}"
    return None


def _shared_folder_name(channel: Channel) -> str:
    """A name for queries with the same columns, the same in every run."""
    return "together-" + fingerprint({"columns": str(channel.schema)})[:8]
