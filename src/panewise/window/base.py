"""What every window is: a function from an instant to a set of stream positions.

A spec is frozen data. Its methods return its scope, the instants at which it reports, when an item leaves it, how
regularly (its update pattern), and how its items can be kept (its retention). It holds no items and no state. Planner
and engine call these methods and never test the class of a window, so that a new kind is one new class.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from enum import Enum, IntEnum, auto
from typing import Self

import numpy as np

from panewise.core.errors import WindowProblem
from panewise.core.scalar import Scalar
from panewise.core.time import MAX_TICK, MIN_TICK, UNITS, Boundary, Domain, Ticks, ceil_to_grid, floor_to_grid

#: An instant after all others: items that never leave would leave then.
FOREVER = 2**62 + 1
#: The first and last tick of a window that starts and ends nowhere.
ALL_TIME = MIN_TICK, MAX_TICK


class Pattern(IntEnum):
    """How results change, from the most to the least regular ("Consistent results", section 2.3).

    The order matters: the stronger of two patterns is `max` of them.
    """

    MONOTONIC = 0
    WEAKEST = 1
    WEAK = 2
    NON_MONOTONIC = 3

    @property
    def title(self) -> str:
        return ("monotonic", "weakest non-monotonic", "weak non-monotonic", "non-monotonic")[self]


class WindowRetention(Enum):
    """How a window keeps its items, from which the planner and the engine choose what computes it."""

    #: A fixed length of time up to the instant: it is a `Sliding` window, and shares panes and a chain with others.
    SLIDES = auto()
    #: Everything since a start that is fixed, for ever or for a period: one growing total.
    ACCUMULATES = auto()
    #: Any one stretch of time: panes are kept as they are and combined again at every instant.
    LOOKS_BACK = auto()
    #: A fixed number of the newest rows: it is a `Rows` window.
    COUNTS_ROWS = auto()
    #: Items that follow each other closely: it is a `Session` window.
    FOLLOWS_SESSIONS = auto()
    #: The engine has nothing to keep it in: the planner refuses it, and the reference answers.
    REFERENCE_ONLY = auto()


@dataclass(frozen=True)
class Edges:
    """All positions `residue + k * step`: one bound of a window at all its instants."""

    residue: int
    step: int


@dataclass(frozen=True)
class Contents:
    """What a window is computed from: the items of one partition that have arrived, ordered by time, then by arrival.

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

    #: The windows it consists of, finest first; none for a single window.
    levels: tuple[Window, ...] = ()
    #: A condition that items must satisfy to be in.
    condition: Scalar | None = None
    #: How long after its time, in ticks or rows, an item is taken in.
    lag: int = 0
    #: Whether items may come back after they have left.
    items_return: bool = False

    @classmethod
    def of(cls, window: Window) -> Self:
        """A window that is known to be of this kind by its retention; any other is refused."""
        if not isinstance(window, cls):
            raise WindowProblem(
                f"a window of kind {type(window).__name__} is not kept like a {cls.__name__} window",
                fix="let the kind answer another retention",
            )
        return window

    def unsupported_retention(self) -> WindowProblem:
        """The problem of a part of the engine that has nothing to keep this window in."""
        return WindowProblem(
            f"a window of kind {type(self).__name__} that is {self.retention.name} cannot be kept here",
            fix="let the kind answer another retention",
        )

    @property
    def partition_by(self) -> tuple[str, ...]:
        """Columns that split the stream before the window applies; every part has a window of its own."""
        return ()

    @property
    @abstractmethod
    def retention(self) -> WindowRetention:
        """How it keeps its items."""

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

    def complete(self, contents: Contents) -> Ticks:
        """Positions in `contents` of the items that do not wait for others."""
        return np.arange(len(contents), dtype=np.int64)

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
        """The instant at which items of these times leave; None where that is not known."""
        return None

    def expires_order(self, numbers: Ticks) -> Ticks | None:
        """For items of these numbers, from 1 on, the number of the item that pushes each out; None unless it counts."""
        return None

    def instants_from(self, instants: Ticks) -> Ticks:
        """The first of its instants that is not before each of these; FOREVER where it has none any more."""
        return ceil_to_grid(instants, *self.grid) if self.grid else instants

    def state_instant(self, at: int) -> int:
        """The instant whose state holds at another one: the last instant of the grid before it, if there is a grid."""
        return int(floor_to_grid(np.array([at], np.int64), *self.grid)[0]) if self.grid else at

    def next_instants(self, instants: Ticks) -> Ticks:
        """For a periodic window, the next instant after each; until then the state holds."""
        return instants

    def anchor_to(self, first: int) -> Window:
        """The same window with times of day resolved against the stream's first item."""
        return self

    @property
    def has_time_of_day(self) -> bool:
        """Whether it starts or ends at a time of day, whose date only the first item decides."""
        return self.anchor_to(0) != self.anchor_to(UNITS["DAY"])

    @property
    def time_span(self) -> tuple[int, int]:
        """The first and last tick that count at all: a window that starts or ends somewhere is a filter on time."""
        return ALL_TIME

    @property
    def longest(self) -> int | None:
        """How many ticks, counted from its lag on, it looks back over at most; None without a limit."""
        return None

    @property
    def reaches_now(self) -> bool:
        """Whether the newest item is always in scope: then the most recent of equal rows is always in the window."""
        return False

    @property
    def single_windows(self) -> tuple[Window, ...]:
        """Its levels, or the window itself."""
        return self.levels or (self,)

    @property
    def edges(self) -> tuple[Edges, ...]:
        """Where its scopes begin and end, which is where panes must end; nowhere if time alone does not decide."""
        return ()

    @property
    def needed_columns(self) -> set[str]:
        """The columns that decide which items are in it: those of partitions and of its condition."""
        return {*self.partition_by, *(self.condition.inputs if self.condition else ())}

    @property
    def lasting(self) -> bool:
        """Whether items stay in it for ever if no others come."""
        return self.pattern is Pattern.MONOTONIC or self.retention is WindowRetention.COUNTS_ROWS

    @property
    def unbounded(self) -> bool:
        """Whether items enter for ever and none ever leaves."""
        return self.pattern is Pattern.MONOTONIC and self.time_span[1] == MAX_TICK

    @property
    def items_wait(self) -> bool:
        """Whether items wait until more of them have come, so that not every item changes the window."""
        return False

    @property
    def expires_by_time(self) -> bool:
        """Whether the instant at which an item leaves is known when the window is reported."""
        return not self.lasting and not self.items_return

    @property
    def needs_newest(self) -> bool:
        """Whether its last instant depends on the newest item, even on one that belongs to no group."""
        return self.logical and (self.lasting or self.retention is WindowRetention.LOOKS_BACK)

    def admitted_times(self, boundary: Boundary) -> tuple[int, int]:
        """The first and last time of items that count at all."""
        return self.time_span


