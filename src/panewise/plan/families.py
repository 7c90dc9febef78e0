"""Families: which queries share panes, how their windows are grouped, and where the stream is cut for them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from panewise.plan.aggregation import Aggregation
from panewise.slicing import Frame, Group, Policy, Role, WindowManager
from panewise.slicing.cuts import Cuts, Edges, cuts
from panewise.window import LogicalWindow, Sliding, Varying, Window


@dataclass(frozen=True)
class WindowPlan:
    """One window of a query, and the place its family gave it; windows that do not slide have no group."""

    query: str
    level: int | None
    window: Window
    family: int
    lag: int = 0
    group: int | None = None
    role: Role | None = None
    quotient: int | None = None


@dataclass(frozen=True, eq=False)
class FamilyPlan:
    """Queries that share panes. Windows slide together only with windows of the same lag."""

    number: int
    members: dict[str, Aggregation] = field(default_factory=dict)
    managers: dict[int, WindowManager] = field(default_factory=dict)

    @property
    def plan(self) -> Aggregation:
        """Any of its queries: they agree in all but their windows."""
        return next(iter(self.members.values()))

    @property
    def cuts(self) -> Cuts | None:
        """How the stream is cut; None where windows count rows or follow sessions."""
        edges = [e for plan in self.members.values() for e in edges_in(plan)]
        return cuts(edges) if edges else None

    def windows(self) -> list[WindowPlan]:
        return [
            self._placed(name, level, window, plan)
            for name, plan in self.members.items()
            for level, window in plan.levels
        ]

    def _placed(self, name: str, level: int | None, window: Window, plan: Aggregation) -> WindowPlan:
        slides = None if plan.positional else slider(window, plan.query.revise)
        if slides is None:
            return WindowPlan(name, level, window, self.number)
        frame, manager = frame_of(slides), self.managers[slides.lag]
        group: Group = manager.group_of(frame)
        return WindowPlan(
            name, level, window, self.number, slides.lag, group.number, group.role(frame), group.quotient(frame)
        )


#: The managers of a family that runs already, by its identity; None where it does not run.
Running = Callable[[object], dict[int, WindowManager] | None]


def families(
    plans: Mapping[str, Aggregation], policy: Policy, running: Running = lambda family: None
) -> list[FamilyPlan]:
    """All families, in the order in which their first queries came."""
    found: dict[object, FamilyPlan] = {}
    for name, plan in plans.items():
        found.setdefault(plan.family, FamilyPlan(len(found) + 1)).members[name] = plan
    for key, family in found.items():
        family.managers.update(running(key) or managers(family.members.values(), policy))
    return list(found.values())


def managers(plans: Iterable[Aggregation], policy: Policy) -> dict[int, WindowManager]:
    """One window manager for each lag, holding the sliding windows of these queries."""
    frames: dict[int, list[Frame]] = {}
    for plan in plans:
        for _, window in plan.levels:
            if not plan.positional and (slides := slider(window, plan.query.revise)) is not None:
                frames.setdefault(slides.lag, []).append(frame_of(slides))
    return {lag: WindowManager(policy, some) for lag, some in frames.items()}


def slider(window: Window, revise: int | None) -> Sliding | None:
    """The window itself where it slides on a chain; what revises past instants cannot."""
    return window if isinstance(window, Sliding) and revise is None else None


def frame_of(window: Sliding) -> Frame:
    return Frame(window.range, window.step)


def edges_in(plan: Aggregation) -> list[Edges]:
    """Where the panes of a query end: with its windows, and with the instants that its aggregates tell apart."""
    windows = [edge for _, window in plan.levels for edge in edges_of(window)]
    return windows + [Edges(0, grain) for grain in sorted(plan.grains)]


def edges_of(window: Window) -> list[Edges]:
    """Where a window's scopes begin and end; nowhere for windows that time alone does not decide."""
    match window:
        case Sliding(range=length, step=step, lag=lag, start=start):
            return [Edges(start - lag, step), Edges(start - lag - length, step)]
        case Varying():
            return [Edges(0, 1)]
        case LogicalWindow():
            return [Edges(*(window.grid or (0, 1)))]
    return []
