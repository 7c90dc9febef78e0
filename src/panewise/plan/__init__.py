"""Decisions about queries, each with its reason."""

from panewise.plan.explain.picture import picture
from panewise.plan.explain.pool import explain_pool
from panewise.plan.explain.query import explain
from panewise.plan.frame_plan import FramePlan
from panewise.plan.pane_plan import PanePlan, RowStep
from panewise.plan.plan import QueryPlan, plan_query
from panewise.plan.refusal import Refusal
from panewise.plan.row_plan import RowPlan
from panewise.plan.rules.share_panes import (
    FamilyPlan,
    WindowPlan,
    plan_edges,
    plan_families,
    shape_of,
    sliding_window,
    window_managers,
)
from panewise.plan.rules.slice_early import slicing_refusal

__all__ = [
    "FamilyPlan",
    "FramePlan",
    "PanePlan",
    "QueryPlan",
    "Refusal",
    "RowPlan",
    "RowStep",
    "WindowPlan",
    "explain",
    "explain_pool",
    "picture",
    "plan_edges",
    "plan_families",
    "plan_query",
    "shape_of",
    "slicing_refusal",
    "sliding_window",
    "window_managers",
]
