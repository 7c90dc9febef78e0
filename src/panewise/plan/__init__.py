"""Decisions about a query, each with its reason."""

from panewise.plan.explain import explain
from panewise.plan.store_choice import StoreChoice, choose_store

__all__ = ["StoreChoice", "choose_store", "explain"]
