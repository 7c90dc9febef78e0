"""Which stretches of items are frames of a kind, before lengths are judged ("Data-driven windows", section 4).

Kinds that choose among all stretches are written as the definitions are: the possible ones (definition 2), the
candidates among them (3) and the final ones (4). Kinds that divide the stream go from start to start (definition 5).
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations_with_replacement, pairwise, takewhile
from typing import Any

from panewise.frame.frame import (
    BetweenFrames,
    BoundaryFrames,
    CustomFrames,
    DeltaFrames,
    DensityFrames,
    Direction,
    Frame,
    Missing,
    ReachFrames,
    Saturation,
    Scheme,
    StartPolicy,
    TrendFrames,
    WhileFrames,
)
from panewise.frame.functions import FramingFunction, framing_function
from panewise.frame.scan import scan_chance
from panewise.reference.items import GroupItem

#: Whether the stretch from one place to another, both included, satisfies the local condition.
Holds = Callable[[int, int], bool]


@dataclass(frozen=True)
class Stretch:
    """The items from `first` to `last`, and so many missing reports that still count after the last one."""

    first: int
    last: int
    trailing: int = 0


def stretches(frame: Frame, items: Sequence[GroupItem]) -> list[Stretch]:
    """All stretches of a frame's kind that its scheme chooses, by start."""
    match frame.kind:
        case WhileFrames():
            return _while(frame, items)
        case TrendFrames():
            return _maximal(len(items), _trend(frame.kind, items))
        case DensityFrames():
            return _dense_stretches(frame.kind, items)
        case BetweenFrames():
            return sorted(_between(frame.kind.policy, items), key=lambda s: s.first)
        case BoundaryFrames() | DeltaFrames() | ReachFrames():
            return list(_dividing_stretches(frame, frame.kind, items))
        case CustomFrames(name):
            return list(_custom_stretches(framing_function(name), items))


def _maximal(size: int, holds: Holds) -> list[Stretch]:
    """The candidates that no other one contains, where all that is inside of a candidate is one, too."""
    possible = combinations_with_replacement(range(size), 2)
    candidates = {(first, last) for first, last in possible if holds(first, last)}
    return [
        Stretch(first, last)
        for first, last in sorted(candidates)
        if (first - 1, last) not in candidates and (first, last + 1) not in candidates
    ]


# ---- a predicate for every item ----------------------------------------------------------------------------------


