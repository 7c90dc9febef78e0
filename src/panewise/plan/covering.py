"""Whether the panes that are kept for one query can answer another: same rows, same groups, no other aggregates."""

from __future__ import annotations

from dataclasses import replace

from panewise.aggregate import CountAll
from panewise.algebra import Project
from panewise.plan.aggregation import Aggregation, Rowwise, span
from panewise.scalar import Scalar
from panewise.time import FIRST_TICK, LAST_TICK


def uncovered(kept: Aggregation, asked: Aggregation) -> str | None:
    """Why panes cut for `kept` cannot answer `asked`; None where they can."""
    if kept.source != asked.source:
        return "it reads another stream, or calls it by another name"
    if _bare(kept, kept.before) != _bare(asked, asked.before):
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
    if span(kept.window) not in {(FIRST_TICK, LAST_TICK), span(asked.window)}:
        return "its panes begin or end somewhere"
    if (kept.positional or asked.positional) and kept.window != asked.window:
        return "its window has other tiers"
    if missing := [c for c in asked.group.calls if column_of(kept, c.aggregate, c.arguments) is None]:
        return f"it has no {missing[0].aggregate.text(missing[0].arguments)}"
    return None


def column_of(kept: Aggregation, aggregate: object, arguments: tuple[str, ...]) -> int | None:
    """Which column of states holds an aggregate: the presence is the first, then those with a column of their own."""
    if isinstance(aggregate, CountAll):
        return 0
    own = [call for call in kept.group.calls if not isinstance(call.aggregate, CountAll)]
    return next((n for n, c in enumerate(own, 1) if c.aggregate == aggregate and c.arguments == arguments), None)


def _bare(plan: Aggregation, steps: tuple[Rowwise, ...]) -> tuple[Rowwise, ...]:
    return tuple(replace(step, child=plan.source) for step in steps)


def _steps(plan: Aggregation) -> tuple[tuple[Rowwise, ...], dict[str, Scalar]]:
    """What happens between the window and the groups, and the columns that the groups are made of."""
    steps = _bare(plan, plan.between)
    if steps and isinstance(steps[-1], Project):
        return steps[:-1], dict(steps[-1].items)
    return steps, {}
