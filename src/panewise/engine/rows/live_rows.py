"""Rows that have been reported and have not left, in a few pieces, so that a turn touches only rows that leave."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from panewise.aggregate import Int64Array
from panewise.engine.rows.spans import OPEN, RelationDelta, Spans, end_instants
from panewise.engine.state.snapshot import Tree

#: More pieces than this are put together.
MAX_PIECES = 16


class LiveRows:
    """Rows with a known end, ordered by it; and rows whose end will be reported later."""

    def __init__(self, nothing: Spans) -> None:
        self.nothing = nothing
        self.sure: list[Spans] = []
        self.open: list[Spans] = []

    def add(self, rows: Spans) -> None:
        """Add rows; those that never leave are not stored."""
        unsure = rows.leave == OPEN
        if unsure.any():
            self.open = _merge_pieces([*self.open, rows.where(unsure)])
        sure = rows.where(rows.leave < OPEN)
        if len(sure):
            self.sure = [_sort_by_leave(piece) for piece in _merge_pieces([*self.sure, _sort_by_leave(sure)])]

    def close_rows(self, given: RelationDelta) -> None:
        """Set the ends that have become known."""
        if not len(given.closed):
            return
        pieces, self.open = self.open, []
        for piece in pieces:
            at = end_instants(piece.ids, given)
            left = at < OPEN
            if left.any():
                self.add(replace(piece, leave=np.where(left, at, OPEN)).where(left))
            if not left.all():
                self.open.append(piece.where(~left))

    def pop_until(self, limit: int) -> Spans:
        """Remove and return the rows that leave up to an instant."""
        gone, rest = [self.nothing], []
        for piece in self.sure:
            cut = int(np.searchsorted(piece.leave, limit, side="right"))
            if cut:
                gone.append(_slice_rows(piece, slice(0, cut)))
            if cut < len(piece):
                rest.append(_slice_rows(piece, slice(cut, len(piece))))
        self.sure = rest
        return Spans.concat(gone)

    def state(self) -> Tree:
        return {"rows": Spans.concat([self.nothing, *self.sure, *self.open]).state()}

    def restore(self, state: Tree) -> None:
        self.sure, self.open = [], []
        self.add(Spans.from_state(state["rows"]))


def _merge_pieces(pieces: list[Spans]) -> list[Spans]:
    return [Spans.concat(pieces)] if len(pieces) > MAX_PIECES else pieces


def _sort_by_leave(rows: Spans) -> Spans:
    if (np.diff(rows.leave) >= 0).all():
        return rows
    order: Int64Array = np.argsort(rows.leave, kind="stable")
    return rows.at(order)


def _slice_rows(rows: Spans, where: slice) -> Spans:
    return Spans.of(rows.table.slice(where.start, where.stop - where.start), [word[where] for word in rows.words])
