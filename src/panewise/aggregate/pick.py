"""The state of aggregates that pick one of their values: that value, or None where there is none yet."""

from __future__ import annotations

from typing import Any

from panewise.aggregate.base import Aggregate


class PickAggregate(Aggregate[Any]):
    """Base of the aggregates whose answer is one of the values. None is the identity, since no type has a spare one."""

    def identity(self) -> Any:
        return None

    def lift(self, value: Any) -> Any:
        return value

    def combine(self, left: Any, right: Any) -> Any:
        return self.meaning([v for v in (left, right) if v is not None])

    def lower(self, state: Any) -> Any:
        return state
