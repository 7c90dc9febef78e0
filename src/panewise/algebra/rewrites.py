"""The syntactic equivalences of "Consistent results" section 5, as named rewrites with their conditions.

A rewrite takes a tree whose root it fits and returns an equal tree, or None where it does not apply. Physical
windows commute with projection only: selecting or merging first changes which tuples are counted.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from panewise.algebra.tree import Distinct, Join, Node, Project, Select, Union, Windowed
from panewise.core.scalar import Scalar, column
from panewise.window import Landmark, Predicate, Sliding, Window


@dataclass(frozen=True)
class Rewrite:
    """One equivalence: its name, when it holds, and the step itself."""

    name: str
    condition: str
    apply: Callable[[Node], Node | None]


def projection_under_window(node: Node) -> Node | None:
    match node:
        case Project(Windowed(child, window), items) if _window_columns(window) <= _copied_names(items):
            return Windowed(Project(child, items), window)
    return None


def selection_under_window(node: Node) -> Node | None:
    match node:
        case Select(Windowed(child, window), predicate) if window.logical:
            return Windowed(Select(child, predicate), window)
    return None


def union_under_window(node: Node) -> Node | None:
    match node:
        case Union(Windowed(left, window), Windowed(right, other)) if window == other and window.logical:
            return Windowed(Union(left, right), window)
    return None


def distinct_under_window(node: Node) -> Node | None:
    match node:
        case Distinct(Windowed(child, window)) if reaches_now(window):
            return Windowed(Distinct(child), window)
    return None


def join_commutes(node: Node) -> Node | None:
    match node:
        case Join(left, right, on, residual):
            turned = Join(right, left, tuple((b, a) for a, b in on), residual)
            return Project(turned, _copies(node))
    return None


def join_associates(node: Node) -> Node | None:
    match node:
        case Join(Join(a, b, inner, None), c, outer, None) if {left for left, _ in outer} <= _names(b):
            return Join(a, Join(b, c, outer), inner)
    return None


def selection_into_join(node: Node) -> Node | None:
    match node:
        case Select(Join(Windowed(left, window) as side, right) as join, predicate):
            if window.logical and set(predicate.inputs) <= _names(side):
                return replace(join, left=Windowed(Select(left, predicate), window))
            if isinstance(right, Windowed) and right.window.logical and set(predicate.inputs) <= _names(right):
                return replace(join, right=Windowed(Select(right.child, predicate), right.window))
    return None


def projection_into_join(node: Node) -> Node | None:
    match node:
        case Project(Join(left, right, on, residual) as join, items):
            needed = {name for _, scalar in items for name in scalar.inputs} | {n for pair in on for n in pair}
            needed |= set(residual.inputs) if residual else set()
            return Project(replace(join, left=_keep_columns(left, needed), right=_keep_columns(right, needed)), items)
    return None


def reaches_now(window: Window) -> bool:
    """Whether the newest item is always in scope: then the most recent of equal rows is never out of sight."""
    match window:
        case Sliding(slide=None, lag=0) | Landmark(upper=None, slide=None):
            return True
    return False


REWRITES: tuple[Rewrite, ...] = (
    Rewrite("projection under window", "the projection keeps the columns the window looks at", projection_under_window),
    Rewrite("selection under window", "the window is logical", selection_under_window),
    Rewrite("union under window", "both windows are the same logical one", union_under_window),
    Rewrite("distinct under window", "the window is logical and reaches the present", distinct_under_window),
    Rewrite("join commutes", "always", join_commutes),
    Rewrite("join associates", "the outer keys belong to the inner right side", join_associates),
    Rewrite("selection into join", "the predicate needs one side, whose window is logical", selection_into_join),
    Rewrite("projection into join", "join columns are kept below", projection_into_join),
)


def _window_columns(window: Window) -> set[str]:
    """Columns without which a window cannot tell its items: partition columns, and those of a predicate window."""
    return {*window.partition_by, *(window.condition.inputs if isinstance(window, Predicate) else ())}


def _names(node: Node) -> set[str]:
    return {c.name for c in node.columns}


def _copies(node: Node) -> tuple[tuple[str, Scalar], ...]:
    return tuple((c.name, column(c.name, c.type)) for c in node.columns)


def _copied_names(items: tuple[tuple[str, Scalar], ...]) -> set[str]:
    return {name for name, scalar in items if scalar.column == name}


def _keep_columns(node: Node, needed: set[str]) -> Node:
    return Project(node, tuple(item for item in _copies(node) if item[0] in needed))
