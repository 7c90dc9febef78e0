"""Decisions about a query, each with its reason."""

from panewise.plan.aggregation import Aggregation, Rowwise, aggregation, span
from panewise.plan.explain import explain
from panewise.plan.store_choice import StoreChoice, choose_store

__all__ = ["Aggregation", "Rowwise", "StoreChoice", "aggregation", "choose_store", "explain", "span"]
