"""Which stretches of items are frames of a kind, before lengths are checked ("Data-driven windows", section 4).

Kinds that choose among all stretches are written as the definitions are: the possible ones (definition 2), the
candidates among them (3) and the final ones (4). Kinds that divide the stream go from start to start (definition 5).
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations_with_replacement, pairwise, takewhile
from typing import Any

from panewise.core.errors import PlanProblem
from panewise.frame.frame import (
    BetweenFrames,
    BoundaryFrames,
    CustomFrames,
    DeltaFrames,
    DensityFrames,
    Direction,
    Frame,
    FrameKind,
    Missing,
    ReachFrames,
    Scheme,
    StartPolicy,
    TrendFrames,
    WhileFrames,
)
from panewise.frame.functions import framing_function
from panewise.frame.scan import scan_chance
from panewise.reference.items import GroupItem

#: Whether the stretch from one place to another, both included, satisfies the local condition.
Holds = Callable[[int, int], bool]


@dataclass(frozen=True)
class Stretch:
    """The items from `first` to `last`, and the number of missing reports after the last one that still count."""

    first: int
    last: int
    trailing: int = 0


def stretches(frame: Frame, items: Sequence[GroupItem]) -> list[Stretch]:
    """All stretches of a frame's kind that its scheme chooses, by start."""
    kind = type(frame.kind)
    if kind not in STRETCHES:
        raise PlanProblem(f"the reference does not know {kind.__name__}", fix="add their meaning to STRETCHES")
    return sorted(STRETCHES[kind](frame, frame.kind, items), key=lambda stretch: stretch.first)


def maximal(size: int, holds: Holds) -> list[Stretch]:
    """The candidates that no other one contains, if every stretch inside of a candidate is a candidate, too."""
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


def _while_stretches(frame: Frame, kind: WhileFrames, items: Sequence[GroupItem]) -> list[Stretch]:
    missing = frame.schedule.missing if frame.schedule else None

    def holds(first: int, last: int) -> bool:
        whole = missing is not Missing.FAILS or not missing_between(frame, items, first, last)
        return whole and all(item.values[0] is True for item in items[first : last + 1])

    found = maximal(len(items), holds)
    if missing is not Missing.QUALIFIES:
        return found
    return [Stretch(s.first, s.last, missing_between(frame, items, s.last, s.last + 1)) for s in found]


# ---- steps and crowds --------------------------------------------------------------------------------------------


def _trend_stretches(frame: Frame, kind: TrendFrames, items: Sequence[GroupItem]) -> list[Stretch]:
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

    return maximal(len(items), holds)


def _dense_stretches(frame: Frame, kind: DensityFrames, items: Sequence[GroupItem]) -> list[Stretch]:
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


def _between_stretches(frame: Frame, kind: BetweenFrames, items: Sequence[GroupItem]) -> Iterator[Stretch]:
    opened: list[int] = []
    for place, (starts, ends, *_) in enumerate(item.values for item in items):
        if opened and ends is True:
            yield from (Stretch(first, place) for first in opened)
            opened = []
        elif starts is True:
            if kind.policy is StartPolicy.CLOSE:
                yield from (Stretch(first, place - 1) for first in opened)
            opened = [*opened, place] if kind.policy is StartPolicy.CONTINUE else [place]


def _custom_stretches(frame: Frame, kind: CustomFrames, items: Sequence[GroupItem]) -> Iterator[Stretch]:
    """The stretches that a framing function of the user finds (definition 5)."""
    function = framing_function(kind.name)
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


def divide(frame: Frame, items: Sequence[GroupItem], holds: Holds) -> Iterator[Stretch]:
    """The stretches of a kind that divides the stream, and whose local condition is `holds`."""
    if not frame.begins_everywhere:
        return _chain_stretches(frame, items, holds)
    found = _from_everywhere(frame, items, holds)
    return _keep_advancing(found) if frame.effective_scheme is Scheme.ADVANCING else found


def _end(frame: Frame, items: Sequence[GroupItem], holds: Holds, start: int) -> int | None:
    """Where the frame that begins at an item ends, if there is one: once it qualifies, or when it no longer does."""
    ends = range(start, len(items))
    if frame.kind.grows:
        return next((last for last in ends if holds(start, last)), None)
    return max(takewhile(lambda last: holds(start, last), ends), default=None)


