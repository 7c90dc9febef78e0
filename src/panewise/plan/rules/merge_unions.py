"""Two equal windows below UNION ALL become one window over both streams, which keeps its rows once."""

from __future__ import annotations

from dataclasses import replace

from panewise.algebra import Node, Project, Query, Union, Windowed
from panewise.algebra.rewrites import PROJECTION_UNDER_WINDOW, UNION_UNDER_WINDOW
from panewise.plan.rules.rule import OnRewrite, RewriteRule


def merge_unions(query: Query, on_rewrite: OnRewrite) -> Query:
    """The query with one window for each union of equal logical windows."""
    return replace(query, root=_merge(query.root, on_rewrite))


def _merge(node: Node, on_rewrite: OnRewrite) -> Node:
    if isinstance(node, Windowed):
        return node
    node = node.with_children(*(_merge(child, on_rewrite) for child in node.children))
    if not isinstance(node, Union):
        return node
    merged = UNION_UNDER_WINDOW.apply(node.with_children(*map(_with_window_on_top, node.children)))
    if merged is None:
        return node
    on_rewrite(UNION_UNDER_WINDOW.name)
    return merged


def _with_window_on_top(node: Node) -> Node:
    """The tree with the projections above a window below it."""
    if not isinstance(node, Project):
        return node
    node = replace(node, child=_with_window_on_top(node.child))
    return PROJECTION_UNDER_WINDOW.apply(node) or node


RULE = RewriteRule("merge_unions", "equal windows below a union keep their rows in one place", merge_unions)
