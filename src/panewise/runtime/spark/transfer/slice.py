"""What a task does with its rows of a stream: cut them into panes, and pack one message for each shard.

Runs in Spark's Python workers, as the function of `mapInArrow`.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark import TaskContext

from panewise.aggregate import Int64Array
from panewise.engine.panes.grouping import arrays_of
from panewise.engine.panes.slicer import Slicer
from panewise.engine.routing import shards_of
from panewise.engine.state.snapshot import FORMAT, Tree, serialize_tree
from panewise.runtime.spark.late_rows import COUNTED_ELSEWHERE, ROW_COLUMN, WANTED_COLUMN, mark_shared
from panewise.runtime.spark.transfer.layout import (
    KEY_BITS,
    PACKED_COLUMN,
    PANE_BITS,
    TIME_COLUMN,
    FamilyTransfer,
    Layout,
    StreamTransfer,
)
from panewise.runtime.spark.transfer.row_filters import FilterCombinations, Flags, count_by_pane

#: Rows processed together; Spark's own batches are smaller.
ROWS_PER_PASS = 1 << 18
#: Unsliced rows are sent in messages of about this many bytes.
MAX_MESSAGE_BYTES = 32 << 20

#: The column of unsliced rows that holds their shard.
SHARD_COLUMN = "#shard"

#: One row for each message; `place` orders the messages of a batch.
MESSAGE_SCHEMA = "shard int, place bigint, payload binary"


@dataclass(frozen=True)
class SlicingStage:
    """The function of a stage: record batches of one stream in, messages to shards out."""

    layout: Layout
    transfer: StreamTransfer
    labels: tuple[int, ...]

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        task = _Task(self.layout, self.transfer)
        for table in _combine_batches(batches):
            task.take(table)
            if task.heavy:
                yield from self._send(task)
        yield from self._send(task)

    def _send(self, task: _Task) -> Iterator[pa.RecordBatch]:
        messages = task.messages()
        if messages:
            yield message_batch(messages, self.labels, task.place)
            task.place += 1


class _Task:
    """The rows of one task, sliced so far."""

    def __init__(self, layout: Layout, transfer: StreamTransfer) -> None:
        self.layout, self.transfer = layout, transfer
        batch, partition = task_position()
        #: Rows are numbered by batch, partition and place, so that a batch that is done again has the same numbers.
        self.order = ((batch & 0xFFFFFF) << 39) | ((partition & 0xFFF) << 27)
        self.place = partition << 32
        self._reset()

    def _reset(self) -> None:
        self.slicers = {
            number: Slicer(family.plan, family.cuts, self.layout.boundary)
            for number, family in enumerate(self.transfer.family_transfers)
            if family.cuts is not None and family.plan is not None
        }
        self.rows: dict[int, list[pa.Table]] = {}
        self.newest: dict[int, int] = {}
        self.wants = FilterCombinations()
        #: Row counts by pane and filter combination, for rows that are not sent.
        self.tallies: list[tuple[Int64Array, Int64Array, Int64Array]] = []
        self.rows_in = self.rejected = 0
        self.first, self.last, self.bytes = 2**62, -(2**62), 0

    @property
    def heavy(self) -> bool:
        return self.bytes > MAX_MESSAGE_BYTES

    def take(self, table: pa.Table) -> None:
        """Take rows in; those without a usable time are counted and left out."""
        times = table.column(PACKED_COLUMN if self.transfer.packing is not None else TIME_COLUMN)
        self.rows_in += len(times)
        if times.null_count:
            self.rejected += times.null_count
            table = table.filter(times.is_valid())
        if not table.num_rows:
            return
        if self.transfer.packing is not None:
            self._take_packed(arrays_of(table))
        else:
            self._take_rows(arrays_of(table))

    def _take_rows(self, arrays: dict[str, pa.Array]) -> None:
        times: Int64Array = arrays[TIME_COLUMN].to_numpy()
        order = np.arange(self.order, self.order + len(times), dtype=np.int64)
        self.order += len(times)
        self._extend_span(int(times.min()), int(times.max()))
        flags = {flag for family in self.transfer.family_transfers for flag in (family.flag, family.entering)}
        passing = {flag: _passing_rows(arrays, flag) for flag in flags}
        wanted = self._wanted_by_route(times, passing)
        for number, family in enumerate(self.transfer.family_transfers):
            if family.needs_newest:
                self._note_newest(number, family, times[passing[family.entering]])
            self._enter(number, family, arrays, _TaskRows(times, order, wanted.get(family.route)), passing[family.flag])

    def _wanted_by_route(self, times: Int64Array, passing: Mapping[str | None, Any]) -> dict[object, Int64Array]:
        """For each route the filter combinations of the rows sent by it; the other rows are tallied."""
        if self.transfer.counted_by_panes:
            return {}
        filters = self.transfer.by_filter
        entering = [
            _row_flags(passing[flag], len(times)) & (times >= first) & (times <= last)
            for flag, (first, last) in filters
        ]
        numbers = self.wants.number_rows(entering, len(times))
        routes: dict[object, Flags] = {}
        for family in (family for family in self.transfer.family_transfers if family.cuts is None):
            before = routes.get(family.route, np.zeros(len(times), bool))
            routes[family.route] = before | _row_flags(passing[family.flag], len(times))
        sent_count = np.sum(list(routes.values()), axis=0) if routes else np.zeros(len(times), np.int64)
        self._tally(times[sent_count == 0], numbers[sent_count == 0])
        found, counted = {}, np.zeros(len(times), bool)
        for route, mine in routes.items():
            marked = np.where(sent_count > 1, mark_shared(numbers), numbers)
            found[route] = np.where(counted, COUNTED_ELSEWHERE, marked)
            counted |= mine
        return found

    def _tally(self, times: Int64Array, wanted: Int64Array) -> None:
        cuts = self.transfer.tally
        if cuts is not None and len(times) and not self.transfer.counted_by_panes:
            numbers, who, rows = count_by_pane(cuts.pane_numbers(times + self.layout.boundary.shift), wanted)
            ends = np.array([cuts.end(number) for number in numbers.tolist()], np.int64)
            self.tallies.append((ends, who, rows))

    def _enter(
        self, number: int, family: FamilyTransfer, arrays: dict[str, pa.Array], rows: _TaskRows, mine: Any
    ) -> None:
        times = rows.times[mine]
        if not len(times):
            return
        table = pa.table([arrays[name] for name in family.columns.values()], names=list(family.columns))
        if not family.columns:
            table = pa.table({TIME_COLUMN: arrays[TIME_COLUMN]})
        if not isinstance(mine, slice):
            table = table.take(pa.array(mine))
        if family.cuts is not None:
            self.slicers[number].take(table, times, rows.order[mine])
            return
        assert rows.wanted is not None
        shards = self._shards_of_rows(family, arrays, len(rows.times))
        for name, values in ((SHARD_COLUMN, shards), (ROW_COLUMN, rows.order), (WANTED_COLUMN, rows.wanted)):
            table = table.append_column(name, pa.array(values[mine]))
        self.rows.setdefault(number, []).append(table)
        self.bytes += table.nbytes

    def _note_newest(self, number: int, family: FamilyTransfer, times: Int64Array) -> None:
        """Note the newest items that enter windows which items never leave by themselves."""
        first, last = family.span
        inside = times[(times >= first) & (times <= last)]
        if len(inside):
            self.newest[number] = max(self.newest.get(number, -(2**62)), int(inside.max()))

    def _shards_of_rows(self, family: FamilyTransfer, arrays: dict[str, pa.Array], rows: int) -> Int64Array:
        if not family.routed:
            return np.full(rows, family.shard)
        return shards_of([arrays[name] for name in family.routed], rows, self.layout.shards)

    def _take_packed(self, arrays: dict[str, pa.Array]) -> None:
        """Take rows whose key and pane are in one number."""
        (family,), packing = self.transfer.family_transfers, self.transfer.packing
        assert packing is not None
        assert family.cuts is not None
        both: Int64Array = arrays[PACKED_COLUMN].to_numpy()
        numbers = (both & ((1 << PANE_BITS) - 1)) + packing.first
        keys = ((both >> PANE_BITS) & ((1 << KEY_BITS) - 1)).astype(np.int32).astype(packing.type.to_pandas_dtype())
        missing = both < 0
        columns = {name: arrays[column] for name, column in family.columns.items() if name != packing.key}
        columns[packing.key] = pa.array(keys, packing.type, mask=missing if missing.any() else None)
        self.slicers[0].take_numbered(pa.table(columns), numbers)
        shift = self.layout.boundary.shift
        # Times are known up to their pane; the watermark has surely reached the first tick of the newest one.
        first, last = (family.cuts.start(int(number)) + 1 - shift for number in (numbers.min(), numbers.max()))
        self._extend_span(first, last)
        self.newest[0] = max(self.newest.get(0, -(2**62)), family.cuts.end(int(numbers.max())) - shift)

    def _extend_span(self, first: int, last: int) -> None:
        self.first, self.last = min(self.first, first), max(self.last, last)

    def messages(self) -> list[Tree]:
        """A message for every shard."""
        if not self.rows_in:
            return []
        seen = (self.first, self.last) if self.first <= self.last else None
        found = build_messages(self.layout, self.transfer, self.slicers, self.rows, seen, self.newest)
        if not self.transfer.counted_by_panes:
            for message in found:
                message["wants"] = self.wants.combinations
        found[0] |= {"counted": [self.rows_in, self.rejected], "tally": self._pane_tally()}
        self._reset()
        return found

    def _pane_tally(self) -> pa.Table:
        """How many rows lie in each pane, by filter combination."""
        if self.transfer.counted_by_panes:
            return tally_of(self.slicers[0])
        return tally_table([entry for some in self.tallies for entry in zip(*(c.tolist() for c in some), strict=True)])


@dataclass(frozen=True, eq=False)
class _TaskRows:
    """The times of rows, their order, and the filter combinations of those sent by a route."""

    times: Int64Array
    order: Int64Array
    wanted: Int64Array | None


def build_messages(
    layout: Layout,
    transfer: StreamTransfer,
    slicers: Mapping[int, Slicer],
    rows: Mapping[int, Sequence[pa.Table]],
    seen: tuple[int, int] | None,
    newest: Mapping[int, int],
) -> list[Tree]:
    """A message for every shard, also for those without panes: all need the watermark."""
    names = [family.signature for family in transfer.family_transfers]
    everyone = {
        "stream": transfer.stream,
        "seen": None if seen is None else list(seen),
        "families": names,
        "filters": [[family.signature for family in families] for families in transfer.by_filter.values()],
        "wants": [[0]],
        "newest": [[names[number], last] for number, last in newest.items()],
    }
    nothing: Tree = {"counted": [0, 0], "tally": None}
    found: list[Tree] = [everyone | nothing | {"panes": [], "rows": []} for _ in range(layout.shards)]
    for number, slicer in slicers.items():
        for shard, parcel in slicer.parcels(layout.shards, transfer.family_transfers[number].shard):
            found[shard]["panes"].append([names[number], parcel])
    for number, tables in rows.items():
        whole = pa.concat_tables(tables)
        for shard in pc.unique(whole[SHARD_COLUMN]).to_pylist():
            mine = whole.filter(pc.equal(whole[SHARD_COLUMN], shard)).drop_columns([SHARD_COLUMN])
            found[shard]["rows"].append([names[number], mine.combine_chunks()])
    return found


def task_position() -> tuple[int, int]:
    """The number of the batch that a task belongs to, and its partition.

    Through Connect Spark does not give the batch; the clock then orders later batches after earlier ones.
    """
    context = TaskContext.get()
    if context is None:
        return 0, 0
    batch = context.getLocalProperty("streaming.sql.batchId")
    return int(batch if batch is not None else time.time()), context.partitionId()


def message_batch(messages: Sequence[Tree], labels: Sequence[int], place: int) -> pa.RecordBatch:
    """Messages, one for each shard, as rows of Spark."""
    return pa.record_batch(
        [
            pa.array(list(labels), pa.int32()),
            pa.array([place] * len(messages), pa.int64()),
            pa.array([serialize_tree(tree, {"format": FORMAT}) for tree in messages], pa.binary()),
        ],
        names=["shard", "place", "payload"],
    )


def tally_of(slicer: Slicer) -> pa.Table:
    """How many rows lie in each pane of the only family."""
    return tally_table([(pane.end, 0, int(pane.states[0][0].sum())) for pane in slicer.open.panes()])


def tally_table(entries: Sequence[tuple[int, int, int]]) -> pa.Table:
    columns = list(zip(*entries, strict=True)) or [(), (), ()]
    names = ("ends", "wanted", "rows")
    return pa.table({name: pa.array(c, pa.int64()) for name, c in zip(names, columns, strict=True)})


def _passing_rows(arrays: Mapping[str, pa.Array], flag: str | None) -> Any:
    """Which rows pass a filter, as an index."""
    if flag is None:
        return slice(None)
    flags = arrays[flag].to_numpy(zero_copy_only=False)
    return slice(None) if flags.all() else np.flatnonzero(flags)


def _row_flags(places: Any, rows: int) -> Flags:
    """Which rows pass a filter, as a flag for every row."""
    found = np.zeros(rows, bool)
    found[places] = True
    return found


def _combine_batches(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.Table]:
    """Concatenate record batches until they are large enough for one pass."""
    waiting: list[pa.RecordBatch] = []
    rows = 0
    for batch in batches:
        if batch.num_rows:
            waiting.append(batch)
            rows += batch.num_rows
        if rows >= ROWS_PER_PASS:
            yield pa.Table.from_batches(waiting)
            waiting, rows = [], 0
    if waiting:
        yield pa.Table.from_batches(waiting)
