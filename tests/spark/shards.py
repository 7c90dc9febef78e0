"""A pipeline without Spark: its slicers and shards in one process, for laws that need thousands of runs."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from unittest.mock import patch

import pyarrow as pa

import panewise as pw
from panewise.core.accounting import Accounting
from panewise.core.scalar import Scalar
from panewise.cql import scalar_type
from panewise.runtime.local import HOST
from panewise.runtime.spark.run_context import Channel, RunContext, result_schemas
from panewise.runtime.spark.shard import (
    Shard,
    order_messages,
    process_messages,
    restore_shard,
    state_change,
)
from panewise.runtime.spark.transfer import slice as slicing_module
from panewise.runtime.spark.transfer.columns import compute_columns
from panewise.runtime.spark.transfer.layout import StreamTransfer
from panewise.runtime.spark.transfer.slice import SlicingStage


@dataclass
class Shards:
    """The shards of a pipeline; `restarts` says whether each is read from its state every time."""

    pool: pw.Pool
    count: int
    restarts: bool = False
    said: dict[str, list[pa.Table]] = field(default_factory=dict)
    batches: int = 0
    #: Streams that are read also where no query asks for them.
    always: Sequence[str] = ()
    #: Streams whose rows workers read.
    columnar: Sequence[str] = ()

    def __post_init__(self) -> None:
        schemas = result_schemas(self.pool)
        channels = [Channel(name, schema) for name, schema in schemas.items()]
        self.course = RunContext.of("run", self.pool, self.count, channels, self.always, columnar=self.columnar)
        self.shards = [Shard(self.course.build_engine()) for _ in range(self.count)]
        self.kept: list[dict[str, bytes]] = [{} for _ in range(self.count)]
        self.heads: list[bytes | None] = [None] * self.count
        self.said = {name: [schema.empty_table()] for name, schema in schemas.items()}
        self.registering: list[dict[str, str]] = [
            {"op": "register", "name": name, "text": standing.text, "start": "backfill"}
            for name, standing in self.pool.queries.items()
        ]
        self.commands = self.registering
        self._numbers = 0

    def batch(self, **streams: Sequence[pa.Table]) -> None:
        """One batch of each stream, read by several tasks."""
        sent: list[list[tuple[int, bytes]]] = [[] for _ in range(self.count)]
        tasks = [(stream, rows) for stream, several in streams.items() for rows in several]
        for partition, (stream, rows) in enumerate(tasks):
            for shard, place, payload in self.sliced(stream, rows, self.batches, partition):
                sent[shard].append((place, payload))
        self.batches += 1
        self._work(sent, self.commands)
        self.commands = []

    def sliced(self, stream: str, rows: pa.Table, batch: int, partition: int = 0) -> list[tuple[int, int, bytes]]:
        """What a task that reads some rows sends: shards, places and messages."""
        with patch.object(slicing_module, "task_position", return_value=(batch, partition)):
            return list(self._sliced(stream, rows))

    @staticmethod
    def entry(number: int, commands: Sequence[Mapping[str, str | int]]) -> tuple[int, bytes]:
        """Commands as shards hear them."""
        return -1, json.dumps({"number": number, "commands": list(commands)}).encode()

    def finish(self, until: int | None = None) -> None:
        end = {"op": "finish"} | ({} if until is None else {"until": until})
        self._work([[] for _ in range(self.count)], [*self.commands, end])

    def memory(self) -> tuple[list[dict[str, bytes]], list[bytes | None], dict[str, list[pa.Table]]]:
        """All that is kept, and all that was said, before a batch that may have to be done again."""
        return [dict(store) for store in self.kept], list(self.heads), {name: list(s) for name, s in self.said.items()}

    def remember(
        self,
        memory: tuple[list[dict[str, bytes]], list[bytes | None], dict[str, list[pa.Table]]],
        suspensions: Mapping[str, float],
    ) -> None:
        """Start again from before a batch, in a run that knows of suspended queries."""
        self.kept, self.heads, self.said = memory
        self._numbers -= 1
        self.course = replace(self.course, suspensions=suspensions)
        kept = zip(self.heads, self.kept, strict=True)
        self.shards = [
            restore_shard(self.course, head, store.get) if head else Shard(self.course.build_engine())
            for head, store in kept
        ]

    def results(self, name: str) -> pa.Table:
        return pa.concat_tables(self.said[name])

    @property
    def accounting(self) -> Accounting:
        """Where the rows went, of all shards together."""
        accounts = [shard.engine.accounting["S"] for shard in self.shards]
        return Accounting(*(sum(getattr(a, f.name) for a in accounts) for f in fields(Accounting)))

    @property
    def late_by_query(self) -> dict[str, int]:
        counts: Counter[str] = Counter()
        for shard in self.shards:
            counts.update(shard.late_by_query)
        return dict(counts)

    def _sliced(self, stream: str, rows: pa.Table) -> Iterator[tuple[int, int, bytes]]:
        transfer = next((each for each in self.course.layout.transfers if each.stream == stream), None)
        if transfer is None:
            return
        slicing = SlicingStage(self.course.layout, transfer, tuple(range(self.count)))
        for out in slicing(self._transferred(rows, transfer)):
            yield from zip(*(out[name].to_pylist() for name in ("shard", "place", "payload")), strict=True)

    def _transferred(self, rows: pa.Table, transfer: StreamTransfer) -> Iterator[pa.RecordBatch]:
        """The columns of rows that workers read, or what Spark would compute of them."""
        if transfer.columnar:
            return compute_columns(iter(rows.combine_chunks().to_batches()), transfer, None)
        types = dict(zip(rows.column_names, rows.schema.types, strict=True))
        asked = [Scalar(sql, tuple(rows.column_names), scalar_type(sql, types)) for _, sql in transfer.select]
        return iter(pa.table(HOST.evaluate(asked, rows), [name for name, _ in transfer.select]).to_batches())

    def _work(self, sent: Sequence[list[tuple[int, bytes]]], commands: Sequence[Mapping[str, str | int]]) -> None:
        self._numbers += 1
        entry = self.entry(self._numbers, commands)
        names = list(self.said)
        for number in range(self.count):
            for results in process_messages(self.shards[number], self.course, order_messages([entry, *sent[number]])):
                self.said[names[results.channel]].append(results.table)
            self._keep(number)

    def _keep(self, number: int) -> None:
        change = state_change(self.shards[number])
        store = self.kept[number]
        store.update(change.fresh)
        for name in change.gone:
            del store[name]
        self.heads[number] = change.head
        if self.restarts:
            self.shards[number] = restore_shard(self.course, change.head, store.get)
