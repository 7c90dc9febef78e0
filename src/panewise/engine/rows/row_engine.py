"""All queries of an engine that are answered from rows: relational ones, and those that report frames."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

import pyarrow as pa

from panewise.algebra import Host
from panewise.algebra.result_columns import result_schema
from panewise.core.errors import Failure, QueryProblem
from panewise.core.time import MAX_TICK, Boundary
from panewise.engine.frames import FrameBatch, FrameQuery
from panewise.engine.intake import Arrivals
from panewise.engine.purge import Purge
from panewise.engine.rows.inputs.timed import EnteringItems
from panewise.engine.rows.operator_graph import OperatorGraph
from panewise.engine.state.snapshot import Tree
from panewise.plan.frame_plan import FramePlan
from panewise.plan.row_plan import RowPlan, ShardKey
from panewise.plan.rules.share_operators import SharedOperators, shared_operators


@dataclass(frozen=True)
class RowInputKey:
    """The rows of a stream for one shard key, read under an alias."""

    home: ShardKey
    alias: str


class RowEngine:
    """Queries that are answered from rows, by the streams they read."""

    def __init__(self, boundary: Boundary, host: Host, purge: Purge, shard: bool, stored: Collection[str]) -> None:
        self.boundary, self.host, self.purge, self.shard = boundary, host, purge, shard
        #: Streams without a delay.
        self.stored = stored
        self.begun = False
        self.parts: dict[str, OperatorGraph | FrameQuery] = {}
        self._instants: dict[str, pa.DataType] = {}
        #: The different parts, with the type of their instants; valid while queries stay the same.
        self._different: list[tuple[OperatorGraph | FrameQuery, pa.DataType]] | None = None
        #: Results of some queries that wait because another query failed.
        self._undelivered: dict[str, list[pa.Table]] = {}
        #: The results of each query when it has none, as far as they have been asked for.
        self._empty: dict[str, pa.Table] = {}

    def join(self, name: str, plan: RowPlan | FramePlan, instants: pa.DataType) -> None:
        """Add a query: it shares operators with queries that have not begun, or joins running shared operators."""
        part = self._graph_for(name, plan)
        self.parts[name], self._instants[name], self._different = part, instants, None

    def _graph_for(self, name: str, plan: RowPlan | FramePlan) -> OperatorGraph | FrameQuery:
        home = self._shard_key(plan)
        if isinstance(plan, FramePlan):
            return FrameQuery(name, plan, home, self.stored, self.boundary, self.host)
        alike = [part for part, _ in self._graphs() if isinstance(part, OperatorGraph) and part.home == home]
        running = next((part for part in alike if part.can_admit(name, plan)), None)
        if running is not None:
            running.admit(name, plan)
            return running
        waiting = next((part for part in alike if not part.built), None)
        part = waiting or OperatorGraph(home, self.boundary, self.host, self.purge, self.begun)
        part.plans[name] = plan
        return part

    def _shard_key(self, plan: RowPlan | FramePlan) -> ShardKey:
        """The shard key of a plan; if this engine gets all rows, the columns that distribute them are left out."""
        return plan.shard_key if self.shard else frozenset((stream, alias, None) for stream, alias, _ in plan.shard_key)

    def leave(self, name: str) -> None:
        self.parts.pop(name).leave(name)
        self._undelivered.pop(name, None)
        self._empty.pop(name, None)
        del self._instants[name]
        self._different = None

    def shared_operators(self) -> list[tuple[Mapping[str, RowPlan], SharedOperators]]:
        """The shared operators, with the plans of the queries that they serve."""
        parts = [part for part, _ in self._graphs() if isinstance(part, OperatorGraph)]
        return [(p.plans, each) for p in parts for each in (p.shared_places if p.built else shared_operators(p.plans))]

    def _graphs(self) -> list[tuple[OperatorGraph | FrameQuery, pa.DataType]]:
        if self._different is None:
            found = {id(part): (part, self._instants[name]) for name, part in self.parts.items()}
            self._different = list(found.values())
        return self._different

    def _built_graphs(self) -> list[tuple[OperatorGraph | FrameQuery, pa.DataType]]:
        """All operator graphs and frame queries, built."""
        found = self._graphs()
        for part, _ in found:
            part.build()
        return found

    def read(
        self, stream: str, arrivals: Arrivals, only: RowInputKey | None = None
    ) -> list[EnteringItems | FrameBatch]:
        """What windows are about to take in of a stream, for all queries or for those of one shard key."""
        self.begun = True
        parts = [part for part, _ in self._built_graphs() if only is None or part.home == only.home]
        alias = only.alias if only else None
        return [reading for part in parts for reading in part.read(stream, arrivals, alias)]

    def note_newest(self, inflow: RowInputKey, newest: int) -> None:
        """Note that an item of this time has come, here or in another shard."""
        for part, _ in self._built_graphs():
            if part.home == inflow.home:
                part.note_newest(inflow.alias, newest)

    def anchor(self, stream: str, first: int) -> None:
        for part, _ in self._built_graphs():
            part.anchor(stream, first)

    def advance(self, limits: Mapping[str, int]) -> dict[str, pa.Table]:
        """The results of queries; those that read a stream without a limit wait."""
        for part, instants in self._graphs():
            if isinstance(part, FrameQuery):
                self._collect(part.advance(limits, instants))
                continue
            limit = min(limits.get(stream, -MAX_TICK) for stream in part.streams)
            if part.built and limit > part.advanced_until:
                self._advance_by_portions(part, limit, instants)
                self._collect(part.advance(limit, instants))
        return self._take_results()

    def finish(self, until: int | None) -> dict[str, pa.Table]:
        """The input is complete."""
        last = MAX_TICK if until is None else until
        for part, instants in self._graphs():
            if isinstance(part, FrameQuery):
                self._collect(part.advance(dict.fromkeys(part.streams, last), instants, finishing=True))
            elif part.built:
                self._advance_by_portions(part, last, instants)
                self._collect(part.advance(last, instants, finishing=True))
        return self._take_results()

    def _advance_by_portions(self, part: OperatorGraph, limit: int, instants: pa.DataType) -> None:
        """Advance until so few items wait that one turn is enough, or until there is nothing to report."""
        while (upto := part.portion_limit(limit)) < limit:
            self._collect(part.advance(upto, instants))
            if part.advanced_until < upto:
                return

    def _collect(self, tables: Mapping[str, pa.Table]) -> None:
        for name, table in tables.items():
            self._undelivered.setdefault(name, []).append(table)

    def _take_results(self) -> dict[str, pa.Table]:
        """The results since the last call; while a query is broken, they are kept until it has left."""
        broken = [Failure(name, problem) for part, _ in self._graphs() for name, problem in part.broken.items()]
        if broken:
            raise QueryProblem(broken)
        unheard, self._undelivered = self._undelivered, {}
        return {name: pa.concat_tables(tables) for name, tables in unheard.items()}

    def with_empty_results(self, tables: dict[str, pa.Table]) -> dict[str, pa.Table]:
        """The tables of all queries, empty ones for those without results."""
        for name in [name for name in self.parts if name not in self._empty]:
            query = self.parts[name].plans[name].query
            self._empty[name] = result_schema(query, self._instants[name]).empty_table()
        return self._empty | tables

    def restore(self, state: Tree, plans: Mapping[str, tuple[RowPlan | FramePlan, pa.DataType]]) -> None:
        self.begun = state["begun"]
        self._undelivered = {name: [table] for name, table in state["unheard"].items()}
        for saved in state["parts"]:
            part: OperatorGraph | FrameQuery | None = None
            for name in saved["queries"]:
                plan, instants = plans[name]
                if isinstance(plan, FramePlan):
                    part = self._graph_for(name, plan)
                else:
                    part = part or OperatorGraph(self._shard_key(plan), self.boundary, self.host, self.purge)
                    assert isinstance(part, OperatorGraph)
                    part.plans[name] = plan
                self.parts[name], self._instants[name], self._different = part, instants, None
            if part is not None and saved["part"] is not None:
                part.restore(saved["part"])

    def state(self) -> Tree:
        parts = [part for part, _ in self._graphs()]
        return {
            "begun": self.begun,
            "unheard": {name: pa.concat_tables(tables) for name, tables in self._undelivered.items()},
            "parts": [{"queries": list(p.plans), "part": p.state() if p.built else None} for p in parts],
        }
