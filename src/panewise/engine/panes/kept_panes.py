"""Windows that can look back at any panes: panes are kept as they are and combined again for every answer.

For extents that change with time, and for LATE REVISE, which reports past instants again.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Container, Iterator, Sequence
from dataclasses import replace

import numpy as np

from panewise.aggregate import Int64Array, StateArrays, StateWords, runs
from panewise.core.time import Boundary, on_grid
from panewise.engine.panes.chunks import Chunk
from panewise.engine.panes.evaluators import END_OF_TIME, Evaluator, Subscription
from panewise.engine.state.snapshot import Tree
from panewise.stores.chain import MIN_POSITION
from panewise.stores.pane import Pane, merge_panes
from panewise.window import Contents, LogicalWindow


class KeptPanesEvaluator(Evaluator):
    """One subscription. Space O(panes), which is bounded only if the window has a greatest length."""

    def __init__(self, columns: Sequence[StateArrays], subscription: Subscription, boundary: Boundary) -> None:
        super().__init__(columns, boundary, subscription.window.lag)
        assert subscription.window.grid is not None
        self.window, self.grid, self.subscription = (
            LogicalWindow.of(subscription.window),
            subscription.window.grid,
            subscription,
        )
        #: How far back the window reaches at instants that may still be revised.
        self.lookback = self.window.max_lifetime + (subscription.revise or 0)
        self.held: list[Pane] = []
        #: Groups in the last answer; an extent that changes may lose any of them.
        self.shown = np.zeros(0, np.int64)
        #: The last instant; valid until another pane comes.
        self._known: tuple[tuple[int, int], int] | None = None
        self.join(subscription)

    def next_instant(self) -> int | None:
        if self.held:
            return on_grid(self.at + 1, *self.grid)
        return on_grid(max(self.waiting[0].end + self.lag, self.at + 1), *self.grid) if self.waiting else None

    def is_exhausted(self) -> bool:
        """Whether the window has passed the last instant at which it can hold any item so far."""
        if self.waiting:
            return False
        if not self.held:
            return True
        return self.at >= self._last_instant()

    def _last_instant(self) -> int:
        """The last instant at which the window can hold any item so far."""
        ends = min(self.held[0].end, self.entry_bounds.oldest), max(self.held[-1].end, self.entry_bounds.newest)
        if self._known is None or self._known[0] != ends:
            times = np.unique(ends) - self.boundary.shift
            instants = self.window.instants(Contents.of(times), self.boundary)
            self._known = ends, int(instants[-1]) if len(instants) else MIN_POSITION
        return self._known[1]

    def step(self, at: int, fresh: list[Pane], opened: bool) -> Iterator[Chunk]:
        self.absorb(at, fresh)
        states = self._answer(at)
        for touched in self._touched.values():
            touched.add(self.shown)
            self.shown = np.flatnonzero(states[0][0])
            touched.add(self.shown)
        yield from self._chunks(at, [self.subscription], states)

    def change_instants(self) -> Iterator[int]:
        # Revisions and changes are computed instant by instant.
        if self.subscription.changes or self.subscription.revise is not None:
            yield self.at + 1
        elif self.finishing and self.held and not self.waiting:
            yield self._last_instant() + 1

    def current_states(self, wanted: Container[int]) -> Iterator[tuple[Subscription, list[StateWords]]]:
        return iter(())

    def _repeat_states(self, upto: int | None) -> Iterator[Chunk]:
        """Whole states at all instants before the next pane; instants with the same panes are reported together."""
        last = min(self.next_change(), END_OF_TIME if upto is None else upto + 1) - 1
        if not self.held or last >= END_OF_TIME - 1 or not (found := self._instants(self.subscription, last)):
            return
        instants = np.arange(found.start, found.stop, found.step, dtype=np.int64)
        ends = np.array([pane.end for pane in self.held])
        low, high = self.window.scope(instants, self.boundary)
        firsts = np.searchsorted(ends, low + self.boundary.shift - 1, "right")
        stops = np.maximum(np.searchsorted(ends, high + self.boundary.shift, "right"), firsts)
        for begin, end in zip(*runs(firsts * (len(ends) + 1) + stops), strict=True):
            if firsts[begin] < stops[begin]:
                for chunk in self._chunks(
                    int(instants[begin]), [self.subscription], self._answer(int(instants[begin]))
                ):
                    yield replace(chunk, again=instants[begin + 1 : end])
        self.skip_to(last)

    def absorb(self, at: int, fresh: list[Pane]) -> None:
        self.held.extend(fresh)
        self._forget(at)

    def admit(self, pane: Pane) -> None:
        insort(self.held, pane, key=lambda p: p.end)

    def revisions(self, pane: Pane, visible: int) -> Iterator[Chunk]:
        if self.subscription.revise is None:
            return
        origin, step = self.grid
        for at in range(on_grid(visible - self.subscription.revise, origin, step), min(visible, self.at + 1), step):
            low, high = self._scope(at)
            if low < pane.end <= high:
                yield from self._chunks(at, [self.subscription], self._answer(at), revised=True)

    @property
    def forgotten_until(self) -> int:
        return max(self.at - self.lookback, MIN_POSITION)

    def panes(self) -> list[Pane]:
        return list(self.held)

    def load(self, panes: list[Pane]) -> None:
        self.held = list(panes)

    def state(self) -> Tree:
        return super().state() | {"shown": self.shown.tolist()}

    def restore(self, state: Tree) -> None:
        super().restore(state)
        self.shown = np.array(state["shown"], np.int64)

    def recode(self, codes: Int64Array, size: int) -> None:
        super().recode(codes, size)
        self.shown = codes[self.shown]

    def unreported_groups(self) -> Iterator[Int64Array]:
        yield from super().unreported_groups()
        yield self.shown

    def _answer(self, at: int) -> list[StateWords]:
        low, high = self._scope(at)
        inside = [pane for pane in self.held if low < pane.end <= high]
        states = [column.identity(self.size) for column in self.columns]
        if inside:
            whole = merge_panes(self.columns, inside)
            for words, found in zip(states, whole.states, strict=True):
                for word, value in zip(words, found, strict=True):
                    word[whole.where] = value
        return states

    def _scope(self, at: int) -> tuple[int, int]:
        """Positions in `(low, high]`."""
        low, high = self.window.scope(np.array([at], np.int64), self.boundary)
        return int(low[0]) + self.boundary.shift - 1, int(high[0]) + self.boundary.shift

    def _forget(self, at: int) -> None:
        self.held = [pane for pane in self.held if pane.end > at - self.lookback]
