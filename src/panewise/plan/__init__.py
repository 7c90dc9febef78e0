"""Decisions about queries, each with its reason."""

from panewise.plan.aggregation import Aggregation, Rowwise, aggregation, span
from panewise.plan.explain import explain
from panewise.plan.explain_pool import explain_pool
from panewise.plan.families import FamilyPlan, WindowPlan, edges_in, edges_of, families, frame_of, managers, slider
from panewise.plan.framing import Framing, framing
from panewise.plan.picture import picture
from panewise.plan.relation import Relation, relation
from panewise.plan.slices import unsliceable
from panewise.plan.storage import row_store, storage
from panewise.plan.store_choice import StoreChoice, choose_store

__all__ = [
    "Aggregation",
    "FamilyPlan",
    "Framing",
    "Relation",
    "Rowwise",
    "StoreChoice",
    "WindowPlan",
    "aggregation",
    "choose_store",
    "edges_in",
    "edges_of",
    "explain",
    "explain_pool",
    "families",
    "frame_of",
    "framing",
    "managers",
    "picture",
    "relation",
    "row_store",
    "slider",
    "span",
    "storage",
    "unsliceable",
]
