"""Rewrites that the planner applies, and which of them fired.

Selections are moved down to where they remove the most rows: into the side of a join whose columns they use, and below
windows that time alone decides. Columns that no operator reads are left out below windows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

from panewise.algebra import Emit, Except, Join, Node, Query, Select, Union, Windowed
from panewise.window import Landmark, Predicate, Rows

#: Called with the name of each rewrite that is applied.
OnRewrite = Callable[[str], object]


@dataclass(frozen=True)
class SunkSelect(Select):
    """A selection that stood above the window it is below now: late items are counted before it."""


def rewrite_query(query: Query, fired: OnRewrite) -> Query:
    """An equal query that keeps less."""
    return replace(query, root=_rewrite(query.root, fired)) if _may_sink(query) else query


def _may_sink(query: Query) -> bool:
    """Whether items that a selection removes do not make the query report more often."""
    if query.emit is not Emit.RSTREAM:
        return True
    lasting = any(isinstance(w.window, Landmark | Predicate | Rows) for w in query.windows)
    return query.periodic and not lasting and not any(isinstance(n, Union | Except) for n in query.root.walk())


def _rewrite(node: Node, fired: OnRewrite) -> Node:
    if isinstance(node, Windowed):
        return node
    node = node.with_children(*(_rewrite(child, fired) for child in node.children))
    return _sink(node, fired) or node if isinstance(node, Select) else node


def _sink(node: Select, fired: OnRewrite) -> Node | None:
    """The selection further down; None where it stays."""
    below = partial(_sink_into, node, fired)
    match node.child:
        case Select(child, _) as other:
            lower = _sink(replace(node, child=child), fired)
            return lower and replace(other, child=lower)
        case Join(left, right) as join:
            if _reads_only(node, left):
                fired("selection into join")
                return replace(join, left=below(left))
            if _reads_only(node, right):
                fired("selection into join")
                return replace(join, right=below(right))
        case Windowed(child, window) as windowed if window.logical:
            fired("selection under window")
            return replace(windowed, child=SunkSelect(child, node.predicate))
    return None


def _sink_into(node: Select, fired: OnRewrite, child: Node) -> Node:
    """The selection over another input, as far down as it goes."""
    select = replace(node, child=child)
    return _sink(select, fired) or select


def _reads_only(node: Select, side: Node) -> bool:
    return set(node.predicate.inputs) <= {column.name for column in side.columns}
