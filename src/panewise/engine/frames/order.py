"""Rows wait until no earlier row can arrive; rows of one group at one time are treated as one item."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from panewise.aggregate import Int64Array
from panewise.core.errors import SchemaProblem
from panewise.engine.frames.kernel_runs import doubles_of
from panewise.engine.keys import Keys
from panewise.frame.frame import Duplicates, Frame
from panewise.kernels import NO_TIME

Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class TimedRows:
    """Rows with their times and the order in which they arrived."""

    table: pa.Table
    times: Int64Array
    order: Int64Array

    def __len__(self) -> int:
        return len(self.times)

    def at(self, places: Int64Array) -> TimedRows:
        return TimedRows(self.table.take(pa.array(places)), self.times[places], self.order[places])

    @property
    def is_sorted(self) -> bool:
        return bool((self.times[1:] >= self.times[:-1]).all())

    def split_at(self, last: int) -> tuple[TimedRows, TimedRows]:
        """The rows up to a time, and the others; a stream in order is only cut."""
        due = self.times <= last
        count = int(np.count_nonzero(due))
        if due[:count].all():
            return self.slice(0, count), self.slice(count, len(self))
        return self.at(np.flatnonzero(due)), self.at(np.flatnonzero(~due))

    def slice(self, start: int, stop: int) -> TimedRows:
        return TimedRows(self.table.slice(start, stop - start), self.times[start:stop], self.order[start:stop])


@dataclass(frozen=True, eq=False)
class OrderedItems:
    """Items in the order of time: their groups, and the values that decide frames.

    `owner` has the item to which each row belongs, if several rows can belong to one item.
    """

    rows: TimedRows
    owner: Int64Array | None
    codes: Int64Array
    times: Int64Array
    values: Sequence[pa.ChunkedArray]


class ReorderBuffer:
    """The rows of a stream that still wait."""

    def __init__(self, frame: Frame, schema: pa.Schema) -> None:
        self.frame, self.schema = frame, schema
        self._waiting: list[TimedRows] = []

    def add(self, rows: TimedRows) -> None:
        if len(rows):
            self._waiting.append(rows)

    def release_until(self, last: int, block: int) -> Iterator[TimedRows]:
        """Rows up to a time, in order, in blocks; rows of one time stay together where they are treated as one."""
        waiting, self._waiting = self._waiting, []
        ready: list[TimedRows] = []
        for rows in waiting:
            due, rest = rows.split_at(last)
            self.add(rest)
            ready += [due] if len(due) else []
        for found in self._sort_parts(ready):
            start = 0
            while start < len(found):
                stop = min(start + block, len(found))
                if self.frame.duplicates is not Duplicates.KEEP and stop < len(found):
                    stop = int(np.searchsorted(found.times, found.times[stop - 1], side="right"))
                yield found.slice(start, stop)
                start = stop

    def _sort_parts(self, parts: list[TimedRows]) -> list[TimedRows]:
        """Sort parts; those that follow each other stay apart, to avoid a copy, unless rows of one time are merged."""
        follow = all(one.times[-1] < other.times[0] for one, other in pairwise(parts))
        if follow and all(part.is_sorted for part in parts):
            return parts
        return [sort_rows(concat_rows(parts, self.schema))]

    def release_early(self, groups: Keys, seen: Callable[[int], Int64Array]) -> Iterator[TimedRows]:
        """Rows that need not wait for the watermark, because all reports expected before them have arrived."""
        schedule = self.frame.schedule
        if schedule is None or self.frame.duplicates not in (Duplicates.ERROR, Duplicates.FIRST) or not self._waiting:
            return
        waiting = sort_rows(concat_rows(self._waiting, self.schema))
        columns = [waiting.table.column(name).combine_chunks() for name in self.frame.partition_by]
        codes = groups.encode(columns, len(waiting))
        certain = _without_gaps(codes, waiting.times, seen(len(groups)), schedule.every)
        self._waiting = []
        self.add(waiting.at(np.flatnonzero(~certain)))
        yield waiting.at(np.flatnonzero(certain))

    def state(self) -> pa.Table:
        return rows_state(concat_rows(self._waiting, self.schema))

    def restore(self, state: pa.Table) -> None:
        self._waiting = []
        self.add(restore_rows(state))


def rows_state(rows: TimedRows) -> pa.Table:
    """Rows as one table."""
    columns = [*rows.table.columns, pa.array(rows.times), pa.array(rows.order)]
    return pa.table(columns, names=[*rows.table.column_names, "#time", "#order"])


def restore_rows(state: pa.Table) -> TimedRows:
    """The rows that `rows_state` stored."""
    times, order = (np.array(state.column(name).to_numpy(), np.int64) for name in ("#time", "#order"))
    return TimedRows(state.drop_columns(["#time", "#order"]), times, order)


def concat_rows(parts: Sequence[TimedRows], schema: pa.Schema) -> TimedRows:
    if len(parts) == 1:
        return parts[0]
    nothing = np.zeros(0, np.int64)
    table = pa.concat_tables([p.table for p in parts]) if parts else schema.empty_table()
    return TimedRows(
        table,
        np.concatenate([nothing, *(p.times for p in parts)]),
        np.concatenate([nothing, *(p.order for p in parts)]),
    )


def sort_rows(rows: TimedRows) -> TimedRows:
    """Sort by time, then by arrival; rows are often in this order already."""
    if rows.is_sorted:
        return rows
    return rows.at(np.lexsort((rows.order, rows.times)))


def _without_gaps(codes: Int64Array, times: Int64Array, seen: Int64Array, every: int) -> Flags:
    """Which rows continue the reports of their group without a gap."""
    expected = seen.copy()
    certain = np.zeros(len(codes), bool)
    for place, (code, time) in enumerate(zip(codes.tolist(), times.tolist(), strict=True)):
        if expected[code] != NO_TIME and time <= expected[code] + every:
            expected[code] = max(time, expected[code])
            certain[place] = True
    return certain


# ---- several rows of a group at one time -----------------------------------------------------------------------------


def refuse_duplicates(codes: Int64Array, times: Int64Array, seen: Int64Array) -> None:
    """Refuse two reports of one group at one time."""
    firsts, _ = find_duplicates(codes, times)
    again = np.flatnonzero(times <= seen[codes])
    if len(firsts) == len(codes) and not len(again):
        return
    place = int(again[0]) if len(again) else int(np.setdiff1d(np.arange(len(codes)), firsts)[0])
    raise SchemaProblem(
        f"two reports of one group have the time {times[place]}",
        fix="say DUPLICATES FIRST, LAST, AVG, MIN, MAX or SUM",
    )


def one_per_time(codes: Int64Array, times: Int64Array, seen: Int64Array, *, last: bool) -> Int64Array:
    """The places of the first or last row of each group at each time, except times that were seen before."""
    firsts, owner = find_duplicates(codes, times)
    chosen = firsts
    if last:
        chosen = np.zeros(len(firsts), np.int64)
        chosen[owner] = np.arange(len(codes))
    return np.sort(chosen[times[chosen] > seen[codes[chosen]]])


def find_duplicates(codes: Int64Array, times: Int64Array) -> tuple[Int64Array, Int64Array]:
    """The places of the first row of each group at each time, ascending, and for each row which of these is its own."""
    order = np.lexsort((np.arange(len(codes)), codes, times))
    fresh = np.ones(len(codes), bool)
    fresh[1:] = (np.diff(codes[order]) != 0) | (np.diff(times[order]) != 0)
    firsts = order[fresh]
    rank = np.argsort(np.argsort(firsts))
    owner = np.empty(len(codes), np.int64)
    owner[order] = rank[np.cumsum(fresh) - 1]
    return np.sort(firsts), owner


def merge_duplicates(
    values: Sequence[pa.ChunkedArray], owner: Int64Array, size: int, how: Duplicates
) -> list[pa.ChunkedArray]:
    """One value for all rows of a group at one time: an aggregate of numbers, or whether all, any or most are true."""
    return [pa.chunked_array([_merge_column(each, owner, size, how)]) for each in values]


def _merge_column(values: pa.ChunkedArray, owner: Int64Array, size: int, how: Duplicates) -> pa.Array:
    condition = pa.types.is_boolean(values.type)
    numbers = doubles_of(values.cast(pa.int8()) if condition else values)
    name = {Duplicates.AVG: "mean", Duplicates.MIN: "min", Duplicates.MAX: "max", Duplicates.SUM: "sum"}[how]
    table = pa.table({"owner": owner, "value": pa.array(numbers, from_pandas=True)})
    found = table.group_by("owner").aggregate([("value", name)]).sort_by("owner").column(f"value_{name}")
    assert len(found) == size
    if not condition:
        return found.combine_chunks()
    most = 0.5 if how is Duplicates.AVG else 0.0
    return pc.greater(found, most).combine_chunks()
