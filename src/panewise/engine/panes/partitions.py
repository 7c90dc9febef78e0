"""Partitions of count-based windows: their last rows, and the states of each group in stores."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any

import pyarrow as pa

from panewise.engine.state.codec import from_text, to_text
from panewise.stores import Store


@dataclass(frozen=True, eq=False, slots=True)
class CountedRow:
    """A row in a partition: its place in time, its group (-1: none) and for each aggregate its state."""

    position: int
    order: int
    partition: int
    code: int
    states: tuple[Any, ...]

    @property
    def place(self) -> tuple[int, int]:
        return self.position, self.order


#: The order of rows: by time, then by arrival.
ROW_ORDER = attrgetter("place")


class PartitionGroup:
    """The rows of one group in one partition: their numbers, and their states in stores."""

    def __init__(self, stores: list[Store[Any]]) -> None:
        self.numbers: list[int] = []
        self.dropped = 0
        self.stores = stores

    def append(self, number: int, states: tuple[Any, ...], oldest: int) -> None:
        self.numbers.append(number)
        for store, state in zip(self.stores, states, strict=True):
            store.append(state)
        if self.numbers[0] < oldest:
            gone = bisect_left(self.numbers, oldest)
            self.dropped += gone
            del self.numbers[:gone]

    def answer(self, first: int, last: int) -> tuple[int, int, list[Any]]:
        """How many rows have numbers in `[first, last]`, the first of these numbers, and their combined states."""
        low, high = bisect_left(self.numbers, first), bisect_right(self.numbers, last)
        if low >= high:
            return 0, 0, []
        found = [store.lookup(self.dropped + low + 1, self.dropped + high) for store in self.stores]
        return high - low, self.numbers[low], found


@dataclass
class Partition:
    """The last rows of the partition with a key, oldest first; `length` counts all rows so far."""

    key: int
    length: int = 0
    rows: list[CountedRow] = field(default_factory=list)
    groups: dict[int, PartitionGroup] = field(default_factory=dict)

    def number(self, place: int) -> int:
        """The number of the row at a place in `rows`."""
        return self.length - len(self.rows) + place + 1

    def codes(self, first: int, last: int) -> set[int]:
        """The groups of rows with these numbers, as far as the rows are kept."""
        base = self.length - len(self.rows) + 1
        return {row.code for row in self.rows[max(first - base, 0) : max(last - base + 1, 0)] if row.code >= 0}


def row_table(rows: list[CountedRow]) -> pa.Table:
    """Rows as a table, for snapshots."""
    numbers = {name: pa.array([getattr(r, name) for r in rows], pa.int64()) for name in CountedRow.__slots__[:4]}
    return pa.table(numbers | {"states": pa.array([to_text(row.states) for row in rows], pa.large_string())})


def rows_from(table: pa.Table) -> list[CountedRow]:
    """What `row_table` wrote."""
    return [CountedRow(**(row | {"states": from_text(row["states"])})) for row in table.to_pylist()]


def rows_by_partition(rows: list[CountedRow]) -> dict[int, list[CountedRow]]:
    """Rows by the partition they belong to."""
    found: dict[int, list[CountedRow]] = {}
    for row in rows:
        found.setdefault(row.partition, []).append(row)
    return found
