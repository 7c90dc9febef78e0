"""The tiers of a multi-granular window: a stairwise chain whose stairs are asked one by one.

Paper: "Multi-granular windows" sections III.B and IV. Where `stairs` moves all edges with every instant, an edge here
stands until its own level slides, as the paper's current rear bounds do: slides need not divide each other.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

from panewise.aggregate import LevelView, PositionalStates, StateArrays, StateWords, put, states_at
from panewise.stores.pane import Pane, merge_panes
from panewise.stores.totals import PaneTotal, total_of

#: The number of the granule that a position lies in.
GranuleNumber = Callable[[int], int]


class Tier:
    """Panes, oldest first, each within one granule, and their totals. The newest granule is still being filled."""

    def __init__(self, columns: Sequence[StateArrays], granule: GranuleNumber) -> None:
        self.columns, self.granule = columns, granule
        self.panes: deque[Pane] = deque()
        self.filling: Pane | None = None
        self.size = 0
        self.totals: list[PaneTotal | None] = []
        #: The states over the whole tier while it stays the same: coarse ones change less often than they are asked.
        self._known: dict[int, StateWords] = {}
        self.rebuild()

    def take(self, pane: Pane) -> None:
        """Accept the next pane: it joins the newest granule, or begins one."""
        self._known.clear()
        if self.filling is not None and self.granule(self.filling.end) == self.granule(pane.end):
            self.filling = merge_panes(self.columns, (self.filling, pane))
            return
        if self.filling is not None:
            self.panes.append(self.filling)
            self._add_to_totals(self.filling)
        self.filling = pane

    def evict(self, edge: int) -> list[Pane]:
        """The panes that an edge has passed, oldest first; they are gone."""
        gone = []
        while self.panes and self.panes[0].end <= edge:
            gone.append(self.panes.popleft())
            for number, total in enumerate(self.totals):
                if total is not None:
                    total.pop(gone[-1].where, gone[-1].states[number])
        if self.filling is not None and self.filling.end <= edge:
            gone.append(self.filling)
            self.filling = None
        if gone:
            self._known.clear()
        return gone

    def insert(self, pane: Pane) -> None:
        """Let a late pane in, which may be older than others."""
        held = [*self.all_panes()]
        place = bisect_left(held, pane.end, key=lambda p: p.end)
        for near in (place, place - 1):
            if 0 <= near < len(held) and self.granule(held[near].end) == self.granule(pane.end):
                held[near] = merge_panes(self.columns, (held[near], pane))
                break
        else:
            held.insert(place, pane)
        self.load(held)

    def load(self, panes: Sequence[Pane]) -> None:
        """Hold these panes, oldest first, and nothing else."""
        self.panes, self.filling = deque(), None
        self.rebuild()
        for pane in panes:
            self.take(pane)

    def rebuild(self) -> None:
        """Totals follow from the panes."""
        self.totals = [None if getattr(column, "apart", False) else total_of(column) for column in self.columns]
        self._known.clear()
        for total in self.totals:
            if total is not None:
                total.grow(self.size)

    def grow(self, size: int) -> None:
        if size == self.size:
            return
        self.size = size
        self._known.clear()
        for total in self.totals:
            if total is not None:
                total.grow(size)

    def all_panes(self) -> Iterator[Pane]:
        """All panes, oldest first."""
        yield from self.panes
        if self.filling is not None:
            yield self.filling

    def total(self, number: int, after: int | None = None) -> StateWords:
        """The states of one aggregate over the tier, or over its positions after one. Not to be changed."""
        if after is not None:
            return self._combine_panes(number, [pane for pane in self.all_panes() if pane.end > after])
        if number not in self._known:
            total = self.totals[number]
            if total is None:
                self._known[number] = self._combine_panes(number, self.all_panes())
            elif self.filling is None:
                self._known[number] = total.total()
            else:
                self._known[number] = _with_pane(self.columns[number], total.total(), self.filling, number)
        return self._known[number]

    def _combine_panes(self, number: int, panes: Iterable[Pane]) -> StateWords:
        words = self.columns[number].identity(self.size)
        for pane in panes:
            words = _with_pane(self.columns[number], words, pane, number)
        return words

    def _add_to_totals(self, pane: Pane) -> None:
        for total, words in zip(self.totals, pane.states, strict=True):
            if total is not None:
                total.push(pane.where, words)


@dataclass(frozen=True, eq=False)
class StoredTierStates:
    """What a tier holds for one aggregate, of positions after one if it is given: the part of a `Tier` to settle."""

    tier: Tier
    number: int
    after: int | None

    def total(self) -> StateWords:
        return self.tier.total(self.number, self.after)

    def panes(self) -> Iterator[tuple[int, Any, StateWords]]:
        for pane in self.tier.all_panes():
            if self.after is None or pane.end > self.after:
                yield pane.end, pane.where, pane.states[self.number]


class Tiers:
    """All tiers of a window. `granules` has for each level the granules into which its panes may be merged.

    Every pane is in one tier, and no tier's edge ever falls into a pane.
    """

    def __init__(self, columns: Sequence[StateArrays], granules: Sequence[GranuleNumber]) -> None:
        self.columns = columns
        self.tiers = [Tier(columns, granule) for granule in granules]
        self.size = 0

    @property
    def empty(self) -> bool:
        return not any(tier.panes or tier.filling for tier in self.tiers)

    def panes(self) -> Iterator[Pane]:
        """Every pane, oldest first."""
        for tier in reversed(self.tiers):
            yield from tier.all_panes()

    @property
    def nbytes(self) -> int:
        """The memory of panes and totals."""
        totals = sum(total.nbytes for tier in self.tiers for total in tier.totals if total is not None)
        return totals + sum(pane.nbytes for pane in self.panes())

    def grow(self, size: int) -> None:
        """Make room for groups 0 to `size` - 1."""
        self.size = size
        for tier in self.tiers:
            tier.grow(size)

    def advance(self, view: LevelView, fresh: Sequence[Pane]) -> None:
        """Move to what the widest level sees now, with the panes that have ended since."""
        moving = fresh
        for tier, edge in zip(self.tiers, _rear_edges(view), strict=True):
            for pane in moving:
                tier.take(pane)
            moving = tier.evict(edge)

    def insert(self, view: LevelView, pane: Pane) -> None:
        """Let a late pane in; one that is too old for every level is forgotten."""
        for tier, edge in zip(self.tiers, _rear_edges(view), strict=True):
            if pane.end > edge:
                tier.insert(pane)
                return

    def load(self, view: LevelView, panes: Sequence[Pane]) -> None:
        """Hold these panes, oldest first, and nothing else."""
        for tier, edge in zip(self.tiers, _rear_edges(view), strict=True):
            older = [pane for pane in panes if pane.end <= edge]
            tier.load(panes[len(older) :])
            panes = older

    def answers(self, views: Mapping[int, LevelView]) -> Iterator[tuple[int, list[StateWords]]]:
        """For each level that is looked at, finest first, what `lower` makes the answers of every aggregate from."""
        plain = [n for n, column in enumerate(self.columns) if not isinstance(column, PositionalStates)]
        sofar = {number: self.columns[number].identity(self.size) for number in plain}
        for level, tier in zip(range(max(views, default=-1) + 1), self.tiers, strict=False):
            for number in plain:
                sofar[number] = self.columns[number].combine(tier.total(number), sofar[number])
            if level in views:
                yield level, self._answer(level, views[level], sofar)

    def _answer(self, level: int, view: LevelView, sofar: Mapping[int, StateWords]) -> list[StateWords]:
        tiers, after = self.tiers[: level + 1], view.edges[-1]
        # A finer level that has not slid for long may still reach further back than this window.
        beyond = after if _rear_edges(view)[-1] < after else None
        found = []
        for number, column in enumerate(self.columns):
            if isinstance(column, PositionalStates):
                held = [StoredTierStates(tier, number, beyond) for tier in tiers]
                found.append(column.combine_tiers(view, held, self.size))
            elif beyond is None:
                found.append(sofar[number])
            else:
                words = column.identity(self.size)
                for tier in tiers:
                    words = column.combine(tier.total(number, beyond), words)
                found.append(words)
        return found


def _rear_edges(view: LevelView) -> list[int]:
    """The rear edge of each tier: that of its level, unless a finer one reaches further back."""
    return list(accumulate(view.edges, min))


def _with_pane(column: StateArrays, words: StateWords, pane: Pane, number: int) -> StateWords:
    """States together with those of a pane; what was there before is not changed."""
    more = pane.states[number]
    if len(pane.codes) == len(words[0]):
        return column.combine(words, more)
    out = tuple(word.copy() for word in words)
    put(out, pane.where, column.combine(states_at(words, pane.where), more))
    return out
