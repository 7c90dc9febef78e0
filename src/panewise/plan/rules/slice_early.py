"""Whether the rows of a family may be sliced into panes before they meet, or must travel as they are."""

from __future__ import annotations

from collections.abc import Iterable

from panewise.plan.pane_plan import PanePlan
from panewise.plan.rules.rule import Rule
from panewise.window import WindowRetention

RULE = Rule("slice_early", "on shards, rows are sliced into panes before they are sent")


def slicing_refusal(plans: Iterable[PanePlan]) -> str | None:
    """Why the rows of some queries that share panes cannot be sliced apart from each other; None when they can."""
    return next((reason for plan in plans if (reason := _plan_refusal(plan))), None)


def _plan_refusal(plan: PanePlan) -> str | None:
    if RULE in plan.rules_off:
        return f"{RULE} is switched off"
    window = plan.window
    if not window.logical:
        return "windows that count rows or follow sessions need every row in its order"
    if plan.query.revise is not None:
        return "LATE REVISE revises once for every late row"
    if plan.empty:
        return "EMIT EMPTY must know when each row came"
    if window.has_time_of_day:
        return "a time of day waits for the first row to tell the day"
    if window.retention is WindowRetention.LOOKS_BACK:
        return "the extent of the window changes with every tick"
    if not all(level.grid for _, level in plan.levels):
        return "without SLIDE every row has instants of its own"
    return None
