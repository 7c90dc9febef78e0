"""L-INT in arrays: intervals that begin at a landmark or end just before one ("Resource sharing" section 3.1.2)."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from panewise.aggregate import Int64Array, StateArrays, StateWords
from panewise.core.errors import PlanProblem
from panewise.stores.arrays.base import ArrayStore
from panewise.stores.arrays.tables import (
    capacity_for,
    fold_into,
    identity_table,
    lengthen_rows,
    pieces,
    scan_rows,
    widen_rows,
)

#: A position, or an array of them.
N = TypeVar("N", int, Int64Array)

#: Widths share landmarks while the widest is at most this many times the narrowest: the paper's c.
SPREAD = 2

#: Instead of a partition: a window that holds nothing, and one whose width was not declared.
_EMPTY, _UNKNOWN = -1, -2


class LandmarkArrays(ArrayStore):
    """Requires states that combine, and the widths of the windows: without them, every width up to `reach`.

    Lookup O(1), one combination. Update O(gamma) amortised and space O(gamma * reach), where gamma is the number of
    partitions of the widths; O(reach) where all windows are suffixes. A half-filled window, which begins at position
    one, may be narrower than declared.
    """

    name = "L-INT"
    requires = "states that combine"

    def __init__(
        self,
        column: StateArrays,
        reach: int,
        groups: int = 1,
        widths: Iterable[int] | None = None,
        suffix: bool = False,
    ) -> None:
        super().__init__(column, reach, groups)
        declared = range(1, reach + 1) if widths is None else sorted(set(widths))
        if not declared or not 1 <= declared[0] <= declared[-1] <= reach:
            raise PlanProblem(
                f"L-INT cannot keep widths {', '.join(map(str, declared)) or '(none)'} of {reach} panes",
                fix=f"declare widths from 1 to {reach}",
            )
        self.suffix = suffix
        #: By width, the number of its partition.
        self._parts = np.full(declared[-1] + 1, _UNKNOWN, np.int16)
        self._parts[0] = _EMPTY
        self.partitions: list[LandmarkTables] = []
        for part in partition_widths(declared):
            self._parts[np.array(part)] = len(self.partitions)
            self.partitions.append(LandmarkTables(column, part[-1] if suffix else reach, part[0], part[-1], groups))

    def _append(self, rows: StateWords, count: int) -> None:
        for landmarks in self.partitions:
            landmarks.append(rows, count)

    def _skip(self, count: int) -> None:
        super()._skip(count)
        for landmarks in self.partitions:
            landmarks.length = self.length

    def _lookup_pairs(self, firsts: Int64Array, lasts: Int64Array, groups: Int64Array) -> StateWords:
        parts = self._parts_of(firsts, lasts)
        if len(parts) and parts[0] >= 0 and (parts == parts[0]).all():
            return self.partitions[int(parts[0])].lookup(firsts, lasts, groups)
        answers = self.column.identity(len(firsts))
        for number in np.unique(parts[parts >= 0]):
            where = np.flatnonzero(parts == number)
            found = self.partitions[number].lookup(firsts[where], lasts[where], groups[where])
            for answer, word in zip(answers, found, strict=True):
                answer[where] = word
        return answers

    def _lookup_all_groups(self, firsts: Int64Array, lasts: Int64Array) -> StateWords:
        groups = np.tile(np.arange(self.groups), len(firsts))
        return self._lookup_pairs(np.repeat(firsts, self.groups), np.repeat(lasts, self.groups), groups)

    def _parts_of(self, firsts: Int64Array, lasts: Int64Array) -> npt.NDArray[np.int16]:
        """The partition that answers each window."""
        widths, widest = lasts - firsts + 1, len(self._parts) - 1
        parts: npt.NDArray[np.int16] = self._parts[np.minimum(widths, widest)]
        parts[(firsts == 1) & (widths > 0)] = len(self.partitions) - 1
        parts[widths > widest] = _UNKNOWN
        if (parts == _UNKNOWN).any():
            bad = int(np.argmax(parts == _UNKNOWN))
            raise PlanProblem(
                f"interval ({firsts[bad]}, {lasts[bad]}) has width {widths[bad]}, which was not declared to L-INT",
                fix=f"declare {widths[bad]} among the widths",
            )
        if self.suffix and (late := (lasts != self.length) & (widths > 0)).any():
            bad = int(np.argmax(late))
            raise PlanProblem(
                f"interval ({firsts[bad]}, {lasts[bad]}) does not end at the newest of {self.length} panes, "
                f"as {self.name} expects",
                fix="choose a store for windows with a lag",
            )
        return parts

    def _revise(self, position: int, row: StateWords) -> None:
        for landmarks in self.partitions:
            landmarks.revise(position, row)

    def _widen(self) -> None:
        for landmarks in self.partitions:
            landmarks.widen(self.room)

    def _tables(self) -> list[StateWords]:
        return [table for landmarks in self.partitions for table in landmarks.tables()]


class LandmarkTables:
    """One instance of the paper's figure 5: widths from `narrowest` to `widest`, landmarks every `narrowest` positions.

    The a-th landmark has the rows of `_since` from `a * (widest + 1)` on, modulo the landmarks there is room for: the
    states from there to d positions later. Position p has row p of `_until`, modulo their number: the state from there
    to just before the next landmark. Position zero is a landmark that holds nothing, so that (0, r) answers (1, r).
    """

    def __init__(self, column: StateArrays, reach: int, narrowest: int, widest: int, room: int) -> None:
        self.column, self.reach, self.narrowest, self.widest, self.room = column, reach, narrowest, widest, room
        self.length = 0
        self._held = 1
        self._since = identity_table(column, widest + 1, room)
        self._until = identity_table(column, 1, room)
        #: The states since the newest landmark, each at its distance from it.
        self._block = identity_table(column, narrowest, room)

    def append(self, rows: StateWords, count: int) -> None:
        if count > self.reach:
            self.length += count - self.reach
            rows, count = tuple(word[-self.reach :] for word in rows), self.reach
        now = self.length + count
        oldest = self._oldest(now)
        self._make_room(min(now, self.reach))
        self._follow(rows, now, oldest)
        self._close(rows, oldest)
        self.length = now

    def lookup(self, firsts: Int64Array, lasts: Int64Array, groups: Int64Array) -> StateWords:
        firsts = np.where(firsts == 1, 0, firsts)
        landmarks = landmark_from(firsts, self.narrowest)
        since = tuple(word[self._row(landmarks) + lasts - landmarks, groups] for word in self._since)
        until = tuple(word[firsts & (len(word) - 1), groups] for word in self._until)
        answers, whole = self.column.combine(until, since), landmarks == firsts
        for answer, word in zip(answers, since, strict=True):
            answer[whole] = word[whole]
        return answers

    def revise(self, position: int, row: StateWords) -> None:
        oldest = self._oldest(self.length)
        if position < oldest:
            return
        for landmark in self._landmarks(max(position - self.widest, oldest), position):
            start, last = self._row(landmark), min(landmark + self.widest, self.length)
            fold_into(self.column, self._since, slice(start + position - landmark, start + last - landmark + 1), row)
        begin = position // self.narrowest * self.narrowest
        if begin + self.narrowest - 1 <= self.length:
            for _, start, count in pieces(max(begin, oldest), position + 1, len(self._until[0])):
                fold_into(self.column, self._until, slice(start, start + count), row)
        else:
            fold_into(self.column, self._block, slice(position - begin, position - begin + 1), row)

    def widen(self, room: int) -> None:
        self.room = room
        self._since, self._until, self._block = (widen_rows(self.column, table, room) for table in self.tables())

    def tables(self) -> list[StateWords]:
        return [self._since, self._until, self._block]

    def _oldest(self, now: int) -> int:
        """The first position that can still be asked for; zero as long as a window can begin at position one."""
        return now - self.reach + 1 if now > self.reach else 0

    def _row(self, landmark: Any) -> Any:
        return landmark // self.narrowest % self._held * (self.widest + 1)

    def _landmarks(self, first: int, last: int) -> range:
        return range(landmark_from(first, self.narrowest), last + 1, self.narrowest)

    def _make_room(self, positions: int) -> None:
        """Nothing has been overwritten before there is room for the whole reach."""
        if positions + 1 > len(self._until[0]):
            self._until = lengthen_rows(self.column, self._until, capacity_for(positions + 1))
            self._held = len(self._until[0]) // self.narrowest + 2
            self._since = lengthen_rows(self.column, self._since, self._held * (self.widest + 1))

    # ---- from a landmark on --------------------------------------------------------------------------------------

    def _follow(self, rows: StateWords, now: int, oldest: int) -> None:
        """The intervals that begin at a landmark and end at one of the new positions."""
        before = self.length
        for landmark in self._landmarks(max(before + 1 - self.widest, oldest), before):
            self._extend(landmark, rows, now)
        fresh = self._landmarks(max(before + 1, oldest), now)
        complete = self._landmarks(fresh.start, now - self.widest)
        for landmark in fresh[len(complete) :]:
            self._extend(landmark, rows, now)
        if len(complete):
            starts, steps = np.array(complete), np.arange(self.widest + 1)[:, None]
            found = scan_rows(self.column, tuple(word[starts - before - 1 + steps] for word in rows))
            for word, states in zip(self._since, found, strict=True):
                word[self._row(starts) + steps] = states

    def _extend(self, landmark: int, rows: StateWords, now: int) -> None:
        """The intervals of one landmark, continued from the last of them if there is one."""
        known = self.length - landmark
        skipped, until = max(-known - 1, 0), min(landmark + self.widest, now) - self.length
        states = scan_rows(self.column, tuple(word[skipped:until] for word in rows))
        start = self._row(landmark) + max(known + 1, 0)
        if known >= 0:
            fold_into(self.column, states, slice(None), tuple(word[start - 1] for word in self._since))
        for word, state in zip(self._since, states, strict=True):
            word[start : start + until - skipped] = state

    # ---- up to a landmark ----------------------------------------------------------------------------------------

    def _close(self, rows: StateWords, oldest: int) -> None:
        """The intervals that end just before a landmark, for each block between two landmarks that is complete."""
        begin = (self.length + 1) // self.narrowest * self.narrowest
        known = self.length + 1 - begin
        whole = (known + len(rows[0])) // self.narrowest
        if whole:
            held = (word[:known] for word in self._block)
            rows = tuple(np.concatenate(pair) for pair in zip(held, rows, strict=True))
            shape = (whole, self.narrowest, self.room)
            blocks = (word[: whole * self.narrowest].reshape(shape).swapaxes(0, 1)[::-1] for word in rows)
            backwards = scan_rows(self.column, tuple(blocks))
            states = tuple(word[::-1].swapaxes(0, 1).reshape(-1, self.room) for word in backwards)
            for start, row, count in pieces(max(begin, oldest), begin + len(states[0]), len(self._until[0])):
                for word, state in zip(self._until, states, strict=True):
                    word[row : row + count] = state[start - begin : start - begin + count]
            rows, known = tuple(word[whole * self.narrowest :] for word in rows), 0
        for word, fresh in zip(self._block, rows, strict=True):
            word[known : known + len(fresh)] = fresh


def landmark_from(position: N, narrowest: int) -> N:
    """The first landmark at or after a position: where an interval that begins there is cut in two.

    >>> landmark_from(3257, 1000)  # (3257, 5164) is (3257, 3999) and (4000, 5164)
    4000
    """
    return -(-position // narrowest) * narrowest


def partition_widths(widths: Sequence[int]) -> list[Sequence[int]]:
    """Ascending widths, cut into as few runs as possible that spread by no more than a factor of SPREAD.

    >>> partition_widths([5, 8, 10, 11, 60])
    [[5, 8, 10], [11], [60]]
    """
    found = []
    while widths:
        end = bisect_right(widths, SPREAD * widths[0])
        found.append(widths[:end])
        widths = widths[end:]
    return found
