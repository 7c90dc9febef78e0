"""All relational queries of an engine."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa

from panewise.algebra import Host
from panewise.engine.intake import Arrivals
from panewise.engine.lateness import Ledger
from panewise.engine.purge import Purge
from panewise.engine.relational.part import Part
from panewise.engine.snapshot import Tree
from panewise.plan.relation import Quarter, Relation
from panewise.time import LAST_TICK, Boundary


@dataclass(frozen=True)
class Inflow:
    """Rows of a stream that are meant for one home, where they are read under an alias."""

    home: Quarter
    alias: str


class Circuit:
    """The relational queries of an engine, by the streams they read."""

    def __init__(self, boundary: Boundary, host: Host, purge: Purge, shard: bool) -> None:
        self.boundary, self.host, self.purge, self.shard = boundary, host, purge, shard
        self.begun = False
        self.parts: dict[str, Part] = {}
        self._instants: dict[str, pa.DataType] = {}

    def join(self, name: str, plan: Relation, instants: pa.DataType) -> None:
        """Let a query join: it shares operators with those that have not begun either, or finds running kin."""
        self._instants[name] = instants
        self.parts[name] = self._part(name, plan)

    def _part(self, name: str, plan: Relation) -> Part:
        home = self._home(plan)
        alike = [part for part, _ in self._parts() if part.home == home]
        running = next((part for part in alike if part.founded and part.welcomes(name, plan)), None)
        if running is not None:
            return running
        waiting = next((part for part in alike if not part.founded), None)
        part = waiting or Part(home, self.boundary, self.host, self.purge, self.begun)
        part.plans[name] = plan
        return part

    def _home(self, plan: Relation) -> Quarter:
        """Where all rows come, it does not matter how queries would spread them."""
        return plan.home if self.shard else frozenset((stream, alias, None) for stream, alias, _ in plan.home)

    def leave(self, name: str) -> None:
        self.parts.pop(name).leave(name)
        del self._instants[name]

    def _parts(self) -> list[tuple[Part, pa.DataType]]:
        return list({id(part): (part, self._instants[name]) for name, part in self.parts.items()}.values())

    def _each(self) -> list[tuple[Part, pa.DataType]]:
        """All parts, founded."""
        found = self._parts()
        for part, _ in found:
            part.found()
        return found

    def take(self, stream: str, arrivals: Arrivals, ledger: Ledger, only: Inflow | None = None) -> None:
        """Take in the items of a stream, for all queries or for those of one home."""
        self.begun = True
        for part, _ in self._each():
            if only is None:
                part.take(stream, arrivals, ledger)
            elif part.home == only.home:
                part.take(stream, arrivals, ledger, only.alias)

    def reach(self, inflow: Inflow, newest: int) -> None:
        """An item of this time has come, here or elsewhere."""
        for part, _ in self._each():
            if part.home == inflow.home:
                part.reach(inflow.alias, newest)

    def anchor(self, stream: str, first: int) -> None:
        for part, _ in self._each():
            part.anchor(stream, first)

    def advance(self, limits: Mapping[str, int]) -> dict[str, pa.Table]:
        """What queries say; a stream without a limit holds up those that read it."""
        found: dict[str, pa.Table] = {}
        for part, instants in self._each():
            limit = min(limits.get(stream, -LAST_TICK) for stream in part.streams)
            if limit > part.passed or part.passed == -LAST_TICK:
                found |= part.advance(limit, instants)
        return found

    def finish(self, until: int | None) -> dict[str, pa.Table]:
        """The input is complete."""
        found: dict[str, pa.Table] = {}
        for part, instants in self._each():
            found |= part.advance(LAST_TICK if until is None else until, instants, finishing=True)
        return found

    def complete(self, tables: dict[str, pa.Table]) -> dict[str, pa.Table]:
        """The tables of all queries, empty ones for those that said nothing."""
        silent = {name: part for name, part in self.parts.items() if name not in tables}
        return tables | {name: part.silence(name, self._instants[name]) for name, part in silent.items()}

    def restore(self, state: list[Tree], plans: Mapping[str, tuple[Relation, pa.DataType]]) -> None:
        self.begun = True
        for saved in state:
            part: Part | None = None
            for name in saved["queries"]:
                plan, instants = plans[name]
                part = part or Part(self._home(plan), self.boundary, self.host, self.purge)
                part.plans[name] = plan
                self.parts[name], self._instants[name] = part, instants
            if part is not None:
                part.restore(saved["part"])

    def state(self) -> list[Tree]:
        return [{"queries": list(part.plans), "part": part.state()} for part, _ in self._each()]
