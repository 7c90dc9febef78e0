"""Which structure keeps the states of an aggregate, by its laws and by what its window does with rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from panewise.aggregate import FusedOperation, StateArrays
from panewise.algebra import Call, Query
from panewise.plan.frame_plan import FramePlan
from panewise.plan.pane_plan import PanePlan
from panewise.plan.refusal import Refusal
from panewise.plan.row_plan import RowPlan
from panewise.plan.rules.rule import Rule, RulesOff
from panewise.stores.totals import PaneTotal, SubtractingTotal, TwoStackTotal
from panewise.window import WindowRetention

RULE = Rule("choose_store", "a pane that leaves a sliding window is subtracted where that loses nothing")


@dataclass(frozen=True)
class StoreChoice:
    """The name of a structure, and the reason for it in one sentence."""

    name: str
    reason: str


def store_of(call: Call, plan: PanePlan | RowPlan | FramePlan | Refusal) -> StoreChoice:
    """The structure in which the states of a call are kept."""
    match plan:
        case Refusal(reason):
            return StoreChoice("recompute", f"answered by its meaning, because {reason}")
        case RowPlan() | PanePlan(keeps_rows=True):
            return StoreChoice("rows", _row_reason(call))
        case FramePlan():
            return StoreChoice(PaneTotal.name, "a frame only grows")
        case PanePlan(query=Query(revise=int())):
            return StoreChoice("recompute", "LATE REVISE reports past instants again")
    match plan.window.retention:
        case WindowRetention.LOOKS_BACK:
            return StoreChoice("recompute", "the extent changes with time")
        case WindowRetention.ACCUMULATES if plan.window.lasting:
            return StoreChoice(PaneTotal.name, "nothing ever leaves")
        case WindowRetention.ACCUMULATES:
            return StoreChoice(PaneTotal.name, "nothing leaves before the period ends")
        case WindowRetention.FOLLOWS_SESSIONS:
            return StoreChoice(PaneTotal.name, "a session only grows")
        case WindowRetention.SLIDES:
            return _sliding_store(call, plan.rules_off)
        case WindowRetention.COUNTS_ROWS | WindowRetention.REFERENCE_ONLY:
            raise plan.window.unsupported_retention()


def _row_reason(call: Call) -> str:
    """How `engine.group_steps` evaluates a call."""
    fused = call.aggregate.state_arrays().fused
    if fused is FusedOperation.ADDED:
        return "differences of running sums"
    otherwise = "a heap" if fused is FusedOperation.GREATEST else "a tree over the changes"
    return f"where rows leave in the order in which they came, two scans; elsewhere {otherwise}"


def _sliding_store(call: Call, rules_off: RulesOff) -> StoreChoice:
    """The total of each stair of a chain, as the engine makes it."""
    name = call.aggregate.names[0]
    columns = call.aggregate.state_arrays()
    if columns.apart:
        reason = f"what {name} is made of changes with age: every pane is weighed at every instant"
        return StoreChoice("recompute", reason)
    if pane_totals([columns], rules_off) == [SubtractingTotal]:
        cost = "O(1) a pane" if call.aggregate.laws.bounded else "value by value"
        return StoreChoice(SubtractingTotal.name, f"{name} is {call.aggregate.laws}: what leaves is subtracted, {cost}")
    if columns.exact:
        return StoreChoice(TwoStackTotal.name, f"{RULE} is switched off")
    why = "rounds, so nothing is subtracted" if call.aggregate.laws.invertible else f"is {call.aggregate.laws}"
    return StoreChoice(TwoStackTotal.name, f"{name} {why}: O(1) a pane, amortised")


def pane_totals(columns: Sequence[StateArrays], rules_off: RulesOff) -> list[type[PaneTotal] | None]:
    """The totals of a stair: what leaves is subtracted where that loses nothing; None where each pane is looked at."""
    exact = SubtractingTotal if RULE not in rules_off else TwoStackTotal
    return [None if column.apart else exact if column.exact else TwoStackTotal for column in columns]
