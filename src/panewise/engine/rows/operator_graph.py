"""Relational queries over the same streams: one operator for each different node, however many queries use it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass, replace
from functools import partial

import numpy as np
import pyarrow as pa

from panewise.algebra import (
    Derived,
    Emit,
    Group,
    Host,
    Join,
    Node,
    Query,
    Windowed,
)
from panewise.algebra.result_columns import added_types
from panewise.core.errors import PanewiseError, QueryProblem
from panewise.core.time import MAX_TICK, Boundary
from panewise.engine.blame import find_failures
from panewise.engine.intake import Arrivals
from panewise.engine.purge import Purge
from panewise.engine.rows.change_emitter import ChangeEmitter
from panewise.engine.rows.emitter import EmittedRows, Emitter, emitted_table
from panewise.engine.rows.inputs.counted import CountedInput
from panewise.engine.rows.inputs.sessions import SessionInput
from panewise.engine.rows.inputs.timed import EnteringItems, TimedInput, WaitingItems, WindowInput, WindowView
from panewise.engine.rows.operators.base import Operator, OperatorKey, OperatorVariant
from panewise.engine.rows.operators.build import new_operator, new_shared_operator
from panewise.engine.rows.operators.distinct import can_outlive_expiry, without_expiry
from panewise.engine.rows.operators.shared_distinct import SharedDistinct
from panewise.engine.rows.operators.shared_join import SharedJoin
from panewise.engine.rows.shared_items import SharedInput
from panewise.engine.rows.silence import active_emitters, has_nothing_to_report
from panewise.engine.rows.snapshot_emitter import SnapshotEmitter
from panewise.engine.rows.spans import RelationDelta
from panewise.engine.state.snapshot import Tree
from panewise.plan.row_plan import RowPlan, ShardKey
from panewise.plan.rules.share_operators import OperatorPlace, SharedOperators, find_shared_operators, shared_operators
from panewise.window import Window, WindowRetention


@dataclass(eq=False)
class OperatorGraph:
    """The operators of queries over the same streams: all have advanced as far as the slowest stream.

    Queries join until the graph is built, when the first rows come; then the shared operators are decided.
    """

    home: ShardKey
    boundary: Boundary
    host: Host
    purge: Purge
    #: Whether rows had come before its first query: then other queries may join while it runs.
    late: bool = False

    @property
    def streams(self) -> frozenset[str]:
        return frozenset(stream for stream, _, _ in self.home)

    def __post_init__(self) -> None:
        self.plans: dict[str, RowPlan] = {}
        self.built = False
        self.shared_places: list[SharedOperators] = []
        self.shared_operators: list[SharedJoin | SharedDistinct] = []
        #: The shared operator that serves each operator, if there is one.
        self.shared_by_key: dict[OperatorKey, SharedJoin | SharedDistinct] = {}
        #: How many queries have joined shared operators that were running already.
        self.joined_while_running = 0
        self.window_inputs: dict[OperatorKey, WindowInput] = {}
        self.operators: dict[OperatorKey, Operator] = {}
        self.emitters: dict[str, list[tuple[int | None, Emitter]]] = {}
        #: The queries below others, whose results are streams.
        self.inner: dict[Query, list[Emitter]] = {}
        self.advanced_until = -MAX_TICK
        self.finishing = False
        #: Queries that cannot be answered any more, and why.
        self.broken: dict[str, PanewiseError] = {}
        self._deltas: dict[OperatorKey, RelationDelta] = {}
        self._failed: dict[OperatorKey, PanewiseError] = {}
        self._inner_tables: dict[Query, pa.Table] = {}
        self._order = 0
        self._types: dict[str, Mapping[str, pa.DataType]] = {}

    def build(self, shared_places: Sequence[SharedOperators] | None = None) -> None:
        """Make the operators of all queries that have joined; shared operators are given after a restart, or found."""
        if self.built:
            return
        self.built = True
        if shared_places is None:
            shared_places = shared_operators(self.plans, expect_more=self.late)
        self.shared_places = list(shared_places)
        for places in self.shared_places:
            family = new_shared_operator(self._operator_keys(places), self.boundary, self.host, self.purge)
            self.shared_operators.append(family)
            self.shared_by_key |= dict.fromkeys(family.members, family)
            for leaf in family.inputs:
                self._add_inner_queries(leaf)
        related = {(place.query, place.level): place.since for places in self.shared_places for place in places}
        for name, plan in self.plans.items():
            self._add_emitters(name, plan, related)

    def _add_emitters(self, name: str, plan: RowPlan, related: Mapping[tuple[str, int], int]) -> None:
        self.emitters[name] = [
            (level, self._new_emitter(query, related.get((name, number))))
            for number, (level, query) in enumerate(plan.levels)
        ]

    def _operator_keys(self, places: SharedOperators) -> list[OperatorKey]:
        """The different operators that a shared operator serves."""
        return list(dict.fromkeys((place.node(self.plans), OperatorVariant(since=place.since)) for place in places))

    def can_admit(self, name: str, plan: RowPlan) -> bool:
        """Whether the running shared operators have all that a new query needs."""
        if not self.built or self.broken:
            return False
        places = find_shared_operators(name, plan, self.shared_places, self.plans) or {}
        return bool(places) and all(
            # Rows that a chain of distincts has counted already would count for the new query too.
            isinstance(family := self.shared_operators[number], SharedJoin)
            and family.can_admit(place.node({name: plan}))
            for place, number in places.items()
        )

    def admit(self, name: str, plan: RowPlan) -> None:
        """Add a query to running shared operators; only rows from now on count for it."""
        places = find_shared_operators(name, plan, self.shared_places, self.plans) or {}
        self.joined_while_running += 1
        self.plans[name] = plan
        for place, number in places.items():
            key = (place.node(self.plans), OperatorVariant(since=self.joined_while_running))
            family = self.shared_operators[number]
            assert isinstance(family, SharedJoin)
            family.admit(key)
            self.shared_by_key[key] = family
            self.shared_places[number] += (replace(place, since=self.joined_while_running),)
        self._add_emitters(name, plan, {(place.query, place.level): self.joined_while_running for place in places})

    def leave(self, name: str) -> None:
        """Remove a query and the operators that only it used; the others are not affected."""
        del self.plans[name]
        self._types.pop(name, None)
        if not self.built:
            return
        del self.emitters[name]
        self.broken.pop(name, None)
        staying = [tuple(place for place in places if place.query != name) for places in self.shared_places]
        for family, places in zip(self.shared_operators, staying, strict=True):
            if places:
                family.keep_only(self._operator_keys(places))
        self.shared_operators = [f for f, places in zip(self.shared_operators, staying, strict=True) if places]
        self.shared_places = [places for places in staying if places]
        rest = OperatorGraph(self.home, self.boundary, self.host, self.purge, self.late)
        rest.plans = self.plans
        rest.build(self.shared_places)
        self.shared_by_key = {key: family for family in self.shared_operators for key in family.members}
        self.window_inputs = {key: self.window_inputs[key] for key in rest.window_inputs}
        self.operators = {key: self.operators[key] for key in rest.operators}
        self.inner = {query: self.inner[query] for query in rest.inner}

    def _new_emitter(self, query: Query, related: int | None = None) -> Emitter:
        windows = [node for node in query.root.walk() if isinstance(node, Windowed)]
        alone = query.emit is Emit.RSTREAM and [w.window.retention for w in windows] == [
            WindowRetention.FOLLOWS_SESSIONS
        ]
        variant = OperatorVariant(alone, related)
        held = {below for node in query.root.walk() if (node, variant) in self.shared_by_key for below in node.walk()}
        views = [WindowView(node.window) if node in held else self._input_of(node, variant) for node in windows]
        for view in views:
            view.watched = view.watched or (query.emit is Emit.RSTREAM and not query.periodic)
        self._add_operators(query.root, variant)
        return (SnapshotEmitter if query.emit is Emit.RSTREAM else ChangeEmitter)(query, views, variant)

    def _input_of(self, node: Windowed, variant: OperatorVariant) -> WindowInput:
        if (node, variant) not in self.window_inputs:
            self.window_inputs[node, variant] = self._new_input(node, variant)
            self._add_inner_queries(self.window_inputs[node, variant])
        return self.window_inputs[node, variant]

    def _add_inner_queries(self, leaf: WindowInput) -> None:
        """Add the queries whose results enter a window."""
        for inlet in leaf.inlets:
            if isinstance(inlet.source, Derived) and inlet.source.query not in self.inner:
                query = inlet.source.query
                # All queries of a pool are planned by the same rules.
                levels = next(iter(self.plans.values())).levels_of(query)
                self.inner[query] = [self._new_emitter(level) for _, level in levels]

    def _new_input(self, node: Windowed, variant: OperatorVariant) -> WindowInput:
        match node.window.retention:
            case WindowRetention.COUNTS_ROWS:
                return CountedInput(node, self.boundary, self.host)
            case WindowRetention.FOLLOWS_SESSIONS:
                leaf = SessionInput(node, self.boundary, self.host)
                leaf.apart = variant.apart
                return leaf
            case WindowRetention.SLIDES | WindowRetention.ACCUMULATES | WindowRetention.LOOKS_BACK:
                return TimedInput(node, self.boundary, self.host)
            case WindowRetention.REFERENCE_ONLY:
                raise node.window.unsupported_retention()

    def _add_operators(self, node: Node, variant: OperatorVariant) -> None:
        """Add an operator for a node and for all nodes below it."""
        if isinstance(node, Windowed) or (node, variant) in self.operators or (node, variant) in self.shared_by_key:
            return
        for child in node.children:
            self._add_operators(child, variant)
        self.operators[node, variant] = new_operator(node, self.host, self.purge)

    @property
    def all_inputs(self) -> Iterator[WindowInput]:
        yield from self.window_inputs.values()
        for family in self.shared_operators:
            yield from family.inputs

    def read(self, stream: str, arrivals: Arrivals, alias: str | None = None) -> Iterator[EnteringItems]:
        """The items that all windows are about to take in; an expression that fails raises its error here."""
        try:
            for leaf in self.all_inputs:
                yield from leaf.read(stream, arrivals, alias, partial(self._readers, leaf))
        except PanewiseError:
            raise QueryProblem(
                find_failures(self.plans, lambda name: self._read_alone(name, stream, arrivals, alias))
            ) from None

    def _readers(self, leaf: WindowInput, window: Window) -> list[str]:
        """The queries that read an input through a window; shared operators read one input through several windows."""
        return [
            name
            for name, plan in self.plans.items()
            if any(
                node == leaf.node or (isinstance(leaf, SharedInput) and node.window == window)
                for _, query in plan.levels
                for node in query.root.walk()
                if isinstance(node, Windowed)
            )
        ]

    def _read_alone(self, name: str, stream: str, arrivals: Arrivals, alias: str | None) -> None:
        """Read what one query alone would read."""
        alone = OperatorGraph(self.home, self.boundary, self.host, self.purge)
        alone.plans[name] = self.plans[name]
        alone.build()
        for leaf in alone.all_inputs:
            list(leaf.read(stream, arrivals, alias, lambda _: ()))

    def note_newest(self, alias: str, newest: int) -> None:
        for leaf in self.all_inputs:
            if any(inlet.stream and inlet.source.alias == alias for inlet in leaf.inlets):
                leaf.note_newest(newest)

    def anchor(self, stream: str, first: int) -> None:
        for leaf in self.all_inputs:
            if not leaf.anchored and any(inlet.stream == stream for inlet in leaf.inlets):
                leaf.anchor(first)

    def portion_limit(self, limit: int) -> int:
        """The instant, up to `limit`, by which a portion of the items that wait is visible."""
        return min((leaf.portion_limit(self.advanced_until, limit) for leaf in self.all_inputs), default=limit)

    def advance(self, limit: int, instants: pa.DataType, finishing: bool = False) -> dict[str, pa.Table]:
        """The results of all queries up to an instant; if `finishing`, no more rows will come.

        Queries that fail are broken from then on; the others continue.
        """
        if not finishing and has_nothing_to_report(self, limit):
            return {}
        self.finishing = finishing
        self._deltas, self._inner_tables, self._failed = {}, {}, {}
        found = {}
        for name, active in active_emitters(self, limit).items():
            try:
                if name not in self.broken:
                    emitted = [(self._emit(emitter, limit), level) for level, emitter in active]
                    if any(len(rows.at) for rows, _ in emitted):
                        types = self._added_types(name, instants)
                        found[name] = pa.concat_tables([emitted_table(*each, types) for each in emitted])
            except PanewiseError as problem:
                self.broken[name] = problem
        self.advanced_until = max(self.advanced_until, limit)
        return found

    def _added_types(self, name: str, instants: pa.DataType) -> Mapping[str, pa.DataType]:
        """The added columns of the results of a query."""
        if name not in self._types:
            self._types[name] = added_types(self.plans[name].query, instants)
        return self._types[name]

    def _emit(self, emitter: Emitter, limit: int) -> EmittedRows:
        given = self._delta(emitter.query.root, emitter.variant, limit)
        return emitter.advance(self._emit_limit(emitter, limit), given, self.finishing)

    def _emit_limit(self, emitter: Emitter, limit: int) -> int:
        """The limit of an emitter; if sessions are numbered, the number of the last one."""
        (first, *_) = emitter.views
        return first.number - 1 if emitter.variant.apart and isinstance(first, SessionInput) else limit

    def _delta(self, node: Node, variant: OperatorVariant, limit: int) -> RelationDelta:
        """The delta of an operator, computed once for all operators that read it; an error is kept as well."""
        key = (node, variant)
        if key in self._failed:
            raise self._failed[key]
        if key not in self._deltas:
            family = self.shared_by_key.get(key)
            try:
                self._deltas |= self._shared_deltas(family, limit) if family else {key: self._own_delta(key, limit)}
            except PanewiseError as problem:
                self._failed |= dict.fromkeys(family.members if family else [key], problem)
                raise
        return self._deltas[key]

    def _own_delta(self, key: OperatorKey, limit: int) -> RelationDelta:
        node, variant = key
        if isinstance(node, Windowed):
            return self._input_delta(self.window_inputs[key], limit)
        inputs = [self._delta(child, variant, limit) for child in node.children]
        if isinstance(node, Join | Group):
            inputs = [
                without_expiry(turn) if can_outlive_expiry(child) else turn
                for child, turn in _children_with_inputs(node, inputs)
            ]
        return self.operators[key].advance(self._session_limit(node) if variant.apart else limit, inputs)

    def _shared_deltas(self, family: SharedJoin | SharedDistinct, limit: int) -> dict[OperatorKey, RelationDelta]:
        given = [self._input_delta(leaf, limit) for leaf in family.inputs]
        return family.advance(limit, given)

    def _input_delta(self, leaf: WindowInput, limit: int) -> RelationDelta:
        self._enter_inner_results(leaf, limit)
        return leaf.advance(limit)

    def _session_limit(self, node: Node) -> int:
        (below,) = [n for n in node.walk() if isinstance(n, Windowed)]
        leaf = self.window_inputs[below, OperatorVariant(apart=True)]
        assert isinstance(leaf, SessionInput)
        return leaf.number - 1

    def _enter_inner_results(self, leaf: WindowInput, limit: int) -> None:
        """Put the results of the queries below into a window."""
        for inlet in leaf.inlets:
            if isinstance(inlet.source, Derived):
                query = inlet.source.query
                if query not in self._inner_tables:
                    self._inner_tables[query] = self._inner_results(query, limit)
                results = self._inner_tables[query]
                times = np.array(results.column(results.num_columns - 1).to_numpy(), np.int64)
                names = [column.name for column in inlet.source.columns]
                rows = results.select(range(len(names))).rename_columns(names)
                order = np.arange(self._order, self._order + len(times), dtype=np.int64)
                self._order += len(times)
                leaf.enter_results(inlet, WaitingItems(rows, times, order, times + self.boundary.shift))

    def _inner_results(self, query: Query, limit: int) -> pa.Table:
        tables = []
        for emitter in self.inner[query]:
            emitted = self._emit(emitter, limit)
            at = emitted.ends if emitter.variant.apart else emitted.at
            tables.append(emitted.table.append_column("#at", pa.array(at)))
        whole = pa.concat_tables(tables)
        order = np.argsort(whole.column("#at").to_numpy(), kind="stable")
        return whole.take(pa.array(order)).combine_chunks()

    @property
    def _stateful(self) -> list[WindowInput | Operator | Emitter | SharedJoin | SharedDistinct]:
        """All objects with state, in an order that does not depend on the order of registration."""
        emitters = [emitter for levels in self.emitters.values() for _, emitter in levels]
        inner = [emitter for several in self.inner.values() for emitter in several]
        return [*self.all_inputs, *self.operators.values(), *self.shared_operators, *emitters, *inner]

    def state(self) -> Tree:
        return {
            "kin": [[list(astuple(place)) for place in places] for places in self.shared_places],
            "joined": self.joined_while_running,
            "broken": {name: [problem.message, problem.fix] for name, problem in self.broken.items()},
            "parts": [each.state() for each in self._stateful],
            "passed": self.advanced_until,
            "order": self._order,
        }

    def restore(self, state: Tree) -> None:
        self.build([tuple(OperatorPlace(*place) for place in places) for places in state["kin"]])
        for each, saved in zip(self._stateful, state["parts"], strict=True):
            each.restore(saved)
        self.advanced_until, self._order, self.joined_while_running = state["passed"], state["order"], state["joined"]
        self.broken = {name: PanewiseError(message, fix=fix) for name, (message, fix) in state["broken"].items()}


def _children_with_inputs(node: Node, inputs: Sequence[RelationDelta]) -> Iterator[tuple[Node, RelationDelta]]:
    return zip(node.children, inputs, strict=True)
