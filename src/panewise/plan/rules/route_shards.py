"""By which columns the streams of a relational query can be spread over shards, so that each answers its part alone.

A column will do where every operator that compares rows compares it: rows that may meet have the same value of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from panewise.algebra import (
    Derived,
    Distinct,
    Emit,
    Except,
    Group,
    Join,
    Node,
    Project,
    Query,
    Select,
    Source,
    Unary,
    Union,
    Windowed,
)
from panewise.plan.rules.rule import Rule
from panewise.window import WindowRetention

RULE = Rule("route_shards", "rows that never meet are spread over shards")

#: More ways than this are not looked at.
MAX_ROUTES = 64


@dataclass(frozen=True)
class ShardRoute:
    """A column for every stream, and the names under which a node's result still has its value."""

    columns: Mapping[Source, str]
    names: frozenset[str]

    def with_names(self, names: Mapping[str, str]) -> ShardRoute:
        """The same under other names: old to new."""
        return ShardRoute(self.columns, frozenset(new for new, old in names.items() if old in self.names))

    def merge(self, other: ShardRoute, names: frozenset[str]) -> ShardRoute | None:
        """Both routes together; None if they distribute one stream by two columns."""
        if any(self.columns[s] != c for s, c in other.columns.items() if s in self.columns):
            return None
        return ShardRoute({**self.columns, **other.columns}, names)


def routes(query: Query) -> dict[Source, str | None]:
    """The column that decides the shard of each stream's rows; None for all where they must meet in one shard."""
    best = next(iter(_query_routes(query)), None)
    return {source: best.columns[source] if best else None for source in _sources(query.root)}


def _query_routes(query: Query) -> list[ShardRoute]:
    """The possible routes; none if a change in one shard makes the query report rows of another shard."""
    sessions = any(w.window.retention is WindowRetention.FOLLOWS_SESSIONS for w in query.windows)
    if sessions and len(query.windows) > 1:
        return []
    if query.emit is Emit.RSTREAM:
        return _node_routes(query.root) if query.periodic and not _needs_all_rows(query) else []
    # Equal rows that come and go at one instant are no change, so they must meet.
    return [way for way in _node_routes(query.root) if way.names]


def _needs_all_rows(query: Query) -> bool:
    """Whether the last instant of the query depends on all items, so that one shard must have them all."""
    endless = any(w.window.lasting for w in query.windows)
    mixed = any(isinstance(node, Union | Except) for node in query.root.walk())
    below = [node for w in query.windows for node in w.child.walk()]
    narrowed = any(isinstance(node, Select | Derived) for node in below)
    partial = any(w.window.condition is not None or w.window.items_wait for w in query.windows)
    return (endless or mixed) and (narrowed or partial)


def _sources(node: Node) -> list[Source]:
    found: dict[Source, None] = {}
    for below in node.walk():
        if isinstance(below, Source):
            found[below] = None
        elif isinstance(below, Derived):
            found |= dict.fromkeys(_sources(below.query.root))
    return list(found)


def _node_routes(node: Node) -> list[ShardRoute]:
    return list(_all_routes(node))[:MAX_ROUTES]


def _all_routes(node: Node) -> Iterator[ShardRoute]:
    match node:
        case Source(alias=alias):
            for column in node.columns:
                yield ShardRoute({node: column.name.removeprefix(f"{alias}.")}, frozenset([column.name]))
        case Derived(query=query, alias=alias):
            for way in _query_routes(query):
                yield way.with_names({f"{alias}.{c.name}": c.name for c in query.root.columns})
        case Windowed() | Select() | Project() | Distinct() | Group():
            yield from filter(None, (_route_through(node, way) for way in _node_routes(node.child)))
        case Join():
            yield from _join_routes(node)
        case Union(left, right):
            yield from _set_routes(left, right, compared=False)
        case Except(left, right):
            yield from _set_routes(left, right, compared=True)


def _route_through(node: Unary, way: ShardRoute) -> ShardRoute | None:
    """The route above an operator with one input; None if it compares rows that may be in other shards."""
    match node:
        case Windowed(window=window):
            alone = window.logical and not window.levels
            return way if alone or way.names & set(window.partition_by) else None
        case Project(items=items):
            return way.with_names({name: scalar.column for name, scalar in items if scalar.column is not None})
        case Group(keys=keys):
            return ShardRoute(way.columns, way.names & set(keys)) if way.names & set(keys) else None
        case Distinct():
            return way if way.names else None
    return way


def _join_routes(node: Join) -> Iterator[ShardRoute]:
    for left in _node_routes(node.left):
        for right in _node_routes(node.right):
            agreed = [pair for pair in node.on if pair[0] in left.names and pair[1] in right.names]
            both = left.merge(right, left.names | right.names) if agreed else None
            if both is not None:
                yield both


def _set_routes(left: Node, right: Node, compared: bool) -> Iterator[ShardRoute]:
    """Rows of both sides, column by column."""
    places = {b.name: a.name for a, b in zip(left.columns, right.columns, strict=True)}
    for one in _node_routes(left):
        for other in _node_routes(right):
            shared = one.names & {places[name] for name in other.names}
            both = one.merge(other, shared) if shared or not compared else None
            if both is not None:
                yield both
