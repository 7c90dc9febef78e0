"""One run of a pipeline, from start to stop: what slicers, shards and sinks of it agree on."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace

import pyarrow as pa

from panewise.algebra.result_columns import combine_columns, instant_type, result_schema
from panewise.core.schema import StreamSchema
from panewise.core.time import Boundary
from panewise.engine import Engine, Pool
from panewise.engine.pool import RegisteredQuery
from panewise.engine.purge import Purge
from panewise.engine.state.snapshot import Tree
from panewise.plan.rules.group_windows import GroupingPolicy
from panewise.runtime.spark.transfer.layout import Layout
from panewise.runtime.spark.transfer.plan import plan_transfer


@dataclass(frozen=True)
class Channel:
    """Results that go to the same sinks: those of one query, or of all queries with the same columns together."""

    #: The query; None where several share the channel, and a first column names the query of each row.
    query: str | None
    schema: pa.Schema
    #: Whether these are finished panes instead of results.
    panes: bool = False


@dataclass(frozen=True, eq=False)
class RunContext:
    """Everything that Spark's workers need. `run` names the pipeline, and changes with every start."""

    run: str
    streams: Mapping[str, StreamSchema]
    boundary: Boundary
    policy: GroupingPolicy
    purge: Purge
    rules_off: tuple[str, ...]
    layout: Layout
    channels: tuple[Channel, ...]
    known: Mapping[str, RegisteredQuery]
    #: The command that last suspended each query. The batch it failed in is done again without it, and was
    #: planned before that command was written: a shard cannot wait for the command.
    suspensions: Mapping[str, float]
    #: The folder in which shards write late rows by query; None if they need not.
    lateness: str = ""

    @classmethod
    def of(
        cls,
        run: str,
        pool: Pool,
        shards: int,
        channels: Iterable[Channel],
        always: Collection[str] = (),
        suspensions: Mapping[str, float] | None = None,
        lateness: str = "",
        columnar: Collection[str] = (),
    ) -> RunContext:
        """The context of the queries of a pool. Streams in `always` are read also if no query reads them, those in
        `columnar` by workers."""
        return cls(
            run,
            pool.streams,
            pool.boundary,
            pool.policy,
            pool.purge,
            tuple(sorted(rule.name for rule in pool.rules_off)),
            plan_transfer(pool, shards, always, columnar),
            tuple(channels),
            dict(pool.queries),
            dict(suspensions or {}),
            lateness,
        )

    def supersedes(self, run: str) -> bool:
        """Whether another run was an earlier one of the same pipeline."""
        return run != self.run and run.partition("/")[0] == self.run.partition("/")[0]

    def delay(self, stream: str) -> int | None:
        return self.streams[stream].delay_ticks

    def build_engine(self, queries: Iterable[tuple[str, str, int | None]] = (), state: Tree | None = None) -> Engine:
        """An engine with these queries. Its streams have no delay: the watermark comes from all tasks together."""
        streams = {name: replace(s, delay=None) for name, s in self.streams.items()}
        pool = Pool(streams, self.boundary, self.policy, purge=self.purge, rules_off=self.rules_off)
        for name, text, since in queries:
            pool.add_query(self.registered_query(pool, name, text, since))
        stored = {name for name, schema in self.streams.items() if schema.delay is None}
        return Engine(pool, state, shard=True, stored=stored)

    def registered_query(self, pool: Pool, name: str, text: str, since: int | None = None) -> RegisteredQuery:
        """A registered query; those of the start of the run need not be bound again."""
        found = self.known.get(name)
        return replace(found, since=since) if found and found.text == text else pool.prepare_query(name, text, since)

    @property
    def logged_queries(self) -> list[str]:
        """The queries whose panes are logged."""
        return [str(channel.query) for channel in self.channels if channel.panes]

    def channel_of(self, name: str, schema: pa.Schema) -> int | None:
        """The channel of the results of a query; None if they have no sink."""
        own = [n for n, channel in enumerate(self.channels) if channel.query == name and not channel.panes]
        shared = [n for n, channel in enumerate(self.channels) if channel.query is None and channel.schema == schema]
        return next(iter(own + shared), None)


def shared_schema(schema: pa.Schema) -> pa.Schema:
    """The columns of a channel that several queries share."""
    return pa.schema(
        list(combine_columns({"query": pa.string()}, {field.name: field.type for field in schema}).items())
    )


def result_schemas(pool: Pool) -> dict[str, pa.Schema]:
    """The columns of every query's results."""
    return {name: query_schema(pool, query) for name, query in pool.queries.items()}


def query_schema(pool: Pool, query: RegisteredQuery) -> pa.Schema:
    """The columns of the results of a query over the streams of a pool."""
    return result_schema(query.plan.query, instant_type(query.plan.query, pool.streams))
