"""The meaning of frames, literal and slow: all stretches of one group's items, and which of them are reported how.

"Data-driven windows", section 4 and appendices B, C and F. Everything fast is compared with `find_frames`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from panewise.core.errors import SchemaProblem
from panewise.frame.frame import Frame, FrameLength, Span
from panewise.reference.items import GroupItem, merge_duplicates
from panewise.reference.stretches import Stretch, missing_between, stretches

__all__ = ["FrameResult", "GroupItem", "find_frames", "merge_duplicates"]


@dataclass(frozen=True)
class FrameResult:
    """A frame, or a fragment of one.

    number: see `with_numbers`; fragments have that of their frame.
    start, end: the reported extent.
    first, last: places of its first and last item among those that `treated` gives.
    count: how many items these are.
    missing: reports that did not come but count as in the frame.
    """

    number: int
    start: int
    end: int
    first: int
    last: int
    count: int
    missing: int
    final: bool

    @property
    def rows(self) -> int:
        return self.count + self.missing

    @property
    def duration(self) -> int:
        return self.end - self.start

    def length(self, like: FrameLength) -> int:
        """How long it is in the unit of another length."""
        return self.rows if like.rows else self.duration


def find_frames(frame: Frame, items: Sequence[GroupItem]) -> list[FrameResult]:
    """The frames of one group whose stream has ended, each after its fragments.

    Items come in the order of time, those of one time in the order of arrival.
    """
    seen = [item for item, _ in merge_duplicates(frame, items)]
    _check_schedule(frame, seen)
    reported = [found for s in stretches(frame, seen) if _qualifies(frame, seen, found := _frame_of(frame, seen, s))]
    if frame.effective_span is Span.MAXIMUM:
        # Of equals, `max` takes the first.
        reported = [max(reported, key=lambda found: (found.duration, found.rows))] if reported else []
    return [row for found in with_numbers(reported, seen) for row in (*_fragments(frame, seen, found), found)]


def with_numbers(reported: Sequence[FrameResult], items: Sequence[GroupItem]) -> list[FrameResult]:
    """The frames of one group with their numbers: the time of the first item, or one more than the number before.

    The second happens only where frames begin at one time. No number needs a memory of frames that are long past.
    """
    numbers: list[int] = []
    for found in reported:
        first = items[found.first].time
        numbers.append(max(first, numbers[-1] + 1) if numbers else first)
    return [replace(found, number=number) for found, number in zip(reported, numbers, strict=True)]


def _check_schedule(frame: Frame, items: Sequence[GroupItem]) -> None:
    if frame.schedule is None:
        return
    every = frame.schedule.every
    for before, item in pairwise(items):
        if (item.time - before.time) % every:
            raise SchemaProblem(
                f"a report at {item.time} contradicts EVERY {every}: the next was expected at {before.time + every}",
                fix="leave EVERY out, or give each group a schedule of its own",
            )


def _frame_of(frame: Frame, items: Sequence[GroupItem], stretch: Stretch) -> FrameResult:
    first, last = stretch.first, stretch.last
    start, end = _extent(frame, items, stretch)
    missing = missing_between(frame, items, first, last) + stretch.trailing
    return FrameResult(0, start, end, first, last, last - first + 1, missing, final=True)


def _extent(frame: Frame, items: Sequence[GroupItem], stretch: Stretch) -> tuple[int, int]:
    """From when to when a frame is reported to last."""
    start, end = items[stretch.first].time, items[stretch.last].time
    if frame.schedule:
        end += stretch.trailing * frame.schedule.every
    if frame.liberal and not frame.lasting and stretch.first > 0:
        start = items[stretch.first - 1].time
    if (frame.liberal or frame.lasting) and stretch.last + 1 < len(items):
        end = items[stretch.last + 1].time
    return start, end


def _qualifies(frame: Frame, items: Sequence[GroupItem], found: FrameResult) -> bool:
    """Whether a stretch is long and short enough, and has an item that it must have."""
    return (
        (frame.least is None or found.length(frame.least) >= frame.least.amount)
        and (frame.most is None or found.length(frame.most) <= frame.most.amount)
        and (frame.some is None or any(item.values[-1] is True for item in items[found.first : found.last + 1]))
    )


def _fragments(frame: Frame, items: Sequence[GroupItem], whole: FrameResult) -> list[FrameResult]:
    """The reports of a frame before its end: one once the frame is certain, then one whenever it has grown enough.

    That an item is the last one is not known when it arrives, so that a fragment may be equal to the frame itself.
    """
    if frame.fragments is None:
        return []
    fragments: list[FrameResult] = []
    for last in range(whole.first + frame.kind.fewest_items - 1, whole.last + 1):
        so_far = replace(
            whole,
            end=items[last].time,
            last=last,
            count=last - whole.first + 1,
            missing=missing_between(frame, items, whole.first, last),
            final=False,
        )
        if _is_reported(frame, items, frame.fragments, fragments, so_far):
            fragments.append(so_far)
    return fragments


def _is_reported(
    frame: Frame, items: Sequence[GroupItem], every: FrameLength, fragments: list[FrameResult], so_far: FrameResult
) -> bool:
    if not fragments:
        return _qualifies(frame, items, so_far)
    return so_far.length(every) - fragments[-1].length(every) >= every.amount
