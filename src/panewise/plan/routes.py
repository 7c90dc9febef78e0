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
from panewise.window import Landmark, LogicalWindow, Predicate, Rows, Session

#: More ways than this are not looked at.
MANY = 64


@dataclass(frozen=True)
class Way:
    """A column for every stream, and the names under which a node's result still has its value."""

    columns: Mapping[Source, str]
    names: frozenset[str]

    def seen_as(self, names: Mapping[str, str]) -> Way:
        """The same under other names: old to new."""
        return Way(self.columns, frozenset(new for new, old in names.items() if old in self.names))

    def with_(self, other: Way, names: frozenset[str]) -> Way | None:
        """Both together; None where they want one stream spread by two columns."""
        if any(self.columns[s] != c for s, c in other.columns.items() if s in self.columns):
            return None
        return Way({**self.columns, **other.columns}, names)


def routes(query: Query) -> dict[Source, str | None]:
    """The column that decides the shard of each stream's rows; None for all where they must meet in one shard."""
    best = next(iter(_of_query(query)), None)
    return {source: best.columns[source] if best else None for source in _sources(query.root)}


def _of_query(query: Query) -> list[Way]:
    """None where a change anywhere makes the query speak of everything, or notice what happened elsewhere."""
    sessions = any(isinstance(w.window, Session) for w in query.windows)
    if sessions and len(query.windows) > 1:
        return []
    if query.emit is Emit.RSTREAM:
        return _ways(query.root) if query.periodic and not _lasts(query) else []
    # Equal rows that come and go at one instant are no change, so they must meet.
    return [way for way in _ways(query.root) if way.names]


def _lasts(query: Query) -> bool:
    """Whether only whoever sees all items knows when nothing changes any more, and so when to stop speaking."""
    endless = any(isinstance(w.window, Landmark | Predicate | Rows) for w in query.windows)
    mixed = any(isinstance(node, Union | Except) for node in query.root.walk())
    below = [node for w in query.windows for node in w.child.walk()]
    narrowed = any(isinstance(node, Select | Derived) for node in below)
    return (endless or mixed) and (narrowed or any(isinstance(w.window, Predicate) for w in query.windows))


def _sources(node: Node) -> list[Source]:
    found: dict[Source, None] = {}
    for below in node.walk():
        if isinstance(below, Source):
            found[below] = None
        elif isinstance(below, Derived):
            found |= dict.fromkeys(_sources(below.query.root))
    return list(found)


def _ways(node: Node) -> list[Way]:
    return list(_every(node))[:MANY]


def _every(node: Node) -> Iterator[Way]:
    match node:
        case Source(alias=alias):
            for column in node.columns:
                yield Way({node: column.name.removeprefix(f"{alias}.")}, frozenset([column.name]))
        case Derived(query=query, alias=alias):
            for way in _of_query(query):
                yield way.seen_as({f"{alias}.{c.name}": c.name for c in query.root.columns})
        case Windowed() | Select() | Project() | Distinct() | Group():
            yield from filter(None, (_through(node, way) for way in _ways(node.child)))
        case Join():
            yield from _joined(node)
        case Union(left, right):
            yield from _beside(left, right, compared=False)
        case Except(left, right):
            yield from _beside(left, right, compared=True)


def _through(node: Unary, way: Way) -> Way | None:
    """What becomes of a way in an operator over one input; None where it compares rows that may be elsewhere."""
    match node:
        case Windowed(window=window):
            return way if isinstance(window, LogicalWindow) or way.names & set(window.partition_by) else None
        case Project(items=items):
            return way.seen_as({name: scalar.column for name, scalar in items if scalar.column is not None})
        case Group(keys=keys):
            return Way(way.columns, way.names & set(keys)) if way.names & set(keys) else None
        case Distinct():
            return way if way.names else None
    return way


def _joined(node: Join) -> Iterator[Way]:
    for left in _ways(node.left):
        for right in _ways(node.right):
            agreed = [pair for pair in node.on if pair[0] in left.names and pair[1] in right.names]
            both = left.with_(right, left.names | right.names) if agreed else None
            if both is not None:
                yield both


def _beside(left: Node, right: Node, compared: bool) -> Iterator[Way]:
    """Rows of both sides, column by column."""
    places = {b.name: a.name for a, b in zip(left.columns, right.columns, strict=True)}
    for one in _ways(left):
        for other in _ways(right):
            shared = one.names & {places[name] for name in other.names}
            both = one.with_(other, shared) if shared or not compared else None
            if both is not None:
                yield both
