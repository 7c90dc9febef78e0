"""Followers for frames that overlap, or whose end depends on each item: they take the items of a group one by one.

After a restart a follower is made again from the items that it still needs, so that only the number of the first of
these is stored.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from panewise.core.errors import StateProblem
from panewise.engine.frames.conditions import BoundaryCondition, DeltaCondition, FrameCondition, ReachCondition
from panewise.frame.frame import (
    BetweenFrames,
    BoundaryFrames,
    CustomFrames,
    DeltaFrames,
    DensityFrames,
    Frame,
    FrameKind,
    ReachFrames,
    Scheme,
)
from panewise.frame.functions import FramingFunction, framing_function
from panewise.frame.scan import scan_chance

#: First and last item of a stretch, counted from the first item of the group.
ItemRange = tuple[int, int]


@dataclass(frozen=True)
class FrameItem:
    time: int
    values: tuple[Any, ...]


class ItemBuffer:
    """Items by number; the oldest are dropped."""

    def __init__(self, first: int = 0) -> None:
        self._first, self._items = first, list[FrameItem]()

    @property
    def first(self) -> int:
        """The number of the oldest item in the buffer, or of the next item if it is empty."""
        return self._first

    @property
    def next(self) -> int:
        return self._first + len(self._items)

    def __contains__(self, number: int) -> bool:
        return self._first <= number < self.next

    def __getitem__(self, number: int) -> FrameItem:
        return self._items[number - self._first]

    def __iter__(self) -> Iterator[tuple[int, FrameItem]]:
        return enumerate(self._items, self._first)

    def append(self, item: FrameItem) -> None:
        self._items.append(item)

    def drop_before(self, oldest: int) -> None:
        """Drop items that are not needed any more; many together, since a list is slow at its head."""
        if oldest - self._first > len(self._items) // 2:
            del self._items[: oldest - self._first]
            self._first = oldest


class Follower(ABC):
    """Finds the frames of one group. Items are numbered; those before `oldest` are not needed any more."""

    def __init__(self, first: int = 0) -> None:
        self.items = ItemBuffer(first)
        #: The frame that ended with the last item, where the next one may begin inside of it.
        self.ended: ItemRange | None = None
        #: The last item of the frames so far, where later frames must end after it.
        self.reached = -1

    def resume(self, ended: ItemRange | None, reached: int, items: ItemBuffer) -> None:
        """Take over, after a restart, what the items that are taken again do not tell."""
        self.reached = reached
        if ended:
            self.ended, self.items = ended, items

    @property
    def next(self) -> int:
        """The number of the next item."""
        return self.items.next

    def push(self, item: FrameItem) -> list[ItemRange]:
        """Take one more item; returns the stretches that have become certain, by start."""
        self.items.append(item)
        found = self._follow(self.next - 1, item)
        self.items.drop_before(self.oldest)
        return found

    @abstractmethod
    def _follow(self, number: int, item: FrameItem) -> list[ItemRange]: ...

    def advance_to(self, last: int) -> list[ItemRange]:
        """Note that no more items up to a time are expected; returns the stretches that this makes certain."""
        return []

    @abstractmethod
    def finish(self) -> list[ItemRange]:
        """The stretches that the end of the stream makes certain."""

    @property
    @abstractmethod
    def oldest(self) -> int:
        """The first item that it needs after a restart, and that may still become part of a stretch."""


# ---- kinds that divide the stream --------------------------------------------------------------------------------


class ChainFollower(Follower):
    """Each frame decides where the next one begins."""

    def __init__(self, frame: Frame, condition: FrameCondition, first: int = 0) -> None:
        super().__init__(first)
        self.frame, self.condition, self.grows = frame, condition, frame.kind.grows
        self.start, self.at, self.state = first, first, None

    @property
    def oldest(self) -> int:
        return self.ended[0] + 1 if self.ended else self.start

    def _follow(self, number: int, item: FrameItem) -> list[ItemRange]:
        found: list[ItemRange] = []
        if self.ended:
            self._begin(self._after(*self.ended))
            self.ended = None
        while self.at <= number:
            self._step(found)
            if self.ended:
                if self.ended[1] == number and self._overlaps(*self.ended):
                    break
                self._begin(self._after(*self.ended))
                self.ended = None
        return found

    def _step(self, found: list[ItemRange]) -> None:
        self.state, holds = self.condition.step(self.state, self._value(self.at))
        if self.grows and holds:
            self.ended = self.start, self.at
            found.append(self.ended)
        elif not self.grows and not holds:
            if self.at > self.start:
                self.ended = self.start, self.at - 1
                found.append(self.ended)
            else:
                self._begin(self.start + 1)
            return
        self.at += 1

    def _begin(self, start: int) -> None:
        self.start, self.at, self.state = start, start, None

    def _overlaps(self, first: int, last: int) -> bool:
        """Whether the frame after this one begins with one of its items."""
        return self.frame.effective_scheme is Scheme.ADJACENT and first < last

    def _after(self, first: int, last: int) -> int:
        if not self._overlaps(first, last):
            return last + 1
        earliest = self.items[last].time - self.frame.overlap
        return next(n for n in range(first + 1, self.next) if self.items[n].time >= earliest)

    def _value(self, number: int) -> Any:
        return value_of(self.items[number])

    def finish(self) -> list[ItemRange]:
        unfinished = not self.grows and not self.ended and self.start < self.next
        return [(self.start, self.next - 1)] if unfinished else []


class EveryItemFollower(Follower):
    """A frame begins with every item."""

    def __init__(self, frame: Frame, condition: FrameCondition, first: int = 0) -> None:
        super().__init__(first)
        self.condition, self.grows = condition, frame.kind.grows
        self.advancing = frame.effective_scheme is Scheme.ADVANCING
        self.open: dict[int, Any] = {}
        #: Where frames end that begin before one that is still open; None for items that begin none.
        self.ends: dict[int, int | None] = {}
        self.resolved = first

    @property
    def oldest(self) -> int:
        return self.resolved

    def _follow(self, number: int, item: FrameItem) -> list[ItemRange]:
        value = value_of(item)
        self.open[number] = None
        for start in list(self.open):
            self.open[start], holds = self.condition.step(self.open[start], value)
            if holds == self.grows:
                del self.open[start]
                last = number if self.grows else number - 1
                self.ends[start] = last if last >= start else None
        return self._certain_ranges()

    def _certain_ranges(self) -> list[ItemRange]:
        found: list[ItemRange] = []
        while self.resolved in self.ends:
            last = self.ends.pop(self.resolved)
            if last is not None and not (self.advancing and last <= self.reached):
                found.append((self.resolved, last))
                self.reached = last
            self.resolved += 1
        return found

    def finish(self) -> list[ItemRange]:
        for start in self.open:
            self.ends[start] = None if self.grows else self.next - 1
        self.open = {}
        return self._certain_ranges()


# ---- other kinds -------------------------------------------------------------------------------------------------


class NestedFollower(Follower):
    """Frames that begin inside each other and end together."""

    def __init__(self, first: int = 0) -> None:
        super().__init__(first)
        self.opened: list[int] = []

    @property
    def oldest(self) -> int:
        return self.opened[0] if self.opened else self.next

    def _follow(self, number: int, item: FrameItem) -> list[ItemRange]:
        starts, ends = item.values[:2]
        if self.opened and ends is True:
            found = [(first, number) for first in self.opened]
            self.opened = []
            return found
        if starts is True:
            self.opened.append(number)
        return []

    def finish(self) -> list[ItemRange]:
        return []


class DensityFollower(Follower):
    """So many items in so short a time, and all such stretches that share items with it."""

    def __init__(self, kind: DensityFrames, first: int = 0) -> None:
        super().__init__(first)
        self.kind = kind
        self.crowd: ItemRange | None = None
        #: Items before this one are too old to be in a crowd with any that is to come.
        self.fresh = first

    @property
    def oldest(self) -> int:
        recent = self.next - self.kind.count + 1
        return max(min(self.crowd[0], recent) if self.crowd else max(recent, self.fresh), self.items.first)

    def advance_to(self, last: int) -> list[ItemRange]:
        found = self.finish() if self.crowd and self._is_stale(self.crowd[1], last) else []
        if self.crowd is None:
            self.fresh = self.oldest
            while self.fresh in self.items and self._is_stale(self.fresh, last):
                self.fresh += 1
        self.items.drop_before(self.oldest)
        return found

    def _is_stale(self, number: int, last: int) -> bool:
        return self.items[number].time + self.kind.per <= last

    def _follow(self, number: int, item: FrameItem) -> list[ItemRange]:
        found: list[ItemRange] = []
        first = number - self.kind.count + 1
        if self.crowd and first > self.crowd[1]:
            found = self.finish()
        if first in self.items and item.time - self.items[first].time < self.kind.per:
            self.crowd = (self.crowd[0] if self.crowd else first), number
        return found

    def finish(self) -> list[ItemRange]:
        crowd, self.crowd = self.crowd, None
        return (
            [crowd] if crowd and self._is_unlikely([self.items[n].time for n in range(crowd[0], crowd[1] + 1)]) else []
        )

    def _is_unlikely(self, times: Sequence[int]) -> bool:
        if self.kind.chance is None or self.kind.expected is None:
            return True
        most, low = 0, 0
        for high, time in enumerate(times):
            while time - times[low] >= self.kind.per:
                low += 1
            most = max(most, high - low + 1)
        windows = max((times[-1] - times[0]) / self.kind.per, 2.0)
        return scan_chance(most, self.kind.expected, windows) <= self.kind.chance


class CustomFollower(Follower):
    """Calls a framing function of the user."""

    def __init__(self, function: FramingFunction, first: int = 0) -> None:
        super().__init__(first)
        self.function = function
        self.start: int | None = None
        self.state: Any = None

    @property
    def oldest(self) -> int:
        return self.next if self.start is None else self.start

    def _follow(self, number: int, item: FrameItem) -> list[ItemRange]:
        value, found = value_of(item), []
        if self.start is not None:
            self.state = self._call_function(self.function.update, self.state, item.time, value)
            if self.state is not None:
                return []
            found = [(self.start, number - 1)]
        self.state = self._call_function(self.function.open, item.time, value)
        self.start = None if self.state is None else number
        return found

    def _call_function(self, question: Callable[..., Any], *about: Any) -> Any:
        """The answer of the framing function; an error that it raises makes only its own query fail."""
        try:
            return question(*about)
        except Exception as problem:
            raise StateProblem(
                f"the framing function {type(self.function).__name__!r} failed at {about[-2]}: {problem!r}",
                fix="mend it, or revoke the query",
            ) from problem

    def finish(self) -> list[ItemRange]:
        return [] if self.start is None else [(self.start, self.next - 1)]


def value_of(item: FrameItem) -> Any:
    """The value of an item that its frame depends on; None for NaN."""
    value = item.values[0] if item.values else None
    return None if value is not None and value != value else value


def _dividing_follower(frame: Frame, condition: FrameCondition, first: int) -> Follower:
    follower = EveryItemFollower if frame.begins_everywhere else ChainFollower
    return follower(frame, condition, first)


#: The follower of each kind whose frames are found item by item, some of them only where frames overlap; it begins with
#: item number `first` of its group.
FOLLOWERS: dict[type[FrameKind], Callable[[Frame, Any, int], Follower]] = {
    BoundaryFrames: lambda frame, kind, first: _dividing_follower(frame, BoundaryCondition(kind), first),
    DeltaFrames: lambda frame, kind, first: _dividing_follower(frame, DeltaCondition(kind), first),
    ReachFrames: lambda frame, kind, first: _dividing_follower(frame, ReachCondition(kind), first),
    DensityFrames: lambda frame, kind, first: DensityFollower(kind, first),
    BetweenFrames: lambda frame, kind, first: NestedFollower(first),
    CustomFrames: lambda frame, kind, first: CustomFollower(framing_function(kind.name), first),
}


def follower_of(frame: Frame, first: int = 0) -> Follower:
    """A follower that begins with item number `first` of its group."""
    return FOLLOWERS[type(frame.kind)](frame, frame.kind, first)
