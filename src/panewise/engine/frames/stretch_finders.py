"""Finds the stretches of kept items that are frames: by kernels, or by followers where there is no kernel."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import repeat
from typing import Any

import numpy as np
import pyarrow as pa

from panewise import kernels
from panewise.aggregate import Int64Array
from panewise.core.time import MAX_TICK
from panewise.core.values import to_python
from panewise.engine.frames.comparisons import FrameComparison, comparison_of
from panewise.engine.frames.item_followers import FOLLOWERS, Follower, FrameItem, ItemRange
from panewise.engine.frames.kept_items import GroupPlaces, KeptItems
from panewise.engine.frames.kernel_runs import flags_of
from panewise.frame.frame import (
    BetweenFrames,
    BoundaryFrames,
    DeltaFrames,
    DensityFrames,
    Frame,
    FrameKind,
    ReachFrames,
    Scheme,
)
from panewise.frame.scan import scan_chance

#: The first and the last place of each stretch, by group and start.
Stretches = tuple[Int64Array, Int64Array]


@dataclass(eq=False)
class FollowState:
    """What is known of each group beside its items, in places; it is brought up to date.

    start: the first item that may still be in a stretch.
    reached: the last item of the stretch that decides about the next one; kinds differ in what is before it.
    """

    start: Int64Array
    reached: Int64Array


class StretchFinder(ABC):
    """Finds the stretches of all groups."""

    @abstractmethod
    def find(self, items: KeptItems, groups: GroupPlaces, at: FollowState, now: int) -> Stretches:
        """The stretches that have become certain. No more items up to the time `now` are expected, or none at all."""

    def recode(self, codes: Int64Array) -> None:  # noqa: B027
        """Replace the codes of groups, if any are kept; those with code -1 are dropped."""


class NestedFinder(StretchFinder):
    """Frames that begin inside each other and end together."""

    def find(self, items: KeptItems, groups: GroupPlaces, at: FollowState, now: int) -> Stretches:
        starts, ends = (flags_of(pa.chunked_array([each])) for each in items.values[:2])
        found: Stretches = kernels.frame_nested(groups.fresh, groups.stops, at.start, starts, ends)
        return found


@dataclass
class CrowdFinder(StretchFinder):
    """So many items in so short a time, and all such stretches that share items with it."""

    kind: DensityFrames

    def find(self, items: KeptItems, groups: GroupPlaces, at: FollowState, now: int) -> Stretches:
        places = groups.begins, groups.fresh, groups.stops, at.start, at.reached
        found: Stretches = kernels.frame_crowds(*places, items.times, self.kind.count, self.kind.per, now)
        if self.kind.chance is None:
            return found
        unlikely = self._unlikely_flags(*found, items.times)
        return found[0][unlikely], found[1][unlikely]

    def _unlikely_flags(self, firsts: Int64Array, lasts: Int64Array, times: Int64Array) -> Any:
        """Which crowds are unlikely enough; this is computed for each crowd, not for each item."""
        kind = self.kind
        assert kind.chance is not None
        assert kind.expected is not None
        peaks = kernels.frame_peaks(firsts, lasts, times, kind.per)
        windows = np.maximum((times[lasts] - times[firsts]) / kind.per, 2.0)
        pairs = zip(peaks.tolist(), windows.tolist(), strict=True)
        chances = (scan_chance(peak, kind.expected, wide) for peak, wide in pairs)
        return np.fromiter(chances, np.float64, len(firsts)) <= kind.chance


@dataclass
class DividingFinder(StretchFinder):
    """Frames of a kind that divides the stream: each decides where the next begins, or one begins with every item."""

    frame: Frame
    comparison: FrameComparison

    def find(self, items: KeptItems, groups: GroupPlaces, at: FollowState, now: int) -> Stretches:
        material = self.comparison.material(groups, at.start, items.values, len(items))
        scheme, finishing = self.frame.effective_scheme, now == MAX_TICK
        kernel, how = kernels.frame_chain, self.frame.overlap if scheme is Scheme.ADJACENT else -1
        if self.frame.begins_everywhere:
            kernel, how = kernels.frame_everywhere, scheme is Scheme.ADVANCING
        places = groups.begins, groups.stops, at.start, at.reached
        found: Stretches = kernel(*places, items.times, self.comparison.words, material, how, finishing)
        return found


@dataclass
class FollowingFinder(StretchFinder):
    """Calls a follower for each item, in Python; a follower numbers the items of its group by itself."""

    frame: Frame
    _followers: dict[int, Follower] = field(default_factory=dict)

    def find(self, items: KeptItems, groups: GroupPlaces, at: FollowState, now: int) -> Stretches:
        found: list[ItemRange] = []
        for number, code in enumerate(groups.codes.tolist()):
            start, fresh, stop = int(at.start[number]), int(groups.fresh[number]), int(groups.stops[number])
            follower = self._followers.get(code)
            if follower is None:
                follower = self._followers[code] = FOLLOWERS[type(self.frame.kind)](self.frame, self.frame.kind)
                follower.resume(_items_between(items, start, fresh), int(at.reached[number]) - start)
            shift = fresh - follower.next
            ranges = [each for item in _items_between(items, fresh, stop) for each in follower.push(item)]
            ranges += follower.finish() if now == MAX_TICK else []
            found += [(first + shift, last + shift) for first, last in ranges]
            at.start[number], at.reached[number] = follower.oldest + shift, follower.reached + shift
        places = np.array(found, np.int64).reshape(-1, 2)
        return places[:, 0], places[:, 1]

    def recode(self, codes: Int64Array) -> None:
        self._followers = {int(codes[code]): each for code, each in self._followers.items() if codes[code] >= 0}


def _items_between(items: KeptItems, start: int, stop: int) -> list[FrameItem]:
    """The items from one place to before another."""
    columns = [to_python(each.slice(start, stop - start)) for each in items.values]
    values = zip(*columns, strict=True) if columns else repeat(())
    return [FrameItem(*each) for each in zip(items.times[start:stop].tolist(), values, strict=False)]


def _dividing_finder(frame: Frame) -> StretchFinder:
    comparison = comparison_of(frame.kind)
    return DividingFinder(frame, comparison) if comparison else FollowingFinder(frame)


#: The finder of each kind whose items are kept and whose frames kernels find; others need a follower.
STRETCH_FINDERS: dict[type[FrameKind], Callable[[Frame, Any], StretchFinder]] = {
    BoundaryFrames: lambda frame, kind: _dividing_finder(frame),
    DeltaFrames: lambda frame, kind: _dividing_finder(frame),
    ReachFrames: lambda frame, kind: _dividing_finder(frame),
    BetweenFrames: lambda frame, kind: NestedFinder(),
    DensityFrames: lambda frame, kind: CrowdFinder(kind),
}


def finder_of(frame: Frame) -> StretchFinder:
    """What finds the frames of a query that keeps items."""
    found = STRETCH_FINDERS.get(type(frame.kind))
    return found(frame, frame.kind) if found else FollowingFinder(frame)
