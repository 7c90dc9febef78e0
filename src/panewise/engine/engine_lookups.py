"""Lookups that a running engine answers: from the panes it keeps for them, or from those its windows hold anyway."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from panewise.engine.archive import Archive
from panewise.engine.holders import Holder
from panewise.engine.lookups import Lookups
from panewise.engine.shelf import Shelf
from panewise.engine.time_family import TimeFamily
from panewise.errors import BindProblem
from panewise.plan import Aggregation
from panewise.plan.covering import uncovered
from panewise.stores.stairs import NEVER
from panewise.time import Ticks

if TYPE_CHECKING:
    from panewise.engine.engine import Engine


class EngineLookups(Lookups):
    """Everything one engine can be asked."""

    def __init__(self, engine: Engine) -> None:
        super().__init__(engine.pool)
        self.engine = engine

    def shelves(self, name: str | None, plan: Aggregation) -> list[Shelf]:
        found: list[Shelf] = []
        reasons: list[str] = []
        for family in self._families(name, plan):
            if (reason := uncovered(family.plan, plan)) is None:
                found += self._kept(family, name)
            else:
                reasons.append(f"query {next(iter(family.members))!r}: {reason}")
        if not found and reasons:
            raise BindProblem(
                f"no panes that are kept can answer this ({'; '.join(reasons)})",
                fix="register a query over the same rows, groups and aggregates first",
            )
        return found

    def now(self, name: str | None, plan: Aggregation) -> Ticks:
        shift, stream = self.pool.boundary.shift, plan.source.stream
        mark, newest = self.engine.marks[stream], self.engine.newest(stream)
        final = None if mark is None else mark - 1 + shift
        at = final if final is not None else newest if newest is None else newest + shift
        return np.zeros(0, np.int64) if at is None else np.array([at], np.int64)

    def explain(self) -> str:
        """One line for each family and aggregate."""
        lines: list[str] = []
        for family in self.engine.time_families():
            queries = ", ".join(family.members)
            if family.archive is None:
                lines.append(f"{queries}: answered from the panes of standing windows")
                continue
            lines.append(f"{queries}: {len(family.archive.panes)} panes kept")
            names = ["COUNT(*)", *(call.aggregate.text(call.arguments) for call in family.kept)]
            for number, choice in sorted(family.archive.choices.items()):
                lines.append(f"  {names[number] if number < len(names) else 'expiry'}: {choice.reason}")
        return "\n".join(lines)

    def _families(self, name: str | None, plan: Aggregation) -> list[TimeFamily]:
        stream = plan.source.stream
        every = [f for f in self.engine.time_families() if f.plan.source.stream == stream]
        return [f for f in every if name in f.members] if name is not None else every

    def _kept(self, family: TimeFamily, name: str | None) -> list[Shelf]:
        """The archive first; without one, what some window holds may do."""
        since = max(family.feeds[n].since for n, _ in family.members[name].feeds) if name is not None else NEVER
        archives = [family.archive] if family.archive else [_archive(family, holder) for holder in family.holders]
        archives = archives or [Archive(family.columns, None, family.founded)]
        instants = self.pool.streams[family.plan.source.stream].instants
        boundary, host = self.pool.boundary, self.pool.host
        newest = (self.engine.newest(family.plan.source.stream) or 0) + boundary.shift
        # Nothing is newer than the newest row: a window that reaches up to it cuts no pane that is still open.
        coming = [replace(pane, end=max(min(pane.end, newest), pane.start)) for pane in family.coming]
        return [Shelf(family, archive, coming, boundary, host, instants, since) for archive in archives]


def _archive(family: TimeFamily, holder: Holder) -> Archive:
    """What a holder holds, as if it were kept for lookups."""
    archive = Archive(family.columns, None, max(holder.unknown, family.founded))
    for pane in (*holder.panes(), *holder.waiting):
        archive.take(pane)
    return archive
