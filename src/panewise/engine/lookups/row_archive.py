"""Rows kept for lookups: any window over time or over row numbers is a run of rows of each group.

The row numbers of a partition count its rows by time, then by arrival, from one; a late row moves those after it up by
one. Rows are kept in segments that follow each other, each much larger than the next one: what comes is merged into
small segments only, a late row into the segment in which it belongs. A segment does not know how many rows came before
it, so that late rows in older segments do not touch it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa

from panewise.aggregate import Int64Array, StateArrays, StateWords, put, states_at
from panewise.algebra import Call
from panewise.engine.lookups.archive import REPLAN_INTERVAL
from panewise.engine.lookups.row_segment import GroupRuns, RowSegment
from panewise.engine.panes.held_rows import HeldRows
from panewise.engine.state.snapshot import StatePart, Tree, remember_name
from panewise.plan.rules.choose_index import IndexChoice, LookupUsage, choose_row_index
from panewise.plan.rules.rule import RulesOff
from panewise.stores.chain import MIN_POSITION
from panewise.stores.ranked import RowQuantileIndex
from panewise.stores.row_indexes import RowIndex

#: A segment takes the next one in if it has no more rows than this, or than so many times those of the next one.
SMALL_SEGMENT, SEGMENT_GROWTH = 1024, 8
#: Old rows are dropped once they are this share of all.
DROPPED_SHARE = 0.25


class RowArchive:
    """The rows of one family that are no older than `keep` ticks before the newest; None keeps them all.

    Of each partition, the last `needed` rows before these are kept too, so that windows of so many rows can be answered
    at every instant that is kept.
    """

    def __init__(
        self,
        columns: Sequence[StateArrays],
        calls: Sequence[Call],
        shift: int,
        partitioned: bool,
        keep: int | None,
        since: int,
        rules_off: RulesOff,
    ) -> None:
        # The last column of families with an expiry is no answer.
        self.columns, self.calls, self.shift = columns[: len(calls) + 1], calls, shift
        self.partitioned, self.keep, self.since, self.rules_off = partitioned, keep, since, rules_off
        self.needed = 0
        self.segments: list[RowSegment] = []
        #: How many rows of each partition have been dropped, and the position of the last of them.
        self.dropped = np.zeros(0, np.int64)
        self.dropped_until = np.zeros(0, np.int64)
        self._pending: list[HeldRows] = []
        self.choices: dict[int, IndexChoice[RowIndex | RowQuantileIndex]] = {}
        self.usage = LookupUsage()
        self._ranked: dict[int, RowQuantileIndex] = {}

    @property
    def row_count(self) -> int:
        """How many rows are kept."""
        return sum(map(len, self._parts()))

    @property
    def nbytes(self) -> int:
        indexes = sum(index.nbytes for index in self._ranked.values())
        return indexes + sum(part.nbytes for part in self._parts())

    @property
    def partitions(self) -> Int64Array:
        """All partitions that have ever had rows."""
        self.merge_pending()
        return np.arange(len(self.dropped))

    @property
    def rows(self) -> Iterator[HeldRows]:
        """The rows that are kept, in parts."""
        return (part if isinstance(part, HeldRows) else part.rows for part in self._parts())

    def _parts(self) -> list[RowSegment | HeldRows]:
        return [*self.segments, *self._pending]

    # ---- answers -----------------------------------------------------------------------------------------------

    def complete(self, partitions: Int64Array) -> Int64Array:
        """The least row number after which all rows of each partition are kept; negative where none is missing."""
        return np.where(
            (self.since > MIN_POSITION) | (self.dropped[partitions] > 0), self.dropped[partitions], -(2**62)
        )

    def numbers_upto(self, positions: Int64Array, partitions: Int64Array) -> Int64Array:
        """The number of the last row of each partition up to each position, position by position."""
        found = np.repeat(self.dropped[partitions][None, :], len(positions), axis=0)
        for segment in self.segments:
            found += segment.count_upto(positions - self.shift, partitions)
        return found

    def partitions_of(self, codes: Int64Array) -> Int64Array:
        """The partitions in which some groups have kept rows, ascending."""
        self.merge_pending()
        if len(self.dropped) < 2:
            return self.partitions
        found = [segment.partitions_of(codes) for segment in self.segments]
        return np.unique(np.concatenate([np.zeros(0, np.int64), *found]))

    def answers(
        self, lows: Int64Array, highs: Int64Array, partitions: Int64Array, codes: Int64Array
    ) -> list[StateWords]:
        """For each column the states of some groups, ascending, over row numbers `(low, high]`, window by window.

        `lows` and `highs` have a row for each window and a column for each partition.
        """
        runs, before = [], self.dropped[partitions]
        for segment in self.segments:
            sizes = segment.sizes(partitions)
            inside = [np.clip(numbers - before, 0, sizes) for numbers in (lows, highs)]
            runs.append(segment.runs(inside[0], inside[1], partitions, codes))
            self.usage.record_lookups(runs[-1].stops - runs[-1].firsts, 1, 1)
            before = before + sizes
        self._choose_indexes()
        found = []
        for number in range(len(self.columns)):
            index = self.choices[number].index
            if issubclass(index, RowIndex):
                found.append(self._column_states(number, index, runs, len(lows) * len(codes)))
            else:
                inside = [np.clip(numbers[:, 0] - self.dropped[0], 0, self.row_count) for numbers in (lows, highs)]
                found.append(self._ranked_states(number, inside[0], inside[1], codes))
        return found

    def _column_states(self, number: int, index: type[RowIndex], runs: Sequence[GroupRuns], count: int) -> StateWords:
        """What each segment says about its runs, combined."""
        column = self.columns[number]
        words = column.identity(count)
        for segment, each in zip(self.segments, runs, strict=True):
            if len(each.answers):
                where, states = _by_answer(column, each.answers, segment.states(number, column, index, each))
                put(words, where, column.combine(states_at(words, where), states))
        return words

    def _ranked_states(self, number: int, lows: Int64Array, highs: Int64Array, codes: Int64Array) -> StateWords:
        """What one index over all rows of the only partition says: sorted states cannot be combined any more."""
        if number not in self._ranked:
            self._ranked[number] = RowQuantileIndex(self.columns[number], number)
        return self._ranked[number].lookup(self.segments, lows, highs, codes)

    def _choose_indexes(self) -> None:
        """Choose the index of each column, and again from time to time."""
        if self.choices and not self.usage.is_due(REPLAN_INTERVAL):
            return
        for number, column in enumerate(self.columns):
            current = self.choices.get(number)
            self.choices[number] = choose_row_index(column, self.usage, self.partitioned, current, self.rules_off)
            if self.choices[number].index is not RowQuantileIndex:
                self._ranked.pop(number, None)
        self.usage.halve_counts()

    # ---- rows come and go --------------------------------------------------------------------------------------

    def take(self, rows: HeldRows, needed: int) -> None:
        """Keep rows, all of which came after those that are kept."""
        self.needed = needed
        self._pending.append(rows)
        if sum(map(len, self._pending)) > max(SMALL_SEGMENT, sum(map(len, self.segments)) // SEGMENT_GROWTH):
            self.merge_pending()

    def merge_pending(self) -> None:
        """Put pending rows in their places, and drop what is older than `keep`."""
        if not self._pending:
            return
        rows, self._pending = HeldRows.concat(self._pending), []
        self.know_partitions(int(rows.partitions.max(initial=-1)) + 1)
        rows = self._without_dropped(rows)
        # The first segment with a row of a later time: a row comes after all of its own time.
        places = np.searchsorted([segment.last_time for segment in self.segments], rows.times, side="right")
        for place in np.unique(places).tolist():
            part = rows.where(places == place)
            if place < len(self.segments):
                self._replace(place, [self.segments[place].rows, part])
            else:
                self.segments.append(self._segment(part))
        while len(self.segments) > 1 and len(self.segments[-2]) <= max(
            SMALL_SEGMENT, SEGMENT_GROWTH * len(self.segments[-1])
        ):
            last = self.segments.pop()
            self._replace(len(self.segments) - 1, [self.segments[-1].rows, last.rows])
        self._forget()

    def _replace(self, place: int, parts: Sequence[HeldRows]) -> None:
        self.segments[place] = self._segment(HeldRows.concat(parts))

    def _segment(self, rows: HeldRows) -> RowSegment:
        self.usage.updates += len(rows)
        return RowSegment(rows, self.calls)

    def know_partitions(self, count: int) -> None:
        """Expect rows of so many partitions."""
        fresh = max(count - len(self.dropped), 0)
        self.dropped = np.append(self.dropped, np.zeros(fresh, np.int64))
        self.dropped_until = np.append(self.dropped_until, np.full(fresh, self.since))

    def _without_dropped(self, rows: HeldRows) -> HeldRows:
        """The rows without those before which others have been dropped; these are counted and dropped too."""
        behind = rows.times + self.shift < self.dropped_until[rows.partitions]
        self.dropped += np.bincount(rows.partitions[behind], minlength=len(self.dropped))
        return rows.where(~behind)

    def _forget(self) -> None:
        """Drop rows that are older than `keep`, except those that windows of `needed` rows may still hold."""
        if self.keep is None or not self.segments:
            return
        limit = np.array([self.segments[-1].last_time + self.shift - self.keep], np.int64)
        upto = np.maximum(self.numbers_upto(limit, self.partitions)[0] - self.needed, self.dropped)
        if (upto - self.dropped).sum() < max(DROPPED_SHARE * self.row_count, 1):
            return
        before, kept = self.dropped, []
        for segment in self.segments:
            rows, sizes = segment.rows, segment.sizes(self.partitions)
            old = segment.numbers + before[rows.partitions] <= upto[rows.partitions]
            np.maximum.at(self.dropped_until, rows.partitions[old], rows.times[old] + self.shift)
            if not old.any():
                kept.append(segment)
            elif not old.all():
                kept.append(self._segment(rows.where(~old)))
            before = before + sizes
        self.segments, self.dropped = kept, upto

    def recode(self, codes: Int64Array) -> None:
        """Replace the codes of groups."""
        self._pending = [rows.with_codes(codes) for rows in self._pending]
        self.segments = [self._segment(segment.rows.with_codes(codes)) for segment in self.segments]

    # ---- restarts ----------------------------------------------------------------------------------------------

    def state(self) -> Tree:
        self.merge_pending()
        dropped = pa.table({"rows": self.dropped, "until": self.dropped_until})
        rows = [StatePart(segment, "rows", segment.rows.state) for segment in self.segments]
        return {"since": self.since, "needed": self.needed, "dropped": dropped, "rows": rows}

    def restore(self, state: Tree) -> None:
        self.since, self.needed = state["since"], state["needed"]
        self.dropped, self.dropped_until = (np.array(column.to_numpy()) for column in state["dropped"].columns)
        self.segments = [self._segment(HeldRows.from_state(table)) for table in state["rows"]]
        for segment, table in zip(self.segments, state["rows"], strict=True):
            remember_name(segment, "rows", table)


def _by_answer(column: StateArrays, answers: Int64Array, words: StateWords) -> tuple[Int64Array, StateWords]:
    """States of the same answer, which follow each other, combined: a group may have rows in several partitions."""
    fresh = np.diff(answers, prepend=-1) != 0
    if fresh.all():
        return answers, words
    last = np.flatnonzero(np.append(fresh[1:], True))
    return answers[last], states_at(column.scan(words, fresh, backward=False), last)
