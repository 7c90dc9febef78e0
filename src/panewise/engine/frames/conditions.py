"""Whether items from a start on still satisfy a condition on an aggregate that no kernel computes, item by item."""

from __future__ import annotations

import operator
from dataclasses import dataclass
from typing import Any

from panewise.frame.frame import ReachFrames

_COMPARISONS = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}


@dataclass
class ReachCondition:
    """Whether an aggregate compares with a limit, as a state that is updated with each item."""

    kind: ReachFrames

    def step(self, state: Any, value: Any) -> tuple[Any, bool]:
        """The state after one more value (None before the first one), and whether the condition holds."""
        aggregate = self.kind.aggregate
        if state is None:
            state = aggregate.identity()
        if value is not None or self.kind.argument is None:
            state = aggregate.combine(state, aggregate.lift(value))
        answer = aggregate.lower(state)
        if answer is None or answer != answer:
            return state, not self.kind.grows
        return state, bool(_COMPARISONS[self.kind.operator](float(answer), self.kind.limit))
