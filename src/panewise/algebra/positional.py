"""Queries with positional aggregates: which windows have tiers, and what is in each tier at an instant."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

from panewise.aggregate import LevelView, Positional
from panewise.algebra.tree import Call, Derived, Group, Node, Project, Query, Select, Source, Windowed
from panewise.core.time import Domain
from panewise.window import Sliding, Window, WindowRetention


@dataclass(frozen=True)
class Views:
    """The levels of a window, finest first, and the time they are in: a view of each of their instants."""

    levels: tuple[Sliding, ...]
    domain: Domain
    #: How many ticks positions are later than times.
    shift: int

    @property
    def lag(self) -> int:
        return self.levels[0].lag

    @property
    def origin(self) -> int:
        """A position at which granules of every level end."""
        return self.levels[0].start - self.lag

    def at(self, instant: int, level: int) -> LevelView:
        """What is seen at an instant of a level."""
        seen = self.levels[: level + 1]
        ranges, slides = tuple(each.range for each in seen), tuple(each.step for each in seen)
        return LevelView(instant - self.lag, ranges, slides, self.origin, self.domain, self.shift)


def views(window: Window, domain: Domain, shift: int = 0) -> Views | None:
    """The views of a window; None where it has no tiers. `shift` is that of its boundary."""
    if window.retention is not WindowRetention.SLIDES or not window.periodic:
        return None
    return Views(tuple(map(Sliding.of, window.single_windows)), domain, shift)


def positional_calls(group: Group) -> list[tuple[Call, Positional[Any]]]:
    """The positional aggregates of a grouping."""
    return [(c, cast("Positional[Any]", c.aggregate)) for c in group.calls if c.aggregate.positional]


def tier_refusal(child: Node) -> str | None:
    """Why a grouping above a node has no tiers; None where it has."""
    while isinstance(child, Select | Project):
        child = child.child
    if not isinstance(child, Windowed):
        return "only rows that come straight from one window lie in tiers"
    if views(child.window, Domain.INTEGER) is None:
        return "only windows with a RANGE and a SLIDE have tiers"
    below = child.child
    while isinstance(below, Select | Project):
        below = below.child
    return None if isinstance(below, Source) else "only the window of a declared stream has tiers"


def positional_refusal(query: Query) -> str | None:
    """Why a query cannot hold the positional aggregates it holds; None where it can, or holds none."""
    top = query.root
    while isinstance(top, Select | Project):
        top = top.child
    for node in query.root.walk():
        if _is_positional(node):
            if node is not top:
                return "it must be the result itself, not part of another query"
            if query.revise is not None:
                return "LATE REVISE cannot repeat it: the tiers have other items by then"
        if isinstance(node, Derived) and any(map(_is_positional, node.query.root.walk())):
            return "it must be the result itself, not the stream of another query"
    return None


def _is_positional(node: Node) -> bool:
    return isinstance(node, Group) and bool(positional_calls(node))
