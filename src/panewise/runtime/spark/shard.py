"""One shard of a pipeline: an engine whose state is kept in Spark's state store.

Runs in Spark's Python workers. A batch brings commands, then panes and rows, then the watermark; the shard answers what
has become final and writes the parts of its state that changed.
"""

from __future__ import annotations

import json
import uuid
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from operator import itemgetter
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
from pyspark.sql.streaming.stateful_processor import StatefulProcessor

from panewise.core.errors import QueryProblem, StateProblem
from panewise.engine import Engine
from panewise.engine.outputs import Emission
from panewise.engine.rows import RowInputKey
from panewise.engine.state.pane_log import PaneCollector
from panewise.engine.state.parts import StateChange, StateParts, read_note, read_parts
from panewise.engine.state.sealed import seal_table
from panewise.engine.state.snapshot import Tree, deserialize_tree
from panewise.runtime.atomic_files import write_atomic
from panewise.runtime.control import command_fault, command_number
from panewise.runtime.spark.failures import worker_problem
from panewise.runtime.spark.late_rows import LateRowCounter
from panewise.runtime.spark.run_context import RunContext, shared_schema

#: Results of one channel, or the status row of a shard.
OUTPUT_SCHEMA = (
    "channel int, shard int, rows bigint, payload binary, rows_in bigint, batch_rows_in bigint, rejected bigint, "
    "late bigint, partly_late bigint, rows_out bigint, state_bytes bigint, mark bigint"
)

#: The channel of status rows.
STATUS_CHANNEL = -1


@dataclass
class Shard:
    """An engine, the parts of its state that are kept, and the last command it applied."""

    engine: Engine
    parts: StateParts = field(default_factory=StateParts)
    command: float = 0
    finished: bool = False
    #: Identifies the kept state; a cached shard with another identity must be read again.
    version: str = ""
    #: The channel of each query, as far as it was needed.
    channels: dict[str, int | None] = field(default_factory=dict)
    #: Rows of results since the beginning.
    rows_out: int = 0
    #: Rows that had arrived before the present batch.
    rows_before: int = 0
    #: The counts of late rows that were last written.
    written_late_counts: dict[str, int] = field(default_factory=dict)

    @property
    def rows_in(self) -> int:
        return sum(account.rows_in for account in self.engine.accounting.values())

    @property
    def late_by_query(self) -> dict[str, int]:
        """For each active query, the rows that belong to it and could be used at no instant."""
        counts: Counter[str] = Counter()
        for stream in self.engine.pool.streams:
            counts.update(self.engine.intake(stream).late_by_query)
        return {name: late for name, late in counts.items() if name in self.engine.pool.queries}


#: Shards that this worker handled last, so that the next batch need not read them again.
SHARD_CACHE: dict[tuple[str, int], Shard] = {}


class ShardProcessor(StatefulProcessor):
    """Spark's side of a shard."""

    def __init__(self, context: RunContext) -> None:
        self.context = context

    def init(self, handle: Any) -> None:
        self.kept = handle.getMapState("parts", "name string", "part binary")

    def handleInputRows(self, key: Any, rows: Iterator[pd.DataFrame], timerValues: Any) -> Iterator[pd.DataFrame]:  # noqa: N802, N803
        label = int(key[0])
        shard = self._load_shard(label)
        for results in process_messages(shard, self.context, _messages(rows)):
            yield results.as_row(label)
        self._save_shard(label, shard)
        write_late_counts(shard, self.context, label)
        yield status_row(shard, label)

    def close(self) -> None:
        """Nothing is held open."""

    def _load_shard(self, label: int) -> Shard:
        head = self.kept.getValue(("head",))
        if head is None:
            return Shard(self.context.build_engine())
        note = read_note(bytes(head[0]))
        # Taken out of the cache during the batch: if the batch fails, the half-changed shard must not be used again.
        known = SHARD_CACHE.pop((self.context.run, label), None)
        if known is not None and known.version == note["version"]:
            return known
        return restore_shard(self.context, bytes(head[0]), lambda name: _bytes(self.kept.getValue((name,))))

    def _save_shard(self, label: int, shard: Shard) -> None:
        shard.version = uuid.uuid4().hex
        change = state_change(shard)
        for name, data in change.fresh.items():
            self.kept.updateValue((name,), (data,))
        for name in change.gone:
            self.kept.removeKey((name,))
        self.kept.updateValue(("head",), (change.head,))
        cache_shard(self.context, label, shard)


def cache_shard(context: RunContext, label: int, shard: Shard) -> None:
    """Keep a shard for the next batch; shards of earlier runs of the pipeline are removed."""
    for key in [key for key in SHARD_CACHE if context.supersedes(key[0])]:
        del SHARD_CACHE[key]
    SHARD_CACHE[context.run, label] = shard


def restore_shard(context: RunContext, head: bytes, read: Any) -> Shard:
    """A shard from its state."""
    note = read_note(head)
    tree, parts = read_parts(head, read)
    engine = context.build_engine([(name, text, since) for name, text, since in note["queries"]], tree)
    return Shard(engine, parts, note["command"], note["finished"], note["version"], rows_out=note["rows_out"])


