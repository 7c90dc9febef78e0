"""Frames that are found item by item; rows are kept until all frames that may hold them have ended."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import repeat
from typing import Any

import numpy as np
import pyarrow as pa

from panewise.aggregate import Int64Array
from panewise.core.time import MAX_TICK
from panewise.core.values import to_python
from panewise.engine.frames.contents import FrameContents
from panewise.engine.frames.item_followers import (
    Follower,
    FrameItem,
    ItemBuffer,
    ItemRange,
    follower_of,
)
from panewise.engine.frames.order import OrderedItems, concat_rows, restore_rows, rows_state
from panewise.engine.frames.report import FrameBounds, FrameCells, FrameReport
from panewise.engine.state.codec import from_text, to_text
from panewise.engine.state.snapshot import Tree
from panewise.frame.frame import Span
from panewise.kernels import NO_TIME
from panewise.plan.frame_plan import FramePlan

#: No group has so many items.
MAX_ITEMS = 1 << 40


@dataclass(eq=False)
class FramedGroup:
    """The state of one group: its items, from the one before the oldest that is needed, and frames that wait."""

    follower: Follower
    items: ItemBuffer = field(default_factory=ItemBuffer)
    #: The number of the last frame that was reported.
    numbered: int = NO_TIME
    #: Stretches whose frames wait for the item after them.
    waiting: list[ItemRange] = field(default_factory=list)
    #: If only the longest frame is reported: the longest of those that have ended.
    longest: CertainFrame | None = None

    def idle(self, last: int) -> bool:
        """Whether no item so far can be in a frame, and every frame after the time `last` gets a greater number."""
        return self.numbered <= last and self.oldest >= self.follower.next

    @property
    def oldest(self) -> int:
        """The first item that may still become part of a frame."""
        firsts = [first for first, _ in self.waiting] + ([self.longest.first] if self.longest else [])
        return min([self.follower.oldest, *firsts])


@dataclass(frozen=True)
class CertainFrame:
    """A frame that is certain: its items, its extent, and its number once it has one."""

    first: int
    last: int
    start: int
    end: int
    number: int = 0

    @property
    def rank(self) -> tuple[int, int]:
        """The rank of a frame: first its length in time, then its number of rows."""
        return self.end - self.start, self.last - self.first


class ItemFrames:
    """All groups of a query whose frames are found item by item."""

    def __init__(self, plan: FramePlan, contents: FrameContents | None, schema: pa.Schema) -> None:
        self.frame, self.contents, self.schema = plan.frame, contents, schema
        self.groups: dict[int, FramedGroup] = {}
        self.kept = concat_rows([], schema)
        self.codes: Int64Array = np.zeros(0, np.int64)
        self.numbers: Int64Array = np.zeros(0, np.int64)
        self._known: list[tuple[int, CertainFrame]] = []

    def last_times(self, groups: int) -> Int64Array:
        """The time of the last item of each group."""
        found = np.full(groups, NO_TIME)
        for code, group in self.groups.items():
            found[code] = group.items[group.follower.next - 1].time
        return found

    def earliest_start(self) -> int:
        """The earliest start of a frame that is still to be reported and whose first item has arrived."""
        # Items are in the order of time, so that the first one that is needed is the earliest.
        firsts = ((group, group.oldest - self.frame.liberal) for group in self.groups.values())
        times = [group.items[max(n, group.items.first)].time for group, n in firsts if n < group.items.next]
        return min(times, default=MAX_TICK)

    def take(self, items: OrderedItems, groups: int) -> None:
        """Take items in, and keep their rows."""
        numbers = np.empty(len(items.codes), np.int64)
        for place, (code, time, values) in enumerate(_each_item(items)):
            group = self.groups.setdefault(code, FramedGroup(follower_of(self.frame)))
            numbers[place] = group.follower.next
            self._push(code, group, FrameItem(time, values))
        owner = slice(None) if items.owner is None else items.owner
        self.kept = concat_rows([self.kept, items.rows], self.schema)
        self.codes = np.concatenate((self.codes, items.codes[owner]))
        self.numbers = np.concatenate((self.numbers, numbers[owner]))

    def _push(self, code: int, group: FramedGroup, item: FrameItem) -> None:
        group.items.append(item)
        group.waiting += group.follower.push(item)
        self._resolve_waiting(code, group, finishing=False)
        # The item before the oldest decides where liberal frames begin; the last item shows how far time has come.
        group.items.drop_before(min(group.oldest, group.follower.next) - 1)

    def _resolve_waiting(self, code: int, group: FramedGroup, finishing: bool) -> None:
        """Resolve waiting stretches whose extent has become known, in their order."""
        wants_next = self.frame.liberal or self.frame.lasting
        while group.waiting:
            first, last = group.waiting[0]
            if wants_next and last + 1 not in group.items and not finishing:
                return
            del group.waiting[0]
            known = self._extent(group, first, last)
            if not self._qualifies(group, known):
                continue
            if self.frame.effective_span is Span.MAXIMUM:
                if group.longest is None or known.rank > group.longest.rank:
                    group.longest = known
            else:
                self._queue_report(code, group, known)

    def _queue_report(self, code: int, group: FramedGroup, known: CertainFrame) -> None:
        group.numbered = max(group.numbered + 1, group.items[known.first].time)
        self._known.append((code, CertainFrame(known.first, known.last, known.start, known.end, group.numbered)))

    def _extent(self, group: FramedGroup, first: int, last: int) -> CertainFrame:
        start, end = group.items[first].time, group.items[last].time
        if self.frame.liberal and not self.frame.lasting and first - 1 in group.items:
            start = group.items[first - 1].time
        if (self.frame.liberal or self.frame.lasting) and last + 1 in group.items:
            end = group.items[last + 1].time
        return CertainFrame(first, last, start, end)

    def _qualifies(self, group: FramedGroup, known: CertainFrame) -> bool:
        duration, rows = known.end - known.start, known.last - known.first + 1
        least, most = self.frame.least, self.frame.most
        if least is not None and (rows if least.rows else duration) < least.amount:
            return False
        if most is not None and (rows if most.rows else duration) > most.amount:
            return False
        inside = range(known.first, known.last + 1)
        return not self.frame.some or any(group.items[n].values[-1] is True for n in inside)

    def report(self, last: int, finishing: bool) -> Iterator[FrameReport]:
        """The frames that have become certain, with what they hold. No more items up to `last` are expected."""
        if self.frame.kind.ends_in_silence and last > -MAX_TICK:
            self._advance_followers(last)
        if finishing:
            self._finish()
        if self._known:
            known, self._known = self._known, []
            yield FrameReport(_bounds(known), (self._cells(known, self.contents),) if self.contents else ())
        self._forget()

    def _advance_followers(self, last: int) -> None:
        """Report to all followers that time has come to `last`: dense stretches end, and old items are not needed."""
        for code, group in self.groups.items():
            group.waiting += group.follower.advance_to(last)
            self._resolve_waiting(code, group, finishing=False)
            group.items.drop_before(min(group.oldest, group.follower.next) - 1)

    def _finish(self) -> None:
        for code, group in self.groups.items():
            group.waiting += group.follower.finish()
            self._resolve_waiting(code, group, finishing=True)
            if group.longest:
                self._queue_report(code, group, group.longest)
                group.longest = None

    def _cells(self, known: Sequence[tuple[int, CertainFrame]], contents: FrameContents) -> FrameCells:
        """What frames hold: a row may be in several of them."""
        order = np.lexsort((self.numbers, self.codes))
        places = self.codes[order] * MAX_ITEMS + self.numbers[order]
        lows = np.searchsorted(places, [code * MAX_ITEMS + each.first for code, each in known])
        highs = np.searchsorted(places, [code * MAX_ITEMS + each.last for code, each in known], side="right")
        sizes = highs - lows
        frames = np.repeat(np.arange(len(known)), sizes)
        inside = np.repeat(lows - (np.cumsum(sizes) - sizes), sizes) + np.arange(sizes.sum())
        rows = self.kept.at(order[inside])
        return contents.cells_of(frames, rows.table, rows.times, rows.order, len(known))

    def _forget(self) -> None:
        """Drop rows that no frame can hold any more."""
        if not len(self.codes):
            return
        oldest = np.zeros(int(self.codes.max()) + 1, np.int64)
        for code, group in self.groups.items():
            if code < len(oldest):
                oldest[code] = group.oldest
        keep = np.flatnonzero(self.numbers >= oldest[self.codes])
        if len(keep) < len(self.codes):
            self.kept, self.codes, self.numbers = self.kept.at(keep), self.codes[keep], self.numbers[keep]

    def live_groups(self, last: int) -> Int64Array:
        """The groups that have state, if no more items up to the time `last` are expected."""
        alive = (code for code, group in self.groups.items() if self.frame.liberal or not group.idle(last))
        return np.concatenate((np.fromiter(alive, np.int64), self.codes))

    def recode(self, codes: Int64Array) -> None:
        """Replace the codes of groups; those with code -1 are dropped."""
        self.groups = {int(codes[code]): group for code, group in self.groups.items() if codes[code] >= 0}
        self.codes = codes[self.codes]

    def state(self) -> Tree:
        return {
            "kept": rows_state(self.kept),
            "places": pa.table({"code": self.codes, "number": self.numbers}),
            "groups": [_group_state(code, group) for code, group in self.groups.items()],
        }

    def restore(self, state: Tree) -> None:
        self.kept = restore_rows(state["kept"])
        self.codes, self.numbers = (np.array(column.to_numpy(), np.int64) for column in state["places"].columns)
        for saved in state["groups"]:
            self.groups[saved["code"]] = self._restore_group(saved)

    def _restore_group(self, saved: Tree) -> FramedGroup:
        """A group from its saved state; its follower takes the saved items again."""
        items = ItemBuffer(saved["items"][0][0] if saved["items"] else 0)
        follower = follower_of(self.frame, saved["oldest"])
        for number, time, values in saved["items"]:
            items.append(FrameItem(time, from_text(values)))
            if number >= saved["oldest"]:
                follower.push(items[number])
        ended = (saved["ended"][0], saved["ended"][1]) if saved["ended"] else None
        follower.resume(ended, saved["reached"], items)
        longest = CertainFrame(*saved["longest"]) if saved["longest"] else None
        return FramedGroup(follower, items, saved["numbered"], [(a, b) for a, b in saved["waiting"]], longest)


def _each_item(items: OrderedItems) -> Iterator[tuple[int, int, tuple[Any, ...]]]:
    """Group, time and values of each item."""
    columns = [to_python(each) for each in items.values]
    values = zip(*columns, strict=True) if columns else repeat(())
    return zip(items.codes.tolist(), items.times.tolist(), values, strict=False)


def _group_state(code: int, group: FramedGroup) -> Tree:
    follower, longest = group.follower, group.longest
    return {
        "code": code,
        "oldest": follower.oldest,
        "items": [[number, item.time, to_text(item.values)] for number, item in group.items],
        "ended": follower.ended,
        "reached": follower.reached,
        "numbered": group.numbered,
        "waiting": [list(stretch) for stretch in group.waiting],
        "longest": [longest.first, longest.last, longest.start, longest.end] if longest else None,
    }


def _bounds(known: Sequence[tuple[int, CertainFrame]]) -> FrameBounds:
    def column(values: Iterator[int]) -> Int64Array:
        return np.fromiter(values, np.int64, len(known))

    return FrameBounds(
        column(code for code, _ in known),
        column(each.number for _, each in known),
        column(each.start for _, each in known),
        column(each.end for _, each in known),
        column(each.last - each.first + 1 for _, each in known),
        np.zeros(len(known), np.int64),
        np.ones(len(known), bool),
    )
