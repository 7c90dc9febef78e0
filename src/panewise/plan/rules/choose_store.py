"""Which store keeps an aggregate's panes: the cheapest one that its laws and the windows' widths allow."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

from panewise.aggregate import Aggregate, StateArrays
from panewise.algebra import Call, Query
from panewise.core.errors import PlanProblem
from panewise.core.schema import type_name
from panewise.plan.frame_plan import FramePlan
from panewise.plan.pane_plan import PanePlan
from panewise.plan.refusal import Refusal
from panewise.plan.row_plan import RowPlan
from panewise.plan.rules.rule import Rule, RulesOff
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
from panewise.stores.totals import PaneTotal, SubtractingTotal, TwoStackTotal
from panewise.window import Rows, WindowRetention

RULE = Rule("choose_store", "each aggregate is kept by the cheapest structure that its laws allow")


@dataclass(frozen=True)
class StoreChoice:
    """The name of a structure, the reason for it in one sentence, and the store of rows where it is one."""

    name: str
    reason: str
    store: type[Store[Any]] = Recompute


def store_of(call: Call, plan: PanePlan | RowPlan | FramePlan | Refusal) -> StoreChoice:
    """The structure in which the states of a call are kept."""
    match plan:
        case Refusal(reason):
            return StoreChoice("recompute", f"answered by its meaning, because {reason}")
        case RowPlan():
            return StoreChoice("rows", "a group that changes is computed anew from the rows it has")
        case FramePlan():
            return StoreChoice("running total", "a frame only grows")
        case PanePlan(query=Query(revise=int())):
            return StoreChoice("recompute", "LATE REVISE reports past instants again")
    match plan.window.retention:
        case WindowRetention.LOOKS_BACK:
            return StoreChoice("recompute", "the extent changes with time")
        case WindowRetention.ACCUMULATES if plan.window.lasting:
            return StoreChoice("running total", "nothing ever leaves")
        case WindowRetention.ACCUMULATES:
            return StoreChoice("running total", "nothing leaves before the period ends")
        case WindowRetention.FOLLOWS_SESSIONS:
            return StoreChoice("running total", "a session only grows")
        case WindowRetention.COUNTS_ROWS:
            return row_store(call, plan, [Rows.of(plan.window)])
        case WindowRetention.SLIDES:
            return _sliding_store(call, plan.rules_off)
        case WindowRetention.REFERENCE_ONLY:
            raise plan.window.unsupported_retention()


def _sliding_store(call: Call, rules_off: RulesOff) -> StoreChoice:
    """The total of each stair of a chain, as the engine makes it."""
    name = call.aggregate.names[0]
    columns = call.aggregate.state_arrays()
    if columns.apart:
        reason = f"what {name} is made of changes with age: every pane is weighed at every instant"
        return StoreChoice("recompute", reason)
    if pane_totals([columns], rules_off) == [SubtractingTotal]:
        cost = "O(1) a pane" if call.aggregate.laws.bounded else "value by value"
        return StoreChoice("R-INT", f"{name} is {call.aggregate.laws}: what leaves is subtracted, {cost}")
    if columns.exact:
        return StoreChoice("two-stacks", f"{RULE} is switched off")
    why = "rounds, so nothing is subtracted" if call.aggregate.laws.invertible else f"is {call.aggregate.laws}"
    return StoreChoice("two-stacks", f"{name} {why}: O(1) a pane, amortised")


def pane_totals(columns: Sequence[StateArrays], rules_off: RulesOff) -> list[type[PaneTotal] | None]:
    """The totals of a stair: what leaves is subtracted where that loses nothing; None where each pane is looked at."""
    exact = SubtractingTotal if RULE not in rules_off else TwoStackTotal
    return [None if column.apart else exact if column.exact else TwoStackTotal for column in columns]


def row_store(call: Call, plan: PanePlan, windows: list[Rows]) -> StoreChoice:
    """The store for the rows of a group; widths are known where every row of a partition belongs to one group."""
    if RULE in plan.rules_off:
        return StoreChoice("recompute", f"{RULE} is switched off")
    whole = not plan.between_filters and set(plan.group.keys) == set(plan.window.partition_by)
    widths = [window.count for window in windows] if whole else None
    return choose_store(call.aggregate, widths, suffix=not any(window.lag for window in windows))


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
    return StoreChoice(store.name, f"{_laws(aggregate)}{windows}: lookups cost {store.lookup_cost}", store)


def is_subtractable(aggregate: Aggregate[Any]) -> bool:
    """Whether parts may be subtracted from a running total of this aggregate.

    Sums of floats may not, although they are invertible up to rounding: a running total outlives its windows, and what
    it lost to rounding beside a value of 1e300 is still missing when that value has left. Counts, and the exact
    rationals of variance and regression, lose nothing.
    """
    return RunningIntervals.accepts(aggregate.laws) and aggregate.exact


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
    return StoreChoice(store.name, "it was asked for", store)


def _laws(aggregate: Aggregate[Any]) -> str:
    name, laws = aggregate.names[0], aggregate.laws
    if RunningIntervals.accepts(laws) and not is_subtractable(aggregate):
        return f"{name} of {type_name(aggregate.types[0])} is rounded, which subtraction would not undo"
    return f"{name} is {laws}"
