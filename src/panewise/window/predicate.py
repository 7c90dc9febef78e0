"""Predicate (value-based) windows: every item so far that satisfies a condition on its own values.

Paper: "Consistent results" section 3.1, window conditions on attributes other than time.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from panewise.core.scalar import Scalar
from panewise.core.time import Boundary, Domain, Ticks
from panewise.window.base import Contents, LogicalWindow, Pattern, WindowRetention
from panewise.window.landmark import Landmark

_EVERYTHING = Landmark()


@dataclass(frozen=True)
class Predicate(LogicalWindow):
    """`[WHERE condition]`. Its scope in time is unbounded; the condition is checked by the host, item by item."""

    condition: Scalar = field()

    retention = WindowRetention.ACCUMULATES

    @property
    def pattern(self) -> Pattern:
        return Pattern.MONOTONIC

    @property
    def periodic(self) -> bool:
        return False

    def scope(self, instants: Ticks, boundary: Boundary) -> tuple[Ticks, Ticks]:
        return _EVERYTHING.scope(instants, boundary)

    def instants(self, contents: Contents, boundary: Boundary) -> Ticks:
        return _EVERYTHING.instants(contents, boundary)

    def lifetimes(self, times: Ticks, boundary: Boundary) -> tuple[Ticks, Ticks]:
        return _EVERYTHING.lifetimes(times, boundary)

    def spans(self, instants: Ticks) -> tuple[Ticks | None, Ticks]:
        return _EVERYTHING.spans(instants)

    def text(self, domain: Domain) -> str:
        return "WHERE " + self.condition.sql.replace("`", "")
