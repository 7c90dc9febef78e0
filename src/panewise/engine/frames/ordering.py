"""Rows wait until nothing can come before them any more; rows of one group at one time are treated as one."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from panewise.aggregate import Longs
from panewise.algebra.framing import Duplicates, Frame
from panewise.engine.frames.runners import doubles_of
from panewise.engine.keys import Keys
from panewise.errors import SchemaProblem
from panewise.kernels.frame_table import NONE

Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows with their times and the order in which they arrived."""

    table: pa.Table
    times: Longs
    order: Longs

    def __len__(self) -> int:
        return len(self.times)

    def at(self, places: Longs) -> Rows:
        return Rows(self.table.take(pa.array(places)), self.times[places], self.order[places])

    @property
    def sorted(self) -> bool:
        return bool((self.times[1:] >= self.times[:-1]).all())

    def parted(self, last: int) -> tuple[Rows, Rows]:
        """Those up to a time, and the others; a stream in order is only cut."""
        due = self.times <= last
        count = int(np.count_nonzero(due))
        if due[:count].all():
            return self.slice(0, count), self.slice(count, len(self))
        return self.at(np.flatnonzero(due)), self.at(np.flatnonzero(~due))

    def slice(self, start: int, stop: int) -> Rows:
        return Rows(self.table.slice(start, stop - start), self.times[start:stop], self.order[start:stop])


@dataclass(frozen=True, eq=False)
class Framable:
    """Items in the order of time: their groups, and the values that frames follow.

    `owner` says which item each of the rows belongs to, where that is not its own.
    """

    rows: Rows
    owner: Longs | None
    codes: Longs
    times: Longs
    values: Sequence[pa.ChunkedArray]


class Ordering:
    """The rows of a stream that still wait."""

    def __init__(self, frame: Frame, schema: pa.Schema) -> None:
        self.frame, self.schema = frame, schema
        self._waiting: list[Rows] = []

    def add(self, rows: Rows) -> None:
        if len(rows):
            self._waiting.append(rows)

    def settled(self, last: int, block: int) -> Iterator[Rows]:
        """Rows up to a time, in order, in blocks; rows of one time stay together where they are treated as one."""
        waiting, self._waiting = self._waiting, []
        ready: list[Rows] = []
        for rows in waiting:
            due, rest = rows.parted(last)
            self.add(rest)
            ready += [due] if len(due) else []
        for found in self._in_order(ready):
            start = 0
            while start < len(found):
                stop = min(start + block, len(found))
                if self.frame.duplicates is not Duplicates.KEEP and stop < len(found):
                    stop = int(np.searchsorted(found.times, found.times[stop - 1], side="right"))
                yield found.slice(start, stop)
                start = stop

    def _in_order(self, parts: list[Rows]) -> list[Rows]:
        """Parts that follow each other are left apart, which spares a copy, unless rows of one time must meet."""
        follow = all(one.times[-1] < other.times[0] for one, other in pairwise(parts))
        if follow and all(part.sorted for part in parts):
            return parts
        return [in_order(together(parts, self.schema))]

    def ahead(self, groups: Keys, seen: Callable[[int], Longs]) -> Iterator[Rows]:
        """Rows that are certain before their time, because all reports that were expected before them have come."""
        schedule = self.frame.schedule
        if schedule is None or self.frame.duplicates not in (Duplicates.ERROR, Duplicates.FIRST) or not self._waiting:
            return
        waiting = in_order(together(self._waiting, self.schema))
        columns = [waiting.table.column(name).combine_chunks() for name in self.frame.partition_by]
        codes = groups.encode(columns, len(waiting))
        certain = _without_gaps(codes, waiting.times, seen(len(groups)), schedule.every)
        self._waiting = []
        self.add(waiting.at(np.flatnonzero(~certain)))
        yield waiting.at(np.flatnonzero(certain))

    def state(self) -> pa.Table:
        return rows_state(together(self._waiting, self.schema))

    def restore(self, state: pa.Table) -> None:
        self._waiting = []
        self.add(rows_restored(state))


