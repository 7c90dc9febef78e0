"""Which store keeps an aggregate's panes: the one with the cheapest lookup that its laws allow."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from panewise.aggregate import Aggregate
from panewise.errors import PlanProblem
from panewise.stores import STORES, Store
from panewise.stores.base import refused


@dataclass(frozen=True)
class StoreChoice:
    """A decision and its reason, in one sentence."""

    store: type[Store[Any]]
    reason: str


def choose_store(aggregate: Aggregate[Any], wanted: str | None = None) -> StoreChoice:
    """The store for an aggregate, or a refusal when a store was asked for that its laws forbid."""
    if wanted is not None:
        store = next((s for s in STORES if s.name == wanted), None)
        if store is None:
            raise PlanProblem(f"there is no store {wanted!r}", fix=f"use one of {', '.join(s.name for s in STORES)}")
        if not store.accepts(aggregate.laws):
            raise refused(store, aggregate)
        return StoreChoice(store, "it was asked for")
    store = next(s for s in STORES if s.accepts(aggregate.laws))
    return StoreChoice(store, f"{aggregate.names[0]} is {aggregate.laws}: lookups cost {store.lookup_cost}")
