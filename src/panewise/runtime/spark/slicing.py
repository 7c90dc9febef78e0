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

from panewise.aggregate import Longs
from panewise.engine.grouping import arrays_of
from panewise.engine.routing import shards_of
from panewise.engine.slicer import Slicer
from panewise.engine.snapshot import FORMAT, Tree, framed
from panewise.runtime.spark.judging import ELSEWHERE, ROW, WANTED, shared
from panewise.runtime.spark.layout import KEY_BITS, PACKED, PANE_BITS, TIME, Crossing, Lane, Layout
from panewise.runtime.spark.wants import Flags, Wants, tallied

#: Rows looked at together; Spark's own batches are smaller.
TOGETHER = 1 << 18
#: Rows that travel as they are leave in messages of about so many bytes.
HEAVY = 32 << 20

#: The column of travelling rows that says where they go.
SHARD = "#shard"

#: One row for each message; `place` orders the messages of a batch.
MESSAGES = "shard int, place bigint, payload binary"


@dataclass(frozen=True)
class Slicing:
    """The function of a stage: record batches of one stream in, messages to shards out."""

    layout: Layout
    crossing: Crossing
    labels: tuple[int, ...]

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        task = _Task(self.layout, self.crossing)
        for table in _gathered(batches):
            task.take(table)
            if task.heavy:
                yield from self._sent(task)
        yield from self._sent(task)

    def _sent(self, task: _Task) -> Iterator[pa.RecordBatch]:
        messages = task.messages()
        if messages:
            yield sent(messages, self.labels, task.place)
            task.place += 1


