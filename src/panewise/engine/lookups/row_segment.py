"""Kept rows that follow each other in the stream, by group, so that any window over them is a run of each group.

Row numbers count the rows of a partition, from one. Here they begin with the segment.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np

from panewise import kernels
from panewise.aggregate import Int64Array, Items, StateArrays, StateWords
from panewise.aggregate.ragged import ragged_word
from panewise.algebra import Call
from panewise.engine.panes.held_rows import HeldRows
from panewise.engine.sorting import order_by_code
from panewise.stores.row_indexes import RowIndex


@dataclass(frozen=True, eq=False)
class GroupRuns:
    """Rows of some groups in some windows: the place of each answer, ascending, and the run of rows for it."""

    answers: Int64Array
    firsts: Int64Array
    stops: Int64Array


@dataclass(frozen=True, eq=False)
class _Cells:
    """Rows by group and partition: their places, where those of each pair begin and end, and their row numbers."""

    places: Int64Array
    numbers: Int64Array
    edges: Int64Array
    codes: Int64Array
    partitions: Int64Array


class RowSegment:
    """Rows ordered by time, then by arrival; none of them ever changes."""

    def __init__(self, rows: HeldRows, calls: Sequence[Call]) -> None:
        self.rows, self.calls = rows, calls
        self._indexes: dict[int, RowIndex] = {}

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def last_time(self) -> int:
        return int(self.rows.times[-1])

    @property
    def nbytes(self) -> int:
        return self.rows.nbytes + sum(index.nbytes for index in self._indexes.values())

    # ---- partitions --------------------------------------------------------------------------------------------

    @cached_property
    def _by_partition(self) -> tuple[Int64Array, Int64Array, Int64Array]:
        """The places of rows by partition, where each partition begins, and the times in this order."""
        places = order_by_code(self.rows.partitions)
        count = int(self.rows.partitions.max()) + 1
        # One more for all partitions that came later and have no rows here.
        edges = np.searchsorted(self.rows.partitions[places], np.arange(count + 2))
        return places, edges, self.rows.times[places]

    def _slices(self, partitions: Int64Array) -> tuple[Int64Array, Int64Array]:
        """Where the rows of some partitions begin and end."""
        _, edges, _ = self._by_partition
        known = np.minimum(partitions, len(edges) - 2)
        return edges[known], edges[known + 1]

    def sizes(self, partitions: Int64Array) -> Int64Array:
        """How many rows some partitions have."""
        starts, stops = self._slices(partitions)
        return stops - starts

    def count_upto(self, times: Int64Array, partitions: Int64Array) -> Int64Array:
        """How many rows of each partition have come up to each time, time by time."""
        starts, stops = (np.tile(edges, len(times)) for edges in self._slices(partitions))
        ends: Int64Array = kernels.interval_ends(
            self._by_partition[2], starts, stops, np.repeat(times, len(partitions))
        )
        return (ends - starts).reshape(len(times), len(partitions))

    @cached_property
    def numbers(self) -> Int64Array:
        """The number of each row."""
        places, edges, _ = self._by_partition
        found = np.empty(len(self), np.int64)
        found[places] = np.arange(1, len(self) + 1) - edges[self.rows.partitions[places]]
        return found

    # ---- groups ------------------------------------------------------------------------------------------------

    @cached_property
    def _cells(self) -> _Cells:
        codes, partitions = self.rows.codes, self.rows.partitions
        places = self._by_partition[0]
        places = places[codes[places] >= 0]
        places = places[order_by_code(codes[places])]
        codes, partitions = codes[places], partitions[places]
        fresh = np.ones(len(places), bool)
        fresh[1:] = (np.diff(codes) != 0) | (np.diff(partitions) != 0)
        starts = np.flatnonzero(fresh)
        return _Cells(places, self.numbers[places], np.append(starts, len(places)), codes[starts], partitions[starts])

    def partitions_of(self, codes: Int64Array) -> Int64Array:
        """The partitions in which some groups have rows, ascending."""
        return np.unique(self._cells.partitions[self._cells_of(codes)[0]])

    def _cells_of(self, codes: Int64Array) -> tuple[Int64Array, Int64Array]:
        """The cells of some groups, ascending, and which group each belongs to."""
        firsts, stops = (np.searchsorted(self._cells.codes, codes, side) for side in ("left", "right"))
        sizes = stops - firsts
        cells = np.arange(sizes.sum()) + np.repeat(firsts - (np.cumsum(sizes) - sizes), sizes)
        return cells, np.repeat(np.arange(len(codes)), sizes)

    def runs(self, lows: Int64Array, highs: Int64Array, partitions: Int64Array, codes: Int64Array) -> GroupRuns:
        """The runs of some groups in windows over row numbers `(low, high]`, a row for each window.

        `lows` and `highs` have a column for each of the partitions.
        """
        cells, groups = self._cells_of(codes)
        column = np.searchsorted(partitions, self._cells.partitions[cells])
        count = len(lows)
        answers = (np.arange(count)[:, None] * len(codes) + groups).ravel()
        starts, stops = (np.tile(self._cells.edges[cells + side], count) for side in (0, 1))
        firsts, ends = (
            kernels.interval_ends(self._cells.numbers, starts, stops, numbers[:, column].ravel())
            for numbers in (lows, highs)
        )
        filled = np.flatnonzero(firsts < ends)
        return GroupRuns(answers[filled], firsts[filled], ends[filled])

    def states(self, number: int, column: StateArrays, index: type[RowIndex], runs: GroupRuns) -> StateWords:
        """The states of a column over runs, by an index of some kind, which is made when it is first asked."""
        held = self._indexes.get(number)
        if type(held) is not index:
            held = self._indexes[number] = index(column, partial(self._cell_items, number), len(self._cells.places))
        return held.lookup(runs.firsts, runs.stops)

    def ranked_values(self, number: int, column: StateArrays) -> tuple[Int64Array, Int64Array, Int64Array]:
        """For a column of multisets: how many values each row has, the values, and the group of each."""
        places = np.arange(len(self))
        runs = ragged_word(column.gather(places, self._items_at(number, places), len(self)))
        return runs.sizes, runs.own_entries()[0], np.repeat(self.rows.codes, runs.sizes)

    def _cell_items(self, number: int, places: Int64Array) -> Items:
        """What a column looks at, of rows by group and partition."""
        return self._items_at(number, self._cells.places[places])

    def _items_at(self, number: int, places: Int64Array) -> Items:
        """The same by time: presence looks at nothing, the others at the arguments of a call."""
        return self.rows.items(self.calls[number - 1 : number] if number else (), places)[-1]
