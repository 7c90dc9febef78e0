"""A family of queries over windows without a SLIDE and over counted windows: they report whenever they change.

All windows share the rows that the widest of them needs. At every turn each window gives these rows lifetimes, and the
groups that change are evaluated by `engine.group_steps`; nothing but the rows is kept from turn to turn.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from panewise import kernels
from panewise.aggregate import Int64Array, Items, StateWords, concat_states, states_at
from panewise.algebra import Host
from panewise.core.time import Boundary
from panewise.engine.group_steps import GroupSteps, Lifetimes, group_steps
from panewise.engine.lateness import Ledger, Verdict, late_verdict
from panewise.engine.lookups.archive import Archive
from panewise.engine.lookups.row_archive import RowArchive
from panewise.engine.panes.chunks import ChangeRun
from panewise.engine.panes.evaluators import Subscription
from panewise.engine.panes.family import EnteringRows
from panewise.engine.panes.held_rows import Flags, HeldRows, RowsByPartition, timed_lifetimes
from panewise.engine.panes.holding_family import NOTHING, HoldingFamily
from panewise.engine.state.snapshot import Tree
from panewise.kernels.ranges import OPEN
from panewise.plan import PanePlan
from panewise.window import LogicalWindow, Rows

#: Windows are evaluated together as long as they see no more rows than this in all.
MANY_ROWS = 1 << 18


@dataclass(frozen=True, eq=False)
class _Expiry:
    """When rows expire, by time or by the order of rows: places of rows, their lifetimes with an expiry, and that.

    Orders vary while late rows come before others; otherwise each row is there once.
    """

    places: Int64Array
    lifetimes: Lifetimes
    values: Int64Array

    @property
    def vary(self) -> bool:
        return len(self.places) > 0 and len(self.places) > int(self.places[-1]) + 1


@dataclass(frozen=True, eq=False)
class _WindowView:
    """When the rows of a family are visible to the window of a subscription, are in it, and expire there."""

    subscription: Subscription
    visible: Int64Array
    lifetimes: Lifetimes
    expiry: _Expiry


class RowFamily(HoldingFamily):
    """Rows are held until no window needs them any more."""

    def __init__(self, plan: PanePlan, boundary: Boundary, host: Host) -> None:
        super().__init__(plan, boundary, host)
        #: How many rows of each partition have been dropped, and the time and the arrival of the last of them.
        self.dropped, self.dropped_times, self.dropped_order = NOTHING, NOTHING, NOTHING
        #: Rows kept for lookups, where some window counts them, and for how long panes and rows are kept.
        self.kept_rows: RowArchive | None = None
        self._keep: tuple[int, int | None] | None = None

    def _on_subscribe(self, subscription: Subscription) -> None:
        """Keep for lookups what such a window needs; the window itself finds the rows that others hold."""
        if self._keep is None:
            return
        if not subscription.window.logical and self.kept_rows is None:
            self.kept_rows = self._new_row_archive(self._keep[0], self._newest_position())
        elif subscription.window.logical and self.archive is None:
            super().start_archive(*self._keep)
            assert self.archive is not None
            self.archive.lost = self._newest_position()

    def _on_unsubscribe(self, subscription: Subscription) -> None:
        """Do nothing: rows that no window needs are dropped at the next turn."""

    # ---- rows --------------------------------------------------------------------------------------------------

    def take(self, entering: EnteringRows, ledger: Ledger) -> None:
        fresh, late = self._hold(entering), entering.rows.late_flags()
        if self.kept_rows is not None:
            self.kept_rows.take(fresh, self.rows_needed)
        if late is not None:
            self._record_late(fresh, np.flatnonzero(late), ledger)

    def _record_late(self, fresh: HeldRows, late: Int64Array, ledger: Ledger) -> None:
        order, times, visible = fresh.order[late], fresh.times[late], fresh.visible[late]
        counted: Verdict | None = None
        for number, queries in self.queries_by_subscription().items():
            window = self.subscriptions[number].window
            if window.logical:
                ledger.add(late_verdict(LogicalWindow.of(window), self.boundary, order, times, visible), queries)
            else:
                counted = counted or self._counted_verdict(order)
                ledger.add(counted, queries)

    def _counted_verdict(self, order: Int64Array) -> Verdict:
        """The verdict of windows that count rows: a late row is lost if none of them reaches back to it."""
        yes = np.ones(len(order), bool)
        return Verdict(order, yes, self._newer_rows(order) < self.rows_needed, yes)

    def _newer_rows(self, order: Int64Array) -> Int64Array:
        """How many newer rows of its partition were there when each of some late rows became visible."""
        self._merge_incoming()
        rows = self.held
        partitions = RowsByPartition.of(rows)
        by_place = rows.at(partitions.places)
        places = np.flatnonzero(np.isin(by_place.order, order))
        places = places[np.argsort(by_place.order[places])]
        found: Int64Array = kernels.range_newer(partitions.edges, by_place.visible, places, self.rows_needed)
        return found

    @property
    def rows_needed(self) -> int:
        """How many rows of a partition counted windows look back over."""
        windows = [Rows.of(s.window) for s in self.subscriptions.values() if not s.window.logical]
        return max((window.count + window.lag for window in windows), default=0)

    def _merge_incoming(self, limit: int = OPEN) -> None:
        super()._merge_incoming(limit)
        if fresh := max(len(self.partition_keys) - len(self.dropped), 0):
            self.dropped = np.append(self.dropped, np.zeros(fresh, np.int64))
            self.dropped_times = np.append(self.dropped_times, np.full(fresh, -OPEN))
            self.dropped_order = np.append(self.dropped_order, np.full(fresh, -1))

    # ---- time --------------------------------------------------------------------------------------------------

    def _turn(self, limit: int, finishing: bool) -> Iterator[ChangeRun]:
        """Report the changes up to an instant, and drop the rows that no window needs after it."""
        self._merge_incoming(limit)
        self._keep_fresh_panes(limit)
        # Rows that no window will ever hold may still be kept for lookups, once they are visible.
        needed = self.held.visible > limit
        partitions = RowsByPartition.of(self.held) if self.rows_needed else None
        views = [self._view(subscription, partitions, limit) for subscription in self.subscriptions.values()]
        for view in views:
            needed |= view.lifetimes.leave > limit
        for some in self._views_together(views):
            yield from self._change_runs(some, limit)
        self._note_dropped(np.flatnonzero(~needed))
        self.held = self.held.where(needed)

    def _note_dropped(self, places: Int64Array) -> None:
        """Count the rows at some places, ascending, which are dropped, and note the last one of each partition."""
        rows = self.held
        self.dropped += np.bincount(rows.partitions[places], minlength=len(self.dropped))
        last = np.full(len(self.dropped), -1)
        last[rows.partitions[places]] = places
        partitions = np.flatnonzero(last >= 0)
        ahead = partitions[~self._behind_dropped(last[partitions])]
        self.dropped_times[ahead], self.dropped_order[ahead] = rows.times[last[ahead]], rows.order[last[ahead]]

    def _behind_dropped(self, places: Int64Array) -> Flags:
        """Which of the rows at some places come before a row of their partition that has been dropped."""
        rows, partitions = self.held, self.held.partitions[places]
        times, dropped = rows.times[places], self.dropped_times[partitions]
        earlier = rows.order[places] < self.dropped_order[partitions]
        behind: Flags = (times < dropped) | ((times == dropped) & earlier)
        return behind

    def _view(self, subscription: Subscription, partitions: RowsByPartition | None, limit: int) -> _WindowView:
        """The held rows as a window sees them."""
        rows, since = self.held, self.answered_until
        if partitions is None or subscription.window.logical:
            window = LogicalWindow.of(subscription.window)
            lifetimes = timed_lifetimes(rows, window, self.boundary, subscription.since)
            expiry = _Expiry(np.arange(len(rows)), lifetimes, lifetimes.leave)
            return _WindowView(subscription, rows.visible, lifetimes, expiry)
        counted = Rows.of(subscription.window)
        rows = partitions.in_blocks(rows, counted.step, self.dropped)
        lifetimes = partitions.lifetimes(rows, counted, since, limit)
        places, pieces, numbers = partitions.row_numbers(rows, lifetimes, since, limit)
        expires = counted.expires_order(numbers + self.dropped[rows.partitions[places]] + 1)
        return _WindowView(subscription, rows.visible, lifetimes, _Expiry(places, pieces, expires))

    def _views_together(self, views: Sequence[_WindowView]) -> Iterator[Sequence[_WindowView]]:
        """Windows that are evaluated together, so that each of them costs little when few rows come.

        Whole states, and expiry that varies, are found for each window on its own.
        """
        alike: list[_WindowView] = []
        for view in views:
            if view.subscription.changes and not view.expiry.vary:
                alike.append(view)
            else:
                yield [view]
        size = max(MANY_ROWS // max(len(self.held), 1), 1)
        yield from (alike[start : start + size] for start in range(0, len(alike), size))

    def _change_runs(self, views: Sequence[_WindowView], limit: int) -> Iterator[ChangeRun]:
        """The changes of some windows: a group is the group of keys in one of them."""
        since, count, size = self.answered_until, len(self.held), len(self.keys)
        (first, *others), numbers = views, np.array([view.subscription.number for view in views], np.int64)
        lifetimes, values = first.lifetimes, first.expiry.values
        if others:
            parts = [(view.lifetimes, np.int64(place * size)) for place, view in enumerate(views)]
            lifetimes = Lifetimes(
                np.concatenate([np.where(part.codes < 0, -1, part.codes + base) for part, base in parts]),
                np.concatenate([part.enter for part, _ in parts]),
                np.concatenate([part.leave for part, _ in parts]),
            )
            values = np.concatenate([view.expiry.values for view in views])

        def items(places: Int64Array) -> list[Items]:
            return self.held_items(values[places], places % count if others else places)

        for steps in group_steps(self.columns, lifetimes, items, since, limit, not first.subscription.changes):
            if not first.subscription.changes:
                steps = _at_instants(steps, self._change_instants(first, limit))
            elif self.expiry_column and first.expiry.vary:
                steps = replace(steps, states=[*steps.states[:-1], self._first_expiry(first.expiry, limit, steps)])
            if others:
                yield ChangeRun(numbers[steps.codes // size], replace(steps, codes=steps.codes % size))
            else:
                yield ChangeRun(np.full(len(steps), numbers[0]), steps)

    def _change_instants(self, view: _WindowView, limit: int) -> Int64Array:
        """The instants at which the window changes, also by rows without a group."""
        found, lifetimes = [view.visible], view.lifetimes
        if view.subscription.window.logical:
            inside = lifetimes.enter < lifetimes.leave
            found = [lifetimes.enter[inside], lifetimes.leave[inside]]
        instants = np.unique(np.concatenate(found))
        return instants[(instants > self.answered_until) & (instants <= limit)]

    def _first_expiry(self, expiry: _Expiry, limit: int, steps: GroupSteps) -> StateWords:
        """When the first item of each group that changes expires, where that varies."""
        rows = self.held

        def items(some: Int64Array) -> list[Items]:
            where = expiry.places[some]
            return [Items((pa.array(expiry.values[some]),), rows.times[where], rows.order[where])]

        parts = list(group_steps(self.columns[-1:], expiry.lifetimes, items, self.answered_until, limit))
        codes, at = np.concatenate([p.codes for p in parts]), np.concatenate([p.at for p in parts])
        words = concat_states([p.states[0] for p in parts])
        return states_at(words, _last_before(codes, at, steps))

    # ---- lookups -----------------------------------------------------------------------------------------------

    def start_archive(self, length: int, grain: int | None) -> None:
        """Keep panes or rows for lookups, as soon as there are windows over time or over rows."""
        self._keep = length, grain

    def _newest_position(self) -> int:
        """No row after this position has come."""
        self._merge_incoming()
        newest = int(self.held.times[-1]) + self.boundary.shift if len(self.held) else self.created_at
        return max(self.created_at, self.answered_until, newest)

    def _new_row_archive(self, keep: int | None, since: int) -> RowArchive:
        shift, partitioned = self.boundary.shift, bool(self.plan.window.partition_by)
        archive = RowArchive(self.columns, self.stored_calls, shift, partitioned, keep, since, self.plan.rules_off)
        archive.know_partitions(len(self.partition_keys))
        return archive

    def held_archive(self) -> RowArchive:
        """The rows that windows hold, as an archive, which may answer lookups."""
        self._merge_incoming()
        held = self._new_row_archive(None, self.created_at)
        # Late rows that are still here although newer rows have been dropped count as dropped too.
        behind = self._behind_dropped(np.arange(len(self.held)))
        held.dropped = self.dropped + np.bincount(self.held.partitions[behind], minlength=len(self.dropped))
        held.take(self.held.where(~behind), self.rows_needed)
        return held

    def window_archives(self) -> list[Archive]:
        self._merge_incoming()
        windows = [s.window for s in self.subscriptions.values() if s.window.logical]
        widest = max((OPEN if w.longest is None else w.lag + w.longest for w in windows), default=0)
        archive = Archive(self.columns, None, max(self.created_at, self.answered_until - widest))
        for pane in self._tick_panes(self.held.visible <= self.answered_until):
            archive.take(pane)
        return [archive]

    # ---- forgetting and restarts -------------------------------------------------------------------------------

    @property
    def nbytes(self) -> int:
        return super().nbytes + (self.kept_rows.nbytes if self.kept_rows else 0)

    def live_groups(self) -> Iterable[Int64Array]:
        yield from super().live_groups()
        for rows in self.kept_rows.rows if self.kept_rows else ():
            yield rows.codes[rows.codes >= 0]

    def recode(self, codes: Int64Array) -> None:
        super().recode(codes)
        if self.kept_rows is not None:
            self.kept_rows.recode(codes)

    def state(self) -> Tree:
        kept = self.kept_rows.state() if self.kept_rows else None
        dropped = pa.table([self.dropped, self.dropped_times, self.dropped_order], names=["rows", "times", "order"])
        return super().state() | {"dropped": dropped, "kept_rows": kept}

    def restore(self, state: Tree) -> None:
        if self._keep is not None and state["archive"] is not None:
            super().start_archive(*self._keep)
        super().restore(state)
        if self._keep is not None and state["kept_rows"] is not None:
            self.kept_rows = self._new_row_archive(self._keep[0], self.created_at)
            self.kept_rows.restore(state["kept_rows"])
        words = (np.array(column.to_numpy(), np.int64) for column in state["dropped"].columns)
        self.dropped, self.dropped_times, self.dropped_order = words


def _at_instants(steps: GroupSteps, instants: Int64Array) -> GroupSteps:
    """The states of all groups that have items, at each of some instants."""
    last = np.append(np.diff(steps.codes) != 0, True)
    until = np.where(last, OPEN, np.append(steps.at[1:], OPEN))
    low, high = np.searchsorted(instants, steps.at), np.searchsorted(instants, until)
    counts = np.where(steps.states[0][0] > 0, high - low, 0)
    places = np.repeat(np.arange(len(steps)), counts)
    offsets = np.arange(len(places)) - np.repeat(np.cumsum(counts) - counts, counts)
    states = [tuple(word[places] for word in words) for words in steps.states]
    return GroupSteps(steps.codes[places], instants[low[places] + offsets], steps.columns, states)


def _last_before(codes: Int64Array, at: Int64Array, steps: GroupSteps) -> Int64Array:
    """For each step, the place of the last of some other steps of its group that is not after it; there is one."""
    every_code, every_at = np.concatenate((codes, steps.codes)), np.concatenate((at, steps.at))
    order = np.lexsort((every_at, every_code))
    mine = order >= len(codes)
    known = np.maximum.accumulate(np.where(mine, 0, np.arange(len(order))))
    found = np.empty(len(steps), np.int64)
    found[order[mine] - len(codes)] = order[known[mine]]
    return found