class _Task:
    """The rows of one task, sliced so far."""

    def __init__(self, layout: Layout, crossing: Crossing) -> None:
        self.layout, self.crossing = layout, crossing
        batch, partition = whereabouts()
        #: Rows are numbered by batch, partition and place, so that a replay numbers them alike.
        self.order = ((batch & 0xFFFFFF) << 39) | ((partition & 0xFFF) << 27)
        self.place = partition << 32
        self._begin()

    def _begin(self) -> None:
        self.slicers = {
            number: Slicer(lane.plan, lane.cuts, self.layout.boundary)
            for number, lane in enumerate(self.crossing.lanes)
            if lane.cuts is not None and lane.plan is not None
        }
        self.rows: dict[int, list[pa.Table]] = {}
        self.newest: dict[int, int] = {}
        self.wants = Wants()
        #: Rows by pane and by who wants them, where they do not travel.
        self.tallies: list[tuple[Longs, Longs, Longs]] = []
        self.rows_in = self.rejected = 0
        self.first, self.last, self.bytes = 2**62, -(2**62), 0

    @property
    def heavy(self) -> bool:
        return self.bytes > HEAVY

    def take(self, table: pa.Table) -> None:
        """Take rows in; those without a usable time are counted and left out."""
        times = table.column(PACKED if self.crossing.packing is not None else TIME)
        self.rows_in += len(times)
        if times.null_count:
            self.rejected += times.null_count
            table = table.filter(times.is_valid())
        if not table.num_rows:
            return
        if self.crossing.packing is not None:
            self._take_packed(arrays_of(table))
        else:
            self._take_rows(arrays_of(table))

    def _take_rows(self, arrays: dict[str, pa.Array]) -> None:
        times: Longs = arrays[TIME].to_numpy()
        order = np.arange(self.order, self.order + len(times), dtype=np.int64)
        self.order += len(times)
        self._note(int(times.min()), int(times.max()))
        flags = {flag for lane in self.crossing.lanes for flag in (lane.flag, lane.entering)}
        passing = {flag: _passing(arrays, flag) for flag in flags}
        wanted = self._wanted(times, passing)
        for number, lane in enumerate(self.crossing.lanes):
            if lane.endless:
                self._reach(number, lane, times[passing[lane.entering]])
            self._enter(number, lane, arrays, _Rows(times, order, wanted.get(lane.route)), passing[lane.flag])

    def _wanted(self, times: Longs, passing: Mapping[str | None, Any]) -> dict[object, Longs]:
        """For each route the numbers of who wants the rows that travel by it; the others are tallied."""
        if self.crossing.counted_by_panes:
            return {}
        filters = self.crossing.filters
        entering = [
            _flags(passing[flag], len(times)) & (times >= first) & (times <= last) for flag, (first, last) in filters
        ]
        numbers = self.wants.numbered(entering, len(times))
        routes: dict[object, Flags] = {}
        for lane in (lane for lane in self.crossing.lanes if lane.cuts is None):
            before = routes.get(lane.route, np.zeros(len(times), bool))
            routes[lane.route] = before | _flags(passing[lane.flag], len(times))
        travelling = np.sum(list(routes.values()), axis=0) if routes else np.zeros(len(times), np.int64)
        self._tally(times[travelling == 0], numbers[travelling == 0])
        found, counted = {}, np.zeros(len(times), bool)
        for route, mine in routes.items():
            marked = np.where(travelling > 1, shared(numbers), numbers)
            found[route] = np.where(counted, ELSEWHERE, marked)
            counted |= mine
        return found

    def _tally(self, times: Longs, wanted: Longs) -> None:
        cuts = self.crossing.tally
        if cuts is not None and len(times) and not self.crossing.counted_by_panes:
            numbers, who, rows = tallied(cuts.numbers(times + self.layout.boundary.shift), wanted)
            ends = np.array([cuts.end(number) for number in numbers.tolist()], np.int64)
            self.tallies.append((ends, who, rows))

    def _enter(self, number: int, lane: Lane, arrays: dict[str, pa.Array], rows: _Rows, mine: Any) -> None:
        times = rows.times[mine]
        if not len(times):
            return
        table = pa.table([arrays[name] for name in lane.columns.values()], names=list(lane.columns))
        if not lane.columns:
            table = pa.table({TIME: arrays[TIME]})
        if not isinstance(mine, slice):
            table = table.take(pa.array(mine))
        if lane.cuts is not None:
            self.slicers[number].take(table, times, rows.order[mine])
            return
        assert rows.wanted is not None
        shards = self._routed(lane, arrays, len(rows.times))
        for name, values in ((SHARD, shards), (ROW, rows.order), (WANTED, rows.wanted)):
            table = table.append_column(name, pa.array(values[mine]))
        self.rows.setdefault(number, []).append(table)
        self.bytes += table.nbytes

    def _reach(self, number: int, lane: Lane, times: Longs) -> None:
        """Note how far the items reach that enter windows that do not forget."""
        first, last = lane.span
        inside = times[(times >= first) & (times <= last)]
        if len(inside):
            self.newest[number] = max(self.newest.get(number, -(2**62)), int(inside.max()))

    def _routed(self, lane: Lane, arrays: dict[str, pa.Array], rows: int) -> Longs:
        if not lane.routed:
            return np.full(rows, lane.shard)
        return shards_of([arrays[name] for name in lane.routed], rows, self.layout.shards)

    def _take_packed(self, arrays: dict[str, pa.Array]) -> None:
        """Key and pane from one number."""
        (lane,), packing = self.crossing.lanes, self.crossing.packing
        assert packing is not None
        assert lane.cuts is not None
        both: Longs = arrays[PACKED].to_numpy()
        numbers = (both & ((1 << PANE_BITS) - 1)) + packing.first
        keys = ((both >> PANE_BITS) & ((1 << KEY_BITS) - 1)).astype(np.int32).astype(packing.type.to_pandas_dtype())
        missing = both < 0
        columns = {name: arrays[column] for name, column in lane.columns.items() if name != packing.key}
        columns[packing.key] = pa.array(keys, packing.type, mask=missing if missing.any() else None)
        self.slicers[0].take_numbered(pa.table(columns), numbers)
        shift = self.layout.boundary.shift
        # Times are known up to their pane; time has surely come to the first tick of the newest one.
        first, last = (lane.cuts.start(int(number)) + 1 - shift for number in (numbers.min(), numbers.max()))
        self._note(first, last)
        self.newest[0] = max(self.newest.get(0, -(2**62)), lane.cuts.end(int(numbers.max())) - shift)

    def _note(self, first: int, last: int) -> None:
        self.first, self.last = min(self.first, first), max(self.last, last)

    def messages(self) -> list[Tree]:
        """A message for every shard."""
        if not self.rows_in:
            return []
        seen = (self.first, self.last) if self.first <= self.last else None
        found = messages_of(self.layout, self.crossing, self.slicers, self.rows, seen, self.newest)
        if not self.crossing.counted_by_panes:
            for message in found:
                message["wants"] = self.wants.combinations
        found[0] |= {"counted": [self.rows_in, self.rejected], "tally": self._counted()}
        self._begin()
        return found

    def _counted(self) -> pa.Table:
        """How many rows lie in which pane, and who wants them."""
        if self.crossing.counted_by_panes:
            return tally_of(self.slicers[0])
        return tally_table([entry for some in self.tallies for entry in zip(*(c.tolist() for c in some), strict=True)])


