"""The emitter of queries that report changes only, and the rows that it has reported and that have not left."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from panewise.aggregate import Int64Array
from panewise.aggregate.dictionary import IntegerCodes
from panewise.algebra import Emit, Query
from panewise.core.time import ceil_to_grid
from panewise.engine.keys import Keys
from panewise.engine.rows.emitter import EmittedRows, Emitter
from panewise.engine.rows.inputs.timed import WindowView
from panewise.engine.rows.operators.base import OperatorVariant, order_count, schema_of
from panewise.engine.rows.spans import NO_EXPIRY, OPEN, RelationDelta, Spans, empty_spans, end_instants, with_ends
from panewise.engine.state.snapshot import Tree

Flags = np.ndarray[tuple[int], np.dtype[np.bool_]]


class ChangeEmitter(Emitter):
    """Emits the rows that entered and the rows that left since the last instant at which the query reported."""

    def __init__(self, query: Query, views: Sequence[WindowView], variant: OperatorVariant) -> None:
        super().__init__(query, views, variant)
        nothing = empty_spans(schema_of(query.root), order_count(query.root))
        #: Rows that are present and not reported yet, since the query has had no instant after they entered.
        self.unreported = nothing
        self.live_rows = LiveRows(nothing)

    def advance(self, limit: int, given: RelationDelta, finishing: bool = False) -> EmittedRows:
        self._note_sessions(after=True)
        self.live_rows.close_rows(given)
        rows = Spans.concat([with_ends(self.unreported, given), given.opened])
        came, went = self._notice_instants(rows.enter, limit), self._notice_instants(rows.leave, limit)
        self.unreported = rows.where(came == OPEN)
        # Rows that enter and leave between two instants of the query are never reported.
        seen = (came < OPEN) & (came != went)
        brief = seen & (went < OPEN)
        self.live_rows.add(rows.where(seen & ~brief))
        left, left_at = self._rows_that_left(limit)
        self.session_ends = self.session_ends[self.session_ends > limit]
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
        ups, downs = self._cancel_equal_rows(rows, np.arange(len(up)), came, np.arange(len(up), len(at)), went)
        if self.query.emit is Emit.ISTREAM:
            downs = downs[:0]
        if self.query.emit is Emit.DSTREAM:
            ups = ups[:0]
        places = np.concatenate((ups, downs))
        signs = np.repeat(np.array([1, -1]), [len(ups), len(downs)])
        order = np.lexsort((rows.order[places], rows.time[places], -signs, at[places]))
        nothing = np.full(len(order), NO_EXPIRY)
        return EmittedRows(rows.at(places[order]), at[places[order]], signs[order], nothing, nothing)

    def _notice_instants(self, instants: Int64Array, limit: int) -> Int64Array:
        """The instant at which a change is reported; OPEN where there is none yet."""
        if not self.periodic_views:
            return np.where(instants <= limit, instants, OPEN)
        found = np.full(len(instants), OPEN)
        soon = instants <= limit
        for view in self.periodic_views:
            if view.window.grid:
                found[soon] = np.minimum(found[soon], ceil_to_grid(instants[soon], *view.window.grid))
        if len(self.session_ends):
            after = np.searchsorted(self.session_ends, instants)
            next_ = np.where(
                after < len(self.session_ends), self.session_ends[np.minimum(after, len(self.session_ends) - 1)], OPEN
            )
            found = np.minimum(found, np.where(soon, next_, OPEN))
        return np.where(found <= limit, found, OPEN)

    def _cancel_equal_rows(
        self, rows: Spans, ups: Int64Array, came: Int64Array, downs: Int64Array, went: Int64Array
    ) -> tuple[Int64Array, Int64Array]:
        """Remove equal rows that enter and leave at the same instant; of those that enter, the youngest stay."""
        if not len(ups) or not len(downs):
            return ups, downs
        places = np.concatenate((ups, downs))
        rising, falling = np.split(self._labels(rows, places, np.concatenate((came, went))), [len(ups)])
        # Few rows are equal, and finding those that may be costs less than numbering all.
        up, down = _may_meet(rising, falling)
        if not up.any():
            return ups, downs
        slots = IntegerCodes().encode(np.concatenate((rising[up], falling[down])))
        risen, fallen = (np.bincount(some, minlength=slots.max() + 1) for some in np.split(slots, [up.sum()]))
        meets, net = (risen > 0) & (fallen > 0), risen - fallen
        more = _without_cancelled(ups[up], slots[: up.sum()], meets, np.maximum(net, 0), rows.time)
        less = _without_cancelled(downs[down], slots[up.sum() :], meets, np.maximum(-net, 0), rows.time)
        # The order stays as it was, so that readers need not sort.
        up[more - ups[0]], down[less - downs[0]] = False, False
        return ups[~up], downs[~down]

    def _labels(self, rows: Spans, places: Int64Array, at: Int64Array) -> Int64Array:
        """Equal numbers for equal rows at one instant."""
        arrays = [column.combine_chunks() for column in rows.table.columns]
        keys = Keys([array.type for array in arrays])
        codes = keys.encode(arrays, len(rows))[places]
        since = at - at.min()
        if int(since.max()) * len(keys) < OPEN:
            labels: Int64Array = since * len(keys) + codes
            return labels
        return IntegerCodes().encode(since) * len(keys) + codes

    def state(self) -> Tree:
        return {
            "unsaid": self.unreported.state(),
            "standing": self.live_rows.state(),
            "moments": self.session_ends.tolist(),
        }

    def restore(self, state: Tree) -> None:
        self.unreported = Spans.from_state(state["unsaid"])
        self.live_rows.restore(state["standing"])
        self.session_ends = np.array(state["moments"], np.int64)


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


#: So many bits distinguish most labels; a table for all of them stays in the cache.
LABEL_BITS = 21


def _may_meet(one: Int64Array, other: Int64Array) -> tuple[Flags, Flags]:
    """Which labels of each side may be among those of the other: all that are, and a few that are not."""
    spread = np.uint64(0x9E3779B97F4A7C15)
    first, second = ((side.view(np.uint64) * spread) >> np.uint64(64 - LABEL_BITS) for side in (one, other))
    return _mark_places(second)[first], _mark_places(first)[second]


def _mark_places(places: npt.NDArray[np.uint64]) -> Flags:
    marks = np.zeros(1 << LABEL_BITS, bool)
    marks[places] = True
    return marks


def _without_cancelled(
    places: Int64Array, slots: Int64Array, meets: Flags, wanted: Int64Array, time: Int64Array
) -> Int64Array:
    """Places without those of rows that entered and left at once; only some of each slot are kept."""
    mine = meets[slots]
    some, theirs = places[mine], slots[mine]
    return np.concatenate((places[~mine], some[_youngest_rows(theirs, wanted, time[some])]))


def _youngest_rows(slots: Int64Array, wanted: Int64Array, time: Int64Array) -> Int64Array:
    """Of every slot, the places of its youngest rows; `wanted` is how many."""
    order = np.lexsort((time, slots))
    mine = slots[order]
    stops = np.searchsorted(mine, mine, side="right")
    kept = stops - np.arange(len(mine)) <= wanted[mine]
    return np.sort(order[kept])
