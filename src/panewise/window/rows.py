"""Count-based windows, historical ones `[N_L, N_R]`, and partitioned ones.

Papers: "Consistent results" section 3.3; "Resource sharing" section 2.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from panewise.core.errors import WindowProblem
from panewise.core.time import Boundary, Domain, Ticks
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
    """`[PARTITION BY columns ROWS count LAG lag]`: the last `count` tuples before the newest `lag` ones.

    Ties inside one timestamp are broken by arrival order. Without columns the stream is the only partition.
    """

    count: int
    lag: int = 0
    partition_by: tuple[str, ...] = ()

    retention = WindowRetention.COUNTS_ROWS

    def __post_init__(self) -> None:
        require_positive("count of rows", self.count)
        require_whole("lag", self.lag)
        if self.lag < 0:
            raise WindowProblem(f"lag {self.lag} is negative", fix="use zero or more, windows look back")

    @property
    def pattern(self) -> Pattern:
        """First in, first out within a partition, but not across partitions."""
        return Pattern.WEAK if self.partition_by else Pattern.WEAKEST

    @property
    def periodic(self) -> bool:
        return False

    @property
    def logical(self) -> bool:
        return False

    def scope(self, lengths: Ticks) -> tuple[Ticks, Ticks]:
        """First and last position (from 1) when the stream is that long; first > last where nothing is in."""
        return np.maximum(lengths - self.lag - self.count + 1, 1), lengths - self.lag

    def members(self, contents: Contents, at: int, boundary: Boundary) -> Ticks:
        arrived = int(np.searchsorted(contents.times, at - boundary.shift, side="right"))
        first, last = self.scope(np.array([arrived], np.int64))
        return np.arange(first[0] - 1, max(first[0] - 1, last[0]), dtype=np.int64)

    def instants(self, contents: Contents, boundary: Boundary) -> Ticks:
        return unique_instants(contents.times + boundary.shift)

    def spans(self, instants: Ticks) -> tuple[Ticks | None, Ticks]:
        return None, instants

    def expires_order(self, numbers: Ticks) -> Ticks | None:
        return numbers + self.count + self.lag

    def text(self, domain: Domain) -> str:
        parts = f"PARTITION BY {', '.join(f'`{c}`' for c in self.partition_by)} " if self.partition_by else ""
        return f"{parts}ROWS {self.count}{f' LAG {self.lag}' if self.lag else ''}"


def historical_rows(left: int, right: int) -> Rows:
    """The papers' `S[N_L, N_R]`: positions `r - left + 1` to `r - right` of a stream of length r."""
    if right >= left:
        raise WindowProblem(f"historical window [{left}, {right}] is empty", fix="make the left end the larger one")
    return Rows(left - right, lag=right)
