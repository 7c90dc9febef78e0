"""Streams for frames, drawn as time-lines, and what is found in them, said briefly."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st

from panewise.aggregate import CountAll, Sum
from panewise.core.scalar import Scalar
from panewise.frame.frame import BoundaryFrames, DeltaFrames, Frame, ReachFrames
from panewise.reference.framing import FrameResult, GroupItem, find_frames

CONDITION = Scalar("condition", (), pa.bool_())
VALUE = Scalar("value", (), pa.int64())

Dividing = BoundaryFrames | DeltaFrames | ReachFrames


def total(operator: str, limit: float) -> ReachFrames:
    return ReachFrames(Sum(pa.int64()), VALUE, operator, limit)


def number(operator: str, limit: float) -> ReachFrames:
    """COUNT(*) compared with a value."""
    return ReachFrames(CountAll(), None, operator, limit)


def series(*values: Any, start: int = 1, every: int = 1) -> list[GroupItem]:
    """One item for each value, on a regular schedule."""
    return [GroupItem(start + n * every, (value,)) for n, value in enumerate(values)]


def reports(line: str, every: int = 1) -> list[GroupItem]:
    """A time-line from time 0: T and F are reports of a condition, ? one that is unknown, - one that did not come."""
    truth = {"T": True, "F": False, "?": None}
    return [GroupItem(n * every, (truth[sign],)) for n, sign in enumerate(line) if sign != "-"]


def above(threshold: float, items: Iterable[GroupItem]) -> list[GroupItem]:
    """What a threshold frame looks at."""
    return [GroupItem(item.time, (item.values[0] > threshold,)) for item in items]


def extents(frame: Frame, items: list[GroupItem]) -> list[tuple[int, int]]:
    return [(found.start, found.end) for found in find_frames(frame, items)]


def places(frame: Frame, items: list[GroupItem]) -> list[tuple[int, int]]:
    return [(found.first, found.last) for found in find_frames(frame, items)]


def rows(found: Iterable[FrameResult]) -> list[tuple[int, int, int, int, int, bool]]:
    """All of a result but where its items lie."""
    return [(f.number, f.start, f.end, f.count, f.missing, f.final) for f in found]


@st.composite
def streams(draw: st.DrawFn, values: st.SearchStrategy[Any], least: int = 0) -> list[GroupItem]:
    """Items at times that rise irregularly."""
    gaps = draw(st.lists(st.integers(1, 5), min_size=least, max_size=14))
    times = [sum(gaps[: n + 1]) for n in range(len(gaps))]
    return [GroupItem(time, (draw(values),)) for time in times]


truths = streams(st.sampled_from([True, True, False, None]))
amounts = streams(st.integers(0, 9))
numbers = streams(st.integers(-9, 9))
gappy = streams(st.none() | st.integers(-9, 9))

#: Kinds of which every single item is a frame.
covering = st.one_of(
    st.builds(BoundaryFrames, st.just(VALUE), st.sampled_from([1.0, 2.5, 4.0])),
    st.builds(BoundaryFrames, st.just(VALUE), st.none(), st.sampled_from([(), (0.0,), (-3.0, 2.0, 5.0)])),
    st.builds(DeltaFrames, st.just(VALUE), st.integers(1, 8), st.booleans()),
    st.builds(number, st.just("<="), st.integers(1, 5)),
)
#: Kinds whose frames end as soon as they qualify.
growing = st.builds(total, st.sampled_from([">", ">="]), st.integers(0, 20)) | st.builds(
    number, st.just(">="), st.integers(1, 5)
)
