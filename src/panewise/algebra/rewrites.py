"""The syntactic equivalences of "Consistent results" section 5, as named rewrites with their conditions.

A rewrite takes a tree whose root it fits and returns an equal tree, or None where it does not apply. Physical
windows commute with projection only: selecting or merging first changes which tuples are counted. The planner applies
these functions and no others (`plan/rules/sink_selections.py`, `merge_unions.py`, `prune_columns.py`); it has no use
for another order of joins, and answers no DISTINCT below a window.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from panewise.algebra.tree import Distinct, Group, Join, Node, Project, Select, Union, Windowed
from panewise.core.scalar import Scalar, column


@dataclass(frozen=True)
class Rewrite:
    """One equivalence: its name, when it holds, and the step itself."""

    name: str
    condition: str
    apply: Callable[[Node], Node | None]


@dataclass(frozen=True)
class SunkSelect(Select):
    """A selection that was moved below a window: late items are counted before it is applied."""


def projection_under_window(node: Node) -> Node | None:
    match node:
        case Project(Windowed(child, window), items) if window.needed_columns <= _copied_names(items):
            return Windowed(Project(child, items), window)
    return None


def selection_under_window(node: Node) -> Node | None:
    match node:
        case Select(Windowed(child, window), predicate) if window.logical:
            return Windowed(SunkSelect(child, predicate), window)
    return None


def union_under_window(node: Node) -> Node | None:
    match node:
        case Union(Windowed(left, window), Windowed(right, other)) if window == other and window.logical:
            # A time of day is on the day of the first item, which may differ between the two streams.
            if not window.has_time_of_day:
                return Windowed(Union(left, right), window)
    return None


def distinct_under_window(node: Node) -> Node | None:
    match node:
        case Distinct(Windowed(child, window)) if window.reaches_now:
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


def selections_commute(node: Node) -> Node | None:
    match node:
        case Select(Select(child, below), above):
            return Select(Select(child, above), below)
    return None


def selection_into_join(node: Node) -> Node | None:
    match node:
        case Select(Join(left, right) as join, predicate):
            if set(predicate.inputs) <= _names(left):
                return replace(join, left=Select(left, predicate))
            if set(predicate.inputs) <= _names(right):
                return replace(join, right=Select(right, predicate))
    return None


def projection_into_join(node: Node) -> Node | None:
    match node:
        case Project(Join(left, right, on, residual) as join, items):
            needed = {name for _, scalar in items for name in scalar.inputs} | {n for pair in on for n in pair}
            needed |= set(residual.inputs) if residual else set()
            return Project(replace(join, left=_keep_columns(left, needed), right=_keep_columns(right, needed)), items)
    return None


def without_unread_columns(root: Node) -> Node | None:
    narrow = _prune(root, _names(root))
    return None if narrow == root else narrow


def _prune(node: Node, needed: set[str]) -> Node:
    """The tree, whose result may lack all columns but the needed ones."""
    match node:
        case Windowed(child, window):
            wanted = [c for c in node.columns if c.name in needed | window.needed_columns]
            if len(wanted) == len(node.columns) or not wanted:
                return node
            return replace(node, child=Project(child, tuple((c.name, column(c.name, c.type)) for c in wanted)))
        case Select(child, predicate):
            return replace(node, child=_prune(child, needed | set(predicate.inputs)))
        case Project(child, items):
            kept = tuple(item for item in items if item[0] in needed) or items[:1]
            return Project(_prune(child, {name for _, scalar in kept for name in scalar.inputs}), kept)
        case Group(child, keys, calls):
            return replace(node, child=_prune(child, {*keys, *(a for call in calls for a in call.arguments)}))
        case Join(left, right, on, residual):
            read = needed | {name for pair in on for name in pair} | set(residual.inputs if residual else ())
            return replace(node, left=_prune(left, read), right=_prune(right, read))
    # Equal rows are equal in all their columns.
    return node.with_children(*(_prune(child, _names(child)) for child in node.children))


PROJECTION_UNDER_WINDOW = Rewrite(
    "projection under window", "the projection keeps the columns that the window reads", projection_under_window
)
SELECTION_UNDER_WINDOW = Rewrite("selection under window", "the window is logical", selection_under_window)
UNION_UNDER_WINDOW = Rewrite(
    "union under window", "both windows are the same logical one, and have no time of day", union_under_window
)
DISTINCT_UNDER_WINDOW = Rewrite(
    "distinct under window", "the window is logical and reaches the present", distinct_under_window
)
JOIN_COMMUTES = Rewrite("join commutes", "always", join_commutes)
JOIN_ASSOCIATES = Rewrite("join associates", "the outer keys belong to the inner right side", join_associates)
SELECTIONS_COMMUTE = Rewrite("selections commute", "always", selections_commute)
SELECTION_INTO_JOIN = Rewrite("selection into join", "the predicate needs one side only", selection_into_join)
PROJECTION_INTO_JOIN = Rewrite("projection into join", "join columns are kept below", projection_into_join)
UNREAD_COLUMNS = Rewrite("unread columns left out", "rows are compared in none of them", without_unread_columns)

REWRITES: tuple[Rewrite, ...] = (
    PROJECTION_UNDER_WINDOW,
    SELECTION_UNDER_WINDOW,
    UNION_UNDER_WINDOW,
    DISTINCT_UNDER_WINDOW,
    JOIN_COMMUTES,
    JOIN_ASSOCIATES,
    SELECTIONS_COMMUTE,
    SELECTION_INTO_JOIN,
    PROJECTION_INTO_JOIN,
    UNREAD_COLUMNS,
)


def _names(node: Node) -> set[str]:
    return {c.name for c in node.columns}


def _copies(node: Node) -> tuple[tuple[str, Scalar], ...]:
    return tuple((c.name, column(c.name, c.type)) for c in node.columns)


def _copied_names(items: tuple[tuple[str, Scalar], ...]) -> set[str]:
    return {name for name, scalar in items if scalar.column == name}


def _keep_columns(node: Node, needed: set[str]) -> Node:
    return Project(node, tuple(item for item in _copies(node) if item[0] in needed))
