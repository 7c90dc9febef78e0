"""Time-based sliding windows, and tumbling, hopping, NOW and historical ones as their parameters.

Paper: "Consistent results" section 3.2; lag: "Resource sharing" section 2, windows `S[T_L, T_R]`.
"""

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
from panewise.window.base import (
    ALL_TIME,
    Contents,
    Edges,
    LogicalWindow,
    Pattern,
    WindowRetention,
    require_positive,
    require_whole,
    unique_instants,
)


@dataclass(frozen=True)
class Sliding(LogicalWindow):
    """`[RANGE range SLIDE slide LAG lag START AT origin]`: the last `range` ticks, moved every `slide` ticks.

    Without a slide the window moves with every tick and is reported when it changes. Without an origin its instants
    are multiples of the slide; with one the window starts empty there, half-filled until `origin + range`.
    """

    range: int
    slide: int | None = None
    lag: int = 0
    origin: Instant | None = None

    retention = WindowRetention.SLIDES

    def __post_init__(self) -> None:
        require_positive("range", self.range)
        if self.slide is not None:
            require_positive("slide", self.slide)
        require_whole("lag", self.lag)
        if self.lag < 0:
            raise WindowProblem(f"lag {self.lag} is negative", fix="use zero or more, windows look back")

    @property
    def step(self) -> int:
        return self.slide or 1

    @property
    def start(self) -> int:
        return self.origin.tick if self.origin else 0

    @property
    def longest(self) -> int:
        return self.range

    @property
    def time_span(self) -> tuple[int, int]:
        return (self.start, ALL_TIME[1]) if self.origin else ALL_TIME

    @property
    def edges(self) -> tuple[Edges, ...]:
        last = self.start - self.lag
        return Edges(last, self.step), Edges(last - self.range, self.step)

    @property
    def reaches_now(self) -> bool:
        return self.slide is None and not self.lag

    @property
    def pattern(self) -> Pattern:
        """Items leave first in, first out; when states do not overlap, a whole state leaves at once."""
        return Pattern.WEAK if self.slide is not None and self.slide >= self.range else Pattern.WEAKEST

    @property
    def periodic(self) -> bool:
        return self.slide is not None

    @property
    def grid(self) -> tuple[int, int] | None:
        return (self.start, self.slide) if self.slide is not None else None

    def scope(self, instants: Ticks, boundary: Boundary) -> tuple[Ticks, Ticks]:
        high = floor_to_grid(instants, self.start, self.step) - self.lag - boundary.shift
        low = high - self.range + 1
        if self.origin:
            low = np.maximum(low, self.start)
            high = np.where(instants < self.start, self.start - 1, high)
        return low, high

    def instants(self, contents: Contents, boundary: Boundary) -> Ticks:
        times = np.unique(contents.times)
        if self.origin:
            times = times[times >= self.start]
        enters = times + self.lag + boundary.shift
        if not self.periodic:
            return unique_instants(enters, enters + self.range)
        return grid_between(enters, enters + self.range - 1, self.start, self.step)

    def next_instants(self, instants: Ticks) -> Ticks:
        return instants + self.step

    def spans(self, instants: Ticks) -> tuple[Ticks | None, Ticks]:
        # Between its instants the state is that of the earlier one.
        ends = floor_to_grid(instants, self.start, self.step) - self.lag
        return ends - self.range, ends

    def lifetimes(self, times: Ticks, boundary: Boundary) -> tuple[Ticks, Ticks]:
        enters = times + (self.lag + boundary.shift)
        if not (self.slide or self.origin):
            return enters, enters + self.range
        first, after = (ceil_to_grid(instants, self.start, self.step) for instants in (enters, enters + self.range))
        return first, np.where(times < self.start, first, after) if self.origin else after

    def anchor_to(self, first: int) -> Sliding:
        return replace(self, origin=Instant(self.origin.on_day_of(first))) if self.origin else self

    def text(self, domain: Domain) -> str:
        if self == NOW:
            return "NOW"
        words = [f"RANGE {duration_text(self.range, domain)}"]
        if self.slide is not None:
            words.append(f"SLIDE {duration_text(self.slide, domain)}")
        if self.lag:
            words.append(f"LAG {duration_text(self.lag, domain)}")
        if self.origin:
            words.append(f"START AT {self.origin.text(domain)}")
        return " ".join(words)


#: The current instance of the stream: one tick, at every tick.
NOW = Sliding(1)


def tumbling(size: int, origin: Instant | None = None) -> Sliding:
    """Consecutive disjoint windows: a sliding window whose slide is its range."""
    return Sliding(size, slide=size, origin=origin)


def historical(left: int, right: int, slide: int | None = None) -> Sliding:
    """The papers' `S[T_L, T_R]`: ticks `[t - left + 1, t - right]`."""
    if right >= left:
        raise WindowProblem(f"historical window [{left}, {right}] is empty", fix="make the left end the larger one")
    return Sliding(left - right, slide=slide, lag=right)
