"""Families: which queries share panes, how their windows are grouped, and where the stream is cut for them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from panewise.plan.cuts import Cuts, coarsest_cuts
from panewise.plan.pane_plan import PanePlan, step_contents
from panewise.plan.rules.group_windows import GroupingPolicy, WindowGroup, WindowManager, WindowRole, WindowShape
from panewise.plan.rules.rule import Rule
from panewise.window import Edges, Sliding, Window, WindowRetention

RULE = Rule("share_panes", "queries that differ in their windows only are answered from the same panes")


@dataclass(frozen=True)
class WindowPlan:
    """One window of a query, and the place its family gave it; windows that do not slide have no group."""

    query: str
    level: int | None
    window: Window
    family: int
    lag: int = 0
    group: int | None = None
    role: WindowRole | None = None
    quotient: int | None = None


@dataclass(frozen=True, eq=False)
class FamilyPlan:
    """Queries that share panes. Windows slide together only with windows of the same lag."""

    number: int
    members: dict[str, PanePlan] = field(default_factory=dict)
    managers: dict[int, WindowManager] = field(default_factory=dict)

    @property
    def plan(self) -> PanePlan:
        """Any of its queries: they agree in all but their windows."""
        return next(iter(self.members.values()))

    @property
    def cuts(self) -> Cuts | None:
        """How the stream is cut; None where windows count rows or follow sessions."""
        edges = [e for plan in self.members.values() for e in plan_edges(plan)]
        return coarsest_cuts(edges) if edges else None

    def windows(self) -> list[WindowPlan]:
        return [
            self._window_plan(name, level, window, plan)
            for name, plan in self.members.items()
            for level, window in plan.levels
        ]

    def _window_plan(self, name: str, level: int | None, window: Window, plan: PanePlan) -> WindowPlan:
        slides = None if plan.positional else sliding_window(window, plan.query.revise)
        if slides is None:
            return WindowPlan(name, level, window, self.number)
        frame, manager = shape_of(slides), self.managers[slides.lag]
        group: WindowGroup = manager.group_of(frame)
        return WindowPlan(
            name, level, window, self.number, slides.lag, group.number, group.role(frame), group.quotient(frame)
        )


def family_key(plan: PanePlan) -> tuple[object, ...]:
    """Queries with equal keys share panes: same stream, filters, grouping, aggregates and span of time.

    Queries that report at every change need all groups in one place, so that they are a family of their own. So are
    queries with positional aggregates over the same window, because tiers are not shared with other windows.
    """
    return (
        plan.source,
        step_contents(plan.before),
        step_contents(plan.between),
        plan.group.keys,
        plan.group.calls,
        plan.window.time_span,
        family_kind(plan),
        plan.window.partition_by,
        plan.repeats_on_change,
    )


def family_kind(plan: PanePlan) -> object:
    """What the family of a query keeps, which also separates queries that share nothing."""
    if RULE in plan.rules_off:
        return plan.query
    if plan.positional:
        return plan.window
    if plan.keeps_totals:
        return "totals"
    if plan.keeps_rows:
        # A turn looks at all rows that are kept: windows that keep all would slow down those that keep few.
        return "all rows" if plan.keeps_all else "rows"
    return None if plan.window.logical else plan.window.retention


#: The managers of a family that runs already, by its identity; None where it does not run.
RunningManagers = Callable[[object], dict[int, WindowManager] | None]


def plan_families(
    plans: Mapping[str, PanePlan], policy: GroupingPolicy, running: RunningManagers = lambda family: None
) -> list[FamilyPlan]:
    """All families, in the order in which their first queries came."""
    found: dict[object, FamilyPlan] = {}
    for name, plan in plans.items():
        found.setdefault(family_key(plan), FamilyPlan(len(found) + 1)).members[name] = plan
    for key, family in found.items():
        family.managers.update(running(key) or window_managers(family.members.values(), policy))
    return list(found.values())


def window_managers(plans: Iterable[PanePlan], policy: GroupingPolicy) -> dict[int, WindowManager]:
    """One window manager for each lag, holding the sliding windows of these queries."""
    frames: dict[int, list[WindowShape]] = {}
    for plan in plans:
        for _, window in plan.levels:
            if not plan.positional and (slides := sliding_window(window, plan.query.revise)) is not None:
                frames.setdefault(slides.lag, []).append(shape_of(slides))
    return {lag: WindowManager(policy, some) for lag, some in frames.items()}


def sliding_window(window: Window, revise: int | None) -> Sliding | None:
    """The window itself where it slides on a chain; what revises past instants cannot."""
    return Sliding.of(window) if window.retention is WindowRetention.SLIDES and revise is None else None


def shape_of(window: Sliding) -> WindowShape:
    return WindowShape(window.range, window.step)


def plan_edges(plan: PanePlan) -> list[Edges]:
    """Where the panes of a query end."""
    return [edge for _, window in plan.levels for edge in window.edges]
