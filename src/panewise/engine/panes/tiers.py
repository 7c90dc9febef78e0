"""Windows with positional aggregates: the tiers of one window, for all its levels at once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from panewise.aggregate import Int64Array, LevelView, StateArrays, StateWords
from panewise.algebra.positional import Views
from panewise.core.time import Boundary
from panewise.engine.panes.evaluators import END_OF_TIME, Evaluator, on_grid
from panewise.engine.panes.subscriptions import Chunk, Subscription
from panewise.engine.state.snapshot import Tree
from panewise.plan.cuts import coarsest_cuts
from panewise.stores.chain import MIN_POSITION
from panewise.stores.pane import Pane
from panewise.stores.tiers import GranuleNumber, Tiers
from panewise.window import Edges


class TierEvaluator(Evaluator):
    """One window and the subscriptions of its levels. Tiers are not shared: other windows have other edges."""

    def __init__(
        self, columns: Sequence[StateArrays], views: Views, boundary: Boundary, begins: int, grains: Iterable[int]
    ) -> None:
        super().__init__(columns, boundary, views.lag)
        self.views, self.origin = views, views.levels[0].start
        self.chain = Tiers(columns, [granule_of(views, level, grains) for level in range(len(views.levels))])
        #: Panes that start before this position do not count.
        self.begins = begins
        #: For subscriptions that report changes, the groups in the last answer: each may change at any instant.
        self.shown: dict[int, Int64Array] = {}

    def take(self, pane: Pane) -> None:
        if pane.start >= self.begins:
            super().take(pane)

    def next_instant(self) -> int | None:
        first = self.waiting[0].end + self.lag if self.waiting else END_OF_TIME
        start = max(first, self.at + 1) if self.chain.empty else self.at + 1
        slides = {level.step for level in self.views.levels}
        earliest = min(on_grid(start, self.origin, slide) for slide in slides)
        return None if earliest >= END_OF_TIME else earliest

    def is_exhausted(self) -> bool:
        return self.chain.empty and not self.waiting

    def step(self, at: int, fresh: list[Pane], opened: bool) -> Iterator[Chunk]:
        self.absorb(at, fresh)
        due: dict[int, list[Subscription]] = {}
        for feed in self.subscriptions.values():
            level = self.views.levels.index(feed.window)
            if (at - self.origin) % self.views.levels[level].step == 0:
                due.setdefault(level, []).append(feed)
        looks = {level: self.views.at(at, level) for level in due}
        for level, states in self.chain.answers(looks):
            for feed in due[level]:
                if feed.changes:
                    present = np.flatnonzero(states[0][0])
                    for codes in (self.shown.get(feed.number, present), present):
                        self._touched[feed.number].add(codes)
                    self.shown[feed.number] = present
            yield from self._chunks(at, due[level], states)

    def change_instants(self) -> Iterator[int]:
        # The age of items, and so the answer, changes with every instant.
        if not self.chain.empty:
            yield self.at + 1

    def current_states(self) -> Iterator[tuple[list[Subscription], list[StateWords]]]:
        feeds = {self.views.levels.index(feed.window): feed for feed in self.subscriptions.values() if feed.empty}
        for level, states in self.chain.answers({level: self.views.at(self.at, level) for level in feeds}):
            yield [feeds[level]], states

    def absorb(self, at: int, fresh: list[Pane]) -> None:
        self.chain.grow(self.size)
        self.chain.advance(self._widest_view(at), fresh)

    def admit(self, pane: Pane) -> None:
        if pane.end > self.begins:
            self.chain.grow(self.size)
            self.chain.insert(self._widest_view(self.at), pane)

    @property
    def forgotten_until(self) -> int:
        # The widest level has dropped all panes before its edge, wherever the edge of a finer level is.
        return max(self.begins, min(self._widest_view(self.at).edges)) if self.at > MIN_POSITION else self.begins

    def panes(self) -> list[Pane]:
        return list(self.chain.panes())

    def load(self, panes: list[Pane]) -> None:
        self.chain.grow(self.size)
        self.chain.load(self._widest_view(self.at), panes)

    @property
    def nbytes(self) -> int:
        return self.chain.nbytes + sum(pane.nbytes for pane in self.waiting)

    def leave(self, number: int) -> None:
        super().leave(number)
        self.shown.pop(number, None)

    def state(self) -> Tree:
        shown = [[number, codes.tolist()] for number, codes in self.shown.items()]
        return super().state() | {"begins": self.begins, "feeds": list(self.subscriptions), "shown": shown}

    def restore(self, state: Tree) -> None:
        super().restore(state)
        self.begins = state["begins"]
        self.shown = {number: np.array(codes, np.int64) for number, codes in state["shown"]}

    def recode(self, codes: Int64Array) -> None:
        super().recode(codes)
        self.shown = {number: np.sort(codes[some]) for number, some in self.shown.items()}

    def unreported_groups(self) -> Iterator[Int64Array]:
        yield from super().unreported_groups()
        yield from self.shown.values()

    def _widest_view(self, at: int) -> LevelView:
        return self.views.at(at, len(self.views.levels) - 1)


def granule_of(views: Views, level: int, grains: Iterable[int]) -> GranuleNumber:
    """The granules inside which panes of a tier may be merged: across no edge of its own level or of a coarser one.

    Nor across instants that an aggregate distinguishes.
    """
    coarser = views.levels[level:]
    ends = [*(Edges(views.origin, each.step) for each in coarser), *(Edges(0, grain) for grain in grains)]
    parted = coarsest_cuts([*ends, *(Edges(views.origin - each.range, each.step) for each in coarser)])
    return lambda position: int(parted.pane_numbers(np.array([position], np.int64))[0])
