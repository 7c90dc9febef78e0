"""The rows that windows without a SLIDE hold: the arguments of aggregates, and the words that decide lifetimes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from panewise import kernels
from panewise.aggregate import Int64Array, Items, runs
from panewise.algebra import Call
from panewise.core.time import Boundary
from panewise.engine.group_steps import Lifetimes
from panewise.engine.lateness import visible_lifetimes
from panewise.engine.places import take_rows, take_values
from panewise.engine.sorting import order_by_code
from panewise.kernels.ranges import OPEN
from panewise.stores.chain import MIN_POSITION
from panewise.window import LogicalWindow, Rows

Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class HeldRows:
    """Rows ordered by time, then by arrival. Rows without a group have the code -1 and are only counted.

    `visible` is the first instant at which a row is there: late rows are there from the watermark of their arrival on.
    """

    arguments: pa.Table
    times: Int64Array
    order: Int64Array
    visible: Int64Array
    partitions: Int64Array
    codes: Int64Array

    def __len__(self) -> int:
        return len(self.times)

    @property
    def words(self) -> tuple[Int64Array, ...]:
        return self.times, self.order, self.visible, self.partitions, self.codes

    @classmethod
    def concat(cls, parts: Sequence[HeldRows]) -> HeldRows:
        """Several sets of rows as one; there must be at least one."""
        filled = [part for part in parts if len(part)] or list(parts[:1])
        if len(filled) > 1:
            words = [np.concatenate(some) for some in zip(*(part.words for part in filled), strict=True)]
            filled = [cls(pa.concat_tables([part.arguments for part in filled]).combine_chunks(), *words)]
        (found,) = filled
        later = found.times[1:] - found.times[:-1]
        if ((later > 0) | ((later == 0) & (found.order[1:] >= found.order[:-1]))).all():
            return found
        return found.at(np.lexsort((found.order, found.times)))

    def part(self, which: slice) -> HeldRows:
        """Rows that follow each other; they are not copied."""
        arguments = self.arguments.slice(which.start, which.stop - which.start)
        return HeldRows(arguments, *(word[which] for word in self.words))

    def at(self, places: Int64Array) -> HeldRows:
        return HeldRows(take_rows(self.arguments, places), *(word[places] for word in self.words))

    def where(self, keep: Flags) -> HeldRows:
        """Some of the rows; most of them, at the beginning or at the end, are not copied."""
        count = np.count_nonzero(keep)
        whole = self.times if self.times.base is None else self.times.base
        for first, stop in ((len(keep) - count, len(keep)), (0, count)):
            # What is not copied keeps the memory of all: of whatever these rows were cut out of before.
            if 3 * count >= 2 * len(whole) and keep[first:stop].all():
                return self.part(slice(first, stop))
        return self.at(np.flatnonzero(keep))

    def with_codes(self, codes: Int64Array) -> HeldRows:
        """The same rows with other codes of groups: `codes` maps the present ones to them."""
        return replace(self, codes=np.append(codes, -1)[self.codes])

    def with_partitions(self, partitions: Int64Array) -> HeldRows:
        """The same for partitions."""
        return replace(self, partitions=partitions[self.partitions])

    def items(self, calls: Sequence[Call], places: Int64Array, timed: bool = True) -> list[Items]:
        """What presence and each aggregate look at, of the rows at some places; times only where they are `timed`."""
        index, untimed = pa.array(places), np.broadcast_to(np.int64(0), len(places))
        times, order = (self.times[places], self.order[places]) if timed else (untimed, untimed)
        read = {name for call in calls for name in call.arguments}
        columns = {name: take_values(self.arguments.column(name), index) for name in read}
        arguments = [(), *(tuple(columns[name] for name in call.arguments) for call in calls)]
        return [Items(each, times, order) for each in arguments]

    @property
    def nbytes(self) -> int:
        return int(self.arguments.nbytes) + sum(word.nbytes for word in self.words)

    def state(self) -> pa.Table:
        words = [pa.array(word) for word in self.words]
        names = [*self.arguments.column_names, *(f"#{number}" for number in range(len(words)))]
        return pa.table([*self.arguments.columns, *words], names=names)

    @classmethod
    def from_state(cls, table: pa.Table) -> HeldRows:
        values = table.num_columns - len(WORDS)
        words = [np.array(table.column(values + n).to_numpy(), np.int64) for n in range(len(WORDS))]
        return cls(table.select(range(values)), *words)


#: The words of rows besides the arguments.
WORDS = ("times", "order", "visible", "partitions", "codes")


def timed_lifetimes(rows: HeldRows, window: LogicalWindow, boundary: Boundary, after: int) -> Lifetimes:
    """When rows enter a window that time decides, and leave it; rows up to the position `after` do not count."""
    enter, leave = visible_lifetimes(window, rows.times, rows.visible, boundary)
    every = after == MIN_POSITION
    return Lifetimes(
        rows.codes if every else np.where(rows.times + boundary.shift > after, rows.codes, -1), enter, leave
    )


@dataclass(frozen=True, eq=False)
class RowsByPartition:
    """Rows by partition, each in the order of time: their places, and where partitions begin."""

    places: Int64Array
    edges: Int64Array

    @classmethod
    def of(cls, rows: HeldRows) -> RowsByPartition:
        places = order_by_code(rows.partitions)
        starts, _ = runs(rows.partitions[places])
        return cls(places, np.append(starts, len(places)))

    def in_blocks(self, rows: HeldRows, size: int, dropped: Int64Array) -> HeldRows:
        """The same rows, each visible with the last of its block; see `kernels.range_blocks`."""
        if size == 1:
            return rows
        visible = np.empty(len(rows), np.int64)
        before = dropped[rows.partitions[self.places[self.edges[:-1]]]]
        visible[self.places] = kernels.range_blocks(self.edges, rows.visible[self.places], size, before)
        return replace(rows, visible=visible)

    def lifetimes(self, rows: HeldRows, window: Rows, since: int, limit: int) -> Lifetimes:
        """When rows enter a window that counts them, and leave it; see `kernels.range_counted`."""
        visible = rows.visible[self.places]
        found = kernels.range_counted(self.edges, visible, since, limit, window.lag, window.count)
        enter, leave = np.empty(len(rows), np.int64), np.empty(len(rows), np.int64)
        enter[self.places], leave[self.places] = found
        return Lifetimes(rows.codes, enter, leave)

    def row_numbers(
        self, rows: HeldRows, lifetimes: Lifetimes, since: int, limit: int
    ) -> tuple[Int64Array, Lifetimes, Int64Array]:
        """The places of rows, their lifetimes under one number, and these numbers, from 0 in each partition.

        A row has several numbers, one after the other, if late rows come before it.
        """
        numbers = np.empty(len(rows), np.int64)
        numbers[self.places], raised, at = kernels.range_numbers(self.edges, rows.visible[self.places], since, limit)
        if not len(raised):
            return np.arange(len(rows)), lifetimes, numbers
        places = np.concatenate((np.arange(len(rows)), self.places[raised]))
        begins = np.concatenate((np.full(len(rows), -OPEN), at))
        order = np.lexsort((begins, places))
        places, begins = places[order], begins[order]
        ends = np.where(np.diff(places, append=-1) == 0, np.append(begins[1:], OPEN), OPEN)
        rises = np.arange(len(places)) - np.searchsorted(places, places)
        whole = lifetimes.at(places)
        pieces = Lifetimes(whole.codes, np.maximum(whole.enter, begins), np.minimum(whole.leave, ends))
        return places, pieces, numbers[places] + rises
