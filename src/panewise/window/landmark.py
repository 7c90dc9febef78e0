"""Landmark windows: one bound is fixed, or both are.

Paper: "Consistent results" section 3.2, lower-bounded, upper-bounded and fixed-band windows.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from panewise.core.errors import WindowProblem
from panewise.core.time import (
    MAX_TICK,
    MIN_TICK,
    Boundary,
    Domain,
    Instant,
    Ticks,
    ceil_to_grid,
    duration_text,
    floor_to_grid,
    grid_between,
)
from panewise.window.base import FOREVER, Contents, Edges, LogicalWindow, Pattern, WindowRetention, require_positive


@dataclass(frozen=True)
class Landmark(LogicalWindow):
    """`[UNBOUNDED]`, `[UNBOUNDED START AT lower]`, `[UNTIL upper]`, `[FROM lower UNTIL upper]`.

    The lower bound is in. The upper one is in too, except under the boundary `[)`. Nothing ever leaves. With a
    slide, the state is refreshed and reported only at multiples of it.
    """

    lower: Instant | None = None
    upper: Instant | None = None
    slide: int | None = None

    retention = WindowRetention.ACCUMULATES

    def __post_init__(self) -> None:
        if self.slide is not None:
            require_positive("slide", self.slide)
        if self.lower and self.upper and self.lower.of_day == self.upper.of_day and self.upper.tick < self.lower.tick:
            raise WindowProblem(
                f"the window ends at {self.upper.tick}, before it starts at {self.lower.tick}", fix="exchange the two"
            )

    @property
    def first(self) -> int:
        return self.lower.tick if self.lower else MIN_TICK

    @property
    def last(self) -> int:
        return self.upper.tick if self.upper else MAX_TICK

    @property
    def closing_instant(self) -> int:
        if self.upper is None:
            return FOREVER
        return int(ceil_to_grid(np.array([self.last], np.int64), *(self.grid or (0, 1)))[0])

    @property
    def time_span(self) -> tuple[int, int]:
        return self.first, self.last

    def admitted_times(self, boundary: Boundary) -> tuple[int, int]:
        return self.first, self.last - boundary.shift if self.upper else self.last

    @property
    def edges(self) -> tuple[Edges, ...]:
        return (Edges(*(self.grid or (0, 1))),)

    @property
    def reaches_now(self) -> bool:
        return self.upper is None and self.slide is None

    @property
    def pattern(self) -> Pattern:
        return Pattern.MONOTONIC

    @property
    def periodic(self) -> bool:
        return self.slide is not None

    @property
    def grid(self) -> tuple[int, int] | None:
        return (self.lower.tick if self.lower else 0, self.slide) if self.slide is not None else None

    def scope(self, instants: Ticks, boundary: Boundary) -> tuple[Ticks, Ticks]:
        now = floor_to_grid(instants, *(self.grid or (0, 1))) - boundary.shift
        first, last = self.admitted_times(boundary)
        return np.full_like(now, first), np.minimum(now, last)

    def instants(self, contents: Contents, boundary: Boundary) -> Ticks:
        first, last = self.admitted_times(boundary)
        times = np.unique(contents.times)
        enters = times[(times >= first) & (times <= last)] + boundary.shift
        if self.slide is None:
            return enters
        return grid_between(enters[:1], enters[-1:] + self.slide - 1, *(self.grid or (0, 1)))

    def lifetimes(self, times: Ticks, boundary: Boundary) -> tuple[Ticks, Ticks]:
        enters = ceil_to_grid(times + boundary.shift, *(self.grid or (0, 1)))
        first, last = self.admitted_times(boundary)
        return enters, np.where((times < first) | (times > last), enters, FOREVER)

    def state_instant(self, at: int) -> int:
        return min(super().state_instant(at), self.closing_instant) if self.grid else at

    def instants_from(self, instants: Ticks) -> Ticks:
        found = super().instants_from(instants)
        return np.where(found > self.closing_instant, FOREVER, found) if self.grid else found

    def spans(self, instants: Ticks) -> tuple[Ticks | None, Ticks]:
        starts = np.full_like(instants, self.lower.tick) if self.lower else None
        return starts, np.minimum(instants, self.last)

    def anchor_to(self, first: int) -> Landmark:
        def fix(bound: Instant | None) -> Instant | None:
            return Instant(bound.on_day_of(first)) if bound else None

        return replace(self, lower=fix(self.lower), upper=fix(self.upper))

    def text(self, domain: Domain) -> str:
        slide = f" SLIDE {duration_text(self.slide, domain)}" if self.slide is not None else ""
        lower = self.lower.text(domain) if self.lower else None
        upper = self.upper.text(domain) if self.upper else None
        match lower, upper:
            case None, None:
                return f"UNBOUNDED{slide}"
            case _, None:
                return f"UNBOUNDED START AT {lower}{slide}"
            case None, _:
                return f"UNTIL {upper}{slide}"
        return f"FROM {lower} UNTIL {upper}{slide}"
