"""The emitter of queries that report their whole result."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from panewise.aggregate import Int64Array
from panewise.algebra import Except, Query, Union
from panewise.core.time import ceil_to_grid, grid_between
from panewise.engine.rows.emitter import EmittedRows, Emitter
from panewise.engine.rows.inputs.timed import WindowView
from panewise.engine.rows.operators.base import OperatorVariant, order_count, schema_of
from panewise.engine.rows.spans import EMPTY, NO_EXPIRY, RelationDelta, Spans, empty_spans, with_ends
from panewise.engine.state.snapshot import Tree
from panewise.kernels.ranges import OPEN


class SnapshotEmitter(Emitter):
    """Emits the whole relation at every instant at which the query reports."""

    def __init__(self, query: Query, views: Sequence[WindowView], variant: OperatorVariant) -> None:
        super().__init__(query, views, variant)
        self.rows = empty_spans(schema_of(query.root), order_count(query.root))
        self.advanced_until = -OPEN

    @property
    def outlasts_changes(self) -> bool:
        """Whether rows may be present when no window changes any more; such queries stop reporting then."""
        endless = any(view.window.lasting for view in self.views)
        return endless or any(isinstance(node, Union | Except) for node in self.query.root.walk())

    def advance(self, limit: int, given: RelationDelta, finishing: bool = False) -> EmittedRows:
        self._note_instants(after=False)
        self.rows = Spans.concat([with_ends(self.rows, given), given.opened])
        if self.outlasts_changes and self.periodic_views:
            lasts = self._last_report_instants()
            limit = min([limit, (max if finishing else min)(lasts)])
        rows, since = self.rows, self.advanced_until + 1
        enter, leave = np.maximum(rows.enter, since), np.minimum(rows.leave, limit + 1)
        there = np.flatnonzero(enter < leave)
        moments = self._report_instants(enter[there], leave[there] - 1, limit)
        low, high = np.searchsorted(moments, enter[there]), np.searchsorted(moments, leave[there])
        sizes = high - low
        places = np.repeat(there, sizes)
        offsets = np.arange(len(places)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        at = moments[np.repeat(low, sizes) + offsets]
        order = np.lexsort((rows.order[places], rows.time[places], at))
        places, at = places[order], at[order]
        self.rows = rows.where(rows.leave > limit + 1)
        self.noted_instants = self.noted_instants[self.noted_instants > limit]
        self.advanced_until = max(self.advanced_until, limit)
        starts, ends = self._bounds(at)
        return EmittedRows(rows, places, at, np.ones(len(at), np.int64), starts, ends)

    def _last_report_instants(self) -> list[int]:
        """For each window view, the instant at which it reports the last change."""
        last = max(view.last_change for view in self.views)
        grids = [view.window.grid for view in self.periodic_views]
        return [last if grid is None else int(ceil_to_grid(np.array([last]), *grid)[0]) for grid in grids]

    def _report_instants(self, first: Int64Array, last: Int64Array, limit: int) -> Int64Array:
        """All instants of the query at which any of these rows is present."""
        if not self.periodic_views:
            changes = np.unique(np.concatenate([EMPTY, *(view.changed_at for view in self.views)]))
            return changes[changes <= limit]
        found = [self.noted_instants[self.noted_instants <= limit]]
        lasts = self._last_report_instants() if self.outlasts_changes else [limit] * len(self.periodic_views)
        for view, until in zip(self.periodic_views, lasts, strict=True):
            if view.window.grid and len(first):
                points = grid_between(first, last, *view.window.grid)
                found.append(points[points <= until])
        return np.unique(np.concatenate(found))

    def _bounds(self, at: Int64Array) -> tuple[Int64Array, Int64Array]:
        """The start and end of the windows of a result, with a sentinel where there is no bound."""
        instants, where = np.unique(at, return_inverse=True)
        starts, ends = np.full(len(instants), NO_EXPIRY), np.full(len(instants), -NO_EXPIRY)
        for view in self.periodic_views:
            begin, end = view.bounds(instants)
            starts = starts if begin is None else np.minimum(starts, begin)
            ends = np.maximum(ends, end)
        return starts[where], ends[where]

    def state(self) -> Tree:
        return {"rows": self.rows.state(), "moments": self.noted_instants.tolist(), "passed": self.advanced_until}

    def restore(self, state: Tree) -> None:
        self.rows, self.advanced_until = Spans.from_state(state["rows"]), state["passed"]
        self.noted_instants = np.array(state["moments"], np.int64)
