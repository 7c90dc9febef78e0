"""Frames of which items are kept, since they may be in several, or only later items tell that they are in one."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from panewise import kernels
from panewise.aggregate import Int64Array, runs
from panewise.core.time import MAX_TICK
from panewise.engine.frames.contents import FrameContents
from panewise.engine.frames.kept_items import KeptItems
from panewise.engine.frames.kernel_runs import Registers, flags_of
from panewise.engine.frames.order import OrderedItems
from panewise.engine.frames.report import FrameBounds, FrameReport
from panewise.engine.frames.stretch_finders import FollowState, finder_of
from panewise.engine.sorting import order_by_code
from panewise.engine.state.snapshot import Tree
from panewise.frame.frame import Span
from panewise.kernels import NO_TIME
from panewise.plan.frame_plan import FramePlan

#: Stretches, a row each: the group, and the numbers of the first and last item in it.
StretchTable = npt.NDArray[np.int64]

_NO_STRETCHES = np.zeros((0, 3), np.int64)


class StretchFrames:
    """All groups of a query whose items are kept. The items of a group are numbered."""

    def __init__(self, plan: FramePlan, contents: FrameContents | None, schema: pa.Schema) -> None:
        self.frame, self.contents = plan.frame, contents
        self.finder = finder_of(plan.frame)
        self.items = KeptItems(schema, len(plan.frame.scalars))
        #: Of each group: the number of the next item, the first item that may be in a stretch that is still to be
        #: found, how far its stretches reach, the last number of a frame, and the time of the last item.
        self.at = Registers({"next": 0, "start": 0, "reached": -1, "numbered": NO_TIME, "seen": NO_TIME})
        #: Stretches whose frames wait for the item after them.
        self.waiting: StretchTable = _NO_STRETCHES
        #: If only the longest frame of each group is reported: the longest of those that have ended.
        self.longest: StretchTable = _NO_STRETCHES
        #: The place that the item with number 0 of each group would have among the items.
        self._zeros: Int64Array = np.zeros(0, np.int64)

    def last_times(self, groups: int) -> Int64Array:
        """The time of the last item of each group."""
        self.at.fit(groups)
        return self.at["seen"]

    def earliest_start(self) -> int:
        """The earliest start of a frame that is still to be reported and whose first item has arrived."""
        return int(self.items.times.min(initial=MAX_TICK))

    # ---- items -------------------------------------------------------------------------------------------------

    def take(self, items: OrderedItems, groups: int) -> None:
        """Take items in, and keep their rows."""
        self.at.fit(groups)
        self.items.add(items)
        fresh = np.bincount(items.codes, minlength=groups)
        self.at["next"][: len(fresh)] += fresh
        self.at["seen"][items.codes] = items.times
        self._locate_items()
        self._find_stretches(fresh, -MAX_TICK)

    def _find_stretches(self, fresh: Int64Array, now: int) -> None:
        """Find the stretches that new items make certain, or that are so because time has come to `now`."""
        groups = self.items.places(fresh)
        if now == -MAX_TICK:
            groups = groups.at(np.flatnonzero(groups.fresh < groups.stops))
        zeros = self._zeros[groups.codes]
        state = FollowState(self.at["start"][groups.codes] + zeros, self.at["reached"][groups.codes] + zeros)
        firsts, lasts = self.finder.find(self.items, groups, state, now)
        self.at["start"][groups.codes], self.at["reached"][groups.codes] = state.start - zeros, state.reached - zeros
        whose = self.items.codes[firsts]
        found = np.stack((whose, firsts - self._zeros[whose], lasts - self._zeros[whose]), axis=1)
        self.waiting = np.concatenate((self.waiting, found)) if len(self.waiting) else found

    def _locate_items(self) -> None:
        begins, stops = runs(self.items.codes)
        codes = self.items.codes[begins]
        self._zeros = np.zeros(len(self.at["next"]), np.int64)
        self._zeros[codes] = stops - self.at["next"][codes]

    # ---- frames ------------------------------------------------------------------------------------------------

    def report(self, last: int, finishing: bool) -> Iterator[FrameReport]:
        """The frames that have become certain, with what they hold. No more items up to `last` are expected."""
        if finishing or (self.frame.kind.ends_in_silence and last > -MAX_TICK):
            self._find_stretches(np.zeros(len(self.at["next"]), np.int64), MAX_TICK if finishing else last)
        found = self._take_ready(finishing)
        bounds = self._bounds(found)
        if self.frame.selective:
            good = np.flatnonzero(self._qualified_flags(found, bounds))
            found, bounds = found[good], bounds.at(good)
        if self.frame.effective_span is Span.MAXIMUM:
            chosen = _longest_places(found, bounds)
            found, bounds = found[chosen], bounds.at(chosen)
            self.longest = _NO_STRETCHES if finishing else found
        if len(found) and not len(self.longest):
            yield self._report_of(found, bounds)
        self._forget()

    def _take_ready(self, finishing: bool) -> StretchTable:
        """The stretches whose extent is known, by group and start, and after them those that were longest so far.

        A frame that waits holds up those after it, since numbers are given in the order of starts.
        """
        found, self.waiting = self.waiting[order_by_code(self.waiting[:, 0])], _NO_STRETCHES
        if (self.frame.liberal or self.frame.lasting) and not finishing:
            held_up = np.full(len(self.at["next"]), len(found))
            waits = np.flatnonzero(found[:, 2] + 1 == self.at["next"][found[:, 0]])
            np.minimum.at(held_up, found[waits, 0], waits)
            ready = np.arange(len(found)) < held_up[found[:, 0]]
            found, self.waiting = found[ready], found[~ready]
        return np.concatenate((found, self.longest)) if len(self.longest) else found

    def _bounds(self, found: StretchTable) -> FrameBounds:
        """Where stretches lie in time, without numbers."""
        groups, items = found[:, 0], self.items
        firsts, lasts = (self._zeros[groups] + found[:, which] for which in (1, 2))
        starts, ends = items.times[firsts], items.times[lasts]
        if self.frame.liberal and not self.frame.lasting:
            before = np.maximum(firsts - 1, 0)
            known = (firsts > 0) & (items.codes[before] == groups)
            starts = np.where(known, items.times[before], starts)
        if self.frame.liberal or self.frame.lasting:
            after = np.minimum(lasts + 1, len(items) - 1)
            ends = np.where(items.codes[after] == groups, items.times[after], ends)
        nothing = np.zeros(len(found), np.int64)
        return FrameBounds(groups, nothing, starts, ends, lasts - firsts + 1, nothing, np.ones(len(found), bool))

    def _qualified_flags(self, found: StretchTable, bounds: FrameBounds) -> npt.NDArray[np.bool_]:
        """The stretches that are long and short enough, and have an item that they must have."""
        good = np.ones(len(found), bool)
        if (least := self.frame.least) is not None:
            good &= (bounds.counts if least.rows else bounds.ends - bounds.starts) >= least.amount
        if (most := self.frame.most) is not None:
            good &= (bounds.counts if most.rows else bounds.ends - bounds.starts) <= most.amount
        if self.frame.some:
            before = np.concatenate(([0], np.cumsum(flags_of(pa.chunked_array(self.items.values[-1:])))))
            places = self._zeros[found[:, 0]]
            good &= before[places + found[:, 2] + 1] > before[places + found[:, 1]]
        return good

    def _report_of(self, found: StretchTable, bounds: FrameBounds) -> FrameReport:
        """Frames with their numbers and what they hold, in the order in which they end."""
        places = self._zeros[found[:, 0]]
        firsts = places + found[:, 1]
        bounds.numbers[:] = kernels.frame_numbers(bounds.groups, self.items.times[firsts], self.at["numbered"])
        order = np.argsort(bounds.ends, kind="stable")
        if self.contents is None:
            return FrameReport(bounds.at(order))
        rows = np.concatenate(([0], np.cumsum(self.items.sizes)))
        low, high = rows[firsts], rows[places + found[:, 2] + 1]
        cells = self.contents.cells_in_ranges(self.items.rows, low, high, found[:, 0])
        return FrameReport(bounds.at(order), (cells.in_order(order),))

    # ---- forgetting --------------------------------------------------------------------------------------------

    def _forget(self) -> None:
        """Drop items that no frame can hold any more; the one before decides where liberal frames begin."""
        oldest = np.minimum(self.at["start"], self.at["next"])
        for table in (self.waiting, self.longest):
            np.minimum.at(oldest, table[:, 0], table[:, 1])
        codes = self.items.codes
        numbers = np.arange(len(codes)) - self._zeros[codes]
        self.items.keep(numbers >= oldest[codes] - self.frame.liberal)
        self._locate_items()

    def live_groups(self, last: int) -> Int64Array:
        """The groups that have state, if no more items up to the time `last` are expected."""
        return np.union1d(self.items.codes, np.flatnonzero(self.at["numbered"] > last))

    def recode(self, codes: Int64Array) -> None:
        """Replace the codes of groups; those with code -1 are dropped."""
        self.items.recode(codes)
        self.at.recode(codes)
        self.finder.recode(codes)
        for table in (self.waiting, self.longest):
            table[:, 0] = codes[table[:, 0]]
        self._locate_items()

    # ---- restarts ----------------------------------------------------------------------------------------------

    def state(self) -> Tree:
        waiting, longest = (pa.table({str(n): table[:, n] for n in range(3)}) for table in (self.waiting, self.longest))
        return {"items": self.items.state(), "at": self.at.state(), "waiting": waiting, "longest": longest}

    def restore(self, state: Tree) -> None:
        self.items.restore(state["items"])
        self.at.restore(state["at"])
        self.waiting, self.longest = (
            np.stack([column.to_numpy() for column in state[name].columns], axis=1).astype(np.int64)
            for name in ("waiting", "longest")
        )
        self._locate_items()


def _longest_places(found: StretchTable, bounds: FrameBounds) -> Int64Array:
    """Of each group the place of the longest frame, then of that with most items, then of the first."""
    order = np.lexsort((found[:, 1], -bounds.counts, bounds.starts - bounds.ends, bounds.groups))
    begins, _ = runs(bounds.groups[order])
    return order[begins]
