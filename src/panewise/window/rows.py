"""Count-based windows, historical ones `[N_L, N_R]`, partitioned ones, and those that move by several tuples at once.

Papers: "Consistent results" section 3.3; "Resource sharing" section 2.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from panewise.core.errors import WindowProblem
from panewise.core.time import Boundary, Domain, Ticks, ceil_to_grid
from panewise.window.base import (
    Contents,
    Pattern,
    Window,
    WindowRetention,
    require_positive,
    require_whole,
    unique_instants,
)


@dataclass(frozen=True)
class Rows(Window):
    """`[PARTITION BY columns ROWS count SLIDE slide LAG lag]`: the last `count` tuples before the newest `lag` ones.

    Ties inside one timestamp are broken by arrival order. Without columns the stream is the only partition. With a
    slide tuples come in blocks of so many, each with its last tuple; late ones are counted when they come.
    """

    count: int
    lag: int = 0
    partition_by: tuple[str, ...] = ()
    slide: int | None = None

    retention = WindowRetention.COUNTS_ROWS

    def __post_init__(self) -> None:
        require_positive("count of rows", self.count)
        if self.slide is not None:
            require_positive("slide", self.slide)
        require_whole("lag", self.lag)
        if self.lag < 0:
            raise WindowProblem(f"lag {self.lag} is negative", fix="use zero or more, windows look back")

    @property
    def range(self) -> int:
        return self.count

    @property
    def step(self) -> int:
        return self.slide or 1

    @property
    def pattern(self) -> Pattern:
        """First in, first out within a partition, but not across partitions, nor if a whole state leaves at once."""
        disjoint = self.slide is not None and self.slide >= self.count
        return Pattern.WEAK if self.partition_by or disjoint else Pattern.WEAKEST

    @property
    def periodic(self) -> bool:
        """Partitions have no instants in common, so that each is reported when it changes."""
        return self.slide is not None and not self.partition_by

    @property
    def logical(self) -> bool:
        return False

    @property
    def items_wait(self) -> bool:
        return self.step > 1

    def scope(self, lengths: Ticks) -> tuple[Ticks, Ticks]:
        """First and last position (from 1) when the stream is that long; first > last where nothing is in."""
        last = lengths - lengths % self.step - self.lag
        return np.maximum(last - self.count + 1, 1), last

    def complete(self, contents: Contents) -> Ticks:
        order = self._coming_order(contents)
        return np.sort(order[: len(order) - len(order) % self.step])

    def members(self, contents: Contents, at: int, boundary: Boundary) -> Ticks:
        arrived = int(np.searchsorted(contents.times, at - boundary.shift, side="right"))
        come = Contents(contents.times[:arrived], contents.arrivals[:arrived], contents.marks[:arrived])
        complete = self.complete(come)
        first, last = self.scope(np.array([len(complete)], np.int64))
        return complete[first[0] - 1 : max(first[0] - 1, last[0])]

    def instants(self, contents: Contents, boundary: Boundary) -> Ticks:
        """When blocks come: with the last of their tuples."""
        lasts = self._coming_order(contents)[self.step - 1 :: self.step]
        return unique_instants(np.maximum(contents.times, contents.marks)[lasts] + boundary.shift)

    def _coming_order(self, contents: Contents) -> Ticks:
        """Positions in the order in which tuples count: late ones when they come, those of one instant by time."""
        return np.lexsort((contents.arrivals, contents.times, np.maximum(contents.times, contents.marks)))

    def spans(self, instants: Ticks) -> tuple[Ticks | None, Ticks]:
        return None, instants

    def expires_order(self, numbers: Ticks) -> Ticks:
        return ceil_to_grid(numbers + self.count + self.lag, 0, self.step)

    @property
    def partition_text(self) -> str:
        """How its clause begins, if it has partitions."""
        return f"PARTITION BY {', '.join(f'`{c}`' for c in self.partition_by)} " if self.partition_by else ""

    def text(self, domain: Domain) -> str:
        slide = f" SLIDE {self.slide}" if self.slide is not None else ""
        return f"{self.partition_text}ROWS {self.count}{slide}{f' LAG {self.lag}' if self.lag else ''}"


def historical_rows(left: int, right: int) -> Rows:
    """The papers' `S[N_L, N_R]`: positions `r - left + 1` to `r - right` of a stream of length r."""
    if right >= left:
        raise WindowProblem(f"historical window [{left}, {right}] is empty", fix="make the left end the larger one")
    return Rows(left - right, lag=right)
