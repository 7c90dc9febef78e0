"""All queries of an engine that are answered from rows: relational ones, and those that report frames."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

import pyarrow as pa

from panewise.algebra import Host
from panewise.engine.frames import FramePart, FrameReading
from panewise.engine.intake import Arrivals
from panewise.engine.purge import Purge
from panewise.engine.relational.leaves import Reading
from panewise.engine.relational.part import Part
from panewise.engine.snapshot import Tree
from panewise.errors import Failure, QueryProblem
from panewise.plan.framing import Framing
from panewise.plan.kinship import Kin, kinships
from panewise.plan.relation import Quarter, Relation
from panewise.time import LAST_TICK, Boundary


@dataclass(frozen=True)
class Inflow:
    """Rows of a stream that are meant for one home, where they are read under an alias."""

    home: Quarter
    alias: str


class Circuit:
    """Queries that are answered from rows, by the streams they read."""

    def __init__(self, boundary: Boundary, host: Host, purge: Purge, shard: bool, stored: Collection[str]) -> None:
        self.boundary, self.host, self.purge, self.shard = boundary, host, purge, shard
        #: Streams without a delay.
        self.stored = stored
        self.begun = False
        self.parts: dict[str, Part | FramePart] = {}
        self._instants: dict[str, pa.DataType] = {}
        #: What was said while another query could not speak.
        self._unheard: dict[str, list[pa.Table]] = {}

    def join(self, name: str, plan: Relation | Framing, instants: pa.DataType) -> None:
        """Let a query join: it shares operators with those that have not begun either, or finds running kin."""
        self._instants[name] = instants
        self.parts[name] = self._part(name, plan)

    def _part(self, name: str, plan: Relation | Framing) -> Part | FramePart:
        home = self._home(plan)
        if isinstance(plan, Framing):
            return FramePart(name, plan, home, self.stored, self.boundary, self.host)
        alike = [part for part, _ in self._parts() if isinstance(part, Part) and part.home == home]
        running = next((part for part in alike if part.has_room(name, plan)), None)
        if running is not None:
            running.welcome(name, plan)
            return running
        waiting = next((part for part in alike if not part.founded), None)
        part = waiting or Part(home, self.boundary, self.host, self.purge, self.begun)
        part.plans[name] = plan
        return part

    def _home(self, plan: Relation | Framing) -> Quarter:
        """Where all rows come, it does not matter how queries would spread them."""
        return plan.home if self.shard else frozenset((stream, alias, None) for stream, alias, _ in plan.home)

    def leave(self, name: str) -> None:
        self.parts.pop(name).leave(name)
        self._unheard.pop(name, None)
        del self._instants[name]

    def kin(self) -> list[tuple[Mapping[str, Relation], Kin]]:
        """Which operators share their work, with the queries they belong to."""
        parts = [part for part, _ in self._parts() if isinstance(part, Part)]
        return [(p.plans, kin) for p in parts for kin in (p.kin if p.founded else kinships(p.plans))]

    def _parts(self) -> list[tuple[Part | FramePart, pa.DataType]]:
        return list({id(part): (part, self._instants[name]) for name, part in self.parts.items()}.values())

    def _each(self) -> list[tuple[Part | FramePart, pa.DataType]]:
        """All parts, founded."""
        found = self._parts()
        for part, _ in found:
            part.found()
        return found

    def read(self, stream: str, arrivals: Arrivals, only: Inflow | None = None) -> list[Reading | FrameReading]:
        """What windows are about to take in of a stream, for all queries or for those of one home."""
        self.begun = True
        parts = [part for part, _ in self._each() if only is None or part.home == only.home]
        alias = only.alias if only else None
        return [reading for part in parts for reading in part.read(stream, arrivals, alias)]

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
        for part, instants in self._parts():
            if isinstance(part, FramePart):
                self._hear(part.advance(limits, instants))
                continue
            limit = min(limits.get(stream, -LAST_TICK) for stream in part.streams)
            if part.founded and limit > part.passed:
                self._hear(part.advance(limit, instants))
        return self._heard()

    def finish(self, until: int | None) -> dict[str, pa.Table]:
        """The input is complete."""
        last = LAST_TICK if until is None else until
        for part, instants in self._parts():
            if isinstance(part, FramePart):
                self._hear(part.advance(dict.fromkeys(part.streams, last), instants, finishing=True))
            elif part.founded:
                self._hear(part.advance(last, instants, finishing=True))
        return self._heard()

    def _hear(self, tables: Mapping[str, pa.Table]) -> None:
        for name, table in tables.items():
            self._unheard.setdefault(name, []).append(table)

    def _heard(self) -> dict[str, pa.Table]:
        """What has been said since the last time; kept for later where a query is broken, until that has left."""
        broken = [Failure(name, problem) for part, _ in self._parts() for name, problem in part.broken.items()]
        if broken:
            raise QueryProblem(broken)
        unheard, self._unheard = self._unheard, {}
        return {name: pa.concat_tables(tables) for name, tables in unheard.items()}

    def complete(self, tables: dict[str, pa.Table]) -> dict[str, pa.Table]:
        """The tables of all queries, empty ones for those that said nothing."""
        silent = {name: part for name, part in self.parts.items() if name not in tables}
        return tables | {name: part.silence(name, self._instants[name]) for name, part in silent.items()}

    def restore(self, state: Tree, plans: Mapping[str, tuple[Relation | Framing, pa.DataType]]) -> None:
        self.begun = state["begun"]
        self._unheard = {name: [table] for name, table in state["unheard"].items()}
        for saved in state["parts"]:
            part: Part | FramePart | None = None
            for name in saved["queries"]:
                plan, instants = plans[name]
                if isinstance(plan, Framing):
                    part = self._part(name, plan)
                else:
                    part = part or Part(self._home(plan), self.boundary, self.host, self.purge)
                    assert isinstance(part, Part)
                    part.plans[name] = plan
                self.parts[name], self._instants[name] = part, instants
            if part is not None and saved["part"] is not None:
                part.restore(saved["part"])

    def state(self) -> Tree:
        parts = [part for part, _ in self._parts()]
        return {
            "begun": self.begun,
            "unheard": {name: pa.concat_tables(tables) for name, tables in self._unheard.items()},
            "parts": [{"queries": list(p.plans), "part": p.state() if p.founded else None} for p in parts],
        }
