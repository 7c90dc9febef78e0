"""Relational queries over the same streams: one operator for each different node, however many queries ask for it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass, replace
from functools import partial

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
from panewise.engine.blame import failing
from panewise.engine.intake import Arrivals
from panewise.engine.purge import Purge
from panewise.engine.relational.bands import Band
from panewise.engine.relational.changes import Changes
from panewise.engine.relational.counted import CountedLeaf
from panewise.engine.relational.grouped import Grouped
from panewise.engine.relational.joined import Joined
from panewise.engine.relational.leaves import Leaf, Reading, TimeLeaf, View, Waiting
from panewise.engine.relational.manner import Key, Manner
from panewise.engine.relational.memberships import JoinKin
from panewise.engine.relational.multisets import Once, Rest, outlives, unannounced
from panewise.engine.relational.operators import Operator, Rowwise, United
from panewise.engine.relational.saying import Saying, Told, silence, told_table
from panewise.engine.relational.sessions import SessionLeaf
from panewise.engine.relational.spans import Turn
from panewise.engine.relational.stairs import DistinctKin
from panewise.engine.relational.states import States
from panewise.engine.snapshot import Tree
from panewise.errors import PanewiseError, QueryProblem
from panewise.plan.kinship import Kin, Place, kin_of, kinships
from panewise.plan.relation import Quarter, Relation, levels
from panewise.time import LAST_TICK, Boundary
from panewise.window import Rows, Session, Window


@dataclass(eq=False)
class Part:
    """The operators of queries over the same streams: they are all as far as the slowest of these.

    Queries join until the part is founded, when the first rows come; then it is known who is whose kin.
    """

    home: Quarter
    boundary: Boundary
    host: Host
    purge: Purge
    #: Whether rows had come before its first query did: then others may come to it while it runs.
    late: bool = False

    @property
    def streams(self) -> frozenset[str]:
        return frozenset(stream for stream, _, _ in self.home)

    def __post_init__(self) -> None:
        self.plans: dict[str, Relation] = {}
        self.founded = False
        self.kin: list[Kin] = []
        self.families: list[JoinKin | DistinctKin] = []
        #: The family of each operator that has kin.
        self.belongs: dict[Key, JoinKin | DistinctKin] = {}
        #: How many queries have joined families that ran already.
        self.joined = 0
        self.leaves: dict[Key, Leaf] = {}
        self.operators: dict[Key, Operator] = {}
        self.sayings: dict[str, list[tuple[int | None, Saying]]] = {}
        #: The queries below others, whose results are streams.
        self.inner: dict[Query, list[Saying]] = {}
        self.passed = -LAST_TICK
        self.finishing = False
        #: Queries that cannot be answered any more, and why.
        self.broken: dict[str, PanewiseError] = {}
        self._turns: dict[Key, Turn] = {}
        self._failed: dict[Key, PanewiseError] = {}
        self._told: dict[Query, pa.Table] = {}
        self._order = 0

    def found(self, kin: Sequence[Kin] | None = None) -> None:
        """Make the operators of all queries that have joined; kin are those that were, or are found."""
        if self.founded:
            return
        self.founded = True
        self.kin = list(kinships(self.plans, hoping=self.late) if kin is None else kin)
        for some in self.kin:
            family = _family(self._keys(some), self.boundary, self.host, self.purge)
            self.families.append(family)
            self.belongs |= dict.fromkeys(family.members, family)
            for leaf in family.leaves:
                self._feeders(leaf)
        related = {(place.query, place.level): place.since for some in self.kin for place in some}
        for name, plan in self.plans.items():
            self._speaks(name, plan, related)

    def _speaks(self, name: str, plan: Relation, related: Mapping[tuple[str, int], int]) -> None:
        self.sayings[name] = [
            (level, self._saying(query, related.get((name, number))))
            for number, (level, query) in enumerate(plan.levels)
        ]

    def _keys(self, kin: Kin) -> list[Key]:
        """The different operators among kin."""
        return list(dict.fromkeys((place.node(self.plans), Manner(kin=place.since)) for place in kin))

    def has_room(self, name: str, plan: Relation) -> bool:
        """Whether running families have all that a query needs which comes now."""
        places = kin_of(name, plan, self.kin, self.plans) if self.founded and not self.broken else None
        return bool(places) and all(
            # What a chain of distincts has counted already would count for a newcomer too.
            isinstance(family := self.families[number], JoinKin) and family.has_room(place.node({name: plan}))
            for place, number in (places or {}).items()
        )

    def welcome(self, name: str, plan: Relation) -> None:
        """Let a query join running families; it begins with what comes."""
        places = kin_of(name, plan, self.kin, self.plans) or {}
        self.joined += 1
        self.plans[name] = plan
        for place, number in places.items():
            key, family = (place.node(self.plans), Manner(kin=self.joined)), self.families[number]
            assert isinstance(family, JoinKin)
            family.join(key)
            self.belongs[key] = family
            self.kin[number] += (replace(place, since=self.joined),)
        self._speaks(name, plan, {(place.query, place.level): self.joined for place in places})

    def leave(self, name: str) -> None:
        """Let a query go, with what it alone needed; the others are left as if it had never been there."""
        del self.plans[name]
        if not self.founded:
            return
        del self.sayings[name]
        self.broken.pop(name, None)
        staying = [tuple(place for place in kin if place.query != name) for kin in self.kin]
        for family, kin in zip(self.families, staying, strict=True):
            if kin:
                family.leave(self._keys(kin))
        self.families = [family for family, kin in zip(self.families, staying, strict=True) if kin]
        self.kin = [kin for kin in staying if kin]
        rest = Part(self.home, self.boundary, self.host, self.purge, self.late)
        rest.plans = self.plans
        rest.found(self.kin)
        self.belongs = {key: family for family in self.families for key in family.members}
        self.leaves = {key: self.leaves[key] for key in rest.leaves}
        self.operators = {key: self.operators[key] for key in rest.operators}
        self.inner = {query: self.inner[query] for query in rest.inner}

    def _saying(self, query: Query, related: int | None = None) -> Saying:
        windows = [node for node in query.root.walk() if isinstance(node, Windowed)]
        alone = query.emit is Emit.RSTREAM and len(windows) == 1 and isinstance(windows[0].window, Session)
        manner = Manner(alone, related)
        held = {below for node in query.root.walk() if (node, manner) in self.belongs for below in node.walk()}
        views = [View(node.window) if node in held else self._leaf(node, manner) for node in windows]
        for view in views:
            view.watched = view.watched or (query.emit is Emit.RSTREAM and not query.periodic)
        self._operated(query.root, manner)
        return (States if query.emit is Emit.RSTREAM else Changes)(query, views, manner)

    def _leaf(self, node: Windowed, manner: Manner) -> Leaf:
        if (node, manner) not in self.leaves:
            self.leaves[node, manner] = self._made(node, manner)
            self._feeders(self.leaves[node, manner])
        return self.leaves[node, manner]

    def _feeders(self, leaf: Leaf) -> None:
        """Have the queries whose results enter a window."""
        for inlet in leaf.inlets:
            if isinstance(inlet.source, Derived) and inlet.source.query not in self.inner:
                query = inlet.source.query
                self.inner[query] = [self._saying(level) for _, level in levels(query)]

    def _made(self, node: Windowed, manner: Manner) -> Leaf:
        match node.window:
            case Rows():
                return CountedLeaf(node, self.boundary, self.host)
            case Session():
                leaf = SessionLeaf(node, self.boundary, self.host)
                leaf.apart = manner.apart
                return leaf
        return TimeLeaf(node, self.boundary, self.host)

    def _operated(self, node: Node, manner: Manner) -> None:
        """Have an operator for a node and all below it."""
        if isinstance(node, Windowed) or (node, manner) in self.operators or (node, manner) in self.belongs:
            return
        for child in node.children:
            self._operated(child, manner)
        self.operators[node, manner] = _operator(node, self.host, self.purge)

    @property
    def _all_leaves(self) -> Iterator[Leaf]:
        yield from self.leaves.values()
        for family in self.families:
            yield from family.leaves

    def read(self, stream: str, arrivals: Arrivals, alias: str | None = None) -> Iterator[Reading]:
        """What all windows are about to take in; an expression that fails does so here."""
        try:
            for leaf in self._all_leaves:
                yield from leaf.read(stream, arrivals, alias, partial(self._readers, leaf))
        except PanewiseError:
            raise QueryProblem(failing(self.plans, lambda name: self._alone(name, stream, arrivals, alias))) from None

    def _readers(self, leaf: Leaf, window: Window) -> list[str]:
        """The queries that look at a leaf through a window; kin share one through windows of their own."""
        return [
            name
            for name, plan in self.plans.items()
            if any(
                node == leaf.node or (isinstance(leaf, Band) and node.window == window)
                for _, query in plan.levels
                for node in query.root.walk()
                if isinstance(node, Windowed)
            )
        ]

    def _alone(self, name: str, stream: str, arrivals: Arrivals, alias: str | None) -> None:
        """Read what one query would read if there were no others."""
        alone = Part(self.home, self.boundary, self.host, self.purge)
        alone.plans[name] = self.plans[name]
        alone.found()
        for leaf in alone._all_leaves:
            list(leaf.read(stream, arrivals, alias, lambda _: ()))

    def reach(self, alias: str, newest: int) -> None:
        for leaf in self._all_leaves:
            if any(inlet.stream and inlet.source.alias == alias for inlet in leaf.inlets):
                leaf.reach(newest)

    def anchor(self, stream: str, first: int) -> None:
        for leaf in self._all_leaves:
            if any(inlet.stream == stream for inlet in leaf.inlets):
                leaf.anchor(first)

    def advance(self, limit: int, instants: pa.DataType, finishing: bool = False) -> dict[str, pa.Table]:
        """What all queries say up to an instant; nothing more will come where they are finishing.

        Those that fail are broken from then on; the others go on without them.
        """
        self.finishing = finishing
        self._turns, self._told, self._failed = {}, {}, {}
        found = {}
        for name, sayings in self.sayings.items():
            try:
                if name not in self.broken:
                    found[name] = pa.concat_tables(
                        [self._said(each, limit, level, instants) for level, each in sayings]
                    )
            except PanewiseError as problem:
                self.broken[name] = problem
        self.passed = max(self.passed, limit)
        return found

    def silence(self, name: str, instants: pa.DataType) -> pa.Table:
        """What a query says that has nothing to say."""
        level, query = self.plans[name].levels[0]
        return told_table(query, silence(query), level, instants)

    def _said(self, saying: Saying, limit: int, level: int | None, instants: pa.DataType) -> pa.Table:
        return told_table(saying.query, self._told_by(saying, limit), level, instants)

    def _told_by(self, saying: Saying, limit: int) -> Told:
        given = self._turn(saying.query.root, saying.manner, limit)
        return saying.turn(self._reached(saying, limit), given, self.finishing)

    def _reached(self, saying: Saying, limit: int) -> int:
        """Where sessions are numbered, the last of them."""
        (first, *_) = saying.views
        return first.number - 1 if saying.manner.apart and isinstance(first, SessionLeaf) else limit

    def _turn(self, node: Node, manner: Manner, limit: int) -> Turn:
        """The turn of an operator, taken once, whoever asks for it; also where it fails."""
        key = (node, manner)
        if key in self._failed:
            raise self._failed[key]
        if key not in self._turns:
            family = self.belongs.get(key)
            try:
                self._turns |= self._family_turns(family, limit) if family else {key: self._own_turn(key, limit)}
            except PanewiseError as problem:
                self._failed |= dict.fromkeys(family.members if family else [key], problem)
                raise
        return self._turns[key]

    def _own_turn(self, key: Key, limit: int) -> Turn:
        node, manner = key
        if isinstance(node, Windowed):
            return self._leaf_turn(self.leaves[key], limit)
        inputs = [self._turn(child, manner, limit) for child in node.children]
        if isinstance(node, Join | Group):
            inputs = [unannounced(turn) if outlives(child) else turn for child, turn in _pairs(node, inputs)]
        return self.operators[key].turn(self._session_limit(node) if manner.apart else limit, inputs)

    def _family_turns(self, family: JoinKin | DistinctKin, limit: int) -> dict[Key, Turn]:
        given = [self._leaf_turn(leaf, limit) for leaf in family.leaves]
        return family.turn(limit, given)

    def _leaf_turn(self, leaf: Leaf, limit: int) -> Turn:
        self._fill(leaf, limit)
        return leaf.turn(limit)

    def _session_limit(self, node: Node) -> int:
        (below,) = [n for n in node.walk() if isinstance(n, Windowed)]
        leaf = self.leaves[below, Manner(apart=True)]
        assert isinstance(leaf, SessionLeaf)
        return leaf.number - 1

    def _fill(self, leaf: Leaf, limit: int) -> None:
        """Let the results of queries below enter a window."""
        for inlet in leaf.inlets:
            if isinstance(inlet.source, Derived):
                query = inlet.source.query
                if query not in self._told:
                    self._told[query] = self._inner(query, limit)
                told = self._told[query]
                times = np.array(told.column(told.num_columns - 1).to_numpy(), np.int64)
                names = [column.name for column in inlet.source.columns]
                rows = told.select(range(len(names))).rename_columns(names)
                order = np.arange(self._order, self._order + len(times), dtype=np.int64)
                self._order += len(times)
                leaf.derive(inlet, Waiting(rows, times, order, times + self.boundary.shift))

    def _inner(self, query: Query, limit: int) -> pa.Table:
        tables = []
        for saying in self.inner[query]:
            told = self._told_by(saying, limit)
            at = told.ends if saying.manner.apart else told.at
            tables.append(told.rows.table.append_column("#at", pa.array(at)))
        whole = pa.concat_tables(tables)
        order = np.argsort(whole.column("#at").to_numpy(), kind="stable")
        return whole.take(pa.array(order)).combine_chunks()

    @property
    def _stateful(self) -> list[Leaf | Operator | Saying | JoinKin | DistinctKin]:
        """All that remembers anything, in an order that does not depend on how it came to be."""
        sayings = [saying for levels in self.sayings.values() for _, saying in levels]
        inner = [saying for several in self.inner.values() for saying in several]
        return [*self._all_leaves, *self.operators.values(), *self.families, *sayings, *inner]

    def state(self) -> Tree:
        return {
            "kin": [[list(astuple(place)) for place in kin] for kin in self.kin],
            "joined": self.joined,
            "broken": {name: [problem.message, problem.fix] for name, problem in self.broken.items()},
            "parts": [each.state() for each in self._stateful],
            "passed": self.passed,
            "order": self._order,
        }

    def restore(self, state: Tree) -> None:
        self.found([tuple(Place(*place) for place in kin) for kin in state["kin"]])
        for each, saved in zip(self._stateful, state["parts"], strict=True):
            each.restore(saved)
        self.passed, self._order, self.joined = state["passed"], state["order"], state["joined"]
        self.broken = {name: PanewiseError(message, fix=fix) for name, (message, fix) in state["broken"].items()}


def _pairs(node: Node, inputs: Sequence[Turn]) -> Iterator[tuple[Node, Turn]]:
    return zip(node.children, inputs, strict=True)


def _family(keys: Sequence[Key], boundary: Boundary, host: Host, purge: Purge) -> JoinKin | DistinctKin:
    if isinstance(keys[0][0], Join):
        return JoinKin(keys, boundary, host, purge)
    return DistinctKin(keys, boundary, host)


def _operator(node: Node, host: Host, purge: Purge) -> Operator:
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
            return Grouped(node, purge)
        case Join():
            return Joined(node, host, purge)
    raise TypeError(f"no operator for {type(node).__name__}")
