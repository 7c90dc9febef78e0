"""The stairwise chain: nested windows over one stream, every pane in exactly one stair.

Paper: "Multi-granular windows" section III.B; shared by many queries: "Subsuming windows" section 4.

A stair lies between the rear edge of the next narrower window and the rear edge of its own, so that a window is the
union of all stairs down to its own. A rear edge moves on by the step of its stair and stands in between, as the paper's
current rear bounds do. Panes that an edge has passed are *shifted* into the next stair, where they are merged into its
coarser granules. So stairs that are far away keep few, wide panes.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import deque
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import TypeAlias

from panewise.aggregate import StateArrays, StateWords, TotalStates, put, states_at
from panewise.stores.pane import Pane, PaneSpans, merge_panes
from panewise.stores.totals import PaneTotal

#: The total of each aggregate, None where panes are combined again for each answer; `choose_store` of the plan decides.
TotalKinds: TypeAlias = Sequence[type[PaneTotal] | None]
#: No position is as old as this one.
MIN_POSITION = -(2**62)


@dataclass(frozen=True)
class StairLevel:
    """The window that ends with a stair: how far it reaches back, and the grid `origin + n * step` on which it moves.

    Here the granules of the stair are the steps of that grid, and the range is a multiple of the step.
    """

    range: int
    step: int
    origin: int

    def rear_edge(self, newest: int) -> int:
        """The position just before the window, when `newest` is the newest position of the stream."""
        return newest - (newest - self.origin) % self.step - self.range

    def granule_end(self, position: int) -> int:
        """The last position of the granule that a position lies in."""
        return position + (self.origin - position) % self.step

    def expiry(self, position: int) -> int:
        """The newest position of the stream when the rear edge passes a position."""
        return self.granule_end(position) + self.range

    def newest_cut(self, spans: PaneSpans) -> int:
        """The end of the newest pane inside which a rear edge falls."""
        before = spans.ends - 1
        edges = before - (before + self.range - self.origin) % self.step
        return int(spans.ends[edges > spans.starts].max(initial=MIN_POSITION))

    def is_one_granule(self, near: int) -> bool:
        """Whether no more than one granule lies between an age and the range."""
        return self.range - near <= self.step


class Stair:
    """A buffer and a core: panes between two edges, oldest first, each within one granule, and their totals.

    `near` is the range of the next narrower window, `sums` are the columns of totals.
    """

    def __init__(
        self,
        columns: Sequence[StateArrays],
        sums: Sequence[TotalStates],
        kinds: TotalKinds,
        level: StairLevel,
        near: int,
        size: int,
    ) -> None:
        self.columns, self.sums, self.kinds, self.level, self.near, self.size = columns, sums, kinds, level, near, size
        self.load(())

    def load(self, panes: Iterable[Pane]) -> None:
        """Hold these panes, oldest first, and nothing else."""
        self.panes: deque[Pane] = deque()
        #: The newest pane, until its granule is full and it is promoted.
        self.buffer: Pane | None = None
        #: A total for each aggregate, or None where the panes are combined for each answer, and before the first pane.
        self.totals: list[PaneTotal | None] = [None] * len(self.columns)
        self._totalled = False
        #: The states over the whole stair while it stays the same: coarse ones change less often than they are asked.
        self._known: dict[int, StateWords] = {}
        for pane in panes:
            self.take(pane)

    def grow(self, size: int) -> None:
        """Make room for groups 0 to `size` - 1."""
        if size != self.size:
            self._known.clear()
        self.size = size
        for total in self.totals:
            if total is not None:
                total.grow(size)

    def take(self, pane: Pane) -> None:
        """Accept the next pane; in the buffer it is merged with those before it until their granule is full."""
        self._known.clear()
        end = self.level.granule_end(pane.end)
        if self.buffer is not None:
            if self.level.granule_end(self.buffer.end) == end:
                pane = merge_panes(self.columns, (self.buffer, pane))
            else:
                self._promote(self.buffer)
            self.buffer = None
        if pane.end == end:
            self._promote(pane)
        else:
            self.buffer = pane

    def _promote(self, pane: Pane) -> None:
        if not self._totalled:
            self.totals, self._totalled = self._new_totals(), True
        self.panes.append(pane)
        for total, words in zip(self.totals, pane.states, strict=True):
            if total is not None:
                total.push(pane.where, words)

    def _new_totals(self) -> list[PaneTotal | None]:
        """Totals without panes. In a stair of one granule its pane is the total; some aggregates look at each pane."""
        single = self.level.is_one_granule(self.near)
        found = [
            None if single or kind is None else kind(column) for column, kind in zip(self.sums, self.kinds, strict=True)
        ]
        for total in found:
            if total is not None:
                total.grow(self.size)
        return found

    def evict(self, edge: int) -> list[Pane]:
        """Remove and return the panes that an edge has passed, oldest first."""
        gone = []
        while self.panes and self.panes[0].end <= edge:
            gone.append(self.panes.popleft())
            for total, words in zip(self.totals, gone[-1].states, strict=True):
                if total is not None:
                    total.pop(gone[-1].where, words)
        if self.buffer is not None and self.buffer.end <= edge:
            gone.append(self.buffer)
            self.buffer = None
        if gone:
            self._known.clear()
        return gone

    def reaches(self, pane: Pane, edge: int) -> bool:
        """Whether a late pane belongs here: the edge has not passed it, or it lies in a wider pane that is held."""
        oldest = next(self.all_panes(), None)
        return pane.end > edge or (oldest is not None and oldest.start < pane.end)

    def insert(self, pane: Pane) -> None:
        """Add a late pane, which may be older than others."""
        held = [*self.all_panes()]
        place = bisect_left(held, pane.end, key=lambda p: p.end)
        if place == len(held):
            self.take(pane)
            return
        for near in (place, place - 1):
            if near >= 0 and self._belong_together(held[near], pane):
                held[near] = merge_panes(self.columns, (held[near], pane))
                break
        else:
            held.insert(place, pane)
        if self.buffer is not None and held[:-1] == [*self.panes]:
            self._known.clear()
            self.buffer = held[-1]
        else:
            self.load(held)

    def _belong_together(self, pane: Pane, late: Pane) -> bool:
        """Whether a late pane belongs to one that is there: it lies in it, or both lie in one granule."""
        inside = pane.start < late.end <= pane.end
        return inside or self.level.granule_end(pane.end) == self.level.granule_end(late.end)

    def all_panes(self) -> Iterator[Pane]:
        """All panes of this stair, oldest first."""
        yield from self.panes
        if self.buffer is not None:
            yield self.buffer

    def total(self, number: int, after: int | None = None) -> StateWords:
        """The states of one aggregate over the stair, or over its positions after one. Not to be changed."""
        if after is not None:
            panes = [pane for pane in self.all_panes() if pane.end > after]
            return self._with_panes(number, self.sums[number].identity(self.size), panes)
        if number not in self._known:
            total = self.totals[number]
            if total is None:
                words = self._with_panes(number, self.sums[number].identity(self.size), self.all_panes())
            else:
                words = self._with_panes(number, total.total(), [] if self.buffer is None else [self.buffer])
            self._known[number] = words
        return self._known[number]

    def combine_with(self, number: int, words: StateWords) -> StateWords:
        """States of one aggregate together with those of this stair."""
        if self.totals[number] is None:
            return self._with_panes(number, words, self.all_panes())
        return self.sums[number].combine(self.total(number), words)

    def _with_panes(self, number: int, words: StateWords, panes: Iterable[Pane]) -> StateWords:
        """States together with those of panes; the given arrays are not changed."""
        column = self.sums[number]
        for pane in panes:
            more = column.of_pane(pane.states[number])
            if len(pane.codes) == len(words[0]):
                words = column.combine(words, more)
            else:
                out = tuple(word.copy() for word in words)
                put(out, pane.where, column.combine(states_at(words, pane.where), more))
                words = out
        return words


class StairChain:
    """A stair for each of the given levels, from the narrowest to the widest."""

    def __init__(
        self, columns: Sequence[StateArrays], kinds: TotalKinds, levels: Sequence[StairLevel], size: int = 0
    ) -> None:
        self.columns, self.kinds, self.size = columns, kinds, size
        #: The newest position that all stairs have been moved to.
        self.now = MIN_POSITION
        #: The newest position that has left the chain: nothing up to it is known any more.
        self.lost = MIN_POSITION
        #: The aggregates, by number, whose states are combined from stair to stair.
        self.combined: Sequence[int] = range(len(columns))
        self._build(levels)

    def _build(self, levels: Sequence[StairLevel]) -> None:
        nears = [0, *(level.range for level in levels[:-1])]
        sums = self._total_columns()
        self.stairs = [
            Stair(self.columns, sums, self.kinds, *edges, self.size) for edges in zip(levels, nears, strict=True)
        ]

    def _total_columns(self) -> Sequence[TotalStates]:
        """How the totals of stairs are kept."""
        return self.columns

    @property
    def levels(self) -> list[StairLevel]:
        return [stair.level for stair in self.stairs]

    @property
    def empty(self) -> bool:
        return not any(stair.panes or stair.buffer for stair in self.stairs)

    @property
    def edges(self) -> list[int]:
        """The rear edge of each stair: that of its level, unless a narrower window reaches further back now."""
        return list(accumulate((stair.level.rear_edge(self.now) for stair in self.stairs), min))

    @property
    def forgotten_until(self) -> int:
        """Nothing up to this position is held."""
        return max(self.lost, self.edges[-1])

    @property
    def nbytes(self) -> int:
        """The memory of panes and totals."""
        totals = sum(total.nbytes for stair in self.stairs for total in stair.totals if total is not None)
        return totals + sum(pane.nbytes for pane in self.panes())

    def panes(self) -> Iterator[Pane]:
        """Every pane in the chain, oldest first."""
        for stair in reversed(self.stairs):
            yield from stair.all_panes()

    def grow(self, size: int) -> None:
        """Make room for groups 0 to `size` - 1."""
        if size == self.size:
            return
        self.size = size
        for stair in self.stairs:
            stair.grow(size)

    def advance(self, now: int, fresh: Sequence[Pane]) -> list[list[Pane]]:
        """Move to a position, with the panes that have ended since the last one.

        Returns for each stair the panes that its edge passed on the way.
        """
        self.now = now
        moving = fresh
        shifted = []
        for stair, edge in zip(self.stairs, self.edges, strict=True):
            for pane in moving:
                stair.take(pane)
            moving = stair.evict(edge)
            shifted.append(moving)
        if moving:
            self.lost = max(self.lost, moving[-1].end)
        return shifted

    def insert(self, pane: Pane) -> bool:
        """Add a late pane; returns False when it is too old for every stair."""
        for stair, edge in zip(self.stairs, self.edges, strict=True):
            if stair.reaches(pane, edge):
                stair.insert(pane)
                return True
        return False

    def load(self, panes: Sequence[Pane]) -> None:
        """Hold these panes, oldest first, and nothing else."""
        for stair, edge in zip(self.stairs, self.edges, strict=True):
            older = [pane for pane in panes if pane.end <= edge]
            stair.load(panes[len(older) :])
            panes = older
        if panes:
            self.lost = max(self.lost, panes[-1].end)

    def embed(self, levels: Sequence[StairLevel]) -> None:
        """Give the chain other levels while it runs: every pane moves to the stair that it now belongs to."""
        held = list(self.panes())
        self._build(levels)
        self.load(held)

    def exact_since(self, level: StairLevel, spans: PaneSpans) -> int:
        """From which position on a window that joins now finds all its rear edges at the ends of panes."""
        return max(self.lost, level.newest_cut(spans))

    def answers(self, wanted: Collection[int]) -> Iterator[tuple[int, list[StateWords]]]:
        """The states of every aggregate over the windows that end with the wanted stairs, narrowest first.

        Not to be changed; and those of the first stair change with it.
        """
        sofar = {number: self.stairs[0].total(number) for number in self.combined} if wanted else {}
        for place in range(max(wanted, default=-1) + 1):
            if place:
                sofar = {number: self.stairs[place].combine_with(number, words) for number, words in sofar.items()}
            if place in wanted:
                yield place, self._answer(place, sofar)

    def _answer(self, place: int, sofar: Mapping[int, StateWords]) -> list[StateWords]:
        return list(sofar.values())

    def check(self) -> None:
        """Every position in exactly one stair, in order, inside the edges: the paper's invariant, for tests."""
        for one, other in pairwise(self.panes()):
            assert one.end <= other.start, f"panes overlap at {other.start}..{one.end}"
        for stair, front, rear in zip(self.stairs, [self.now, *self.edges], self.edges, strict=False):
            assert all(rear < pane.end <= front for pane in stair.all_panes()), "a pane is not between its edges"
