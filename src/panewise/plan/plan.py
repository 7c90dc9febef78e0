"""From a query tree to its plan: how the engine answers the query, or why it does not."""

from __future__ import annotations

from panewise.algebra import Query
from panewise.plan.frame_plan import FramePlan, plan_frames
from panewise.plan.pane_plan import PanePlan, plan_panes
from panewise.plan.refusal import Refusal
from panewise.plan.row_plan import RowPlan, plan_rows
from panewise.plan.rules.rule import RulesOff

QueryPlan = PanePlan | RowPlan | FramePlan


def plan_query(query: Query, rules_off: RulesOff = frozenset()) -> QueryPlan | Refusal:
    """The plan of a query: from panes where they can answer it, or else from rows. Some rules may be switched off."""
    if query.framed_node:
        return plan_frames(query)
    panes = plan_panes(query, rules_off)
    if not isinstance(panes, Refusal):
        return panes
    rows = plan_rows(query, rules_off)
    return panes if isinstance(rows, Refusal) and len(query.windows) == 1 else rows
