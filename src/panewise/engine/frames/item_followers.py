"""Followers for frames that no kernel finds: they take the items of a group one by one, in Python.

After a restart a follower is made again from the items that it still needs.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from panewise.core.errors import StateProblem
from panewise.engine.frames.conditions import ReachCondition
from panewise.frame.frame import CustomFrames, Frame, FrameKind, ReachFrames, Scheme
from panewise.frame.functions import FramingFunction, framing_function

#: First and last item of a stretch, counted from the first item of the group.
ItemRange = tuple[int, int]


@dataclass(frozen=True)
class FrameItem:
    time: int
    values: tuple[Any, ...]


class ItemBuffer:
    """Items by number; the oldest are dropped."""

    def __init__(self) -> None:
        self._first, self._items = 0, list[FrameItem]()

    @property
    def next(self) -> int:
        return self._first + len(self._items)

    def __getitem__(self, number: int) -> FrameItem:
        return self._items[number - self._first]

    def append(self, item: FrameItem) -> None:
        self._items.append(item)

    def drop_before(self, oldest: int) -> None:
        """Drop items that are not needed any more; many together, since a list is slow at its head."""
        if oldest - self._first > len(self._items) // 2:
            del self._items[: oldest - self._first]
            self._first = oldest


class Follower(ABC):
    """Finds the frames of one group. Items are numbered; those before `oldest` are not needed any more."""

    def __init__(self) -> None:
        self.items = ItemBuffer()
        #: The last item of the stretch that decides about the next one, before `oldest` if there is none.
        self.reached = -1

    def resume(self, items: Sequence[FrameItem], reached: int) -> None:
        """Take again, after a restart, the items that are needed; `reached` is among them, or before them."""
        for item in items:
            self.push(item)
        self.reached = reached

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

    def __init__(self, frame: Frame, condition: ReachCondition) -> None:
        super().__init__()
        self.frame, self.condition, self.grows = frame, condition, frame.kind.grows
        self.start, self.at, self.state = 0, 0, None
        #: Whether the frame before ended with the last item, `reached`, and the next one may begin with its items.
        self.ended = False

    def resume(self, items: Sequence[FrameItem], reached: int) -> None:
        self.ended, self.reached = reached >= 0, reached
        if not self.ended:
            super().resume(items, reached)
        for item in items if self.ended else ():
            self.items.append(item)

    @property
    def oldest(self) -> int:
        return self.start

    def _follow(self, number: int, item: FrameItem) -> list[ItemRange]:
        found: list[ItemRange] = []
        if self.ended:
            self._begin(self._first_inside(self.start))
            self.ended = False
        while self.at <= number and not self.ended:
            self._step(number, found)
        if not self.ended:
            self.reached = self.start - 1
        return found

    def _step(self, number: int, found: list[ItemRange]) -> None:
        self.state, holds = self.condition.step(self.state, value_of(self.items[self.at]))
        if holds != self.grows:
            self.at += 1
        elif not self.grows and self.at == self.start:
            self._begin(self.start + 1)
        else:
            self.reached = self.at if self.grows else self.at - 1
            found.append((self.start, self.reached))
            self._begin_after(number)

    def _begin(self, start: int) -> None:
        self.start, self.at, self.state = start, start, None

    def _begin_after(self, number: int) -> None:
        """Begin after the frame that ended, or inside of it; where exactly may depend on the next item."""
        if self.frame.effective_scheme is not Scheme.ADJACENT or self.start == self.reached:
            self._begin(self.reached + 1)
        elif self.reached == number:
            self.start, self.ended = self.start + 1, True
        else:
            self._begin(self._first_inside(self.start + 1))

    def _first_inside(self, start: int) -> int:
        earliest = self.items[self.reached].time - self.frame.overlap
        return next(n for n in range(start, self.next) if self.items[n].time >= earliest)

    def finish(self) -> list[ItemRange]:
        unfinished = not self.grows and not self.ended and self.start < self.next
        return [(self.start, self.next - 1)] if unfinished else []


class EveryItemFollower(Follower):
    """A frame begins with every item."""

    def __init__(self, frame: Frame, condition: ReachCondition) -> None:
        super().__init__()
        self.condition, self.grows = condition, frame.kind.grows
        self.advancing = frame.effective_scheme is Scheme.ADVANCING
        self.open: dict[int, Any] = {}
        #: Where frames end that begin before one that is still open; None for items that begin none.
        self.ends: dict[int, int | None] = {}
        self.resolved = 0

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


class CustomFollower(Follower):
    """Calls a framing function of the user."""

    def __init__(self, function: FramingFunction) -> None:
        super().__init__()
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


def _reach_follower(frame: Frame, kind: ReachFrames) -> Follower:
    follower = EveryItemFollower if frame.begins_everywhere else ChainFollower
    return follower(frame, ReachCondition(kind))


#: The follower of each kind of which some frames are found item by item.
FOLLOWERS: dict[type[FrameKind], Callable[[Frame, Any], Follower]] = {
    ReachFrames: _reach_follower,
    CustomFrames: lambda frame, kind: CustomFollower(framing_function(kind.name)),
}
