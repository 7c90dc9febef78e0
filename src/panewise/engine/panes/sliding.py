"""One window group on one stair chain."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from panewise.aggregate import StateArrays, StateWords
from panewise.core.time import Boundary
from panewise.engine.panes.evaluators import END_OF_TIME, Evaluator, on_grid
from panewise.engine.panes.subscriptions import Chunk, Subscription
from panewise.engine.state.snapshot import Tree
from panewise.plan import shape_of
from panewise.plan.rules.group_windows import WindowShape
from panewise.stores.chain import MIN_POSITION, StairChain
from panewise.stores.pane import Pane
from panewise.window import Sliding


@dataclass
class ServedSubscription:
    """A subscription on a chain, and the first instant, and the one after the last, at which the chain answers it.

    A window that joins while the stream runs is answered by a stand-in until this chain has seen all of its range.
    """

    feed: Subscription
    frame: WindowShape
    since: int
    until: int = END_OF_TIME


class ChainEvaluator(Evaluator):
    """A chain and the subscriptions that it answers. All windows have the same lag and origin.

    The chain counts positions from the origin of the windows' instants and forward by the lag, so that every edge of
    every window is a multiple of its stair's granule.
    """

    def __init__(
        self,
        columns: Sequence[StateArrays],
        boundary: Boundary,
        lag: int,
        origin: int,
        ranges: Sequence[int],
        granules: Sequence[int],
    ) -> None:
        super().__init__(columns, boundary, lag)
        self.shift, self.origin = lag - origin, origin
        self.chain = StairChain(columns, ranges, granules, 0)
        self.serving: dict[int, ServedSubscription] = {}
        #: Panes that start before this position are not for this chain.
        self.begins = MIN_POSITION
        self._index_subscriptions()

    def serve(self, feed: Subscription, since: int = MIN_POSITION, until: int = END_OF_TIME) -> None:
        """Answer a subscription at the instants in [since, until)."""
        self.join(feed)
        self.serving[feed.number] = ServedSubscription(feed, shape_of(Sliding.of(feed.window)), since, until)
        self._index_subscriptions()

    def leave(self, number: int) -> None:
        super().leave(number)
        self.serving.pop(number, None)
        self._index_subscriptions()

    def _index_subscriptions(self) -> None:
        """Compute once what `next_instant` and `step` need of the subscriptions."""
        ranges = self.chain.ranges
        self._slides = sorted({s.frame.slide for s in self.serving.values() if s.feed.periodic})
        self._floating = [ranges.index(s.frame.range) for s in self.serving.values() if not s.feed.periodic]
        self._by_stair: dict[int, list[ServedSubscription]] = {}
        for serving in self.serving.values():
            self._by_stair.setdefault(ranges.index(serving.frame.range), []).append(serving)

    def reshape(self, ranges: Sequence[int], granules: Sequence[int]) -> None:
        """Give the chain other edges while it runs."""
        self.chain.embed(ranges, granules)
        self._index_subscriptions()

    def take(self, pane: Pane) -> None:
        if pane.start >= self.begins:
            super().take(pane)

    def next_instant(self) -> int | None:
        found = self._openings[:1]
        first = self.waiting[0].end + self.lag if self.waiting else END_OF_TIME
        if self._slides:
            start = max(first, self.at + 1) if self.chain.empty else self.at + 1
            found += [on_grid(start, self.origin, slide) for slide in self._slides]
        for stair in self._floating:
            found += [first, self._expiry_of_oldest(stair)]
        earliest = min(found, default=END_OF_TIME)
        return None if earliest >= END_OF_TIME else earliest

    def _expiry_of_oldest(self, last: int) -> int:
        """The instant at which the oldest pane becomes too old for the window that ends with a stair."""
        for stair in self.chain.stairs[last::-1]:
            for pane in stair.all_panes():
                return pane.end + self.chain.stairs[last].far + self.origin
        return END_OF_TIME

    def is_exhausted(self) -> bool:
        return self.chain.empty and not self.waiting and not self._openings

    def step(self, at: int, fresh: list[Pane], opened: bool) -> Iterator[Chunk]:
        shifted = self._advance_chain(at, fresh)
        due: dict[int, list[Subscription]] = {}
        for stair, servings in self._by_stair.items():
            changed = opened or bool(fresh) or bool(shifted[stair])
            for serving in servings:
                if serving.since <= at < serving.until and self._is_due(serving, at, changed):
                    due.setdefault(stair, []).append(serving.feed)
        if due:
            for stair, states in zip(range(max(due) + 1), self.chain.answers(), strict=False):
                if stair in due:
                    yield from self._chunks(at, due[stair], states)

    def absorb(self, at: int, fresh: list[Pane]) -> None:
        self._advance_chain(at, fresh)

    def change_instants(self) -> Iterator[int]:
        oldest: Pane | None = None
        for number, stair in enumerate(self.chain.stairs):
            oldest = next(iter(stair.all_panes()), oldest)
            if oldest is not None and number in self._by_stair:
                yield oldest.end + stair.far + self.origin
        for serving in self.serving.values():
            yield from (instant for instant in (serving.since, serving.until) if instant > self.at)

    def current_states(self) -> Iterator[tuple[list[Subscription], list[StateWords]]]:
        for stair, states in enumerate(self.chain.answers()):
            servings = self._by_stair.get(stair, ())
            yield [each.feed for each in servings if each.since <= self.at < each.until], states

    def _advance_chain(self, at: int, fresh: list[Pane]) -> list[list[Pane]]:
        """Move the chain, and note for subscriptions that report changes which groups lost items."""
        self.chain.grow(self.size)
        shifted = self.chain.advance(at - self.origin, [self._shift_pane(pane, self.shift) for pane in fresh])
        for stair, servings in self._by_stair.items():
            for serving in servings:
                if serving.feed.changes:
                    self._touch({0: self._touched[serving.feed.number]}, shifted[stair])
        return shifted

    def admit(self, pane: Pane) -> None:
        self.chain.grow(self.size)
        self.chain.insert(self._shift_pane(pane, self.shift))

    @property
    def forgotten_until(self) -> int:
        return max(self.begins, self.chain.forgotten_until - self.shift)

    def panes(self) -> list[Pane]:
        return [self._shift_pane(pane, -self.shift) for pane in self.chain.panes()]

    def load(self, panes: list[Pane]) -> None:
        self._load_stored([self._shift_pane(pane, self.shift) for pane in panes])

    def _load_stored(self, panes: list[Pane]) -> None:
        self.chain.grow(self.size)
        self.chain.load(panes)

    @property
    def nbytes(self) -> int:
        return self.chain.nbytes + sum(pane.nbytes for pane in self.waiting)

    def state(self) -> Tree:
        servings = [[number, s.since, s.until] for number, s in self.serving.items()]
        own = {"begins": self.begins, "now": self.chain.now, "lost": self.chain.lost, "serving": servings}
        return super().state() | own | {"shape": list(self.shape)}

    def _stored_panes(self) -> list[Pane]:
        return list(self.chain.panes())

    def restore(self, state: Tree) -> None:
        self.begins, self.chain.now, self.chain.lost = state["begins"], state["now"], state["lost"]
        super().restore(state)

    @property
    def shape(self) -> tuple[list[int], list[int]]:
        return self.chain.ranges, [stair.granule for stair in self.chain.stairs]

    def has_edge_inside(self, window: Sliding, pane: Pane) -> bool:
        """Whether an edge of a window falls inside a pane."""
        moved = self._shift_pane(pane, self.shift)
        edges = (0, window.range)
        return any((moved.end - 1 + e) // window.step * window.step - e > moved.start for e in edges)

    def is_over(self) -> bool:
        """Whether other chains answer every subscription from now on."""
        return all(self.at >= serving.until - 1 for serving in self.serving.values())

    def exact_since(self, frame: WindowShape, unfinished: Sequence[Pane]) -> int:
        """The first instant from which on this chain, and panes still to come, have all edges of a shape."""
        panes = [self._shift_pane(pane, self.shift) for pane in (*self.waiting, *unfinished)]
        known = self.chain.exact_since(frame.range, frame.slide, panes)
        return known if known == MIN_POSITION else known + frame.range + self.origin

    def sees_late_pane(self, feed: Subscription, pane: Pane, visible: int) -> bool:
        return pane.end + self.lag + self.serving[feed.number].frame.range > visible

    def _is_due(self, serving: ServedSubscription, at: int, changed: bool) -> bool:
        return (at - self.origin) % serving.frame.slide == 0 if serving.feed.periodic else changed

    def _shift_pane(self, pane: Pane, by: int) -> Pane:
        return replace(pane, start=pane.start + by, end=pane.end + by) if by else pane
