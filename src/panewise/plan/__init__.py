"""Decisions about queries, each with its reason."""

from panewise.plan.aggregation import PanePlan, RowStep, plan_panes, time_span
from panewise.plan.explain import explain
from panewise.plan.explain_pool import explain_pool
from panewise.plan.families import FamilyPlan, WindowPlan, plan_edges, window_edges, plan_families, shape_of, window_managers, sliding_window
from panewise.plan.framing import FramePlan, plan_frames
from panewise.plan.picture import picture
from panewise.plan.relation import RowPlan, plan_rows
from panewise.plan.slices import slicing_refusal
from panewise.plan.storage import row_store, storage
from panewise.plan.store_choice import StoreChoice, choose_store

__all__ = [
    "PanePlan",
    "FamilyPlan",
    "FramePlan",
    "RowPlan",
    "RowStep",
    "StoreChoice",
    "WindowPlan",
    "plan_panes",
    "choose_store",
    "plan_edges",
    "window_edges",
    "explain",
    "explain_pool",
    "plan_families",
    "shape_of",
    "plan_frames",
    "window_managers",
    "picture",
    "plan_rows",
    "row_store",
    "sliding_window",
    "time_span",
    "storage",
    "slicing_refusal",
]
