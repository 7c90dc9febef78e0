"""The emitter of queries that report changes only, and the rows that it has reported and that have not left."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from panewise.aggregate import Int64Array
from panewise.algebra import Emit, Query
from panewise.core.time import ceil_to_grid
from panewise.engine.multisets import uncancelled_rows
from panewise.engine.rows.emitter import EmittedRows, Emitter
from panewise.engine.rows.inputs.timed import WindowView
from panewise.engine.rows.operators.base import OperatorVariant, order_count, schema_of
from panewise.engine.rows.spans import NO_EXPIRY, RelationDelta, Spans, empty_spans, end_instants, with_ends
from panewise.engine.sorting import order_by_instant
from panewise.engine.state.snapshot import Tree
from panewise.kernels.ranges import OPEN


class ChangeEmitter(Emitter):
    """Emits the rows that entered and the rows that left since the last instant at which the query reported."""

    def __init__(self, query: Query, views: Sequence[WindowView], variant: OperatorVariant) -> None:
        super().__init__(query, views, variant)
        nothing = empty_spans(schema_of(query.root), order_count(query.root))
        #: Rows that are present and not reported yet, since the query has had no instant after they entered.
        self.unreported = nothing
        self.live_rows = LiveRows(nothing)

    def next_change(self, after: int) -> int:
        waiting = len(self.unreported) or len(self.noted_instants)
        return after + 1 if waiting else self.live_rows.first_leave

    def advance(self, limit: int, given: RelationDelta, finishing: bool = False) -> EmittedRows:
        self._note_instants(after=True)
        self.live_rows.close_rows(given)
        rows = Spans.concat([with_ends(self.unreported, given), given.opened])
        came, went = self._notice_instants(rows.enter, limit), self._notice_instants(rows.leave, limit)
        self.unreported = rows.where(came == OPEN)
        # Rows that enter and leave between two instants of the query are never reported.
        seen = (came < OPEN) & (came != went)
        brief = seen & (went < OPEN)
        self.live_rows.add(rows.where(seen & ~brief))
        left, left_at = self._rows_that_left(limit)
        self.noted_instants = self.noted_instants[self.noted_instants > limit]
        up, down = rows.where(seen), Spans.concat([left, rows.where(brief)])
        return self._emit(up, came[seen], down, np.concatenate((left_at, went[brief])))

    def _rows_that_left(self, limit: int) -> tuple[Spans, Int64Array]:
        """Rows that left, and the instant at which that is reported; rows without such an instant stay live."""
        rows = self.live_rows.pop_until(limit)
        at = self._notice_instants(rows.leave, limit)
        self.live_rows.add(rows.where(at == OPEN))
        return rows.where(at < OPEN), at[at < OPEN]

    def _emit(self, up: Spans, came: Int64Array, down: Spans, went: Int64Array) -> EmittedRows:
        rows, at = Spans.concat([up, down]), np.concatenate((came, went))
        ups, downs = map(np.flatnonzero, uncancelled_rows(rows.table, came, went, rows.time))
        downs += len(up)
        if self.query.emit is Emit.ISTREAM:
            downs = downs[:0]
        if self.query.emit is Emit.DSTREAM:
            ups = ups[:0]
        places = np.concatenate((ups, downs))
        signs = np.repeat(np.array([1, -1]), [len(ups), len(downs)])
        order = _report_order(at[places], signs, rows.time[places], rows.order[places])
        places, nothing = places[order], np.full(len(order), NO_EXPIRY)
        return EmittedRows(rows, places, at[places], signs[order], nothing, nothing)

    def _notice_instants(self, instants: Int64Array, limit: int) -> Int64Array:
        """The instant at which a change is reported; OPEN where there is none yet."""
        if not self.periodic_views:
            return np.where(instants <= limit, instants, OPEN)
        found = np.full(len(instants), OPEN)
        soon = instants <= limit
        for view in self.periodic_views:
            if view.window.grid:
                found[soon] = np.minimum(found[soon], ceil_to_grid(instants[soon], *view.window.grid))
        if len(self.noted_instants):
            next_ = np.append(self.noted_instants, OPEN)[np.searchsorted(self.noted_instants, instants)]
            found = np.minimum(found, np.where(soon, next_, OPEN))
        return np.where(found <= limit, found, OPEN)

    def state(self) -> Tree:
        return {
            "unsaid": self.unreported.state(),
            "standing": self.live_rows.state(),
            "moments": self.noted_instants.tolist(),
        }

    def restore(self, state: Tree) -> None:
        self.unreported = Spans.from_state(state["unsaid"])
        self.live_rows.restore(state["standing"])
        self.noted_instants = np.array(state["moments"], np.int64)


def _report_order(at: Int64Array, signs: Int64Array, times: Int64Array, order: Int64Array) -> Int64Array:
    """The order by instant; insertions come before deletions, then time and arrival count."""
    found = np.arange(len(at))
    for word in (order, times, -signs, at):
        # Rows mostly come in their order, and then only few of these words have to be looked at again.
        mine = word[found]
        if (mine[1:] < mine[:-1]).any():
            found = found[order_by_instant(mine)]
    return found


#: More pieces than this are put together.
MAX_PIECES = 16


class LiveRows:
    """Rows that have been reported and have not left.

    Rows whose end is known are ordered by it, in a few pieces, so that a turn touches only rows that leave.
    """

    def __init__(self, nothing: Spans) -> None:
        self.nothing = nothing
        self.sure: list[Spans] = []
        self.open: list[Spans] = []

    @property
    def first_leave(self) -> int:
        """When the first of the rows leaves whose end is known."""
        return min((int(piece.leave[0]) for piece in self.sure), default=OPEN)

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