def missing_between(frame: Frame, items: Sequence[GroupItem], first: int, last: int) -> int:
    """How many reports were expected between two items and did not come."""
    if frame.schedule is None:
        return 0
    every = frame.schedule.every
    return sum(max((b.time - a.time) // every - 1, 0) for a, b in pairwise(items[first : last + 1]))


def _while(frame: Frame, items: Sequence[GroupItem]) -> list[Stretch]:
    missing = frame.schedule.missing if frame.schedule else None

    def holds(first: int, last: int) -> bool:
        whole = missing is not Missing.FAILS or not missing_between(frame, items, first, last)
        return whole and all(item.values[0] is True for item in items[first : last + 1])

    found = _maximal(len(items), holds)
    if missing is not Missing.QUALIFIES:
        return found
    return [Stretch(s.first, s.last, missing_between(frame, items, s.last, s.last + 1)) for s in found]


# ---- steps and crowds --------------------------------------------------------------------------------------------


def _trend(kind: TrendFrames, items: Sequence[GroupItem]) -> Holds:
    def steps(before: Any, after: Any) -> bool:
        if before is None or after is None:
            return False
        before, after = float(before), float(after)
        match kind.direction:
            case Direction.RISING:
                return bool(after > before)
            case Direction.FALLING:
                return bool(after < before)
            case Direction.FLAT:
                return bool(_distance(before, after) <= kind.tolerance)

    def holds(first: int, last: int) -> bool:
        return first < last and all(steps(a.values[0], b.values[0]) for a, b in pairwise(items[first : last + 1]))

    return holds


def _dense_stretches(kind: DensityFrames, items: Sequence[GroupItem]) -> list[Stretch]:
    """Clusters, united while they share items."""
    found: list[Stretch] = []
    for first in range(len(items) - kind.count + 1):
        last = first + kind.count - 1
        if items[last].time - items[first].time >= kind.per:
            continue
        if found and found[-1].last >= first:
            found[-1] = Stretch(found[-1].first, last)
        else:
            found.append(Stretch(first, last))
    return [s for s in found if _unlikely(kind, [item.time for item in items[s.first : s.last + 1]])]


def _unlikely(kind: DensityFrames, times: list[int]) -> bool:
    if kind.chance is None or kind.expected is None:
        return True
    most = max(sum(0 <= other - time < kind.per for other in times) for time in times)
    windows = max((times[-1] - times[0]) / kind.per, 2.0)
    return scan_chance(most, kind.expected, windows) <= kind.chance


# ---- starts and ends ---------------------------------------------------------------------------------------------


def _between(policy: StartPolicy, items: Sequence[GroupItem]) -> Iterator[Stretch]:
    opened: list[int] = []
    for place, (starts, ends, *_) in enumerate(item.values for item in items):
        if opened and ends is True:
            yield from (Stretch(first, place) for first in opened)
            opened = []
        elif starts is True:
            if policy is StartPolicy.CLOSE:
                yield from (Stretch(first, place - 1) for first in opened)
            opened = [*opened, place] if policy is StartPolicy.CONTINUE else [place]


def _custom_stretches(function: FramingFunction, items: Sequence[GroupItem]) -> Iterator[Stretch]:
    """What somebody else's framing function says (definition 5)."""
    start, state = None, None
    for place, item in enumerate(items):
        if start is not None:
            state = function.update(state, item.time, item.values[0])
            if state is not None:
                continue
            yield Stretch(start, place - 1)
        state = function.open(item.time, item.values[0])
        start = None if state is None else place
    if start is not None:
        yield Stretch(start, len(items) - 1)


# ---- kinds that divide the stream --------------------------------------------------------------------------------


def _dividing_stretches(
    frame: Frame, kind: BoundaryFrames | DeltaFrames | ReachFrames, items: Sequence[GroupItem]
) -> Iterator[Stretch]:
    every = frame.effective_scheme in (Scheme.UNCONSTRAINED, Scheme.ADVANCING) or (
        frame.effective_scheme is Scheme.COVER and frame.choice is Saturation.SATURATED
    )
    if not every:
        return _chain_stretches(frame, kind, items)
    found = _from_everywhere(kind, items)
    return _keep_advancing(found) if frame.effective_scheme is Scheme.ADVANCING else found


def _end(kind: BoundaryFrames | DeltaFrames | ReachFrames, items: Sequence[GroupItem], start: int) -> int | None:
    """Where the frame that begins at an item ends, if there is one: as soon as it qualifies, or when it stops to."""
    holds = _condition(kind, items)
    ends = range(start, len(items))
    if isinstance(kind, ReachFrames) and kind.grows:
        return next((last for last in ends if holds(start, last)), None)
    return max(takewhile(lambda last: holds(start, last), ends), default=None)


def _from_everywhere(kind: BoundaryFrames | DeltaFrames | ReachFrames, items: Sequence[GroupItem]) -> Iterator[Stretch]:
    for start in range(len(items)):
        last = _end(kind, items, start)
        if last is not None:
            yield Stretch(start, last)


def _keep_advancing(found: Iterator[Stretch]) -> Iterator[Stretch]:
    reached = -1
    for stretch in found:
        if stretch.last > reached:
            reached = stretch.last
            yield stretch


def _chain_stretches(
    frame: Frame, kind: BoundaryFrames | DeltaFrames | ReachFrames, items: Sequence[GroupItem]
) -> Iterator[Stretch]:
    """Each frame decides where the next one begins."""
    start = 0
    while start < len(items):
        last = _end(kind, items, start)
        if last is not None:
            yield Stretch(start, last)
            start = _next_start(frame, items, start, last)
        elif isinstance(kind, ReachFrames) and kind.grows:
            return  # it is open until the stream ends, and nothing else begins meanwhile
        else:
            start += 1


def _next_start(frame: Frame, items: Sequence[GroupItem], start: int, last: int) -> int:
    if frame.effective_scheme is not Scheme.ADJACENT or last == len(items) - 1:
        return last + 1
    earliest = items[last].time - frame.overlap
    return next(place for place in range(start + 1, len(items)) if items[place].time >= earliest)


def _condition(kind: BoundaryFrames | DeltaFrames | ReachFrames, items: Sequence[GroupItem]) -> Holds:
    def values_between(first: int, last: int) -> list[Any]:
        values = [item.values[0] for item in items[first : last + 1]]
        return [value for value in values if value is not None]

    def numbers_between(first: int, last: int) -> list[float]:
        return [float(value) for value in values_between(first, last)]  # frames follow numbers as doubles

    match kind:
        case BoundaryFrames():
            labels = {
                place: _label(kind, value) for place in range(len(items)) for value in numbers_between(place, place)
            }
            return lambda first, last: (
                first in labels and len({labels[p] for p in range(first, last + 1) if p in labels}) == 1
            )
        case DeltaFrames():
            closer = operator.lt if kind.open else operator.le
            return lambda first, last: (
                bool(numbers_between(first, first))
                and bool(
                    closer(_distance(min(numbers_between(first, last)), max(numbers_between(first, last))), kind.limit)
                )
            )
        case ReachFrames():
            values = values_between if kind.argument else lambda first, last: list(items[first : last + 1])
            return lambda first, last: _compares(kind, kind.aggregate.meaning(values(first, last)))


def _label(kind: BoundaryFrames, value: float) -> float:
    """Between which boundaries a value lies: the same number for values between the same two."""
    if kind.step is None:
        return len([mark for mark in kind.marks if mark <= value])
    steps = value / kind.step
    return math.floor(steps) if math.isfinite(steps) else steps


def _compares(kind: ReachFrames, value: Any) -> bool:
    """Whether an aggregate is where it shall be; without a value it has not got there, nor has it left."""
    if value is None or value != value:
        return not kind.grows
    compare = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}[kind.operator]
    return bool(compare(float(value), kind.limit))


def _distance(one: Any, other: Any) -> Any:
    """How far two values are from each other; infinities are not apart from themselves."""
    return 0 if one == other else abs(other - one)
