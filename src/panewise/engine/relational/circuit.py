"""All relational queries of an engine: one operator for each different node, however many queries ask for it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from panewise.algebra import (
    Derived,
    Distinct,
    Emit,
    Except,
    Group,
    Host,
    Join,
    Node,
    Project,
    Query,
    Select,
    Union,
    Windowed,
)
from panewise.engine.intake import Arrivals
from panewise.engine.lateness import Ledger
from panewise.engine.relational.counted import CountedLeaf
from panewise.engine.relational.grouped import Grouped
from panewise.engine.relational.joined import Joined
from panewise.engine.relational.leaves import Leaf, TimeLeaf, Waiting
from panewise.engine.relational.multisets import Once, Rest
from panewise.engine.relational.operators import Operator, Rowwise, United
from panewise.engine.relational.saying import Saying, told_table
from panewise.engine.relational.sessions import SessionLeaf
from panewise.engine.relational.spans import Turn
from panewise.engine.snapshot import Tree
from panewise.plan.relation import Quarter, Relation, inlets, levels
from panewise.time import LAST_TICK, Boundary
from panewise.window import Rows, Session


@dataclass(frozen=True)
class Inflow:
    """Rows of a stream that are meant for one home, where they are read under an alias."""

    home: Quarter
    alias: str


@dataclass(eq=False)
class Part:
    """The operators of queries over the same streams: they are all as far as the slowest of these."""

    home: Quarter
    boundary: Boundary
    host: Host

    @property
    def streams(self) -> frozenset[str]:
        return frozenset(stream for stream, _, _ in self.home)

    def __post_init__(self) -> None:
        self.plans: dict[str, Relation] = {}
        self.leaves: dict[object, Leaf] = {}
        self.operators: dict[object, Operator] = {}
        self.sayings: dict[str, list[tuple[int | None, Saying]]] = {}
        #: The queries below others, whose results are streams.
        self.inner: dict[object, list[Saying]] = {}
        self.passed = -LAST_TICK
        self.finishing = False
        self._turns: dict[object, Turn] = {}
        self._told: dict[object, pa.Table] = {}
        self._order = 0

    def join(self, name: str, plan: Relation) -> None:
        self.plans[name] = plan
        self.sayings[name] = [(level, self._saying(query)) for level, query in plan.levels]

    def leave(self, name: str) -> None:
        """Let a query go, with what it alone needed; the others are left as if it had never been there."""
        del self.plans[name], self.sayings[name]
        rest = Part(self.home, self.boundary, self.host)
        for other, plan in self.plans.items():
            rest.join(other, plan)
        self.leaves = {key: self.leaves[key] for key in rest.leaves}
        self.operators = {key: self.operators[key] for key in rest.operators}
        self.inner = {query: self.inner[query] for query in rest.inner}

    def _saying(self, query: Query) -> Saying:
        windows = [node for node in query.root.walk() if isinstance(node, Windowed)]
        alone = query.emit is Emit.RSTREAM and len(windows) == 1 and isinstance(windows[0].window, Session)
        leaves = [self._leaf(node, alone) for node in windows]
        for leaf in leaves:
            leaf.watched = leaf.watched or (query.emit is Emit.RSTREAM and not query.periodic)
        self._found(query.root, alone)
        return Saying(query, leaves)

    def _leaf(self, node: Windowed, alone: bool) -> Leaf:
        if (node, alone) not in self.leaves:
            self.leaves[node, alone] = self._made(node, alone)
            for inlet in inlets(node):
                if isinstance(inlet.source, Derived) and inlet.source.query not in self.inner:
                    query = inlet.source.query
                    self.inner[query] = [self._saying(level) for _, level in levels(query)]
        return self.leaves[node, alone]

    def _made(self, node: Windowed, alone: bool) -> Leaf:
        match node.window:
            case Rows():
                return CountedLeaf(node, self.boundary, self.host)
            case Session():
                leaf = SessionLeaf(node, self.boundary, self.host)
                leaf.apart = alone
                return leaf
        return TimeLeaf(node, self.boundary, self.host)

    def _found(self, node: Node, alone: bool) -> None:
        """Have an operator for a node and all below it."""
        if isinstance(node, Windowed) or (node, alone) in self.operators:
            return
        for child in node.children:
            self._found(child, alone)
        self.operators[node, alone] = _operator(node, self.host)

    def take(self, stream: str, arrivals: Arrivals, ledger: Ledger, alias: str | None = None) -> None:
        for leaf in self.leaves.values():
            leaf.take(stream, arrivals, ledger, alias)

    def reach(self, alias: str, newest: int) -> None:
        for leaf in self.leaves.values():
            if any(inlet.stream and inlet.source.alias == alias for inlet in leaf.inlets):
                leaf.reach(newest)

    def anchor(self, stream: str, first: int) -> None:
        for leaf in self.leaves.values():
            if any(inlet.stream == stream for inlet in leaf.inlets):
                leaf.anchor(first)

    def advance(self, limit: int, instants: pa.DataType, finishing: bool = False) -> dict[str, pa.Table]:
        """What all queries say up to an instant; nothing more will come where they are finishing."""
        self.finishing = finishing
        self._turns, self._told = {}, {}
        found = {}
        for name, sayings in self.sayings.items():
            tables = [self._said(saying, limit, level, instants) for level, saying in sayings]
            found[name] = pa.concat_tables(tables)
        self.passed = max(self.passed, limit)
        return found

    def silence(self, name: str, instants: pa.DataType) -> pa.Table:
        """What a query says that has nothing to say."""
        level, saying = self.sayings[name][0]
        return told_table(saying.query, saying.silence(), level, instants)

    def _said(self, saying: Saying, limit: int, level: int | None, instants: pa.DataType) -> pa.Table:
        alone = any(isinstance(leaf, SessionLeaf) and leaf.apart for leaf in saying.leaves)
        given = self._turn(saying.query.root, alone, limit, instants)
        reached = self._reached(saying, limit, alone)
        return told_table(saying.query, saying.turn(reached, given, self.finishing), level, instants)

    def _reached(self, saying: Saying, limit: int, alone: bool) -> int:
        """Where sessions are numbered, the last of them."""
        (first, *_) = saying.leaves
        return first.number - 1 if alone and isinstance(first, SessionLeaf) else limit

    def _turn(self, node: Node, alone: bool, limit: int, instants: pa.DataType) -> Turn:
        key = (node, alone)
        if key not in self._turns:
            if isinstance(node, Windowed):
                leaf = self.leaves[key]
                self._fill(leaf, limit, instants)
                self._turns[key] = leaf.turn(limit)
            else:
                inputs = [self._turn(child, alone, limit, instants) for child in node.children]
                reached = self._session_limit(node) if alone else limit
                self._turns[key] = self.operators[key].turn(reached, inputs)
        return self._turns[key]

    def _session_limit(self, node: Node) -> int:
        (below,) = [n for n in node.walk() if isinstance(n, Windowed)]
        leaf = self.leaves[below, True]
        assert isinstance(leaf, SessionLeaf)
        return leaf.number - 1

    def _fill(self, leaf: Leaf, limit: int, instants: pa.DataType) -> None:
        """Let the results of queries below enter a window."""
        for inlet in leaf.inlets:
            if isinstance(inlet.source, Derived):
                query = inlet.source.query
                if query not in self._told:
                    self._told[query] = self._inner(query, limit, instants)
                told = self._told[query]
                times = np.array(told.column(told.num_columns - 1).to_numpy(), np.int64)
                names = [column.name for column in inlet.source.columns]
                rows = told.select(range(len(names))).rename_columns(names)
                order = np.arange(self._order, self._order + len(times), dtype=np.int64)
                self._order += len(times)
                leaf.derive(inlet, Waiting(rows, times, order, times + self.boundary.shift))

    def _inner(self, query: Query, limit: int, instants: pa.DataType) -> pa.Table:
        tables = []
        for saying in self.inner[query]:
            alone = any(isinstance(leaf, SessionLeaf) and leaf.apart for leaf in saying.leaves)
            given = self._turn(saying.query.root, alone, limit, instants)
            told = saying.turn(self._reached(saying, limit, alone), given, self.finishing)
            tables.append(told.rows.table.append_column("#at", pa.array(told.ends if alone else told.at)))
        whole = pa.concat_tables(tables)
        order = np.argsort(whole.column("#at").to_numpy(), kind="stable")
        return whole.take(pa.array(order)).combine_chunks()

    def state(self) -> Tree:
        return {
            "leaves": [leaf.state() for leaf in self.leaves.values()],
            "operators": [operator.state() for operator in self.operators.values()],
            "sayings": [saying.state() for levels in self.sayings.values() for _, saying in levels],
            "inner": [saying.state() for sayings in self.inner.values() for saying in sayings],
            "passed": self.passed,
            "order": self._order,
        }

    def restore(self, state: Tree) -> None:
        sayings = [saying for levels in self.sayings.values() for _, saying in levels]
        inner = [saying for several in self.inner.values() for saying in several]
        parts: list[tuple[Iterable[Leaf | Operator | Saying], list[Tree]]] = [
            (self.leaves.values(), state["leaves"]),
            (self.operators.values(), state["operators"]),
            (sayings, state["sayings"]),
            (inner, state["inner"]),
        ]
        for whole, saved in parts:
            for each, one in zip(whole, saved, strict=True):
                each.restore(one)
        self.passed, self._order = state["passed"], state["order"]


def _operator(node: Node, host: Host) -> Operator:
    match node:
        case Select() | Project():
            return Rowwise(node, host)
        case Union():
            return United(node)
        case Except():
            return Rest(node)
        case Distinct():
            return Once(node)
        case Group():
            return Grouped(node)
        case Join():
            return Joined(node, host)
    raise TypeError(f"no operator for {type(node).__name__}")


class Circuit:
    """The relational queries of an engine, by the streams they read."""

    def __init__(self, boundary: Boundary, host: Host) -> None:
        self.boundary, self.host = boundary, host
        self.parts: dict[str, Part] = {}
        self._instants: dict[str, pa.DataType] = {}

    def join(self, name: str, plan: Relation, instants: pa.DataType) -> None:
        """Let a query join: it shares operators with those that have not begun either."""
        alike = (part for part in self.parts.values() if part.home == plan.home and part.passed == -LAST_TICK)
        part = next(alike, None) or Part(plan.home, self.boundary, self.host)
        self.parts[name], self._instants[name] = part, instants
        part.join(name, plan)

    def leave(self, name: str) -> None:
        self.parts.pop(name).leave(name)
        del self._instants[name]

    def _each(self) -> dict[int, tuple[Part, pa.DataType]]:
        return {id(part): (part, self._instants[name]) for name, part in self.parts.items()}

    def take(self, stream: str, arrivals: Arrivals, ledger: Ledger, only: Inflow | None = None) -> None:
        """Take in the items of a stream, for all queries or for those of one home."""
        for part, _ in self._each().values():
            if only is None:
                part.take(stream, arrivals, ledger)
            elif part.home == only.home:
                part.take(stream, arrivals, ledger, only.alias)

    def reach(self, inflow: Inflow, newest: int) -> None:
        """An item of this time has come, here or elsewhere."""
        for part, _ in self._each().values():
            if part.home == inflow.home:
                part.reach(inflow.alias, newest)

    def anchor(self, stream: str, first: int) -> None:
        for part, _ in self._each().values():
            part.anchor(stream, first)

    def advance(self, limits: Mapping[str, int]) -> dict[str, pa.Table]:
        """What queries say; a stream without a limit holds up those that read it."""
        found: dict[str, pa.Table] = {}
        for part, instants in self._each().values():
            limit = min(limits.get(stream, -LAST_TICK) for stream in part.streams)
            if limit > part.passed or part.passed == -LAST_TICK:
                found |= part.advance(limit, instants)
        return found

    def finish(self, until: int | None) -> dict[str, pa.Table]:
        """The input is complete."""
        found: dict[str, pa.Table] = {}
        for part, instants in self._each().values():
            found |= part.advance(LAST_TICK if until is None else until, instants, finishing=True)
        return found

    def complete(self, tables: dict[str, pa.Table]) -> dict[str, pa.Table]:
        """The tables of all queries, empty ones for those that said nothing."""
        silent = {name: part for name, part in self.parts.items() if name not in tables}
        return tables | {name: part.silence(name, self._instants[name]) for name, part in silent.items()}

    def restore(self, state: list[Tree], plans: Mapping[str, tuple[Relation, pa.DataType]]) -> None:
        for saved in state:
            part: Part | None = None
            for name in saved["queries"]:
                plan, instants = plans[name]
                part = part or Part(plan.home, self.boundary, self.host)
                part.join(name, plan)
                self.parts[name], self._instants[name] = part, instants
            if part is not None:
                part.restore(saved["part"])

    def state(self) -> list[Tree]:
        return [{"queries": list(part.sayings), "part": part.state()} for part, _ in self._each().values()]
