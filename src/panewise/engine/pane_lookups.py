"""Lookups over panes that were cut elsewhere, such as those that a pipeline writes to a table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from panewise.engine.archive import Archive
from panewise.engine.grouping import Grouping
from panewise.engine.lookups import Lookups
from panewise.engine.pool import Pool
from panewise.engine.retention import Lengths, retained
from panewise.engine.shelf import PaneShelf, Shelf
from panewise.engine.tier_shelf import TierShelf
from panewise.errors import BindProblem, did_you_mean
from panewise.plan import Aggregation
from panewise.plan.covering import uncovered
from panewise.stores.pane import Pane
from panewise.stores.stairs import NEVER
from panewise.time import Ticks
from panewise.window import LogicalWindow


@dataclass(eq=False)
class Kept:
    """The panes of one query, and the groups that their codes stand for."""

    groups: Grouping
    archive: Archive

    def take(self, keys: Sequence[pa.Array], panes: Sequence[Pane]) -> None:
        codes = self.groups.keys.encode(keys, len(keys[0]) if keys else 1)
        for pane in panes:
            self.archive.take(pane.recoded(codes))

    def tidy(self) -> None:
        """Forget groups without panes, once they are the greater part."""
        if kept := self.groups.keys.thinned(lambda: (pane.codes for pane in self.archive.every())):
            self.groups.keys = kept.keys
            self.archive.recode(kept.codes)


class PaneLookups(Lookups):
    """The queries of a pool, each answered from the panes that were given for it, or from those of another.

    Panes may come in any order and in parts. They are kept for `keep` before the newest one; without it, all of them.
    """

    def __init__(self, pool: Pool, keep: Lengths | None = None) -> None:
        super().__init__(pool)
        self._keep = retained(pool, keep, None).keep
        self._kept: dict[str, Kept] = {}

    def take(self, name: str, keys: Sequence[pa.Array], panes: Sequence[Pane]) -> None:
        """Keep panes of a registered query; their codes count the given keys, one value of each key column a code."""
        if name not in self._kept:
            self._kept[name] = self._made(name)
        self._kept[name].take(keys, panes)
        self._kept[name].tidy()

    def groups(self, name: str) -> int:
        """How many groups have panes that are kept, or one more; some may have gone already."""
        return len(self._of(name).groups.keys)

    def newest(self, name: str) -> int | None:
        """The end of the newest pane of a query."""
        newest = self._kept[name].archive.newest if name in self._kept else NEVER
        return None if newest == NEVER else newest

    def shelves(self, name: str | None, plan: Aggregation) -> list[Shelf]:
        found: list[Shelf] = []
        reasons: list[str] = []
        for other in self.pool.queries if name is None else [name]:
            groups = self._of(other).groups
            if reason := _unanswered(groups.plan, plan):
                reasons.append(f"query {other!r}: {reason}")
            elif other in self._kept:
                instants = self.pool.streams[plan.source.stream].instants
                shelf = TierShelf if plan.positional else PaneShelf
                found.append(shelf(groups, self.pool.boundary, instants, self._kept[other].archive))
        if not found and reasons:
            raise BindProblem(
                f"no panes that are kept can answer this ({'; '.join(reasons)})",
                fix="ask for the rows, groups and aggregates of a query whose panes are kept",
            )
        return found

    def now(self, name: str | None, plan: Aggregation) -> Ticks:
        names = [name] if name is not None else [n for n, k in self._kept.items() if not uncovered(k.groups.plan, plan)]
        newest = [at for each in names if (at := self.newest(each)) is not None]
        return np.array(newest[:1], np.int64)

    def _of(self, name: str) -> Kept:
        return self._kept[name] if name in self._kept else self._made(name)

    def _made(self, name: str) -> Kept:
        standing = self.pool.queries.get(name)
        if standing is None:
            raise BindProblem(f"there is no query {name!r}", fix=did_you_mean(name, self.pool.queries or ["register"]))
        plan = standing.aggregation
        groups = Grouping(plan)
        return Kept(groups, Archive(groups.columns, self._keep.get(plan.source.stream)))


def _unanswered(kept: Aggregation, plan: Aggregation) -> str | None:
    """Why panes of one query cannot answer another; None where they can."""
    if not all(isinstance(window, LogicalWindow) for _, window in plan.levels):
        return "its window is not decided by time alone"
    return uncovered(kept, plan)
