"""Evaluators keep closed panes for windows and answer these at their instants.

An evaluator answers subscriptions: one for each different window and way of reporting, shared by all queries that need
it. It takes panes in order, moves from instant to instant and returns a `Chunk` for every window that is due. Positions
are those of the family: an item's time, one tick later under the boundary `[)`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from bisect import bisect_right, insort
from collections import deque
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from panewise.aggregate import Int64Array, StateArrays, StateWords, states_at
from panewise.core.time import Boundary, on_grid, refuse_many_instants
from panewise.engine.panes.chunks import Chunk
from panewise.engine.state.snapshot import Tree, pane_tree, panes_from
from panewise.stores.chain import MIN_POSITION
from panewise.stores.pane import Pane, index_of
from panewise.window import FOREVER, LogicalWindow, Window

#: No instant is as late as this one.
END_OF_TIME = 2**62


@dataclass(frozen=True)
class Subscription:
    """One window of a family and how it is reported."""

    number: int
    window: Window
    changes: bool
    empty: bool
    revise: int | None
    #: Items up to this position do not count: a query that starts now does not look back.
    since: int = MIN_POSITION

    # Asked of every subscription at every feed and instant.
    @cached_property
    def periodic(self) -> bool:
        return self.window.periodic

    @cached_property
    def needs_newest(self) -> bool:
        return self.window.needs_newest

    def refuse_endless(
        self,
        ends: Int64Array,
        boundary: Boundary,
        since: int,
        end: int,
        limit: int | None,
        reach: tuple[int, int] | None,
    ) -> None:
        """Refuse to report panes that end at these positions at billions of instants, up to a limit if there is one.

        Items that never leave are reported as long as time goes on; without a limit, until one has all items.
        """
        if self.window.grid is None:
            return
        origin, step = self.window.grid
        first, leave = LogicalWindow.of(self.window).lifetimes(ends - boundary.shift, boundary)
        last = leave - 1
        if reach is not None:
            # Empty states are reported too.
            first, last = np.append(first, reach[0]), np.append(last, reach[1] if limit is None else limit)
        last = np.where(last >= FOREVER - 1, end + step, last)
        refuse_many_instants(np.maximum(first, since), last if limit is None else np.minimum(last, limit), origin, step)


@dataclass
class TouchedGroups:
    """Groups that may have changed since a subscription last reported."""

    codes: list[Int64Array] = field(default_factory=list)

    def add(self, codes: Int64Array) -> None:
        self.codes.append(codes)

    def sorted_codes(self) -> Int64Array:
        """The codes of all these groups, ascending."""
        return np.unique(np.concatenate(self.codes)) if self.codes else np.zeros(0, np.int64)

    def take(self) -> Int64Array:
        """Return all these groups and clear the set."""
        found = self.sorted_codes()
        self.codes = []
        return found


@dataclass
class EntryBounds:
    """The oldest and newest position of items in windows, grouped or not, and when late ones became visible."""

    oldest: int = END_OF_TIME
    newest: int = MIN_POSITION
    #: Ascending.
    late: list[int] = field(default_factory=list)

    def note(self, first: int, last: int, late: Iterable[int] = ()) -> None:
        self.oldest, self.newest = min(self.oldest, first), max(self.newest, last)
        self.late = sorted({*self.late, *late})

    def forget_until(self, answered: int) -> None:
        """Drop instants that have been answered, but for the last one, which may be answered at the next of a grid."""
        self.late = self.late[max(bisect_right(self.late, answered) - 1, 0) :]


class Evaluator(ABC):
    """The contract of an evaluator.

    A family calls `start` once. Whenever time goes on it calls `take` with each pane that has closed, `prepare`, and
    then `run`, with `insert` for late panes between two runs. `waiting` are closed panes that are not reached yet.
    """

    def __init__(self, columns: Sequence[StateArrays], boundary: Boundary, lag: int = 0) -> None:
        self.columns, self.boundary, self.lag = columns, boundary, lag
        self.waiting: deque[Pane] = deque()
        #: Every instant up to this one has been answered.
        self.at = MIN_POSITION
        self.subscriptions: dict[int, Subscription] = {}
        self._touched: dict[int, TouchedGroups] = {}
        self.prepare(0, {}, EntryBounds(), False)
        #: Instants at which a late item became visible, for windows that report whenever they change.
        self._openings: list[int] = []

    def start(self, at: int, size: int) -> None:
        """Begin with the instants after one, and with groups 0 to `size` - 1."""
        self.at, self.size = at, size

    def prepare(
        self, size: int, reach: Mapping[int, tuple[int, int]], entry_bounds: EntryBounds, finishing: bool
    ) -> None:
        """Set what holds for the next runs and late panes."""
        #: There are groups 0 to `size` - 1.
        self.size = size
        #: For EMIT EMPTY: the first and last instant at which the window of a subscription held items, grouped or not.
        self.reach = {number: span for number, span in reach.items() if number in self.subscriptions}
        self.entry_bounds = entry_bounds
        #: Whether no more items will come.
        self.finishing = finishing

    def join(self, subscription: Subscription) -> None:
        """Add a subscription."""
        self.subscriptions[subscription.number] = subscription
        if subscription.changes:
            self._touched[subscription.number] = TouchedGroups()

    def leave(self, number: int) -> None:
        self.subscriptions.pop(number, None)
        self._touched.pop(number, None)

    def take(self, pane: Pane) -> None:
        """Accept a closed pane, later than all before."""
        self.waiting.append(pane)

    def run(self, upto: int | None) -> Iterator[Chunk]:
        """Answer every instant up to one; when finishing, no longer than some window still holds something."""
        while (at := self._next_report_instant()) is not None and (upto is None or at <= upto):
            if self.finishing and self.is_exhausted() and not self._has_unreported(at):
                break
            self.at = at
            opened = bool(self._openings) and self._openings[0] <= at
            self._openings = [opening for opening in self._openings if opening > at]
            yield from self.step(at, self._pop_reached_panes(at), opened)
            yield from self._repeat_states(upto)
        if upto is not None and upto > self.at:
            self.skip_to(upto)

    def _repeat_states(self, upto: int | None) -> Iterator[Chunk]:
        """Report the same states at all instants before the next change: one chunk for each window."""
        last = min(self.next_change(), END_OF_TIME if upto is None else upto + 1) - 1
        if last <= self.at:
            return
        reached = self.at
        repeating = {number: self._instants(each, last) for number, each in self.subscriptions.items()}
        repeating = {number: instants for number, instants in repeating.items() if instants}
        for subscription, states in self.current_states(repeating) if repeating else ():
            if subscription.empty or states[0][0].any():
                instants = repeating[subscription.number]
                reached = max(reached, instants[-1])
                for chunk in self._chunks(instants[0], [subscription], states):
                    yield replace(chunk, again=np.arange(instants[0], instants.stop, instants.step, dtype=np.int64)[1:])
        self.skip_to(last if last < END_OF_TIME - 1 else reached)

    def _instants(self, subscription: Subscription, last: int) -> range:
        """The instants up to `last` at which a subscription that repeats whole states reports."""
        grid, first = subscription.window.grid, self.at + 1
        if subscription.empty:
            begin, end = self.reach.get(subscription.number, (END_OF_TIME, MIN_POSITION))
            first, last = max(first, begin), min(last, end) if self.finishing else last
        if grid is None or subscription.changes or first > last:
            return range(0)
        return range(on_grid(first, *grid), last + 1, grid[1])

    def next_change(self) -> int:
        """The first instant at which something may change: all earlier ones have the answer of the last one."""
        coming = [self.waiting[0].end + self.lag] if self.waiting else []
        for number, touched in self._touched.items():
            grid = self.subscriptions[number].window.grid
            coming += [on_grid(self.at + 1, *grid)] if grid and touched.codes else []
        return min([*coming, *self._openings[:1], *self.change_instants()], default=END_OF_TIME)

    @abstractmethod
    def change_instants(self) -> Iterator[int]:
        """Instants at which the held states change by themselves; the earliest one is always among them."""

    @abstractmethod
    def current_states(self, wanted: Container[int]) -> Iterator[tuple[Subscription, list[StateWords]]]:
        """The present states of the subscriptions with the wanted numbers."""

    def skip_to(self, at: int) -> None:
        """Move to an instant up to which there was nothing to report."""
        self.at = at
        self.absorb(at, self._pop_reached_panes(at))

    def _pop_reached_panes(self, at: int) -> list[Pane]:
        """Take the waiting panes that belong to an instant."""
        fresh = []
        while self.waiting and self.waiting[0].end <= at - self.lag:
            fresh.append(self.waiting.popleft())
        self._touch(self._touched, fresh)
        return fresh

    def insert(self, pane: Pane, visible: int) -> Iterator[Chunk]:
        """Add a late pane that counts from the instant `visible` on; returns chunks for instants that it revises."""
        if any(not s.periodic and self.sees_late_pane(s, pane, visible) for s in self.subscriptions.values()):
            insort(self._openings, visible)
        if pane.end > self.at - self.lag:
            insort(self.waiting, pane, key=lambda p: p.end)
            return
        self._touch(self._touched, [pane])
        self.admit(pane)
        yield from self.revisions(pane, visible)

    def _next_report_instant(self) -> int | None:
        """The next instant of a window, or the next at which an empty state is reported."""
        found = [] if (at := self.next_instant()) is None else [at]
        for number, (first, _) in self.reach.items():
            grid = self.subscriptions[number].window.grid if number in self.subscriptions else None
            found += [on_grid(max(self.at + 1, first), *grid)] if grid else []
        for number, touched in self._touched.items():
            grid = self.subscriptions[number].window.grid
            found += [on_grid(self.at + 1, *grid)] if grid and touched.codes and self.at > MIN_POSITION else []
        return min(found, default=None)

    def _has_unreported(self, at: int) -> bool:
        """Whether to report at an instant although no window holds items: an empty state, or groups that were lost."""
        lost = any(touched.codes for touched in self._touched.values())
        return lost or any(self._reports_empty(subscription, at) for subscription in self.subscriptions.values())

    def _reports_empty(self, subscription: Subscription, at: int) -> bool:
        """Whether an empty state is reported: from the first instant with an item to the last one."""
        if subscription.number not in self.reach:
            return False
        first, last = self.reach[subscription.number]
        return first <= at and (not self.finishing or at <= last)

    @property
    def nbytes(self) -> int:
        """How much memory the states take."""
        return sum(pane.nbytes for pane in (*self.waiting, *self.panes()))

    @abstractmethod
    def next_instant(self) -> int | None:
        """The next instant at which any window reports."""

    @abstractmethod
    def is_exhausted(self) -> bool:
        """Whether no window holds items or waits for any."""

    @abstractmethod
    def step(self, at: int, fresh: list[Pane], opened: bool) -> Iterator[Chunk]:
        """Move to an instant with the panes that now belong to it, and answer.

        `opened` says that late items have become visible since the last instant.
        """

    @abstractmethod
    def absorb(self, at: int, fresh: list[Pane]) -> None:
        """Move to an instant without answering."""

    @abstractmethod
    def admit(self, pane: Pane) -> None:
        """Add a late pane to the panes that have been answered already."""

    @property
    def forgotten_until(self) -> int:
        """The newest position at which states may have been dropped."""
        return MIN_POSITION

    @abstractmethod
    def panes(self) -> list[Pane]:
        """Every pane held, waiting ones excluded, oldest first. A pane that has not changed is the same object."""

    @abstractmethod
    def load(self, panes: list[Pane]) -> None:
        """Restore what `panes` returned, with the same codes of groups or with new ones."""

    def state(self) -> Tree:
        """The state that is needed after a restart."""
        return {
            "at": self.at,
            "openings": self._openings,
            "waiting": pane_tree(self.columns, self.waiting),
            "held": pane_tree(self.columns, self.panes()),
            "touched": {str(number): touched.sorted_codes().tolist() for number, touched in self._touched.items()},
        }

    def restore(self, state: Tree) -> None:
        """Restore what `state` returned; the subscriptions have joined before."""
        self.at, self._openings = state["at"], state["openings"]
        self.waiting = deque(panes_from(self.columns, state["waiting"]))
        self.load(panes_from(self.columns, state["held"]))
        for number, codes in state["touched"].items():
            self._touched[int(number)].add(np.array(codes, np.int64))

    def recode(self, codes: Int64Array, size: int) -> None:
        """Replace the codes of groups, of which there are now `size`."""
        self.size = size
        self.waiting = deque(pane.with_codes(codes) for pane in self.waiting)
        self.load([pane.with_codes(codes) for pane in self.panes()])
        for touched in self._touched.values():
            touched.codes = [codes[some] for some in touched.codes]

    def sees_late_pane(self, subscription: Subscription, pane: Pane, visible: int) -> bool:
        """Whether a late pane is still in the window of a subscription when it becomes visible."""
        return True

    def unreported_groups(self) -> Iterator[Int64Array]:
        """Groups about which a report is still due, even if they have no items."""
        return (codes for touched in self._touched.values() for codes in touched.codes)

    def revisions(self, pane: Pane, visible: int) -> Iterator[Chunk]:
        """Chunks for answered instants that a late pane changes; most evaluators have none."""
        return iter(())

    def _touch(self, touched: dict[int, TouchedGroups], panes: list[Pane]) -> None:
        for each in touched.values():
            for pane in panes:
                each.add(pane.codes)

    def _chunks(
        self, at: int, due: Sequence[Subscription], states: list[StateWords], revised: bool = False
    ) -> Iterator[Chunk]:
        """The chunks of subscriptions that share these states."""
        whole = tuple(f.number for f in due if not f.changes and not f.empty)
        if whole:
            present = np.flatnonzero(states[0][0])
            if len(present):
                where = index_of(present)
                yield Chunk(at, whole, present, self._settled_at(states, where), revised)
        for subscription in due:
            if subscription.changes or self._reports_empty(subscription, at):
                codes = self._touched[subscription.number].take() if subscription.changes else np.zeros(1, np.int64)
                if len(codes):
                    yield Chunk(at, (subscription.number,), codes, self._settled_at(states, codes), revised)

    def _settled_at(self, states: list[StateWords], where: Any) -> list[StateWords]:
        """The states of some groups, to which nothing is added any more."""
        # A slice is a view, and the states may change while the chunk waits.
        parts = (tuple(w[where].copy() for w in s) if isinstance(where, slice) else states_at(s, where) for s in states)
        return [column.settle(words) for column, words in zip(self.columns, parts, strict=True)]
