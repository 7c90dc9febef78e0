"""What a query says of a relation: the whole of it at instants, or what came and went between them.

Levels follow each other from the finest on. Inside one instant, what came is said before what went, and rows are in the
order of the time and arrival of the youngest item each came from.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from panewise.aggregate import Longs
from panewise.algebra import Emit, Except, Query, Union, announced
from panewise.engine.keys import Keys, Numbers
from panewise.engine.relational.leaves import View
from panewise.engine.relational.manner import Manner
from panewise.engine.relational.operators import counted, schema_of
from panewise.engine.relational.sessions import SessionLeaf
from panewise.engine.relational.spans import NEVER_SAID, NONE, OPEN, Spans, Turn, ended, no_spans
from panewise.engine.snapshot import Tree
from panewise.time import ceil_to_grid, grid_between
from panewise.window import FOREVER, Landmark, Predicate, Rows

Flags = np.ndarray[tuple[int], np.dtype[np.bool_]]


@dataclass(frozen=True, eq=False)
class Told:
    """Result rows with the instant of each, and the sign of changes."""

    rows: Spans
    at: Longs
    signs: Longs
    starts: Longs
    ends: Longs


class Saying:
    """One level of one query."""

    def __init__(self, query: Query, views: Sequence[View], manner: Manner) -> None:
        self.query, self.views, self.manner = query, views, manner
        self.whole = query.emit is Emit.RSTREAM
        self.rows = no_spans(schema_of(query.root), counted(query.root))
        #: Which of them have been said to come.
        self.said = np.zeros(0, bool)
        #: Instants at which sessions ended and nothing has been said yet.
        self.moments = NONE
        self.passed = -OPEN

    @property
    def speakers(self) -> list[View]:
        return [view for view in self.views if view.window.periodic]

    @property
    def lasting(self) -> bool:
        """Whether rows may be there when no window changes any more: nobody speaks for ever."""
        endless = any(isinstance(view.window, Landmark | Predicate | Rows) for view in self.views)
        return endless or any(isinstance(node, Union | Except) for node in self.query.root.walk())

    def turn(self, limit: int, given: Turn, finishing: bool = False) -> Told:
        """What there is to say up to an instant."""
        self.said = np.concatenate((self.said, np.zeros(len(given.opened), bool)))
        self.rows = Spans.together([ended(self.rows, given), given.opened])
        for view in self.views:
            if isinstance(view, SessionLeaf):
                after = NONE if self.whole else view.ended + 1
                self.moments = np.unique(np.concatenate((self.moments, view.ended, after)))
        return self._states(limit, finishing) if self.whole else self._changes(limit)

    # ---- whole states ------------------------------------------------------------------------------------------

    def _states(self, limit: int, finishing: bool) -> Told:
        if self.lasting and self.speakers:
            lasts = self._last_moments()
            limit = min([limit, (max if finishing else min)(lasts)])
        rows, since = self.rows, self.passed + 1
        enter, leave = np.maximum(rows.enter, since), np.minimum(rows.leave, limit + 1)
        there = np.flatnonzero(enter < leave)
        moments = self._moments(enter[there], leave[there] - 1, limit)
        low, high = np.searchsorted(moments, enter[there]), np.searchsorted(moments, leave[there])
        sizes = high - low
        places = np.repeat(there, sizes)
        offsets = np.arange(len(places)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        at = moments[np.repeat(low, sizes) + offsets]
        order = np.lexsort((rows.order[places], rows.time[places], at))
        places, at = places[order], at[order]
        said = rows.at(places)
        alive = rows.leave > limit + 1
        self.rows, self.said = rows.where(alive), self.said[alive]
        self.moments = self.moments[self.moments > limit]
        self.passed = max(self.passed, limit)
        starts, ends = self._bounds(at)
        return Told(said, at, np.ones(len(at), np.int64), starts, ends)

    def _last_moments(self) -> list[int]:
        """Of each speaker, the instant at which it notices the last change."""
        last = max(view.last_change for view in self.views)
        grids = [view.window.grid for view in self.speakers]
        return [last if grid is None else int(ceil_to_grid(np.array([last]), *grid)[0]) for grid in grids]

    def _moments(self, first: Longs, last: Longs, limit: int) -> Longs:
        """All moments at which any of these rows is there."""
        if not self.speakers:
            heard = np.unique(np.concatenate([NONE, *(view.heard for view in self.views)]))
            return heard[heard <= limit]
        found = [self.moments[self.moments <= limit]]
        lasts = self._last_moments() if self.lasting else [limit] * len(self.speakers)
        for view, until in zip(self.speakers, lasts, strict=True):
            if view.window.grid and len(first):
                points = grid_between(first, last, *view.window.grid)
                found.append(points[points <= until])
        return np.unique(np.concatenate(found))

    def _bounds(self, at: Longs) -> tuple[Longs, Longs]:
        """Where the windows begin and end that a result speaks for; NEVER_SAID where there is no bound."""
        instants, where = np.unique(at, return_inverse=True)
        starts, ends = np.full(len(instants), NEVER_SAID), np.full(len(instants), -NEVER_SAID)
        for view in self.speakers:
            bounds = [view.bounds(int(instant)) for instant in instants]
            starts = np.minimum(starts, [NEVER_SAID if start is None else start for start, _ in bounds])
            ends = np.maximum(ends, [-NEVER_SAID if end is None else end for _, end in bounds])
        return starts.astype(np.int64)[where], ends.astype(np.int64)[where]

    # ---- changes -----------------------------------------------------------------------------------------------

    def _changes(self, limit: int) -> Told:
        rows = self.rows
        came, went = self._snapped(rows.enter, limit), self._snapped(rows.leave, limit)
        unseen = (came == went) & (came < OPEN)
        unseen &= ~self.said
        fresh = ~self.said & (came < OPEN) & ~unseen
        ups, downs = np.flatnonzero(fresh), np.flatnonzero((went < OPEN) & ~unseen)
        # What never leaves is never spoken of again.
        alive = (went == OPEN) & ~unseen & ((rows.leave < FOREVER) | ~(self.said | fresh))
        self.rows, self.said = rows.where(alive), (self.said | fresh)[alive]
        self.moments = self.moments[self.moments > limit]
        ups, downs = self._netted(rows, ups, came[ups], downs, went[downs])
        if self.query.emit is Emit.ISTREAM:
            downs = downs[:0]
        if self.query.emit is Emit.DSTREAM:
            ups = ups[:0]
        places = np.concatenate((ups, downs))
        at = np.concatenate((came[ups], went[downs]))
        signs = np.repeat(np.array([1, -1]), [len(ups), len(downs)])
        order = np.lexsort((rows.order[places], rows.time[places], -signs, at))
        nothing = np.full(len(order), NEVER_SAID)
        return Told(rows.at(places[order]), at[order], signs[order], nothing, nothing)

    def _snapped(self, instants: Longs, limit: int) -> Longs:
        """The moment at which a change is noticed; OPEN where there is none yet."""
        if not self.speakers:
            return np.where(instants <= limit, instants, OPEN)
        found = np.full(len(instants), OPEN)
        soon = instants <= limit
        for view in self.speakers:
            if view.window.grid:
                found[soon] = np.minimum(found[soon], ceil_to_grid(instants[soon], *view.window.grid))
        if len(self.moments):
            after = np.searchsorted(self.moments, instants)
            next_ = np.where(after < len(self.moments), self.moments[np.minimum(after, len(self.moments) - 1)], OPEN)
            found = np.minimum(found, np.where(soon, next_, OPEN))
        return np.where(found <= limit, found, OPEN)

    def _netted(self, rows: Spans, ups: Longs, came: Longs, downs: Longs, went: Longs) -> tuple[Longs, Longs]:
        """Equal rows that come and go at the same instant are no change; of those that came, the youngest are said."""
        if not len(ups) or not len(downs):
            return ups, downs
        places = np.concatenate((ups, downs))
        slots = self._slots(rows, places, np.concatenate((came, went)))
        risen, fallen = (np.bincount(some, minlength=slots.max() + 1) for some in np.split(slots, [len(ups)]))
        meets = (risen > 0) & (fallen > 0)
        if not meets.any():
            return ups, downs
        net = risen - fallen
        return (
            _fewer(ups, slots[: len(ups)], meets, np.maximum(net, 0), rows.time),
            _fewer(downs, slots[len(ups) :], meets, np.maximum(-net, 0), rows.time),
        )

    def _slots(self, rows: Spans, places: Longs, at: Longs) -> Longs:
        """A number for each different row and instant."""
        arrays = [column.combine_chunks() for column in rows.table.columns]
        keys = Keys([array.type for array in arrays])
        codes = keys.encode(arrays, len(rows))[places]
        since = at - at.min()
        if int(since.max()) * len(keys) < OPEN:
            return Numbers().encode(since * len(keys) + codes)
        return Numbers().encode(Numbers().encode(since) * len(keys) + codes)

    # ---- restarts ----------------------------------------------------------------------------------------------

    def state(self) -> Tree:
        return {
            "rows": self.rows.state(),
            "said": self.said.tolist(),
            "moments": self.moments.tolist(),
            "passed": self.passed,
        }

    def restore(self, state: Tree) -> None:
        self.rows = Spans.restored(state["rows"])
        self.said, self.moments = np.array(state["said"], bool), np.array(state["moments"], np.int64)
        self.passed = state["passed"]


def silence(query: Query) -> Told:
    """Nothing, in the columns of a query."""
    return Told(no_spans(schema_of(query.root), counted(query.root)), NONE, NONE, NONE, NONE)


def _fewer(places: Longs, slots: Longs, meets: Flags, wanted: Longs, time: Longs) -> Longs:
    """Places without those of rows that came and went at once, of which only some are wanted."""
    mine = meets[slots]
    some, theirs = places[mine], slots[mine]
    return np.concatenate((places[~mine], some[_last_ones(theirs, wanted, time[some])]))


def _last_ones(slots: Longs, wanted: Longs, time: Longs) -> Longs:
    """Of every slot, the places of as many of the youngest as are wanted."""
    order = np.lexsort((time, slots))
    mine = slots[order]
    stops = np.searchsorted(mine, mine, side="right")
    kept = stops - np.arange(len(mine)) <= wanted[mine]
    return np.sort(order[kept])


def told_table(query: Query, told: Told, level: int | None, kind: pa.DataType) -> pa.Table:
    """Selected columns first, then the columns that say when; an added name that is taken gets an underscore."""
    columns = dict(zip(told.rows.table.column_names, told.rows.table.columns, strict=True))
    for name, array in _added(query, told, level, kind).items():
        while name in columns:
            name += "_"
        columns[name] = array
    return pa.table(list(columns.values()), names=list(columns))


def _added(query: Query, told: Told, level: int | None, kind: pa.DataType) -> dict[str, pa.Array]:
    added: dict[str, pa.Array] = {}
    if query.emit is Emit.RSTREAM and query.periodic:
        added["w_start"] = pa.array(told.starts, pa.int64(), mask=told.starts == NEVER_SAID).cast(kind)
        added["w_end"] = pa.array(told.ends, pa.int64(), mask=told.ends == -NEVER_SAID).cast(kind)
    else:
        added["ts"] = pa.array(told.at, pa.int64()).cast(kind)
    if level is not None:
        added["w_level"] = pa.array(np.full(len(told.at), level), pa.int32())
    if query.emit is Emit.CHANGES:
        added["sign"] = pa.array(told.signs, pa.int8())
    if query.emit in (Emit.CHANGES, Emit.ISTREAM):
        added |= _expiry(query, told, kind)
    return added


def _expiry(query: Query, told: Told, kind: pa.DataType) -> dict[str, pa.Array]:
    """Columns for when a result leaves, where that is known beforehand; what leaves says nothing."""
    added: dict[str, pa.Array] = {}
    by_time, orders = announced(query.root)
    gone = told.signs < 0
    if by_time:
        expires = told.rows.expires
        added["expires_at"] = pa.array(expires, pa.int64(), mask=gone | (expires == NEVER_SAID)).cast(kind)
    if orders == 1:
        (order,) = told.rows.orders
        added["expires_order"] = pa.array(order, pa.int64(), mask=gone | (order == NEVER_SAID))
    elif orders > 1:
        added["expires_order"] = _lists(told.rows.orders, gone)
    return added


def _lists(orders: Sequence[Longs], gone: Flags) -> pa.Array:
    """The orders of each row as one value, NULL for rows that are gone."""
    values = np.stack(orders, axis=1).ravel()
    offsets = np.arange(0, len(values) + 1, len(orders), dtype=np.int32)
    return pa.ListArray.from_arrays(pa.array(offsets), pa.array(values), mask=pa.array(gone))