@dataclass(frozen=True, eq=False)
class _Rows:
    """The times of rows, their order, and who wants those that travel by a route."""

    times: Longs
    order: Longs
    wanted: Longs | None


def messages_of(
    layout: Layout,
    crossing: Crossing,
    slicers: Mapping[int, Slicer],
    rows: Mapping[int, Sequence[pa.Table]],
    seen: tuple[int, int] | None,
    newest: Mapping[int, int],
) -> list[Tree]:
    """A message for every shard, also for those without panes: all must hear how far time has come."""
    names = [lane.signature for lane in crossing.lanes]
    everyone = {
        "stream": crossing.stream,
        "seen": None if seen is None else list(seen),
        "lanes": names,
        "filters": [[lane.signature for lane in lanes] for lanes in crossing.filters.values()],
        "wants": [[0]],
        "newest": [[names[number], last] for number, last in newest.items()],
    }
    nothing: Tree = {"counted": [0, 0], "tally": None}
    found: list[Tree] = [everyone | nothing | {"panes": [], "rows": []} for _ in range(layout.shards)]
    for number, slicer in slicers.items():
        for shard, parcel in slicer.parcels(layout.shards, crossing.lanes[number].shard):
            found[shard]["panes"].append([names[number], parcel])
    for number, tables in rows.items():
        whole = pa.concat_tables(tables)
        for shard in pc.unique(whole[SHARD]).to_pylist():
            mine = whole.filter(pc.equal(whole[SHARD], shard)).drop_columns([SHARD])
            found[shard]["rows"].append([names[number], mine.combine_chunks()])
    return found


def whereabouts() -> tuple[int, int]:
    """The number of the batch that a task belongs to, and its partition.

    Through Connect Spark does not tell the batch; the clock then puts later batches after earlier ones.
    """
    context = TaskContext.get()
    if context is None:
        return 0, 0
    batch = context.getLocalProperty("streaming.sql.batchId")
    return int(batch if batch is not None else time.time()), context.partitionId()


def sent(messages: Sequence[Tree], labels: Sequence[int], place: int) -> pa.RecordBatch:
    """Messages, one for each shard, as rows of Spark."""
    return pa.record_batch(
        [
            pa.array(list(labels), pa.int32()),
            pa.array([place] * len(messages), pa.int64()),
            pa.array([framed(tree, {"format": FORMAT}) for tree in messages], pa.binary()),
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


def _passing(arrays: Mapping[str, pa.Array], flag: str | None) -> Any:
    """Which rows pass a filter, as an index."""
    if flag is None:
        return slice(None)
    flags = arrays[flag].to_numpy(zero_copy_only=False)
    return slice(None) if flags.all() else np.flatnonzero(flags)


def _flags(places: Any, rows: int) -> Flags:
    """The same for every row."""
    found = np.zeros(rows, bool)
    found[places] = True
    return found


def _gathered(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.Table]:
    """Record batches, enough of them together to be worth a pass."""
    waiting: list[pa.RecordBatch] = []
    rows = 0
    for batch in batches:
        if batch.num_rows:
            waiting.append(batch)
            rows += batch.num_rows
        if rows >= TOGETHER:
            yield pa.Table.from_batches(waiting)
            waiting, rows = [], 0
    if waiting:
        yield pa.Table.from_batches(waiting)
