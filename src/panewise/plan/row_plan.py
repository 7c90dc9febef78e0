"""The shape of query the engine answers from rows with lifetimes: any tree of relational operators over windows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import takewhile

from panewise.algebra import (
    Derived,
    Distinct,
    Except,
    Group,
    Join,
    Node,
    Project,
    Query,
    Select,
    Source,
    Union,
    Windowed,
)
from panewise.algebra.rewrites import SunkSelect
from panewise.core.scalar import column
from panewise.plan.pane_plan import RowStep, retention_refusal
from panewise.plan.refusal import Refusal
from panewise.plan.rules import merge_unions, prune_columns, route_shards, sink_selections
from panewise.plan.rules.rule import OnRewrite, RewriteRule, RulesOff


@dataclass(frozen=True)
class StreamInput:
    """One stream below a window, and the row-wise steps its items pass before they enter."""

    source: Source | Derived
    steps: tuple[RowStep, ...]

    @property
    def stream_steps(self) -> tuple[RowStep, ...]:
        """The steps that are part of the stream, before selections that sank to it from above the window."""
        return tuple(takewhile(lambda step: not isinstance(step, SunkSelect), self.steps))

    @property
    def stream(self) -> str | None:
        """The declared stream; None where another query makes the items."""
        return self.source.stream if isinstance(self.source, Source) else None


@dataclass(frozen=True, eq=False)
class RowPlan:
    """A query with each level of its multi-granular windows apart, and only the columns it needs."""

    query: Query
    levels: tuple[tuple[int | None, Query], ...]
    #: The names of the equivalences by which it was rewritten.
    rewrites: tuple[str, ...]
    rules_off: RulesOff = frozenset()

    @cached_property
    def streams(self) -> frozenset[str]:
        return frozenset(self.query.root.streams)

    @cached_property
    def routes(self) -> dict[Source, str | None]:
        """The column by which the rows of each stream are spread over shards."""
        found = route_shards.routes(self.levels[0][1])
        return dict.fromkeys(found) if route_shards.RULE in self.rules_off else found

    def levels_of(self, query: Query) -> tuple[tuple[int | None, Query], ...]:
        """The levels of a query below this one, whose results are a stream."""
        return split_levels(query, self.rules_off)

    @property
    def shard_key(self) -> ShardKey:
        """The shard key: queries with equal keys get the same rows."""
        return frozenset((s.stream, s.alias, column) for s, column in self.routes.items())

    @cached_property
    def read_columns(self) -> dict[Source, tuple[str, ...]]:
        """The columns of each stream that the query looks at."""
        found: dict[Source, dict[str, None]] = {}
        for _, query in self.levels:
            for node in _all_nodes(query):
                for inlet in stream_inputs(node) if isinstance(node, Windowed) else ():
                    if isinstance(inlet.source, Source):
                        found.setdefault(inlet.source, {}).update(
                            dict.fromkeys(columns_read(inlet.source, inlet.steps))
                        )
        return {source: tuple(names) for source, names in found.items()}


#: Streams, the aliases under which they are read, and the columns by which their rows are spread.
ShardKey = frozenset[tuple[str, str, str | None]]


def columns_read(source: Source, steps: tuple[RowStep, ...], above: Sequence[str] | None = None) -> list[str]:
    """The columns of a stream that steps over it look at: all, unless a projection or whoever is `above` says which."""
    prefix = f"{source.alias}."
    wanted: list[str] = [source.time]
    for step in steps:
        match step:
            case Select(predicate=predicate):
                wanted += predicate.inputs
            case Project(items=items):
                wanted += [name for _, scalar in items for name in scalar.inputs]
                return [name.removeprefix(prefix) for name in wanted]
    if above is not None:
        return list(dict.fromkeys(name.removeprefix(prefix) for name in [*wanted, *above]))
    return [column.name.removeprefix(prefix) for column in source.columns]


def plan_rows(query: Query, rules_off: RulesOff = frozenset()) -> RowPlan | Refusal:
    """The query as the engine answers it, or the reason why it cannot."""
    if query.revise is not None:
        return Refusal("LATE REVISE revises grouped aggregates of one window only")
    if query.empty:
        return Refusal("EMIT EMPTY reports grouped aggregates of one window only")
    for each in [query, *(node.query for node in _all_nodes(query) if isinstance(node, Derived))]:
        if len({w.window for w in each.windows if w.window.levels}) > 1:
            return Refusal("two different multi-granular windows meet in one query")
    for node in _all_nodes(query):
        if reason := _refusal(node):
            return Refusal(reason)
    fired: dict[str, None] = {}
    found = split_levels(query, rules_off, fired.setdefault)
    return RowPlan(query, found, tuple(fired), rules_off)


#: In the order in which they are applied: merged windows need selections below them, and pruned ones need both.
REWRITE_RULES: tuple[RewriteRule, ...] = (sink_selections.RULE, merge_unions.RULE, prune_columns.RULE)


def split_levels(
    query: Query, rules_off: RulesOff, on_rewrite: OnRewrite = lambda name: None
) -> tuple[tuple[int | None, Query], ...]:
    """The query once for each level of its multi-granular window, or once; rewritten by rules."""
    depth = max((len(w.window.levels) for w in query.windows), default=0)
    numbers: list[int | None] = [*range(depth)] or [None]
    return tuple((number, _at_level(query, number, rules_off, on_rewrite)) for number in numbers)


def _all_nodes(query: Query) -> list[Node]:
    nodes = list(query.root.walk())
    return nodes + [n for node in nodes if isinstance(node, Derived) for n in _all_nodes(node.query)]


def _refusal(node: Node) -> str | None:
    match node:
        case Windowed(window=window) if reason := retention_refusal(window):
            return reason
        case Windowed(window=window) if window.items_return:
            return "items may come back to a window whose extent changes"
        case Windowed(child) if any(isinstance(below, Distinct) for below in child.walk()):
            return "DISTINCT stands below a window"
        case Group(child, calls=calls) if ordered := [c.aggregate for c in calls if c.aggregate.laws.ordered]:
            if any(isinstance(below, Join | Union | Except | Distinct) for below in child.walk()):
                return f"{ordered[0].names[0]} needs rows in the order of one stream"
    return None


def _at_level(query: Query, number: int | None, rules_off: RulesOff, on_rewrite: OnRewrite) -> Query:
    level = replace(query, root=_pick_level(query.root, number))
    for rule in REWRITE_RULES:
        if rule not in rules_off:
            level = rule.rewrite(level, on_rewrite)
    return level


def _pick_level(node: Node, number: int | None) -> Node:
    node = node.with_children(*(_pick_level(child, number) for child in node.children))
    if isinstance(node, Windowed) and node.window.levels:
        assert number is not None
        return replace(node, window=node.window.levels[number])
    return node


def stream_inputs(node: Windowed) -> tuple[StreamInput, ...]:
    """The streams below a window."""
    child = Select(node.child, node.window.condition) if node.window.condition else node.child
    return tuple(_node_inputs(child))


def _node_inputs(node: Node) -> list[StreamInput]:
    match node:
        case Source() | Derived():
            return [StreamInput(node, ())]
        case Union(left, right):
            return _node_inputs(left) + [_rename_columns(inlet, right, left) for inlet in _node_inputs(right)]
        case Select(child) | Project(child):
            return [StreamInput(inlet.source, (*inlet.steps, node)) for inlet in _node_inputs(child)]
    raise TypeError(f"a window cannot look at {type(node).__name__}")


def _rename_columns(inlet: StreamInput, right: Node, left: Node) -> StreamInput:
    """The columns of a union have the names of its left side."""
    items = tuple((a.name, column(b.name, b.type)) for a, b in zip(left.columns, right.columns, strict=True))
    return StreamInput(inlet.source, (*inlet.steps, Project(right, items)))
