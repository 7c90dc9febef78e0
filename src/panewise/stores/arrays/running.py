"""R-INT in arrays: running totals, whose differences answer any interval ("Resource sharing" sections 3.2 and 5)."""

from __future__ import annotations

from typing import Any

from panewise import kernels
from panewise.aggregate import FusedOperation, Int64Array, StateArrays, StateWords
from panewise.stores.arrays.base import ArrayStore, contiguous
from panewise.stores.arrays.tables import (
    capacity_for,
    flatten,
    fold_into,
    identity_table,
    lengthen_rows,
    pieces,
    scan_rows,
    widen_rows,
)

_HALF = 2**63


class RunningArrays(ArrayStore):
    """Requires states out of which a part can be taken without loss. Update and lookup O(1), space O(reach).

    Row r of the totals, modulo their number, is the state of all positions up to r; row zero that of none. What was
    passed over is missing in all totals that are kept, and so in no difference of them.
    """

    name = "R-INT"
    requires = "states that can be subtracted without loss"

    def __init__(self, column: StateArrays, reach: int, groups: int = 1) -> None:
        super().__init__(column, reach, groups)
        self._set_totals(identity_table(column, 1, groups))

    @classmethod
    def accepts(cls, column: StateArrays) -> bool:
        return column.exact and super().accepts(column)

    def lookup_one(self, first: int, last: int, group: int = 0) -> tuple[Any, ...]:
        if not self._views:
            return super().lookup_one(first, last, group)
        if not (self.forgotten_until < first <= last + 1 <= self.length + 1 and 0 <= group < self.groups):
            self._check_window(first, last, group)
        mask, room = self._mask, self.room
        newer, older = (last & mask) * room + group, ((first - 1) & mask) * room + group
        gained = [view[newer] - view[older] for view in self._views]
        for number in gained:
            if not -_HALF <= number < _HALF:
                # Python's numbers do not wrap around as those of the totals may have.
                return tuple([(number + _HALF) % (2 * _HALF) - _HALF for number in gained])
        return tuple(gained)

    def _append(self, rows: StateWords, count: int) -> None:
        self._make_room(min(self.length + count, self.reach) + 1)
        if self.column.fused is FusedOperation.ADDED:
            for word, fresh in zip(self._totals, rows, strict=True):
                kernels.interval_run(word, contiguous(fresh), self.length)
            return
        totals = scan_rows(self.column, rows)
        before = tuple(word[self.length & self._mask] for word in self._totals)
        fold_into(self.column, totals, slice(None), before)
        for start, row, some in pieces(self.length + 1, self.length + 1 + count, self._mask + 1):
            offset = start - self.length - 1
            for word, total in zip(self._totals, totals, strict=True):
                word[row : row + some] = total[offset : offset + some]

    def _skip(self, count: int) -> None:
        self._make_room(self.reach + 1)
        for word in self._totals:
            word[(self.length + count) & self._mask] = word[self.length & self._mask]
        super()._skip(count)

    def _make_room(self, rows: int) -> None:
        if rows > self._mask + 1:
            # Nothing has been overwritten yet: a row stands where its number says.
            self._set_totals(lengthen_rows(self.column, self._totals, capacity_for(rows)))

    def _set_totals(self, totals: StateWords) -> None:
        """Keep other tables of totals."""
        self._totals, self._mask = totals, len(totals[0]) - 1
        # For single lookups: a view gives one number several times faster than an array.
        self._views = [word.reshape(-1).data for word in totals] if self.column.fused is FusedOperation.ADDED else []

    def _lookup_pairs(self, firsts: Int64Array, lasts: Int64Array, groups: Int64Array) -> StateWords:
        if self.column.fused is FusedOperation.ADDED:
            return tuple(kernels.interval_differences(word, firsts, lasts, groups) for word in self._totals)
        newer, older = lasts & self._mask, (firsts - 1) & self._mask
        return self.column.invert(*(tuple(w[rows, groups] for w in self._totals) for rows in (newer, older)))

    def _lookup_all_groups(self, firsts: Int64Array, lasts: Int64Array) -> StateWords:
        newer, older = lasts & self._mask, (firsts - 1) & self._mask
        held = [tuple(word[rows, : self.groups] for word in self._totals) for rows in (newer, older)]
        return self.column.invert(*map(flatten, held))

    def _revise(self, position: int, row: StateWords) -> None:
        for _, start, count in pieces(position, self.length + 1, self._mask + 1):
            fold_into(self.column, self._totals, slice(start, start + count), row)

    def _widen(self) -> None:
        self._set_totals(widen_rows(self.column, self._totals, self.room))

    def _tables(self) -> list[StateWords]:
        return [self._totals]
