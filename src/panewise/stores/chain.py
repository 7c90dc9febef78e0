"""The stairwise chain: nested windows over one stream, every pane in exactly one node.

Paper: "Multi-granular windows" section III.B; shared by many queries: "Subsuming windows" section 4.

Stair k covers the ages from its `near` to its `far` edge; the window with range `far` is the union of all stairs down
to it. Panes that grow too old for a stair are *shifted* into the buffer of the next one, where they wait until they
fill one of its coarser granules and are *promoted*. So far-away stairs keep few, wide panes.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise

from panewise.aggregate import StateArrays, StateWords, put, states_at
from panewise.stores.pane import Pane, merge_panes
from panewise.stores.totals import PaneTotal, total_of

#: No position is as old as this one.
MIN_POSITION = -(2**62)


class Stair:
    """A buffer and a core: panes of `granule` width whose age lies between two edges, and their totals."""

    def __init__(self, columns: Sequence[StateArrays], near: int, far: int, granule: int) -> None:
        self.columns, self.near, self.far, self.granule = columns, near, far, granule
        self.buffer: Pane | None = None
        self.panes: deque[Pane] = deque()
        self.size = 0
        self.totals: list[PaneTotal] = []
        self.rebuild()

    def take(self, pane: Pane) -> None:
        """Accept the next pane from below; it waits in the buffer until its granule is full."""
        if self.buffer is not None and self._granule_end(self.buffer) != self._granule_end(pane):
            self._promote()
        self.buffer = pane if self.buffer is None else merge_panes(self.columns, (self.buffer, pane))
        if self.buffer.end == self._granule_end(pane):
            self._promote()

    def evict(self, now: int) -> list[Pane]:
        """Promote what has filled its granule, and give up the panes that are too old, oldest first."""
        self.promote_full(now)
        gone = []
        while self.panes and self.panes[0].end <= now - self.far:
            gone.append(self.panes.popleft())
            for total, words in zip(self.totals, gone[-1].states, strict=False):
                total.pop(gone[-1].where, words)
        return gone

    def promote_full(self, now: int) -> None:
        """Promote what can get no fuller."""
        if self.buffer is not None and self._granule_end(self.buffer) <= now - self.near:
            self._promote()

    def reaches(self, pane: Pane, now: int) -> bool:
        """Whether a late pane belongs here: it is young enough, or lies in a wider pane that still is."""
        oldest = next(self.all_panes(), None)
        return pane.end > now - self.far or (oldest is not None and oldest.start < pane.end)

    def is_too_old(self, pane: Pane, now: int) -> bool:
        """Whether a pane is too old; one whose granule is not full yet waits, even past the far edge."""
        return pane.end <= now - self.far and self._granule_end(pane) <= now - self.near

    def grow(self, size: int) -> None:
        self.size = size
        for total in self.totals:
            total.grow(size)

    def insert(self, pane: Pane, now: int) -> None:
        """Let a late pane in that lies between the edges or in a pane that does; it may be older than others."""
        waits = pane.end > (now - self.near) // self.granule * self.granule
        if waits or (self.buffer is not None and self.buffer.start < pane.end):
            self.buffer = pane if self.buffer is None else merge_panes(self.columns, (self.buffer, pane))
            return
        place = bisect_left(self.panes, pane.end, key=lambda p: p.end)
        for near in (place, place - 1):
            if 0 <= near < len(self.panes) and self._belong_together(self.panes[near], pane):
                self.panes[near] = merge_panes(self.columns, (self.panes[near], pane))
                break
        else:
            self.panes.insert(place, pane)
        self.rebuild()

    def insert_expired(self, pane: Pane, now: int) -> None:
        """Let a late pane in that is too old by itself, but whose granule is still held: it stands for all of it."""
        self.insert(replace(pane, end=min(self._granule_end(pane), now - self.near)), now)

    def _belong_together(self, pane: Pane, late: Pane) -> bool:
        """Whether a late pane belongs to one that is there: it lies in it, or both lie in one granule."""
        inside = pane.start < late.end <= pane.end
        return inside or self._granule_end(pane) == self._granule_end(late)

    def rebuild(self) -> None:
        """Totals follow from the panes; after a change in the middle they are computed again.

        A stair of one granule has none: its pane is its total.
        """
        self.totals = [total_of(column) for column in self.columns] if self.far - self.near > self.granule else []
        self.grow(self.size)
        for pane in self.panes:
            self._add_to_totals(pane)

    def panes_outside_totals(self) -> Iterator[Pane]:
        """The panes that are in no total."""
        if not self.totals:
            yield from self.panes
        if self.buffer is not None:
            yield self.buffer

    def all_panes(self) -> Iterator[Pane]:
        """All panes of this stair, oldest first."""
        yield from self.panes
        if self.buffer is not None:
            yield self.buffer

    def _promote(self) -> None:
        assert self.buffer is not None
        self.panes.append(self.buffer)
        self._add_to_totals(self.buffer)
        self.buffer = None

    def _add_to_totals(self, pane: Pane) -> None:
        for total, words in zip(self.totals, pane.states, strict=False):
            total.push(pane.where, words)

    def _granule_end(self, pane: Pane) -> int:
        return -(-pane.end // self.granule) * self.granule


class StairChain:
    """A chain for windows of the given ranges, whose panes need not be finer than the given granules.

    Positions are measured from the origin of the windows' instants, so that edges are multiples of granules.
    """

    def __init__(
        self, columns: Sequence[StateArrays], ranges: Sequence[int], granules: Sequence[int], size: int
    ) -> None:
        self.columns = columns
        self.now = MIN_POSITION
        #: The newest position that has left the chain: nothing up to it is known any more.
        self.lost = MIN_POSITION
        self.size = size
        self._build(ranges, granules)

    @property
    def empty(self) -> bool:
        return not any(stair.panes or stair.buffer for stair in self.stairs)

    @property
    def ranges(self) -> list[int]:
        return [stair.far for stair in self.stairs]

    @property
    def forgotten_until(self) -> int:
        """Nothing up to this position is held; the widest stair gives up whole granules."""
        last = self.stairs[-1]
        return max(self.lost, (self.now - last.far) // last.granule * last.granule)

    def panes(self) -> Iterator[Pane]:
        """Every pane in the chain, oldest first."""
        for stair in reversed(self.stairs):
            yield from stair.all_panes()

    def grow(self, size: int) -> None:
        """Make room for groups 0 to `size` - 1."""
        self.size = size
        for stair in self.stairs:
            stair.grow(size)

    def advance(self, now: int, fresh: Sequence[Pane]) -> list[list[Pane]]:
        """Move to an instant, with the panes that have ended since the last one.

        Returns for each stair the panes that grew older than its far edge on the way.
        """
        self.now = now
        moving: Sequence[Pane] = fresh
        shifted = []
        for stair in self.stairs:
            for pane in moving:
                stair.take(pane)
            moving = stair.evict(now)
            shifted.append(list(moving))
        if moving:
            self.lost = max(self.lost, moving[-1].end)
        return shifted

    def insert(self, pane: Pane) -> bool:
        """Let a late pane in that is no younger than now; False when it is too old for every window."""
        for stair in self.stairs:
            if stair.reaches(pane, self.now):
                stair.insert(pane, self.now)
                return True
        if pane.end <= self.forgotten_until:
            return False
        self.stairs[-1].insert_expired(pane, self.now)
        return True

    def answers(self) -> Iterator[list[StateWords]]:
        """For each stair, the states of every aggregate over the window that ends with it; finest window first."""
        sofar = [column.identity(self.size) for column in self.columns]
        for stair in self.stairs:
            sofar = self._with_stair(sofar, stair)
            yield sofar

    def states_over(self, length: int) -> list[StateWords]:
        """The states over the last `length` positions before now: whole stairs, then single panes of one more.

        Exact when some pane starts at that age; otherwise the pane that straddles it is left out.
        """
        sofar = [column.identity(self.size) for column in self.columns]
        for stair in self.stairs:
            if stair.far <= length:
                sofar = self._with_stair(sofar, stair)
            elif stair.near < length:
                parts = [pane for pane in stair.all_panes() if pane.start >= self.now - length]
                sofar = self._with_pane(sofar, merge_panes(self.columns, parts)) if parts else sofar
        return sofar

    def _with_stair(self, states: list[StateWords], stair: Stair) -> list[StateWords]:
        """States together with those of a stair."""
        if stair.totals:
            held = [total.total() for total in stair.totals]
            states = [c.combine(a, b) for c, a, b in zip(self.columns, held, states, strict=True)]
        for pane in stair.panes_outside_totals():
            states = self._with_pane(states, pane)
        return states

    def _with_pane(self, states: list[StateWords], pane: Pane) -> list[StateWords]:
        """States together with those of a pane; what was there before is not changed."""
        found = []
        for column, words, more in zip(self.columns, states, pane.states, strict=True):
            if len(pane.codes) == len(words[0]):
                found.append(column.combine(words, more))
            else:
                out = tuple(word.copy() for word in words)
                put(out, pane.where, column.combine(states_at(words, pane.where), more))
                found.append(out)
        return found

    @property
    def nbytes(self) -> int:
        """The memory of panes and totals."""
        totals = sum(total.nbytes for stair in self.stairs for total in stair.totals)
        return totals + sum(pane.nbytes for pane in self.panes())

    # ---- while running -------------------------------------------------------------------------------------------

    def exact_since(self, range: int, slide: int, coming: Sequence[Pane] = ()) -> int:
        """From which position on a window that joins now finds all its edges at the ends of panes."""
        panes = (*self.panes(), *coming)
        straddling = [p.end for p in panes if (p.end - 1 + range) // slide * slide - range > p.start]
        return max([self.lost, *straddling])

    def embed(self, ranges: Sequence[int], granules: Sequence[int]) -> None:
        """Give the chain other edges: every pane moves to the stair that now covers its age."""
        held = list(self.panes())
        self._build(ranges, granules)
        self.load(held)

    def load(self, panes: Sequence[Pane]) -> None:
        """Hold these panes, oldest first, and nothing else."""
        for stair in self.stairs:
            older = [p for p in panes if stair.is_too_old(p, self.now)]
            stair.panes, stair.buffer = deque(), None
            stair.rebuild()
            for pane in panes[len(older) :]:
                stair.take(pane)
            stair.promote_full(self.now)
            panes = older
        if panes:
            self.lost = max(self.lost, panes[-1].end)

    def _build(self, ranges: Sequence[int], granules: Sequence[int]) -> None:
        nears = [0, *ranges[:-1]]
        self.stairs = [Stair(self.columns, *edges) for edges in zip(nears, ranges, granules, strict=True)]
        self.grow(self.size)

    def check(self) -> None:
        """Every position in exactly one node, in order, inside the edges: the paper's invariant, for tests."""
        ends = [(p.start, p.end) for p in self.panes()]
        for (_, end), (start, _) in pairwise(ends):
            assert end <= start, f"panes overlap at {start}..{end}"
        for stair in self.stairs:
            # A buffer may wait for its granule past the far edge of a stair that is narrower than the granule.
            assert all(pane.end > self.now - stair.far for pane in stair.panes), "a pane is older than its stair"
            assert all(pane.end <= self.now - stair.near for pane in stair.all_panes()), (
                "a pane is younger than its stair"
            )
