"""Whether the panes that are kept for one query can answer another: same rows, same groups, no other aggregates."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from panewise.aggregate import Aggregate
from panewise.algebra import Project
from panewise.core.scalar import Scalar
from panewise.plan.pane_plan import PanePlan, RowStep
from panewise.window import ALL_TIME


def cover_refusal(kept: PanePlan, asked: PanePlan) -> str | None:
    """Why panes cut for `kept` cannot answer `asked`; None where they can."""
    if kept.source != asked.source:
        return "it reads another stream, or calls it by another name"
    if _detach_steps(kept, kept.before) != _detach_steps(asked, asked.before):
        return "it filters rows in another way"
    had, wanted = _steps(kept), _steps(asked)
    if had[0] != wanted[0]:
        return "it filters rows in another way"
    if kept.window.partition_by != asked.window.partition_by:
        return "it counts rows of other partitions"
    if set(kept.group.keys) != set(asked.group.keys):
        return "it groups by other columns"
    if any(had[1].get(name) != scalar for name, scalar in wanted[1].items()):
        return "it computes other columns"
    if kept.window.time_span not in {ALL_TIME, asked.window.time_span}:
        return "its panes begin or end somewhere"
    if (kept.positional or asked.positional) and kept.window != asked.window:
        return "its window has other tiers"
    if missing := [c for c in asked.group.calls if state_column(kept, c.aggregate, c.arguments) is None]:
        return f"it has no {missing[0].aggregate.text(missing[0].arguments)}"
    return None


def state_column(kept: PanePlan, aggregate: Aggregate[Any], arguments: tuple[str, ...]) -> int | None:
    """Which column of states holds an aggregate: the presence is the first, then those with a column of their own."""
    if aggregate.counts_rows:
        return 0
    own = [call for call in kept.group.calls if not call.aggregate.counts_rows]
    return next((n for n, c in enumerate(own, 1) if c.aggregate == aggregate and c.arguments == arguments), None)


def _detach_steps(plan: PanePlan, steps: tuple[RowStep, ...]) -> tuple[RowStep, ...]:
    return tuple(replace(step, child=plan.source) for step in steps)


def _steps(plan: PanePlan) -> tuple[tuple[RowStep, ...], dict[str, Scalar]]:
    """What happens between the window and the groups, and the columns that the groups are made of."""
    steps = _detach_steps(plan, plan.between)
    if steps and isinstance(steps[-1], Project):
        return steps[:-1], dict(steps[-1].items)
    return steps, {}
