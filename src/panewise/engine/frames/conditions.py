"""Whether items from a start on still satisfy the condition of a kind, one item after the other."""

from __future__ import annotations

import math
import operator
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

from panewise.frame.frame import BoundaryFrames, DeltaFrames, ReachFrames


class FrameCondition(ABC):
    """Whether items from a start on still satisfy a condition, as a state that is updated with each item."""

    @abstractmethod
    def step(self, state: Any, value: Any) -> tuple[Any, bool]:
        """The state after one more value (None before the first one), and whether the condition holds."""


@dataclass
class BoundaryCondition(FrameCondition):
    kind: BoundaryFrames

    def step(self, state: Any, value: Any) -> tuple[Any, bool]:
        if value is None:
            return state, state is not None
        label = self._label(float(value))
        return (label, True) if state is None else (state, bool(state == label))

    def _label(self, value: float) -> float:
        if self.kind.step is None:
            return len([mark for mark in self.kind.marks if mark <= value])
        steps = value / self.kind.step
        return math.floor(steps) if math.isfinite(steps) else steps


@dataclass
class DeltaCondition(FrameCondition):
    kind: DeltaFrames

    def step(self, state: Any, value: Any) -> tuple[Any, bool]:
        if value is None:
            return state, state is not None
        number = float(value)
        low, high = (number, number) if state is None else (min(state[0], number), max(state[1], number))
        apart = 0 if low == high else high - low
        return (low, high), bool(apart < self.kind.limit if self.kind.open else apart <= self.kind.limit)


_COMPARISONS = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}


@dataclass
class ReachCondition(FrameCondition):
    kind: ReachFrames

    def step(self, state: Any, value: Any) -> tuple[Any, bool]:
        aggregate = self.kind.aggregate
        if state is None:
            state = aggregate.identity()
        if value is not None or self.kind.argument is None:
            state = aggregate.combine(state, aggregate.lift(value))
        answer = aggregate.lower(state)
        if answer is None or answer != answer:
            return state, not self.kind.grows
        return state, bool(_COMPARISONS[self.kind.operator](float(answer), self.kind.limit))
