"""Positional aggregates: the stair chain of one window, for all its levels, with the states of each tier by itself."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from panewise.aggregate import Int64Array, PositionalStates, StateArrays, StateWords, TotalStates
from panewise.algebra.positional import Views
from panewise.core.time import Boundary
from panewise.engine.panes.chunks import Chunk
from panewise.engine.panes.evaluators import Subscription
from panewise.engine.panes.sliding import ChainEvaluator
from panewise.engine.state.snapshot import Tree
from panewise.plan.cuts import Cuts, coarsest_cuts
from panewise.stores.chain import Stair, StairChain, StairLevel, TotalKinds
from panewise.stores.pane import Pane
from panewise.window import Edges


@dataclass(frozen=True)
class TierLevel(StairLevel):
    """A level that moves by its slide, which need not divide the slides of others; its granules follow all edges."""

    cuts: Cuts

    def granule_end(self, position: int) -> int:
        return self.cuts.end(int(self.cuts.pane_numbers(np.array([position], np.int64))[0]))

    def is_one_granule(self, near: int) -> bool:
        return False


@dataclass(frozen=True, eq=False)
class StoredTierStates:
    """What a stair holds for one aggregate, of positions after one if it is given."""

    stair: Stair
    number: int
    after: int | None

    def total(self) -> StateWords:
        return self.stair.total(self.number, self.after)

    def panes(self) -> Iterator[tuple[int, Any, StateWords]]:
        for pane in self.stair.all_panes():
            if self.after is None or pane.end > self.after:
                yield pane.end, pane.where, pane.states[self.number]


class TierChain(StairChain):
    """The chain of one window, each stair of which is a tier. Other windows have other edges, so it is not shared."""

    def __init__(self, columns: Sequence[StateArrays], kinds: TotalKinds, views: Views, size: int = 0) -> None:
        self.views = views
        cuts = [_tier_cuts(views, number) for number in range(len(views.levels))]
        levels = [TierLevel(w.range, w.step, views.origin, cut) for w, cut in zip(views.levels, cuts, strict=True)]
        super().__init__(columns, kinds, levels, size)
        self.combined = [n for n, column in enumerate(columns) if not isinstance(column, PositionalStates)]

    def _total_columns(self) -> Sequence[TotalStates]:
        shift = self.views.shift
        return [each.tier_totals(shift) if isinstance(each, PositionalStates) else each for each in self.columns]

    def _answer(self, place: int, sofar: Mapping[int, StateWords]) -> list[StateWords]:
        """What `lower` makes the answers of a level from."""
        view, stairs = self.views.at(self.now + self.views.lag, place), self.stairs[: place + 1]
        # A finer level that has not slid for long may still reach further back than this window.
        beyond = view.edges[-1] if self.edges[place] < view.edges[-1] else None
        found = []
        for number, column in enumerate(self.columns):
            if isinstance(column, PositionalStates):
                held = [StoredTierStates(stair, number, beyond) for stair in stairs]
                found.append(column.combine_tiers(view, held, self.size))
            elif beyond is None:
                found.append(sofar[number])
            else:
                words = column.identity(self.size)
                for stair in stairs:
                    words = column.combine(stair.total(number, beyond), words)
                found.append(words)
        return found


class TierEvaluator(ChainEvaluator):
    """The evaluator for positional aggregates: one window and the subscriptions of its levels."""

    def __init__(self, chain: TierChain, boundary: Boundary, begins: int) -> None:
        super().__init__(chain, boundary, chain.views.lag, begins)
        #: For subscriptions that report changes, the groups in the last answer: each may change at any instant.
        self.shown: dict[int, Int64Array] = {}

    def leave(self, number: int) -> None:
        super().leave(number)
        self.shown.pop(number, None)

    def _chunks(
        self, at: int, due: Sequence[Subscription], states: list[StateWords], revised: bool = False
    ) -> Iterator[Chunk]:
        present = np.flatnonzero(states[0][0])
        for number in (subscription.number for subscription in due if subscription.changes):
            for codes in (self.shown.get(number, present), present):
                self._touched[number].add(codes)
            self.shown[number] = present
        return super()._chunks(at, due, states, revised)

    def change_instants(self) -> Iterator[int]:
        # The age of items, and so the answer, changes with every instant.
        if not self.chain.empty:
            yield self.at + 1

    def admit(self, pane: Pane) -> None:
        if pane.end > self.begins:
            super().admit(pane)

    def state(self) -> Tree:
        return super().state() | {"shown": [[number, codes.tolist()] for number, codes in self.shown.items()]}

    def restore(self, state: Tree) -> None:
        super().restore(state)
        self.shown = {number: np.array(codes, np.int64) for number, codes in state["shown"]}

    def recode(self, codes: Int64Array, size: int) -> None:
        super().recode(codes, size)
        self.shown = {number: np.sort(codes[some]) for number, some in self.shown.items()}

    def unreported_groups(self) -> Iterator[Int64Array]:
        yield from super().unreported_groups()
        yield from self.shown.values()


def _tier_cuts(views: Views, level: int) -> Cuts:
    """The granules inside which panes of a tier may be merged: across no edge of its own level or of a coarser one."""
    coarser = views.levels[level:]
    ends = [Edges(views.origin, each.step) for each in coarser]
    return coarsest_cuts([*ends, *(Edges(views.origin - each.range, each.step) for each in coarser)])
