"""HAVING conditions that a collective index can narrow down: one aggregate against one number."""

from __future__ import annotations

import re
from dataclasses import dataclass

from panewise.algebra import Call, Select
from panewise.plan.pane_plan import PanePlan
from panewise.plan.rules.rule import Rule

RULE = Rule("narrow_having", "lookups with HAVING ask a collective index which groups may pass")

_NUMBER = r"-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?"
_SIDES = re.compile(rf"`(?P<name>agg#\d+)` (?P<sign>[<>]=?) (?P<number>{_NUMBER})")
_MIRRORED = re.compile(rf"(?P<number>{_NUMBER}) (?P<sign>[<>]=?) `(?P<name>agg#\d+)`")
#: Doubles cannot tell all whole numbers apart from here on.
_EXACT = 2.0**53
_MIRRORED_SIGNS = {"<": ">", ">": "<", "<=": ">=", ">=": "<="}


@dataclass(frozen=True)
class Threshold:
    """An aggregate must be beyond a limit, or at it where `equal` says so."""

    call: Call
    above: bool
    limit: int | float
    equal: bool

    @property
    def text(self) -> str:
        sign = (">" if self.above else "<") + ("=" if self.equal else "")
        return f"{self.call.aggregate.text(list(self.call.arguments))} {sign} {self.limit}"


def thresholds(plan: PanePlan) -> list[Threshold]:
    """Conditions all of which every group of the answer fulfils; there may be others."""
    if RULE in plan.rules_off:
        return []
    found = []
    calls = {call.name: call for call in plan.group.calls}
    for step in plan.after:
        if not isinstance(step, Select):
            break
        for part in _conjuncts(step.predicate.sql):
            straight, mirrored = _SIDES.fullmatch(part), _MIRRORED.fullmatch(part)
            if match := straight or mirrored:
                sign = match["sign"] if straight else _MIRRORED_SIGNS[match["sign"]]
                limit = int(match["number"]) if match["number"].lstrip("-").isdigit() else float(match["number"])
                if isinstance(limit, float) and abs(limit) >= _EXACT:
                    continue  # hosts round whole numbers before they compare them with such a limit
                found.append(Threshold(calls[match["name"]], sign[0] == ">", limit, sign.endswith("=")))
    return found


def _conjuncts(sql: str) -> list[str]:
    """Parts that must all be true; text that might hide an AND of another kind is left whole."""
    return [sql] if re.search(r"\b(OR|NOT|BETWEEN|CASE)\b|['(\[]", sql) else sql.split(" AND ")
