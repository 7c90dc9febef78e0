"""What every window is: a function from an instant to a set of stream positions.

A spec is frozen data. It knows its scope, the instants at which it speaks, when an item leaves it and how regularly
(its update pattern). It holds no items and no state.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from enum import IntEnum

import numpy as np

from panewise.core.errors import WindowProblem
from panewise.core.time import MAX_TICK, MIN_TICK, Boundary, Domain, Ticks, ceil_to_grid, floor_to_grid


class Pattern(IntEnum):
    """How results change, from the calmest to the wildest ("Consistent results", section 2.3).

    The order is meant: the stronger of two patterns is `max` of them.
    """

    MONOTONIC = 0
    WEAKEST = 1
    WEAK = 2
    NON_MONOTONIC = 3

    @property
    def title(self) -> str:
        return ("monotonic", "weakest non-monotonic", "weak non-monotonic", "non-monotonic")[self]


@dataclass(frozen=True)
class Contents:
    """What a window looks at: the items of one partition that have arrived, ordered by time, then by arrival.

    `marks` holds, for each item, the watermark at the moment it arrived; `arrivals` its place in arrival order.
    """

    times: Ticks
    arrivals: Ticks
    marks: Ticks

    def __len__(self) -> int:
        return len(self.times)

    @classmethod
    def of(cls, times: Ticks) -> Contents:
        """Items that arrive in time order and are never late."""
        places = np.arange(len(times), dtype=np.int64)
        return cls(times, places, np.full(len(times), np.iinfo(np.int64).min))


class Window(ABC):
    """The contract of a window spec. Times handed in are always ascending."""

    #: Columns that split the stream before the window applies; every part has a window of its own.
    partition_by: tuple[str, ...] = ()

    @property
    @abstractmethod
    def pattern(self) -> Pattern:
        """The update pattern of the window's own state."""

    @property
    @abstractmethod
    def periodic(self) -> bool:
        """Whether it has instants of its own (SLIDE, sessions); otherwise it is reported when it changes."""

    @property
    def grid(self) -> tuple[int, int] | None:
        """Origin and step of its instants, where they are the points of a grid."""
        return None

    @property
    @abstractmethod
    def logical(self) -> bool:
        """Whether time alone decides what is in; physical windows count tuples instead."""

    @abstractmethod
    def members(self, contents: Contents, at: int, boundary: Boundary) -> Ticks:
        """Positions in `contents` (which holds no item after `at`) of the window's state at an instant."""

    @abstractmethod
    def instants(self, contents: Contents, boundary: Boundary) -> Ticks:
        """Every instant, ascending, at which a window over all of `contents` reports or may change."""

    @abstractmethod
    def spans(self, instants: Ticks) -> tuple[Ticks | None, Ticks]:
        """`w_start` and `w_end` of the states at some instants; None for windows that start nowhere."""

    def bounds(self, at: int) -> tuple[int | None, int]:
        """The same at one instant."""
        starts, ends = self.spans(np.array([at], np.int64))
        return None if starts is None else int(starts[0]), int(ends[0])

    @abstractmethod
    def text(self, domain: Domain) -> str:
        """The clause in CQL, without brackets, in the units of that domain."""

    def expires_at(self, times: Ticks, boundary: Boundary) -> Ticks | None:
        """The instant at which items of these times leave; None when no time can be told."""
        return None

    def expires_order(self, count: int) -> Ticks | None:
        """For items number 1 to `count`, the admission that pushes each out; None unless tuples are counted."""
        return None

    def instants_from(self, instants: Ticks) -> Ticks:
        """The first of its instants that is not before each of these; FOREVER where it has none any more."""
        return ceil_to_grid(instants, *self.grid) if self.grid else instants

    def state_instant(self, at: int) -> int:
        """The instant whose state stands at another one: the last of its own, if it has a grid of them."""
        return int(floor_to_grid(np.array([at], np.int64), *self.grid)[0]) if self.grid else at

    def next_instants(self, instants: Ticks) -> Ticks:
        """For a periodic window, the next instant after each: until then the state stands."""
        return instants

    def anchor_to(self, first: int) -> Window:
        """The same window with times of day resolved against the stream's first item."""
        return self


#: An instant after all others, at which what never leaves would.
FOREVER = 2**62 + 1


class LogicalWindow(Window):
    """A window that time alone decides: its scope function says which ticks are in."""

    @property
    def logical(self) -> bool:
        return True

    @abstractmethod
    def scope(self, instants: Ticks, boundary: Boundary) -> tuple[Ticks, Ticks]:
        """First and last tick in scope at each instant, both inclusive; first > last says that nothing is."""

    def lifetimes(self, times: Ticks, boundary: Boundary) -> tuple[Ticks, Ticks]:
        """The first instant at which items of these times are in, and the first at which they are not any more."""
        raise TypeError(f"items may come back to a {type(self).__name__} window")

    @property
    def max_lifetime(self) -> int:
        """How long after its time an item is in at most."""
        raise TypeError(f"nobody knows how long items stay in a {type(self).__name__} window")

    def members(self, contents: Contents, at: int, boundary: Boundary) -> Ticks:
        low, high = self.scope(np.array([at], np.int64), boundary)
        first = int(np.searchsorted(contents.times, low[0], side="left"))
        last = int(np.searchsorted(contents.times, high[0], side="right"))
        return np.arange(first, max(first, last), dtype=np.int64)


def require_positive(name: str, value: int) -> None:
    """Refuse a length that is not positive."""
    require_whole(name, value)
    if value <= 0:
        raise WindowProblem(f"{name} {value} is not positive", fix="use at least 1")


def require_whole(name: str, value: int) -> None:
    """Refuse what is no number of ticks or rows, whatever the caller's type checker said."""
    if not isinstance(value, int | np.integer):
        raise WindowProblem(f"{name} {value!r} is not a whole number", fix="count ticks or rows")
    if not MIN_TICK < value < MAX_TICK:
        raise WindowProblem(f"{name} {value} is longer than time itself", fix="use a shorter one")


def unique_instants(*instants: Ticks) -> Ticks:
    """All of these instants, ascending, each once."""
    return np.unique(np.concatenate(instants)) if instants else np.empty(0, np.int64)
