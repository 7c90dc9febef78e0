"""What a query says that repeats its whole result."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from panewise.aggregate import Longs
from panewise.algebra import Except, Query, Union
from panewise.engine.relational.leaves import View
from panewise.engine.relational.manner import Manner
from panewise.engine.relational.operators import counted, schema_of
from panewise.engine.relational.saying import Saying, Told
from panewise.engine.relational.spans import NEVER_SAID, NONE, OPEN, Spans, Turn, ended, no_spans
from panewise.engine.snapshot import Tree
from panewise.time import ceil_to_grid, grid_between
from panewise.window import Landmark, Predicate, Rows


class States(Saying):
    """The whole relation, at every instant at which the query speaks."""

    def __init__(self, query: Query, views: Sequence[View], manner: Manner) -> None:
        super().__init__(query, views, manner)
        self.rows = no_spans(schema_of(query.root), counted(query.root))
        self.passed = -OPEN

    @property
    def lasting(self) -> bool:
        """Whether rows may be there when no window changes any more: nobody speaks for ever."""
        endless = any(isinstance(view.window, Landmark | Predicate | Rows) for view in self.views)
        return endless or any(isinstance(node, Union | Except) for node in self.query.root.walk())

    def turn(self, limit: int, given: Turn, finishing: bool = False) -> Told:
        self._hear(after=False)
        self.rows = Spans.together([ended(self.rows, given), given.opened])
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
        self.rows = rows.where(alive)
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
            begin, end = view.bounds(instants)
            starts = starts if begin is None else np.minimum(starts, begin)
            ends = np.maximum(ends, end)
        return starts[where], ends[where]

    def state(self) -> Tree:
        return {"rows": self.rows.state(), "moments": self.moments.tolist(), "passed": self.passed}

    def restore(self, state: Tree) -> None:
        self.rows, self.passed = Spans.restored(state["rows"]), state["passed"]
        self.moments = np.array(state["moments"], np.int64)
