"""Evaluator of one stair chain: the windows of one window group, or the levels of one window in `tiers`."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection, Container, Iterator, Mapping, Sequence
from dataclasses import dataclass

from panewise.aggregate import StateWords
from panewise.core.time import Boundary, on_grid
from panewise.engine.panes.chunks import Chunk
from panewise.engine.panes.evaluators import END_OF_TIME, Evaluator, Subscription
from panewise.engine.state.snapshot import Tree
from panewise.plan import shape_of
from panewise.plan.rules.group_windows import WindowShape
from panewise.stores.chain import MIN_POSITION, StairChain, StairLevel
from panewise.stores.pane import Pane, PaneSpans
from panewise.window import Sliding


@dataclass
class ServedSubscription:
    """A subscription on a chain, and the first instant, and the one after the last, at which the chain answers it.

    A window that joins while the stream runs is answered by a stand-in until this chain has seen all of its range.
    """

    subscription: Subscription
    shape: WindowShape
    since: int
    until: int = END_OF_TIME

    def is_due(self, at: int, origin: int, changed: bool) -> bool:
        """Whether the chain reports at an instant; a window without a slide reports when it has changed."""
        due = (at - origin) % self.shape.slide == 0 if self.subscription.periodic else changed
        return due and self.since <= at < self.until


@dataclass(frozen=True)
class ServingIndex:
    """The subscriptions of a chain by stair, their slides, and the stairs of those without a slide.

    `turns` are the instants at which the chain begins or ends to answer one of them, ascending.
    """

    by_stair: Mapping[int, Sequence[ServedSubscription]]
    slides: Sequence[int]
    floating: Sequence[int]
    turns: Sequence[int]

    @classmethod
    def of(cls, serving: Collection[ServedSubscription], levels: Sequence[StairLevel]) -> ServingIndex:
        stairs = {level.range: number for number, level in enumerate(levels)}
        by_stair: dict[int, list[ServedSubscription]] = {}
        for served in serving:
            by_stair.setdefault(stairs[served.shape.range], []).append(served)
        slides = sorted({served.shape.slide for served in serving if served.subscription.periodic})
        floating = [stairs[served.shape.range] for served in serving if not served.subscription.periodic]
        turns = sorted({instant for served in serving for instant in (served.since, served.until)})
        return cls(by_stair, slides, floating, turns)


class ChainEvaluator(Evaluator):
    """A chain and the subscriptions that it answers. All windows have the same lag and origin.

    `begins`: panes that start before this position are not for this chain.
    """

    def __init__(self, chain: StairChain, boundary: Boundary, lag: int, begins: int = MIN_POSITION) -> None:
        super().__init__(chain.columns, boundary, lag)
        self.chain, self.begins = chain, begins
        self.origin = chain.levels[0].origin + lag
        self.serving: dict[int, ServedSubscription] = {}
        self._index: ServingIndex | None = None

    def serve(self, subscription: Subscription, since: int = MIN_POSITION, until: int = END_OF_TIME) -> None:
        """Answer a subscription at the instants in [since, until)."""
        self.join(subscription)
        shape = shape_of(Sliding.of(subscription.window))
        self.serving[subscription.number] = ServedSubscription(subscription, shape, since, until)
        self._index = None

    def serve_until(self, number: int, until: int) -> None:
        """Answer a subscription no longer than up to an instant."""
        self.serving[number].until = until
        self._index = None

    def leave(self, number: int) -> None:
        super().leave(number)
        self.serving.pop(number, None)
        self._index = None

    @property
    def index(self) -> ServingIndex:
        """What `next_instant` and `step` need of the subscriptions, as long as these stay the same."""
        if self._index is None:
            self._index = ServingIndex.of(self.serving.values(), self.chain.levels)
        return self._index

    def reshape(self, levels: Sequence[StairLevel]) -> None:
        """Give the chain other levels while it runs."""
        self.chain.embed(levels)
        self._index = None

    def start(self, at: int, size: int) -> None:
        super().start(at, size)
        self.absorb(at, [])

    def take(self, pane: Pane) -> None:
        if pane.start >= self.begins:
            super().take(pane)

    def next_instant(self) -> int | None:
        found = self._openings[:1]
        first = self.waiting[0].end + self.lag if self.waiting else END_OF_TIME
        if self.index.slides:
            start = max(first, self.at + 1) if self.chain.empty else self.at + 1
            found += [on_grid(start, self.origin, slide) for slide in self.index.slides]
        for stair in self.index.floating:
            found += [first, self._expiry_of_oldest(stair)]
        earliest = min(found, default=END_OF_TIME)
        return None if earliest >= END_OF_TIME else earliest

    def _expiry_of_oldest(self, last: int) -> int:
        """The instant at which the oldest pane becomes too old for the window that ends with a stair."""
        for stair in self.chain.stairs[last::-1]:
            for pane in stair.all_panes():
                return self.chain.stairs[last].level.expiry(pane.end) + self.lag
        return END_OF_TIME

    def is_exhausted(self) -> bool:
        return self.chain.empty and not self.waiting and not self._openings

    def step(self, at: int, fresh: list[Pane], opened: bool) -> Iterator[Chunk]:
        shifted = self._advance_chain(at, fresh)
        due: dict[int, list[Subscription]] = {}
        for stair, servings in self.index.by_stair.items():
            changed = opened or bool(fresh) or bool(shifted[stair])
            for served in servings:
                if served.is_due(at, self.origin, changed):
                    due.setdefault(stair, []).append(served.subscription)
        for stair, states in self.chain.answers(due):
            yield from self._chunks(at, due[stair], states)

    def absorb(self, at: int, fresh: list[Pane]) -> None:
        self._advance_chain(at, fresh)

    def change_instants(self) -> Iterator[int]:
        oldest: Pane | None = None
        for number, stair in enumerate(self.chain.stairs):
            oldest = next(stair.all_panes(), oldest)
            if oldest is not None and number in self.index.by_stair:
                yield stair.level.expiry(oldest.end) + self.lag
        turns = self.index.turns
        yield from turns[bisect_right(turns, self.at) :][:1]

    def current_states(self, wanted: Container[int]) -> Iterator[tuple[Subscription, list[StateWords]]]:
        asked: dict[int, list[Subscription]] = {}
        for stair, servings in self.index.by_stair.items():
            for served in servings:
                if served.subscription.number in wanted and served.since <= self.at < served.until:
                    asked.setdefault(stair, []).append(served.subscription)
        for stair, states in self.chain.answers(asked):
            yield from ((subscription, states) for subscription in asked[stair])

    def _advance_chain(self, at: int, fresh: list[Pane]) -> list[list[Pane]]:
        """Move the chain, and note for subscriptions that report changes which groups lost items."""
        self.chain.grow(self.size)
        shifted = self.chain.advance(at - self.lag, fresh)
        if self._touched:
            for stair, servings in self.index.by_stair.items():
                for served in servings:
                    if served.subscription.changes:
                        self._touch({0: self._touched[served.subscription.number]}, shifted[stair])
        return shifted

    def admit(self, pane: Pane) -> None:
        self.chain.grow(self.size)
        self.chain.insert(pane)

    @property
    def forgotten_until(self) -> int:
        return max(self.begins, self.chain.forgotten_until)

    def panes(self) -> list[Pane]:
        return list(self.chain.panes())

    def load(self, panes: list[Pane]) -> None:
        self.chain.grow(self.size)
        self.chain.load(panes)

    @property
    def nbytes(self) -> int:
        return self.chain.nbytes + sum(pane.nbytes for pane in self.waiting)

    def state(self) -> Tree:
        servings = [[number, s.since, s.until] for number, s in self.serving.items()]
        shape = [[level.range for level in self.chain.levels], [level.step for level in self.chain.levels]]
        own = {"begins": self.begins, "lost": self.chain.lost, "serving": servings, "shape": shape}
        return super().state() | own

    def restore(self, state: Tree) -> None:
        self.begins, self.chain.now, self.chain.lost = state["begins"], state["at"] - self.lag, state["lost"]
        super().restore(state)

    def newest_cut(self, shape: WindowShape, spans: PaneSpans) -> int:
        """The end of the newest pane inside which an edge of a window falls, the front one or the rear one."""
        return max(self._level(reach, shape.slide).newest_cut(spans) for reach in (0, shape.range))

    def is_over(self) -> bool:
        """Whether other chains answer every subscription from now on."""
        return all(self.at >= served.until - 1 for served in self.serving.values())

    def spans(self, unfinished: Sequence[Pane]) -> PaneSpans:
        """All panes of this chain, and those still to come."""
        return PaneSpans.of((*self.chain.panes(), *self.waiting, *unfinished))

    def exact_since(self, shape: WindowShape, spans: PaneSpans) -> int:
        """The first instant from which on all edges of a shape are between panes, of which these are all."""
        known = self.chain.exact_since(self._level(shape.range, shape.slide), spans)
        return known if known == MIN_POSITION else known + shape.range + self.lag

    def _level(self, reach: int, slide: int) -> StairLevel:
        return StairLevel(reach, slide, self.origin - self.lag)

    def sees_late_pane(self, subscription: Subscription, pane: Pane, visible: int) -> bool:
        return pane.end + self.lag + self.serving[subscription.number].shape.range > visible
