"""Evaluators keep closed panes for windows and answer these at their instants.

An evaluator takes panes in order, moves from instant to instant and returns a `Chunk` for every window that is due.
Positions are those of the family: an item's time, one tick later under the boundary `[)`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from bisect import insort
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from panewise.aggregate import Int64Array, StateArrays, StateWords, states_at
from panewise.core.time import Boundary
from panewise.engine.panes.subscriptions import Chunk, Subscription, TouchedGroups
from panewise.engine.state.snapshot import Tree, pane_tree, panes_from
from panewise.stores.chain import MIN_POSITION
from panewise.stores.pane import Pane, index_of

#: No instant is as late as this one.
END_OF_TIME = 2**62


@dataclass
class EntryBounds:
    """The oldest and newest position of items in windows, grouped or not, and when the last late one became visible."""

    oldest: int = END_OF_TIME
    newest: int = MIN_POSITION
    heard: int = MIN_POSITION

    def note(self, first: int, last: int, heard: int = MIN_POSITION) -> None:
        self.oldest, self.newest = min(self.oldest, first), max(self.newest, last)
        self.heard = max(self.heard, heard)


class Evaluator(ABC):
    """The contract of an evaluator. `waiting` are closed panes that it has not reached yet."""

    def __init__(self, columns: Sequence[StateArrays], boundary: Boundary, lag: int = 0) -> None:
        self.columns, self.boundary, self.lag = columns, boundary, lag
        self.waiting: deque[Pane] = deque()
        #: Every instant up to this one has been answered.
        self.at = MIN_POSITION
        self.size = 0
        self.subscriptions: dict[int, Subscription] = {}
        self._touched: dict[int, TouchedGroups] = {}
        #: For EMIT EMPTY: the first and last instant at which the window of a subscription held items, grouped or not.
        self.reach: dict[int, tuple[int, int]] = {}
        self.entry_bounds = EntryBounds()
        #: Whether no more items will come.
        self.finishing = False
        #: Instants at which a late item became visible, for windows that report whenever they change.
        self._openings: list[int] = []

    def join(self, feed: Subscription) -> None:
        """Add a subscription."""
        self.subscriptions[feed.number] = feed
        if feed.changes:
            self._touched[feed.number] = TouchedGroups()

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
        speaking = (
            (f, states) for feeds, states in self.current_states() for f in feeds if f.empty or states[0][0].any()
        )
        for feed, states in speaking:
            instants = self._instants(feed, last)
            if len(instants):
                reached = max(reached, int(instants[-1]))
                for chunk in self._chunks(int(instants[0]), [feed], states):
                    yield replace(chunk, again=instants[1:])
        self.skip_to(last if last < END_OF_TIME - 1 else reached)

    def _instants(self, feed: Subscription, last: int) -> Int64Array:
        """The instants up to `last` at which a subscription that repeats whole states reports."""
        grid, first = feed.window.grid, self.at + 1
        if feed.empty:
            begin, end = self.reach.get(feed.number, (END_OF_TIME, MIN_POSITION))
            first, last = max(first, begin), min(last, end) if self.finishing else last
        if grid is None or feed.changes or first > last:
            return np.zeros(0, np.int64)
        return np.arange(on_grid(first, *grid), last + 1, grid[1])

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
    def current_states(self) -> Iterator[tuple[list[Subscription], list[StateWords]]]:
        """The present states, with the subscriptions that have them."""

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
        if any(not feed.periodic and self.sees_late_pane(feed, pane, visible) for feed in self.subscriptions.values()):
            insort(self._openings, visible)
        if pane.end > self.at - self.lag:
            insort(self.waiting, pane, key=lambda p: p.end)
            return
        self._touch(self._touched, [pane])
        self.admit(pane)
        yield from self.revisions(pane, visible)

    def grow(self, size: int) -> None:
        """Make room for groups 0 to `size` - 1."""
        self.size = size

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
        return lost or any(self._reports_empty(feed, at) for feed in self.subscriptions.values())

    def _reports_empty(self, feed: Subscription, at: int) -> bool:
        """Whether an empty state is reported: from the first instant with an item to the last one."""
        if feed.number not in self.reach:
            return False
        first, last = self.reach[feed.number]
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
        """Every pane held, waiting ones excluded, oldest first."""

    @abstractmethod
    def load(self, panes: list[Pane]) -> None:
        """Restore what `panes` returned, with the same codes of groups or with new ones."""

    def _stored_panes(self) -> list[Pane]:
        """The same pane objects that are kept: a copy with moved positions would have to be written again."""
        return self.panes()

    def _load_stored(self, panes: list[Pane]) -> None:
        """Restore what `_stored_panes` returned."""
        self.load(panes)

    def state(self) -> Tree:
        """The state that is needed after a restart."""
        return {
            "at": self.at,
            "openings": self._openings,
            "waiting": pane_tree(self.columns, self.waiting),
            "held": pane_tree(self.columns, self._stored_panes()),
            "touched": {str(number): touched.sorted_codes().tolist() for number, touched in self._touched.items()},
        }

    def restore(self, state: Tree) -> None:
        """Restore what `state` returned; the subscriptions have joined before."""
        self.at, self._openings = state["at"], state["openings"]
        self.waiting = deque(panes_from(self.columns, state["waiting"]))
        self._load_stored(panes_from(self.columns, state["held"]))
        for number, codes in state["touched"].items():
            self._touched[int(number)].add(np.array(codes, np.int64))

    def recode(self, codes: Int64Array) -> None:
        """Replace the codes of groups."""
        self.waiting = deque(pane.with_codes(codes) for pane in self.waiting)
        self.load([pane.with_codes(codes) for pane in self.panes()])
        for touched in self._touched.values():
            touched.codes = [codes[some] for some in touched.codes]

    def sees_late_pane(self, feed: Subscription, pane: Pane, visible: int) -> bool:
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
                yield Chunk(at, whole, present, [states_at(words, where) for words in states], revised)
        for feed in due:
            if feed.changes or self._reports_empty(feed, at):
                codes = self._touched[feed.number].take() if feed.changes else np.zeros(1, np.int64)
                if len(codes):
                    yield Chunk(at, (feed.number,), codes, [states_at(words, codes) for words in states], revised)


def on_grid(position: int, origin: int, step: int) -> int:
    """The first grid point that is not before a position."""
    return origin - (origin - position) // step * step
