"""Cumulating windows: a tumbling window that also reports its contents so far at every step."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from panewise.core.errors import WindowProblem
from panewise.core.time import (
    Boundary,
    Domain,
    Instant,
    Ticks,
    ceil_to_grid,
    duration_text,
    floor_to_grid,
    grid_between,
)
from panewise.window.base import ALL_TIME, Contents, Edges, LogicalWindow, Pattern, WindowRetention, require_positive


@dataclass(frozen=True)
class Cumulate(LogicalWindow):
    """`[CUMULATE size STEP step START AT origin]`: from the start of the current size-long period to the instant."""

    size: int
    step: int
    origin: Instant | None = None

    retention = WindowRetention.ACCUMULATES

    def __post_init__(self) -> None:
        require_positive("size", self.size)
        require_positive("step", self.step)
        if self.size % self.step:
            raise WindowProblem(
                f"size {self.size} is no multiple of step {self.step}", fix="choose a step that divides the size"
            )

    @property
    def start(self) -> int:
        return self.origin.tick if self.origin else 0

    @property
    def longest(self) -> int:
        return self.size

    @property
    def time_span(self) -> tuple[int, int]:
        return (self.start, ALL_TIME[1]) if self.origin else ALL_TIME

    @property
    def edges(self) -> tuple[Edges, ...]:
        return (Edges(*self.grid),)

    @property
    def pattern(self) -> Pattern:
        return Pattern.WEAK

    @property
    def periodic(self) -> bool:
        return True

    @property
    def grid(self) -> tuple[int, int]:
        return self.start, self.step

    def scope(self, instants: Ticks, boundary: Boundary) -> tuple[Ticks, Ticks]:
        at = floor_to_grid(instants, self.start, self.step)
        low = self._period(at) + 1 - boundary.shift
        high = at - boundary.shift
        if self.origin:
            low = np.maximum(low, self.start)
            high = np.where(instants < self.start, self.start - 1, high)
        return low, high

    def instants(self, contents: Contents, boundary: Boundary) -> Ticks:
        times = np.unique(contents.times)
        if self.origin:
            times = times[times >= self.start]
        enters = times + boundary.shift
        return grid_between(enters, self._period(enters) + self.size, self.start, self.step)

    def next_instants(self, instants: Ticks) -> Ticks:
        return instants + self.step

    def spans(self, instants: Ticks) -> tuple[Ticks | None, Ticks]:
        # Between its instants the state is that of the earlier one.
        ends = floor_to_grid(instants, self.start, self.step)
        return self._period(ends), ends

    def period_end(self, at: int) -> int:
        return (self.bounds(at)[0] or 0) + self.size

    def lifetimes(self, times: Ticks, boundary: Boundary) -> tuple[Ticks, Ticks]:
        enters = times + boundary.shift
        first, after = ceil_to_grid(enters, self.start, self.step), self._period(enters) + self.size + self.step
        return first, np.where(times < self.start, first, after) if self.origin else after

    def anchor_to(self, first: int) -> Cumulate:
        return replace(self, origin=Instant(self.origin.on_day_of(first))) if self.origin else self

    def text(self, domain: Domain) -> str:
        origin = f" START AT {self.origin.text(domain)}" if self.origin else ""
        return f"CUMULATE {duration_text(self.size, domain)} STEP {duration_text(self.step, domain)}{origin}"

    def _period(self, instants: Ticks) -> Ticks:
        """Start of the period an instant closes or lies in; a period includes its end, not its start."""
        return floor_to_grid(instants - 1, self.start, self.size)
