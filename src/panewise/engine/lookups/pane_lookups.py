"""Lookups over panes that were cut elsewhere, such as those that a pipeline writes to a table."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from panewise.core.errors import BindProblem, did_you_mean
from panewise.core.time import Ticks
from panewise.engine.lookups.archive import Archive
from panewise.engine.lookups.lookups import PoolLookups
from panewise.engine.lookups.pane_source import LookupSource
from panewise.engine.lookups.retention import Lengths, parse_retention
from panewise.engine.panes.grouping import GroupEncoder
from panewise.engine.pool import Pool
from panewise.plan import PanePlan
from panewise.plan.rules.cover_lookups import cover_refusal
from panewise.stores.chain import MIN_POSITION
from panewise.stores.pane import Pane


@dataclass(eq=False)
class KeptPanes:
    """The panes of one query, and the groups that their codes stand for."""

    groups: GroupEncoder
    archive: Archive

    def take(self, keys: Sequence[pa.Array], panes: Sequence[Pane]) -> None:
        codes = self.groups.keys.encode(keys, len(keys[0]) if keys else 1)
        for pane in panes:
            self.archive.take(pane.with_codes(codes))

    def tidy(self) -> None:
        """Drop groups without panes, once they are more than half."""
        if kept := self.groups.keys.shrink_to_live(lambda: (pane.codes for pane in self.archive.all_panes())):
            self.groups.keys = kept.keys
            self.archive.recode(kept.codes)


class PaneLookups(PoolLookups):
    """The queries of a pool, each answered from the panes that were given for it, or from those of another.

    Panes may come in any order and in parts. They are kept for `keep` before the newest one; without it, all of them.
    """

    fix = "ask for the rows, groups and aggregates of a query whose panes are kept"

    def __init__(self, pool: Pool, keep: Lengths | None = None) -> None:
        super().__init__(pool)
        self._keep = parse_retention(pool, keep, None).keep
        self._panes_by_query: dict[str, KeptPanes] = {}

    def take(self, name: str, keys: Sequence[pa.Array], panes: Sequence[Pane]) -> None:
        """Keep panes of a registered query; a code is a place in the given key columns."""
        if name not in self._panes_by_query:
            self._panes_by_query[name] = self._new_kept_panes(name)
        self._panes_by_query[name].take(keys, panes)
        self._panes_by_query[name].tidy()

    def groups(self, name: str) -> int:
        """An upper bound of the number of groups that have kept panes."""
        return len(self._kept_panes(name).groups.keys)

    def newest(self, name: str) -> int | None:
        """The end of the newest pane of a query."""
        newest = self._panes_by_query[name].archive.newest if name in self._panes_by_query else MIN_POSITION
        return None if newest == MIN_POSITION else newest

    def _candidates(self, name: str | None, plan: PanePlan) -> Iterator[tuple[str | None, list[LookupSource]]]:
        for other in self.pool.queries if name is None else [name]:
            kept = self._kept_panes(other)
            if reason := _why_unanswerable(kept.groups.plan, plan):
                yield f"query {other!r}: {reason}", []
            elif other in self._panes_by_query:
                yield None, [self._pane_source(plan, kept.groups, kept.archive)]

    def final_instant(self, name: str | None, plan: PanePlan) -> Ticks:
        names = (
            [name]
            if name is not None
            else [n for n, k in self._panes_by_query.items() if not cover_refusal(k.groups.plan, plan)]
        )
        newest = [at for each in names if (at := self.newest(each)) is not None]
        return np.array(newest[:1], np.int64)

    def _kept_panes(self, name: str) -> KeptPanes:
        return self._panes_by_query[name] if name in self._panes_by_query else self._new_kept_panes(name)

    def _new_kept_panes(self, name: str) -> KeptPanes:
        registered = self.pool.queries.get(name)
        if registered is None:
            raise BindProblem(f"there is no query {name!r}", fix=did_you_mean(name, self.pool.queries or ["register"]))
        plan = registered.aggregation
        groups = GroupEncoder(plan)
        return KeptPanes(groups, Archive(groups.columns, self._keep.get(plan.source.stream)))


def _why_unanswerable(kept: PanePlan, plan: PanePlan) -> str | None:
    """Why panes of one query cannot answer another; None where they can."""
    if not plan.window.logical:
        return "its window is not decided by time alone"
    return cover_refusal(kept, plan)
