"""What a rule of the planner is: a decision with a name that can be switched off without another result."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from panewise.algebra import Query

#: Called with the name of each equivalence that is applied.
OnRewrite = Callable[[str], object]


@dataclass(frozen=True)
class Rule:
    """The name of a decision, which is also the name of its module, and what the decision is good for."""

    name: str
    purpose: str

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True)
class RewriteRule(Rule):
    """A rule that replaces a query by an equal one, by equivalences of `algebra/rewrites.py`."""

    rewrite: Callable[[Query, OnRewrite], Query]


#: The rules that are switched off.
RulesOff = frozenset[Rule]
