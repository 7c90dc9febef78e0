"""What a query says that speaks of changes only."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from panewise.aggregate import Longs
from panewise.aggregate.columns.numbering import Numbers
from panewise.algebra import Emit, Query
from panewise.engine.keys import Keys
from panewise.engine.relational.leaves import View
from panewise.engine.relational.manner import Manner
from panewise.engine.relational.operators import counted, schema_of
from panewise.engine.relational.saying import Saying, Told
from panewise.engine.relational.spans import NEVER_SAID, OPEN, Spans, Turn, ended, no_spans
from panewise.engine.relational.standing import Standing
from panewise.engine.snapshot import Tree
from panewise.time import ceil_to_grid

Flags = np.ndarray[tuple[int], np.dtype[np.bool_]]


class Changes(Saying):
    """What came since the instant before, and what went."""

    def __init__(self, query: Query, views: Sequence[View], manner: Manner) -> None:
        super().__init__(query, views, manner)
        nothing = no_spans(schema_of(query.root), counted(query.root))
        #: Rows that are there and have not been said, since the query has not spoken after they came.
        self.unsaid = nothing
        self.standing = Standing(nothing)

    def turn(self, limit: int, given: Turn, finishing: bool = False) -> Told:
        self._hear(after=True)
        self.standing.told(given)
        rows = Spans.together([ended(self.unsaid, given), given.opened])
        came, went = self._snapped(rows.enter, limit), self._snapped(rows.leave, limit)
        self.unsaid = rows.where(came == OPEN)
        # What comes and goes between two instants of the query is never seen.
        seen = (came < OPEN) & (came != went)
        brief = seen & (went < OPEN)
        self.standing.add(rows.where(seen & ~brief))
        left, left_at = self._leaving(limit)
        self.moments = self.moments[self.moments > limit]
        up, down = rows.where(seen), Spans.together([left, rows.where(brief)])
        return self._told(up, came[seen], down, np.concatenate((left_at, went[brief])))

    def _leaving(self, limit: int) -> tuple[Spans, Longs]:
        """Rows that left, and when that is noticed; those of which it is not yet go on standing."""
        rows = self.standing.upto(limit)
        at = self._snapped(rows.leave, limit)
        self.standing.add(rows.where(at == OPEN))
        return rows.where(at < OPEN), at[at < OPEN]

    def _told(self, up: Spans, came: Longs, down: Spans, went: Longs) -> Told:
        rows, at = Spans.together([up, down]), np.concatenate((came, went))
        ups, downs = self._netted(rows, np.arange(len(up)), came, np.arange(len(up), len(at)), went)
        if self.query.emit is Emit.ISTREAM:
            downs = downs[:0]
        if self.query.emit is Emit.DSTREAM:
            ups = ups[:0]
        places = np.concatenate((ups, downs))
        signs = np.repeat(np.array([1, -1]), [len(ups), len(downs)])
        order = np.lexsort((rows.order[places], rows.time[places], -signs, at[places]))
        nothing = np.full(len(order), NEVER_SAID)
        return Told(rows.at(places[order]), at[places[order]], signs[order], nothing, nothing)

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
        rising, falling = np.split(self._labels(rows, places, np.concatenate((came, went))), [len(ups)])
        # Few rows do meet, and telling which may costs less than numbering all.
        up, down = _may_meet(rising, falling)
        if not up.any():
            return ups, downs
        slots = Numbers().encode(np.concatenate((rising[up], falling[down])))
        risen, fallen = (np.bincount(some, minlength=slots.max() + 1) for some in np.split(slots, [up.sum()]))
        meets, net = (risen > 0) & (fallen > 0), risen - fallen
        more = _fewer(ups[up], slots[: up.sum()], meets, np.maximum(net, 0), rows.time)
        less = _fewer(downs[down], slots[up.sum() :], meets, np.maximum(-net, 0), rows.time)
        # In the order in which they were, which spares those who read them.
        up[more - ups[0]], down[less - downs[0]] = False, False
        return ups[~up], downs[~down]

    def _labels(self, rows: Spans, places: Longs, at: Longs) -> Longs:
        """Equal numbers for equal rows at one instant."""
        arrays = [column.combine_chunks() for column in rows.table.columns]
        keys = Keys([array.type for array in arrays])
        codes = keys.encode(arrays, len(rows))[places]
        since = at - at.min()
        if int(since.max()) * len(keys) < OPEN:
            labels: Longs = since * len(keys) + codes
            return labels
        return Numbers().encode(since) * len(keys) + codes

    def state(self) -> Tree:
        return {
            "unsaid": self.unsaid.state(),
            "standing": self.standing.state(),
            "moments": self.moments.tolist(),
        }

    def restore(self, state: Tree) -> None:
        self.unsaid = Spans.restored(state["unsaid"])
        self.standing.restore(state["standing"])
        self.moments = np.array(state["moments"], np.int64)


#: So many bits of a label tell most labels apart; a table for all of them stays in the cache.
BITS = 21


def _may_meet(one: Longs, other: Longs) -> tuple[Flags, Flags]:
    """Which labels of each side may be among those of the other: all that are, and a few that are not."""
    spread = np.uint64(0x9E3779B97F4A7C15)
    first, second = ((side.view(np.uint64) * spread) >> np.uint64(64 - BITS) for side in (one, other))
    return _marked(second)[first], _marked(first)[second]


def _marked(places: npt.NDArray[np.uint64]) -> Flags:
    marks = np.zeros(1 << BITS, bool)
    marks[places] = True
    return marks


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