def rows_state(rows: Rows) -> pa.Table:
    """Rows as one table."""
    columns = [*rows.table.columns, pa.array(rows.times), pa.array(rows.order)]
    return pa.table(columns, names=[*rows.table.column_names, "#time", "#order"])


def rows_restored(state: pa.Table) -> Rows:
    """What `rows_state` gave."""
    times, order = (np.array(state.column(name).to_numpy(), np.int64) for name in ("#time", "#order"))
    return Rows(state.drop_columns(["#time", "#order"]), times, order)


def together(parts: Sequence[Rows], schema: pa.Schema) -> Rows:
    if len(parts) == 1:
        return parts[0]
    nothing = np.zeros(0, np.int64)
    table = pa.concat_tables([p.table for p in parts]) if parts else schema.empty_table()
    return Rows(
        table,
        np.concatenate([nothing, *(p.times for p in parts)]),
        np.concatenate([nothing, *(p.order for p in parts)]),
    )


def in_order(rows: Rows) -> Rows:
    """By time, then by arrival, which rows often are already."""
    if rows.sorted:
        return rows
    return rows.at(np.lexsort((rows.order, rows.times)))


def _without_gaps(codes: Longs, times: Longs, seen: Longs, every: int) -> Flags:
    """Which rows follow the last report of their group without a gap."""
    expected = seen.copy()
    certain = np.zeros(len(codes), bool)
    for place, (code, time) in enumerate(zip(codes.tolist(), times.tolist(), strict=True)):
        if expected[code] != NONE and time <= expected[code] + every:
            expected[code] = max(time, expected[code])
            certain[place] = True
    return certain


# ---- several rows of a group at one time -----------------------------------------------------------------------------


def refuse_twins(codes: Longs, times: Longs, seen: Longs) -> None:
    """Complain where a group has two reports of one time."""
    firsts, _ = twins(codes, times)
    again = np.flatnonzero(times <= seen[codes])
    if len(firsts) == len(codes) and not len(again):
        return
    place = int(again[0]) if len(again) else int(np.setdiff1d(np.arange(len(codes)), firsts)[0])
    raise SchemaProblem(
        f"two reports of one group have the time {times[place]}",
        fix="say DUPLICATES FIRST, LAST, AVG, MIN, MAX or SUM",
    )


def only_one(codes: Longs, times: Longs, seen: Longs, *, last: bool) -> Longs:
    """The places of the first or the last row of each group at each time, unless that came before."""
    firsts, owner = twins(codes, times)
    chosen = firsts
    if last:
        chosen = np.zeros(len(firsts), np.int64)
        chosen[owner] = np.arange(len(codes))
    return np.sort(chosen[times[chosen] > seen[codes[chosen]]])


def twins(codes: Longs, times: Longs) -> tuple[Longs, Longs]:
    """Of rows of one group at one time the places of the first, ascending, and for each row which of these is its."""
    order = np.lexsort((np.arange(len(codes)), codes, times))
    fresh = np.ones(len(codes), bool)
    fresh[1:] = (np.diff(codes[order]) != 0) | (np.diff(times[order]) != 0)
    firsts = order[fresh]
    rank = np.argsort(np.argsort(firsts))
    owner = np.empty(len(codes), np.int64)
    owner[order] = rank[np.cumsum(fresh) - 1]
    return np.sort(firsts), owner


def merged_values(values: Sequence[pa.ChunkedArray], owner: Longs, size: int, how: Duplicates) -> list[pa.ChunkedArray]:
    """One value for all rows of a group at one time: of numbers an aggregate, of conditions all, any or most."""
    return [pa.chunked_array([_merged(each, owner, size, how)]) for each in values]


def _merged(values: pa.ChunkedArray, owner: Longs, size: int, how: Duplicates) -> pa.Array:
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
