"""Which operators of different queries can be shared: they differ in their windows only, so that one serves all.

These are joins of the same streams by the same conditions ("Subsuming windows" section 4), and distincts over the same
columns. A query that reports whenever any of its windows changes, or that depends on the last change, needs windows of
its own and shares no operators.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from panewise.algebra import Distinct, Emit, Except, Join, Node, Project, Query, Select, Union, Windowed
from panewise.plan.row_plan import RowPlan
from panewise.plan.rules.rule import Rule
from panewise.window import ALL_TIME, Window, WindowRetention
from panewise.window.sliding import NOW

RULE = Rule("share_operators", "joins and distincts that differ in their windows only are one operator")


@dataclass(frozen=True)
class OperatorPlace:
    """Where an operator stands: the query, its level, and the number at which a walk through the tree meets it."""

    query: str
    level: int
    number: int
    #: Its query joined as the how manyth of those that came to a running family.
    since: int = 0

    def node(self, plans: Mapping[str, RowPlan]) -> Node:
        _, query = plans[self.query].levels[self.level]
        return list(query.root.walk())[self.number]


SharedOperators = tuple[OperatorPlace, ...]


def shared_operators(plans: Mapping[str, RowPlan], expect_more: bool = False) -> list[SharedOperators]:
    """The sets of operators that can be shared; if `expect_more`, also single joins that later queries may join."""
    found: dict[object, dict[OperatorPlace, Node]] = {}
    for name, plan in plans.items():
        for signature, place, node in _shareable_operators(name, plan):
            found.setdefault(signature, {})[place] = node
    return [tuple(some) for some in found.values() if _worth_sharing(list(some.values()), expect_more)]


def _worth_sharing(nodes: Sequence[Node], expect_more: bool) -> bool:
    return (expect_more and isinstance(nodes[0], Join)) or len(set(map(windows_below, nodes))) > 1


def find_shared_operators(
    name: str, plan: RowPlan, families: Sequence[SharedOperators], plans: Mapping[str, RowPlan]
) -> dict[OperatorPlace, int] | None:
    """The numbers of the shared operators that a query can join; None if it needs windows of its own."""
    known = {_place_signature(places[0], plans): number for number, places in enumerate(families)}
    found = {place: (known.get(signature), node) for signature, place, node in _shareable_operators(name, plan)}
    places = {place: number for place, (number, _) in found.items() if number is not None}
    served = sum(len(windows_below(found[place][1])) for place in places)
    asked = sum(len(query.windows) for _, query in plan.levels)
    return places if served == asked else None


def _shareable_operators(name: str, plan: RowPlan) -> Iterator[tuple[object, OperatorPlace, Node]]:
    """The operators of a query that may be shared, each with its signature."""
    if RULE in plan.rules_off:
        return
    for level, (_, query) in enumerate(plan.levels):
        for number, node in enumerate(query.root.walk()) if can_share(query) else ():
            if (signature := _signature(node, query)) is not None:
                yield signature, OperatorPlace(name, level, number), node


def _place_signature(place: OperatorPlace, plans: Mapping[str, RowPlan]) -> object:
    """The signature of the operator at a place."""
    return _signature(place.node(plans), plans[place.query].levels[place.level][1])


def windows_below(node: Node) -> tuple[Window, ...]:
    """The windows below a node."""
    return tuple(below.window for below in node.walk() if isinstance(below, Windowed))


def can_share(query: Query) -> bool:
    """Whether only the instants of its windows decide when a query reports."""
    if query.emit is Emit.RSTREAM and not query.periodic:
        return False
    timed = all(w.window.longest is not None and not w.window.has_time_of_day for w in query.windows)
    return timed and not any(isinstance(node, Union | Except) for node in query.root.walk())


def _signature(node: Node, query: Query) -> object | None:
    """The value that is equal for operators that can be shared; None for operators that never can."""
    match node:
        case Join(Windowed(left), Windowed(right), on, residual):
            return without_projections(left), without_projections(right), on, residual
        case Distinct(child) if (
            len(query.windows) == 1 and _ignores_duplicate_age(query) and (below := _window_below(child))
        ):
            return _with_window(node, NOW) if _is_plain_sliding(below.window) else None
    return None


def _ignores_duplicate_age(query: Query) -> bool:
    """Whether it does not matter which of equal items was the youngest between two instants of the window."""
    return query.emit is Emit.RSTREAM or not query.periodic


def _is_plain_sliding(window: Window) -> bool:
    return window.retention is WindowRetention.SLIDES and not window.lag and window.time_span == ALL_TIME


def _window_below(node: Node) -> Windowed | None:
    """The window below nothing but row-wise operators."""
    while isinstance(node, Select | Project):
        node = node.child
    return node if isinstance(node, Windowed) else None


def _with_window(node: Node, window: Window) -> Node:
    """The same tree with another window."""
    node = node.with_children(*(_with_window(child, window) for child in node.children))
    return replace(node, window=window) if isinstance(node, Windowed) else node


def without_projections(node: Node) -> Node:
    """A stream without the projections that only leave columns out."""
    while isinstance(node, Project) and all(scalar.column == name for name, scalar in node.items):
        node = node.child
    return node
