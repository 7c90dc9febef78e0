"""The shape of query the engine answers from panes: grouped aggregates over one window of one stream."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

from panewise.algebra import Emit, Group, Node, Project, Query, Select, Source, Windowed
from panewise.algebra.positional import Views, positional_calls, views
from panewise.plan.refusal import Refusal
from panewise.plan.rules.rule import RulesOff
from panewise.window import Landmark, Window, WindowRetention

#: Operators that look at one row at a time; the host evaluates them.
RowStep = Select | Project


@dataclass(frozen=True)
class PanePlan:
    """A query taken apart: rows pass `before`, enter the window, pass `between`, are grouped, and pass `after`."""

    query: Query
    source: Source
    before: tuple[RowStep, ...]
    window: Window
    between: tuple[RowStep, ...]
    group: Group
    after: tuple[RowStep, ...]
    rules_off: RulesOff = frozenset()

    @cached_property
    def levels(self) -> tuple[tuple[int | None, Window], ...]:
        """The single windows of the query, with their level where there are several."""
        return tuple(enumerate(self.window.levels)) or ((None, self.window),)

    @property
    def empty(self) -> bool:
        """Whether empty windows have a row; with groups there is none to show."""
        return self.query.empty and not self.group.keys

    @property
    def reports_changes(self) -> bool:
        """Whether it reports what changed instead of what is."""
        return self.query.emit is not Emit.RSTREAM

    @property
    def repeats_on_change(self) -> bool:
        """Whether any change of the window, in any group, makes the query report its whole state again."""
        return not self.reports_changes and (self.keeps_rows or not self.window.periodic)

    @property
    def keeps_rows(self) -> bool:
        """Whether its window changes with every row, so that rows are kept and not panes.

        Where nothing leaves it, totals are kept if these are smaller.
        """
        if self.window.retention is WindowRetention.COUNTS_ROWS:
            return True
        slides = self.window.retention is WindowRetention.SLIDES
        return not self.window.periodic and (slides or (self.keeps_all and not self._has_small_states))

    @property
    def keeps_all(self) -> bool:
        """Whether nothing ever leaves its window."""
        return self.window.retention is WindowRetention.ACCUMULATES and self.window.lasting

    @property
    def _has_small_states(self) -> bool:
        """Whether states do not grow with the number of rows, as those of holistic aggregates do."""
        return all(call.aggregate.laws.bounded for call in self.group.calls)

    @property
    def keeps_totals(self) -> bool:
        """Whether nothing leaves its window, which changes with every row: only a total of each group is kept."""
        return self.keeps_all and self._has_small_states and self.reports_changes and not self.window.periodic

    @cached_property
    def positional(self) -> bool:
        """Whether some aggregate looks at where in the window items lie."""
        return bool(positional_calls(self.group))

    @property
    def views(self) -> Views:
        """What such aggregates see."""
        found = views(self.window, self.query.domain)
        assert found is not None, "the binder lets them see only windows with tiers"
        return found

    def anchor_to(self, first: int) -> PanePlan:
        """The same query with times of day resolved against the stream's first item."""
        return replace(self, window=self.window.anchor_to(first))


def plan_panes(query: Query, rules_off: RulesOff = frozenset()) -> PanePlan | Refusal:
    """The query taken apart, or the reason why the engine cannot answer it from panes."""
    if reason := next(filter(None, (retention_refusal(each.window) for each in query.windows)), None):
        return Refusal(reason)
    after, node = split_row_steps(query.root)
    if not isinstance(node, Group):
        return Refusal(f"{_operator_name(node)} is not a grouped aggregate")
    between, windowed = split_row_steps(node.child)
    if not isinstance(windowed, Windowed):
        return Refusal(f"{_operator_name(windowed)} stands between the window and the aggregate")
    before, source = split_row_steps(windowed.child)
    if not isinstance(source, Source):
        return Refusal(f"{_operator_name(source)} stands below the window")
    window = windowed.window
    if reason := _refusal(query, window, any(isinstance(step, Select) for step in between)):
        return Refusal(reason)
    if window.condition is not None:
        before, window = (*before, Select(windowed.child, window.condition)), Landmark()
    return PanePlan(query, source, before, window, between, node, after, rules_off)


def _refusal(query: Query, window: Window, filtered: bool) -> str | None:
    """Why the engine cannot answer a query of the right shape: it would need rows that have been dropped."""
    steady = all(w.grid and w.longest is not None for w in window.single_windows)
    whole = query.emit is Emit.RSTREAM
    if window.retention is WindowRetention.LOOKS_BACK and window.grid is None:
        return "panes are combined again only at the instants of a grid"
    if query.revise is not None and not steady:
        return "LATE REVISE needs a sliding or cumulating window"
    kept_apart = query.revise is not None or window.retention is WindowRetention.LOOKS_BACK
    if query.empty and not (steady and whole and not kept_apart):
        return "EMIT EMPTY needs a sliding or cumulating window with a SLIDE, whole results and no LATE REVISE"
    if window.retention is WindowRetention.LOOKS_BACK and not whole:
        return "changes of a window with a varying range depend on all its past"
    if whole and filtered and not window.periodic and window.logical:
        return "whole results are reported whenever an item comes or goes, also one that WHERE drops"
    return None


def retention_refusal(window: Window) -> str | None:
    """Why the engine has nothing to keep the items of a window in; None where it has."""
    if any(w.retention is WindowRetention.REFERENCE_ONLY for w in window.single_windows):
        return f"the engine cannot keep windows of kind {type(window).__name__}"
    return None


def split_row_steps(node: Node) -> tuple[tuple[RowStep, ...], Node]:
    """Row-wise operators from the bottom up, and what is below them."""
    steps: list[RowStep] = []
    while isinstance(node, Select | Project):
        steps.append(node)
        node = node.child
    return tuple(reversed(steps)), node


def step_contents(steps: tuple[RowStep, ...]) -> tuple[object, ...]:
    """What row-wise operators do, whatever is below them."""
    return tuple([step.predicate if isinstance(step, Select) else step.items for step in steps])


def _operator_name(node: Node) -> str:
    return "a window" if isinstance(node, Windowed) else f"a {type(node).__name__.lower()}"
