"""Selections are moved down to where they remove the most rows: into one side of a join, and below logical windows."""

from __future__ import annotations

from dataclasses import replace

from panewise.algebra import Emit, Except, Node, Query, Union, Windowed
from panewise.algebra.rewrites import SELECTION_INTO_JOIN, SELECTION_UNDER_WINDOW, SELECTIONS_COMMUTE
from panewise.plan.rules.rule import OnRewrite, RewriteRule


def sink_selections(query: Query, on_rewrite: OnRewrite) -> Query:
    """The query with every selection as far down as it goes."""
    return replace(query, root=_sink_all(query.root, on_rewrite)) if _may_sink(query) else query


def _may_sink(query: Query) -> bool:
    """Whether rows that a selection removes do not make the query report more often.

    Results that are repeated at instants are repeated at the instants of all windows that have items. A row of the
    result is there because its own items are, and so are the instants of their windows. Where UNION or EXCEPT combine
    rows of windows with different instants, a row of one window is also repeated at the instants of the other.
    """
    if query.emit is not Emit.RSTREAM:
        return True
    windows = [node.window for node in query.windows]
    if not query.periodic or any(window.lasting for window in windows):
        return False
    combined = any(isinstance(node, Union | Except) for node in query.root.walk())
    fixed = all(window.grid and not window.has_time_of_day for window in windows)
    return not combined or (fixed and len({window.grid for window in windows}) == 1)


def _sink_all(node: Node, on_rewrite: OnRewrite) -> Node:
    if isinstance(node, Windowed):
        return node
    node = node.with_children(*(_sink_all(child, on_rewrite) for child in node.children))
    return _sink(node, on_rewrite) or node


def _sink(node: Node, on_rewrite: OnRewrite) -> Node | None:
    """The tree with the selection at its root further down; None where it stays."""
    if (joined := SELECTION_INTO_JOIN.apply(node)) is not None:
        on_rewrite(SELECTION_INTO_JOIN.name)
        return joined.with_children(*(_sink(child, on_rewrite) or child for child in joined.children))
    if (windowed := SELECTION_UNDER_WINDOW.apply(node)) is not None:
        on_rewrite(SELECTION_UNDER_WINDOW.name)
        return windowed
    if (swapped := SELECTIONS_COMMUTE.apply(node)) is not None:
        (below,) = swapped.children
        lower = _sink(below, on_rewrite)
        return None if lower is None else swapped.with_children(lower)
    return None


RULE = RewriteRule("sink_selections", "rows that a selection removes are not kept in windows", sink_selections)