def state_change(shard: Shard, stamp: str = "") -> StateChange:
    """How the kept state becomes the state of a shard."""
    note = {
        "version": shard.version,
        "command": shard.command,
        "finished": shard.finished,
        "rows_out": shard.rows_out,
        "queries": shard.engine.pool.declaration()["queries"],
    }
    return shard.parts.change(shard.engine.state(), note, stamp)


def _bytes(value: Any) -> bytes | None:
    return None if value is None else bytes(value[0])


def _messages(rows: Iterable[pd.DataFrame]) -> list[Tree]:
    return order_messages(
        [row for frame in rows for row in zip(frame["place"].tolist(), frame["payload"].tolist(), strict=True)]
    )


def order_messages(found: Sequence[tuple[int, bytes]]) -> list[Tree]:
    """Commands first, in their order, then the messages of the tasks, in theirs."""
    commands = [command for place, payload in found if place < 0 for command in _read_commands(payload)]
    sent = [read_message(payload) for place, payload in sorted((p for p in found if p[0] >= 0), key=lambda p: p[0])]
    return [*sorted(commands, key=itemgetter("number")), *sent]


def _read_commands(payload: bytes) -> Iterator[Tree]:
    """The commands of a file of the control log, without faulty ones, which are reported elsewhere."""
    try:
        entry = json.loads(payload)
    except ValueError:
        raise StateProblem(
            "the control log is damaged: a command cannot be read", fix="restore it from a copy of the checkpoint"
        ) from None
    match entry:
        case {"number": int(number), "commands": list(commands)}:
            for place, command in enumerate(commands):
                if command_fault(command) is None:
                    yield command | {"number": command_number(number, place)}


@dataclass(frozen=True, eq=False)
class ChannelResults:
    """Results of a shard for one channel; finished panes are not counted as results."""

    channel: int
    table: pa.Table
    panes: bool = False

    @property
    def rows(self) -> int:
        return 0 if self.panes else int(self.table.num_rows)

    def as_row(self, label: int) -> pd.DataFrame:
        """The results as one row of Spark."""
        payload = seal_table(self.table.combine_chunks())
        return _output_row(channel=self.channel, shard=label, rows=self.rows, payload=payload)


def process_messages(shard: Shard, context: RunContext, messages: Sequence[Tree]) -> Iterator[ChannelResults]:
    """Apply commands, take panes and rows in, and return what has become final."""
    shard.rows_before = shard.rows_in
    try:
        yield from _process_messages(shard, context, messages)
    except QueryProblem as problem:
        raise worker_problem(problem) from problem


def _process_messages(shard: Shard, context: RunContext, messages: Sequence[Tree]) -> Iterator[ChannelResults]:
    for name, number in context.suspensions.items():
        if number > shard.command:
            _remove_query(shard, name)
    for command in (m for m in messages if "op" in m):
        yield from _apply_command(shard, context, command)
    streams: dict[str, list[Tree]] = {}
    for message in messages:
        if "stream" in message:
            streams.setdefault(message["stream"], []).append(message)
    if streams and shard.finished:
        raise StateProblem("rows came after the pipeline was finished", fix="start it with an empty checkpoint")
    for stream, sent in streams.items():
        take_messages(shard, context, sent)
        seen = [message["seen"][1] for message in sent if message["seen"] is not None]
        if seen and (delay := context.delay(stream)) is not None:
            shard.engine.promise(stream, max(seen) - delay)
    yield from emit_results(shard, context, shard.engine.advance)


def _apply_command(shard: Shard, context: RunContext, command: Mapping[str, Any]) -> Iterator[ChannelResults]:
    """Apply a command, unless it was applied before."""
    if command["number"] <= shard.command:
        return
    shard.command = command["number"]
    pool = shard.engine.pool
    match command["op"]:
        case "register" if context.suspensions.get(command["name"], 0) > command["number"]:
            # The query joins and fails in one batch, which is now done again without it.
            pass
        case "register" if command["name"] not in pool.queries:
            registered = context.registered_query(pool, command["name"], command["text"])
            if command.get("start") == "now":
                registered = replace(registered, since=shard.engine.newest(registered.aggregation.source.stream))
            # A query that no slicer prepares for has been revoked by a later command.
            if context.layout.covers(registered.plan):
                pool.add_query(registered)
        case "revoke" | "suspend":
            _remove_query(shard, command["name"])
        case "finish":
            shard.finished = True
            yield from emit_results(shard, context, lambda: shard.engine.finish(command.get("until")))


def _remove_query(shard: Shard, name: str) -> None:
    """Remove a query, with its state."""
    if name in shard.engine.pool.queries:
        if (family := shard.engine.family(name)) is not None:
            family.finished_panes = None
        shard.engine.pool.revoke(name)
        shard.channels.pop(name, None)


