"""Lookups that a running engine answers: from panes that it keeps for lookups, or from those that its windows hold."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from panewise.core.time import Ticks
from panewise.engine.lookups.lookups import PoolLookups
from panewise.engine.lookups.pane_source import LookupSource
from panewise.engine.lookups.row_source import RowLookupSource
from panewise.engine.panes.family import Family
from panewise.engine.panes.landmark_family import LandmarkFamily
from panewise.engine.panes.row_family import RowFamily
from panewise.engine.panes.session_family import SessionFamily
from panewise.engine.panes.time_family import TimeFamily
from panewise.plan import PanePlan
from panewise.plan.rules.choose_index import IndexChoice
from panewise.plan.rules.cover_lookups import cover_refusal
from panewise.stores.chain import MIN_POSITION
from panewise.window import WindowRetention

if TYPE_CHECKING:
    from panewise.engine.engine import Engine


class EngineLookups(PoolLookups):
    """The lookups of one engine."""

    fix = "register a query over the same rows, groups and aggregates first"

    def __init__(self, engine: Engine) -> None:
        super().__init__(engine.pool)
        self.engine = engine

    def _candidates(self, name: str | None, plan: PanePlan) -> Iterator[tuple[str | None, list[LookupSource]]]:
        for family in self._families(name, plan):
            if name is None and (reason := cover_refusal(family.plan, plan)):
                yield f"query {next(iter(family.members))!r}: {reason}", []
            else:
                yield None, self._sources_of(family, name, plan)

    def final_instant(self, name: str | None, plan: PanePlan) -> Ticks:
        shift, stream = self.pool.boundary.shift, plan.source.stream
        mark, newest = self.engine.marks[stream], self.engine.newest(stream)
        final = None if mark is None else mark - 1 + shift
        at = final if final is not None else newest if newest is None else newest + shift
        return np.zeros(0, np.int64) if at is None else np.array([at], np.int64)

    def explain(self) -> str:
        """One line for each family and aggregate."""
        return "\n".join(line for family in self.engine.families() for line in self._explain_family(family))

    def _explain_family(self, family: Family) -> Iterator[str]:
        queries, names = ", ".join(family.members), ["COUNT(*)"]
        names += [call.aggregate.text(call.arguments) for call in family.stored_calls]
        kept_rows = family.kept_rows if isinstance(family, RowFamily) else None
        kept: list[tuple[str, Mapping[int, IndexChoice[Any]]]] = []
        if family.archive is not None:
            kept.append((f"{len(family.archive.panes)} panes", family.archive.choices))
        if kept_rows is not None:
            kept.append((f"{kept_rows.row_count} rows", kept_rows.choices))
        if not kept and not isinstance(family, SessionFamily):
            units = "rows" if isinstance(family, RowFamily) else "panes"
            yield f"{queries}: answered from the {units} of registered windows"
        for what, choices in kept:
            yield f"{queries}: {what} kept"
            for number, choice in sorted(choices.items()):
                yield f"  {names[number] if number < len(names) else 'expiry'}: {choice.reason}"

    def _families(self, name: str | None, plan: PanePlan) -> list[Family]:
        """The families that may answer: those of the stream that keep what is asked for, or the one of the query."""
        counted = plan.window.retention is WindowRetention.COUNTS_ROWS
        every = [f for f in self.engine.families() if f.plan.source.stream == plan.source.stream]
        kinds = (RowFamily,) if counted else (RowFamily, LandmarkFamily, TimeFamily)
        return [f for f in every if isinstance(f, kinds) and (name is None or name in f.members)]

    def _sources_of(self, family: Family, name: str | None, plan: PanePlan) -> list[LookupSource]:
        """The archive first; without one, what some window holds may be enough."""
        stream, boundary = family.plan.source.stream, self.pool.boundary
        instants = self.pool.streams[stream].instants
        kept_rows = family.kept_rows if isinstance(family, RowFamily) else None
        if isinstance(family, RowFamily) and not plan.window.logical:
            places = [family.held_archive] if kept_rows is None else [lambda: kept_rows, family.held_archive]
            return [RowLookupSource(family, boundary, instants, find) for find in places]
        since = (
            max(family.subscriptions[n].since for n, _ in family.members[name].subscriptions)
            if name is not None
            else MIN_POSITION
        )
        newest = (self.engine.newest(stream) or 0) + boundary.shift
        # Nothing is newer than the newest row: a window that reaches up to it cuts no pane that is still open.
        pending = [replace(pane, end=max(min(pane.end, newest), pane.start)) for pane in family.pending_panes]
        archives = [family.archive] if family.archive else [] if kept_rows else family.window_archives()
        found = [self._pane_source(family.plan, family, archive, pending, since) for archive in archives]
        return [*found, RowLookupSource(family, boundary, instants, lambda: kept_rows, since)] if kept_rows else found
