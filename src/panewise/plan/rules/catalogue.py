"""All rules of the planner, in the order in which they decide; each is a module of this folder."""

from __future__ import annotations

from collections.abc import Iterable

from panewise.core.errors import PlanProblem, did_you_mean
from panewise.plan.rules import (
    choose_index,
    choose_store,
    group_windows,
    merge_unions,
    narrow_having,
    prune_columns,
    route_shards,
    share_operators,
    share_panes,
    sink_selections,
    slice_early,
)
from panewise.plan.rules.rule import Rule, RulesOff

RULES: tuple[Rule, ...] = (
    sink_selections.RULE,
    merge_unions.RULE,
    prune_columns.RULE,
    share_panes.RULE,
    group_windows.RULE,
    choose_store.RULE,
    share_operators.RULE,
    slice_early.RULE,
    route_shards.RULE,
    narrow_having.RULE,
    choose_index.RULE,
)


def rules_named(names: Iterable[str]) -> RulesOff:
    """The rules of these names."""
    if isinstance(names, str):
        raise PlanProblem("the rules to switch off are a text, not a list of names", fix=f"write [{names!r}]")
    known = {rule.name: rule for rule in RULES}
    for name in names:
        if name not in known:
            raise PlanProblem(f"there is no rule {name!r}", fix=did_you_mean(str(name), known))
    return frozenset(known[name] for name in names)