def _from_everywhere(frame: Frame, items: Sequence[GroupItem], holds: Holds) -> Iterator[Stretch]:
    for start in range(len(items)):
        last = _end(frame, items, holds, start)
        if last is not None:
            yield Stretch(start, last)


def _keep_advancing(found: Iterator[Stretch]) -> Iterator[Stretch]:
    reached = -1
    for stretch in found:
        if stretch.last > reached:
            reached = stretch.last
            yield stretch


def _chain_stretches(frame: Frame, items: Sequence[GroupItem], holds: Holds) -> Iterator[Stretch]:
    """Each frame decides where the next one begins."""
    start = 0
    while start < len(items):
        last = _end(frame, items, holds, start)
        if last is not None:
            yield Stretch(start, last)
            start = _next_start(frame, items, start, last)
        elif frame.kind.grows:
            return  # it is open until the stream ends, and nothing else begins meanwhile
        else:
            start += 1


def _next_start(frame: Frame, items: Sequence[GroupItem], start: int, last: int) -> int:
    if frame.effective_scheme is not Scheme.ADJACENT or last == len(items) - 1:
        return last + 1
    earliest = items[last].time - frame.overlap
    return next(place for place in range(start + 1, len(items)) if items[place].time >= earliest)


def _values_between(items: Sequence[GroupItem], first: int, last: int) -> list[Any]:
    values = [item.values[0] for item in items[first : last + 1]]
    return [value for value in values if value is not None]


def _numbers_between(items: Sequence[GroupItem], first: int, last: int) -> list[float]:
    return [float(value) for value in _values_between(items, first, last)]  # frames follow numbers as doubles


def _boundary_stretches(frame: Frame, kind: BoundaryFrames, items: Sequence[GroupItem]) -> Iterator[Stretch]:
    labels = {n: _label(kind, value) for n in range(len(items)) for value in _numbers_between(items, n, n)}

    def holds(first: int, last: int) -> bool:
        return first in labels and len({labels[n] for n in range(first, last + 1) if n in labels}) == 1

    return divide(frame, items, holds)


def _delta_stretches(frame: Frame, kind: DeltaFrames, items: Sequence[GroupItem]) -> Iterator[Stretch]:
    closer = operator.lt if kind.open else operator.le

    def holds(first: int, last: int) -> bool:
        numbers = _numbers_between(items, first, last)
        begins = bool(_numbers_between(items, first, first))
        return begins and bool(closer(_distance(min(numbers), max(numbers)), kind.limit))

    return divide(frame, items, holds)


def _reach_stretches(frame: Frame, kind: ReachFrames, items: Sequence[GroupItem]) -> Iterator[Stretch]:
    def holds(first: int, last: int) -> bool:
        values = _values_between(items, first, last) if kind.argument else list(items[first : last + 1])
        return _compares(kind, kind.aggregate.meaning(values))

    return divide(frame, items, holds)


def _label(kind: BoundaryFrames, value: float) -> float:
    """A number that is equal for values between the same two boundaries."""
    if kind.step is None:
        return len([mark for mark in kind.marks if mark <= value])
    steps = value / kind.step
    return math.floor(steps) if math.isfinite(steps) else steps


def _compares(kind: ReachFrames, value: Any) -> bool:
    """Whether an aggregate satisfies its comparison; without a value it has neither reached the limit nor left it."""
    if value is None or value != value:
        return not kind.grows
    compare = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}[kind.operator]
    return bool(compare(float(value), kind.limit))


def _distance(one: Any, other: Any) -> Any:
    """How far two values are from each other; equal infinities have distance zero."""
    return 0 if one == other else abs(other - one)


#: The meaning of each kind. A function takes frame and kind separately, so that its signature names its kind.
STRETCHES: dict[type[FrameKind], Callable[[Frame, Any, Sequence[GroupItem]], Iterable[Stretch]]] = {
    WhileFrames: _while_stretches,
    BoundaryFrames: _boundary_stretches,
    DeltaFrames: _delta_stretches,
    ReachFrames: _reach_stretches,
    TrendFrames: _trend_stretches,
    DensityFrames: _dense_stretches,
    BetweenFrames: _between_stretches,
    CustomFrames: _custom_stretches,
}