class LogicalWindow(Window):
    """A window that time alone decides: its scope function returns the ticks that are in."""

    @property
    def logical(self) -> bool:
        return True

    @abstractmethod
    def scope(self, instants: Ticks, boundary: Boundary) -> tuple[Ticks, Ticks]:
        """First and last tick in scope at each instant, both inclusive; first > last where nothing is in scope."""

    @abstractmethod
    def lifetimes(self, times: Ticks, boundary: Boundary) -> tuple[Ticks, Ticks]:
        """The first instant at which items of these times are in, and the first from which on they never are."""

    @property
    def max_lifetime(self) -> int:
        """How long after its time an item is in at most; FOREVER without a limit."""
        return FOREVER if self.longest is None else self.lag + self.longest + (self.grid or (0, 1))[1]

    @property
    def closing_instant(self) -> int:
        """The last instant at which something new can be in."""
        return FOREVER

    def period_end(self, at: int) -> int | None:
        """For a window that accumulates, the last instant before it starts again; None where it never does."""
        if self.pattern is Pattern.MONOTONIC:
            return None
        raise WindowProblem(
            f"a window of kind {type(self).__name__} does not define when it starts again", fix="define period_end"
        )

    @property
    def edges(self) -> tuple[Edges, ...]:
        # Single ticks are right for every window, but make panes as narrow as they can be.
        return (Edges(0, 1),)

    def expires_at(self, times: Ticks, boundary: Boundary) -> Ticks | None:
        return self.lifetimes(times, boundary)[1] if self.expires_by_time else None

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
    """Refuse a value that is no number of ticks or rows."""
    if not isinstance(value, int | np.integer):
        raise WindowProblem(f"{name} {value!r} is not a whole number", fix="count ticks or rows")
    if not MIN_TICK < value < MAX_TICK:
        raise WindowProblem(f"{name} {value} is longer than time itself", fix="use a shorter one")


def unique_instants(*instants: Ticks) -> Ticks:
    """All of these instants, ascending, each once."""
    return np.unique(np.concatenate(instants)) if instants else np.empty(0, np.int64)
