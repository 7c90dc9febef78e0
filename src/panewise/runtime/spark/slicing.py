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
from panewise.engine.lateness import Tally
from panewise.engine.routing import shards_of
from panewise.engine.slicer import Slicer
from panewise.engine.snapshot import FORMAT, Tree, framed
from panewise.runtime.spark.layout import KEY_BITS, PACKED, PANE_BITS, TIME, Crossing, Lane, Layout

#: Rows looked at together; Spark's own batches are smaller.
TOGETHER = 1 << 18
#: Rows that travel as they are leave in messages of about so many bytes.
HEAVY = 32 << 20

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
        self.tallies: list[Tally] = []
        self.first, self.last, self.bytes = 2**62, -(2**62), 0

    @property
    def heavy(self) -> bool:
        return self.bytes > HEAVY

    def take(self, table: pa.Table) -> None:
        if self.crossing.packing is not None:
            self._take_packed(arrays_of(table))
            return
        arrays = arrays_of(table)
        times: Longs = arrays[TIME].to_numpy()
        order = np.arange(self.order, self.order + len(times), dtype=np.int64)
        self.order += len(times)
        self._note(int(times.min()), int(times.max()))
        flags = {flag for lane in self.crossing.lanes for flag in (lane.flag, lane.entering)}
        passing = {flag: _passing(arrays, flag) for flag in flags}
        for number, lane in enumerate(self.crossing.lanes):
            if lane.endless:
                self._reach(number, lane, times[passing[lane.entering]])
            self._enter(number, lane, arrays, times, order, passing[lane.flag])
        if self.crossing.tally is not None and not self.crossing.counted_by_panes:
            wanted = np.zeros(len(times), np.int64)
            for bit, (flag, (first, last)) in enumerate(self.crossing.tallied):
                inside = (times >= first) & (times <= last)
                wanted[passing[flag]] |= inside[passing[flag]].astype(np.int64) << bit
            positions = times + self.layout.boundary.shift
            self.tallies.append(_tally(self.crossing, positions, wanted))

    def _enter(
        self, number: int, lane: Lane, arrays: dict[str, pa.Array], times: Longs, order: Longs, mine: Any
    ) -> None:
        if not len(times[mine]):
            return
        table = pa.table([arrays[name] for name in lane.columns.values()], names=list(lane.columns))
        if not lane.columns:
            table = pa.table({TIME: arrays[TIME]})
        if not isinstance(mine, slice):
            table = table.take(pa.array(mine))
        if lane.cuts is not None:
            self.slicers[number].take(table, times[mine], order[mine])
        else:
            shards = self._routed(lane, arrays, len(times))[mine]
            table = table.append_column("#shard", pa.array(shards))
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
        if self.last < self.first:
            return []
        seen = (self.first, self.last)
        found = messages_of(self.layout, self.crossing, self.slicers, self.rows, seen, self.newest)
        found[0]["tally"] = self._counted()
        self._begin()
        return found

    def _counted(self) -> pa.Table | None:
        """How many rows lie in which pane, and who wants them."""
        if self.crossing.counted_by_panes:
            return tally_of(self.slicers[0])
        return tally_table([entry for t in self.tallies for entry in zip(t.ends, t.wanted, t.rows, strict=True)])


def messages_of(
    layout: Layout,
    crossing: Crossing,
    slicers: Mapping[int, Slicer],
    rows: Mapping[int, Sequence[pa.Table]],
    seen: tuple[int, int],
    newest: Mapping[int, int],
) -> list[Tree]:
    """A message for every shard, also for those without panes: all must hear how far time has come."""
    names = [lane.signature for lane in crossing.lanes]
    everyone = {
        "stream": crossing.stream,
        "seen": list(seen),
        "lanes": names,
        "tallied": [[lane.signature for lane in lanes] for lanes in crossing.tallied.values()],
        "newest": [[names[number], last] for number, last in newest.items()],
    }
    found: list[Tree] = [everyone | {"panes": [], "rows": [], "tally": None} for _ in range(layout.shards)]
    for number, slicer in slicers.items():
        for shard, parcel in slicer.parcels(layout.shards, crossing.lanes[number].shard):
            found[shard]["panes"].append([names[number], parcel])
    for number, tables in rows.items():
        whole = pa.concat_tables(tables)
        for shard in pc.unique(whole["#shard"]).to_pylist():
            mine = whole.filter(pc.equal(whole["#shard"], shard)).drop_columns(["#shard"])
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
    return tally_table([(pane.end, 1, int(pane.states[0][0].sum())) for pane in slicer.open.panes()])


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


def _tally(crossing: Crossing, positions: Longs, wanted: Longs) -> Tally:
    cuts = crossing.tally
    assert cuts is not None
    counted = Tally.of(cuts.numbers(positions), wanted)
    ends = np.array([cuts.end(number) for number in counted.ends.tolist()], np.int64)
    return Tally(ends, counted.wanted, counted.rows)


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
