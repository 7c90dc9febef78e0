"""Which store keeps an aggregate's panes: the cheapest one that its laws and the windows' widths allow."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from panewise.aggregate import Aggregate, Sum
from panewise.core.errors import PlanProblem
from panewise.core.schema import type_name
from panewise.plan.rules.rule import Rule
from panewise.stores import (
    STORES,
    BaseIntervals,
    LandmarkIntervals,
    LookupKind,
    Recompute,
    RunningIntervals,
    Store,
    TwoStacks,
)
from panewise.stores.base import law_problem
from panewise.stores.landmark_intervals import SPREAD

RULE = Rule("choose_store", "each aggregate is kept by the cheapest structure that its laws allow")


@dataclass(frozen=True)
class StoreChoice:
    """A decision and its reason, in one sentence."""

    store: type[Store[Any]]
    reason: str


def choose_store(
    aggregate: Aggregate[Any], widths: Collection[int] | None = None, suffix: bool = True, wanted: str | None = None
) -> StoreChoice:
    """The store for an aggregate, or a refusal when a store was asked for that laws or windows forbid.

    `widths` are those of all windows, in panes; None where they are not known. `suffix` says whether every window ends
    at the newest pane.
    """
    if wanted is not None:
        return _requested_store(wanted, aggregate, widths, suffix)
    store, windows = _cheapest(aggregate, sorted(set(widths or ())), suffix)
    return StoreChoice(store, f"{_laws(aggregate)}{windows}: lookups cost {store.lookup_cost}")


def is_subtractable(aggregate: Aggregate[Any]) -> bool:
    """Whether parts may be subtracted from a running total of this aggregate.

    Sums of floats may not, although they are invertible up to rounding: a running total outlives its windows, and what
    it lost to rounding beside a value of 1e300 is still missing when that value has left. Counts, and the exact
    rationals of variance and regression, lose nothing.
    """
    rounded = isinstance(aggregate, Sum) and aggregate.floating
    return RunningIntervals.accepts(aggregate.laws) and not rounded


def _cheapest(aggregate: Aggregate[Any], widths: list[int], suffix: bool) -> tuple[type[Store[Any]], str]:
    """The store, and what the windows had to do with it."""
    if not aggregate.laws.bounded:
        return Recompute, ""
    if is_subtractable(aggregate):
        return RunningIntervals, ""
    if not widths:
        return BaseIntervals, ""
    if len(widths) == 1 and suffix:
        return TwoStacks, f", and its only window of {widths[0]} panes slides with the stream"
    if len(widths) == 1:
        return LandmarkIntervals, f", and all windows are {widths[0]} panes wide"
    span = f"{widths[0]} to {widths[-1]}"
    if widths[-1] <= SPREAD * widths[0]:
        return LandmarkIntervals, f", and windows of {span} panes differ by at most a factor of {SPREAD}"
    return BaseIntervals, f", and windows of {span} panes differ by more than a factor of {SPREAD}"


def _requested_store(
    wanted: str, aggregate: Aggregate[Any], widths: Collection[int] | None, suffix: bool
) -> StoreChoice:
    known = {store.name: store for store in STORES}
    if wanted not in known:
        raise PlanProblem(f"there is no store {wanted!r}", fix=f"use one of {', '.join(known)}")
    store = known[wanted]
    if not store.accepts(aggregate.laws):
        raise law_problem(store, aggregate)
    if store is RunningIntervals and not is_subtractable(aggregate):
        raise PlanProblem(f"R-INT subtracts, but {_laws(aggregate)}", fix="let the planner choose the store")
    if store.answers is LookupKind.SLIDING and not (suffix and len(set(widths or ())) == 1):
        raise PlanProblem(
            f"{wanted} answers one window that ends at the newest pane", fix="let the planner choose the store"
        )
    return StoreChoice(store, "it was asked for")


def _laws(aggregate: Aggregate[Any]) -> str:
    name, laws = aggregate.names[0], aggregate.laws
    if RunningIntervals.accepts(laws) and not is_subtractable(aggregate):
        return f"{name} of {type_name(aggregate.types[0])} is rounded, which subtraction would not undo"
    return f"{name} is {laws}"