def take_messages(shard: Shard, context: RunContext, messages: Sequence[Tree]) -> None:
    """Take in the messages of the tasks; the watermark follows from all of them together."""
    for message in messages:
        if message["seen"] is not None:
            shard.engine.observe_times(message["stream"], *message["seen"])
    for message in messages:
        _take_message(shard, context, message)


def read_message(payload: Any) -> Tree:
    """The message that some bytes hold."""
    tree, _ = deserialize_tree(payload, "a message between tasks", "run the batch again")
    return tree


def _take_message(shard: Shard, context: RunContext, message: Tree) -> None:
    stream, engine = message["stream"], shard.engine
    found = {name: context.layout.family_transfer(name) for name in message["families"]}
    families = {name: family for name, family in found.items() if family is not None}
    keys = {name: family.key for name, family in families.items() if not isinstance(family.key, RowInputKey)}
    for name, newest in message["newest"]:
        if name in families:
            engine.note_newest(families[name].key, newest)
    rows, rejected = message["counted"]
    engine.intake(stream).count(rows, rejected, 0, 0, {})
    late_rows = LateRowCounter(engine, message, keys)
    late_rows.count_panes()
    for name, parcel in message["panes"]:
        if name in keys:
            engine.take_panes(keys[name], parcel)
    for name, table in message["rows"]:
        if name in families:
            declared = _declared_columns(table, context.streams[stream].schema)
            arrivals, _, ledger = engine.ingest(stream, declared, families[name].key)
            late_rows.judge_rows(table, arrivals, ledger)
    late_rows.commit()


def _declared_columns(table: pa.Table, schema: pa.Schema) -> pa.Table:
    """The declared columns; those that no query reads are empty."""
    columns = [
        _cast(table.column(f.name), f.type) if f.name in table.column_names else pa.nulls(table.num_rows, f.type)
        for f in schema
    ]
    return pa.table(columns, schema=schema)


def _cast(values: pa.ChunkedArray, kind: pa.DataType) -> pa.ChunkedArray:
    """Values as they were declared; ticks of a timestamp are microseconds."""
    if pa.types.is_timestamp(kind) and pa.types.is_int64(values.type):
        values = values.cast(pa.timestamp("us", kind.tz))
    return values.cast(kind)


def emit_results(shard: Shard, context: RunContext, emit: Callable[[], Emission]) -> Iterator[ChannelResults]:
    """The results that have become final, by channel, and the panes that are logged."""
    tap = PaneCollector(shard.engine, context.logged_queries)
    tap.open()
    emission, panes = emit(), tap.collect()
    for name in emission:
        if name not in shard.channels:
            shard.channels[name] = context.channel_of(name, shared_schema(emission[name].schema))
    for number, channel in enumerate(context.channels):
        if channel.panes:
            if (logged := panes.get(str(channel.query))) is not None and logged.num_rows:
                yield ChannelResults(number, logged, panes=True)
            continue
        names = [name for name, at in shard.channels.items() if at == number]
        own = channel.query is not None and channel.query in emission
        table = emission[str(channel.query)] if own else emission.combined_table(names)
        if table is not None and table.num_rows:
            shard.rows_out += table.num_rows
            yield ChannelResults(number, table)


def status_row(shard: Shard, label: int, rows: int = 0) -> pd.DataFrame:
    """What a shard reports of itself: the account since the beginning, the size of its state, the watermark, and how
    many results it has put into an outbox.

    All of it is part of the state, so that a batch that is done again reports the same.
    """
    accounts = shard.engine.accounting.values()
    marks = [mark for mark in shard.engine.marks.values() if mark is not None]
    return _output_row(
        channel=STATUS_CHANNEL,
        shard=label,
        rows=rows,
        rows_in=shard.rows_in,
        batch_rows_in=shard.rows_in - shard.rows_before,
        rejected=sum(account.rejected for account in accounts),
        late=sum(account.late for account in accounts),
        partly_late=sum(account.partly_late for account in accounts),
        rows_out=shard.rows_out,
        state_bytes=sum(shard.parts.sizes.values()),
        mark=min(marks, default=None),
    )


def write_late_counts(shard: Shard, context: RunContext, label: int) -> None:
    """Write how many rows came too late for each query, where that has changed."""
    counts = shard.late_by_query
    if context.lateness and counts != shard.written_late_counts:
        Path(context.lateness).mkdir(exist_ok=True)
        write_atomic(Path(context.lateness) / f"{label}.json", json.dumps(counts).encode())
        shard.written_late_counts = counts


def _output_row(**values: Any) -> pd.DataFrame:
    row = dict.fromkeys(_NAMES, 0) | {"payload": b"", "mark": None} | values
    return pd.DataFrame({name: pd.Series([row[name]], dtype=_DTYPES.get(name)) for name in _NAMES})


_NAMES = [part.split()[0] for part in OUTPUT_SCHEMA.split(", ")]
_DTYPES = {"channel": "int32", "shard": "int32", "payload": "object", "mark": "Int64"}
