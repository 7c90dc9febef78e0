"""How the states of an aggregate are kept for a query, and why."""

from __future__ import annotations

from dataclasses import dataclass

from panewise.aggregate.states.positional import PositionalStates
from panewise.algebra import Call
from panewise.plan.pane_plan import PanePlan, retention_refusal
from panewise.plan.refusal import Refusal
from panewise.plan.rules.choose_store import RULE, StoreChoice, choose_store
from panewise.stores import Recompute
from panewise.window import Retention, Rows


@dataclass(frozen=True)
class Storage:
    """The name of a structure, and the reason for it in one sentence."""

    name: str
    reason: str


def storage(call: Call, plan: PanePlan | Refusal) -> Storage:
    """What keeps the states of a call."""
    if isinstance(plan, Refusal):
        return Storage("recompute", f"answered by its meaning, because {plan.reason}")
    if plan.query.revise is not None:
        return Storage("recompute", "LATE REVISE says past instants again")
    match plan.window.retention:
        case Retention.LOOKS_BACK:
            return Storage("recompute", "the extent changes with time")
        case Retention.ACCUMULATES if plan.window.lasting:
            return Storage("running total", "nothing ever leaves")
        case Retention.ACCUMULATES:
            return Storage("running total", "nothing leaves before the period ends")
        case Retention.FOLLOWS_SESSIONS:
            return Storage("running total", "a session only grows")
        case Retention.COUNTS_ROWS:
            choice = row_store(call, plan, [Rows.of(plan.window)])
            return Storage(choice.store.name, choice.reason)
        case Retention.SLIDES:
            return _sliding_storage(call)
        case Retention.REFERENCE_ONLY:
            raise ValueError(retention_refusal(plan.window))


def _sliding_storage(call: Call) -> Storage:
    """What keeps the states of a call over a sliding window."""
    name = call.aggregate.names[0]
    columns = call.aggregate.state_arrays()
    if isinstance(columns, PositionalStates) and columns.apart:
        return Storage("recompute", f"what {name} is made of changes with age: every pane is weighed at every instant")
    if columns.exact:
        cost = "O(1) a pane" if call.aggregate.laws.bounded else "value by value"
        return Storage("R-INT", f"{name} is {call.aggregate.laws}: what leaves is subtracted, {cost}")
    why = "rounds, so nothing is subtracted" if call.aggregate.laws.invertible else f"is {call.aggregate.laws}"
    return Storage("two-stacks", f"{name} {why}: O(1) a pane, amortised")


def row_store(call: Call, plan: PanePlan, windows: list[Rows]) -> StoreChoice:
    """The store for the rows of a group; widths are known where every row of a partition belongs to one group."""
    if RULE in plan.rules_off:
        return StoreChoice(Recompute, f"{RULE} is switched off")
    whole = not plan.between_filters and set(plan.group.keys) == set(plan.window.partition_by)
    widths = [window.count for window in windows] if whole else None
    return choose_store(call.aggregate, widths, suffix=not any(window.lag for window in windows))
