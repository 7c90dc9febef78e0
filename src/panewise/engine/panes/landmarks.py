"""Landmark and cumulating windows: a total for every group that only grows, until its period ends."""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence

import numpy as np

from panewise.aggregate import StateArrays, StateWords
from panewise.core.time import Boundary, on_grid
from panewise.engine.panes.chunks import Chunk
from panewise.engine.panes.evaluators import Evaluator, Subscription
from panewise.stores.chain import MIN_POSITION
from panewise.stores.pane import Pane
from panewise.stores.totals import PaneTotal
from panewise.window import LogicalWindow


class AccumulatingEvaluator(Evaluator):
    """One subscription with one total. Space O(groups), whatever the length of the stream."""

    def __init__(self, columns: Sequence[StateArrays], subscription: Subscription, boundary: Boundary) -> None:
        super().__init__(columns, boundary)
        self.window, self.subscription = LogicalWindow.of(subscription.window), subscription
        self.totals: list[PaneTotal] | None = None
        #: The last position before the current period.
        self.floor = MIN_POSITION
        self.join(subscription)

    def next_instant(self) -> int | None:
        if self.window.grid is None:
            candidates = self._openings[:1] + ([self.waiting[0].end] if self.waiting else [])
            return min(candidates, default=None)
        if self.totals is not None:
            following = on_grid(self.at + 1, *self.window.grid)
            return None if self.at >= self.window.closing_instant else following
        return on_grid(max(self.waiting[0].end, self.at + 1), *self.window.grid) if self.waiting else None

    def is_exhausted(self) -> bool:
        if self.waiting or self._openings:
            return False
        # A window that never ends is reported until the first instant that has every item, even one without a group.
        lasting = self.window.lasting and self.at >= self._first_complete_instant()
        return lasting or self.totals is None

    def _first_complete_instant(self) -> int:
        """The first instant whose window has every item."""
        grid = self.window.grid or (0, 1)
        late = [on_grid(instant, *grid) for instant in self.entry_bounds.late]
        in_time = (instant for instant in late if instant <= self.window.closing_instant)
        return max([on_grid(self.entry_bounds.newest, *grid), *in_time])

    def _has_unreported(self, at: int) -> bool:
        # A window that never ends loses no items; an item that is late for its last instant changes nothing.
        return super()._has_unreported(at) and not self.window.lasting

    def step(self, at: int, fresh: list[Pane], opened: bool) -> Iterator[Chunk]:
        self.absorb(at, fresh)
        for subscription, states in self.current_states(self.subscriptions):
            yield from self._chunks(at, [subscription], states)

    def current_states(self, wanted: Container[int]) -> Iterator[tuple[Subscription, list[StateWords]]]:
        totals = self.totals or [PaneTotal(column) for column in self.columns]
        for total in totals:
            total.grow(self.size)
        # Copied, because totals go on growing in place after they have been answered.
        yield self.subscription, [tuple(word.copy() for word in total.total()) for total in totals]

    def change_instants(self) -> Iterator[int]:
        if self.totals is None:
            return
        if (end := self.window.period_end(self.at)) is not None:
            yield end + 1
        elif self.finishing and not self.waiting and not self._openings:
            yield self._first_complete_instant() + 1
        yield self.window.closing_instant + 1

    def absorb(self, at: int, fresh: list[Pane]) -> None:
        self._start_period(on_grid(at, *(self.window.grid or (0, 1))))
        for pane in fresh:
            self._add(pane)

    def admit(self, pane: Pane) -> None:
        # Late items count from the next instant on, which may belong to another period.
        self.absorb(self.at + 1, [pane])

    def _add(self, pane: Pane) -> None:
        if pane.end <= self.floor:
            return
        if self.totals is None:
            self.totals = [PaneTotal(column) for column in self.columns]
        for total, words in zip(self.totals, pane.states, strict=True):
            total.grow(self.size)
            total.push(pane.where, words)

    @property
    def forgotten_until(self) -> int:
        return self.floor

    def panes(self) -> list[Pane]:
        if self.totals is None:
            return []
        states = [total.total() for total in self.totals]
        codes = np.flatnonzero(states[0][0])
        return [Pane(self.floor, self.at, codes, tuple(tuple(word[codes] for word in words) for words in states))]

    def load(self, panes: list[Pane]) -> None:
        self.totals = None
        for pane in panes:
            self.floor = pane.start
            self._add(pane)

    def _start_period(self, at: int) -> None:
        """Clear the totals if an instant belongs to another period."""
        low, _ = self.window.scope(np.array([at], np.int64), self.boundary)
        floor = int(low[0]) + self.boundary.shift - 1
        if floor != self.floor:
            self._touch(self._touched, self.panes())
            self.floor, self.totals = floor, None
