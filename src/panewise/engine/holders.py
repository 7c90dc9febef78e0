"""What keeps closed panes for windows and answers them at their instants.

A holder is fed with panes in order, moves from instant to instant and gives a `Chunk` for every window that is due.
Positions are those of the family: an item's time, one tick later under the boundary `[)`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from bisect import insort
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from panewise.aggregate import Columns, Longs, Words, placed
from panewise.engine.feeds import Chunk, Feed, Touched
from panewise.engine.snapshot import Tree, pane_tree, panes_from
from panewise.stores.pane import Pane, index_of
from panewise.stores.stairs import NEVER
from panewise.time import Boundary

#: No instant is as late as this one.
ALWAYS = 2**62


@dataclass
class Entered:
    """Between which positions items entered windows, grouped or not, and when the last of the late ones was heard."""

    oldest: int = ALWAYS
    newest: int = NEVER
    heard: int = NEVER

    def note(self, first: int, last: int, heard: int = NEVER) -> None:
        self.oldest, self.newest = min(self.oldest, first), max(self.newest, last)
        self.heard = max(self.heard, heard)


class Holder(ABC):
    """The contract of a holder. `waiting` are closed panes it has not come to yet."""

    def __init__(self, columns: Sequence[Columns], boundary: Boundary, lag: int = 0) -> None:
        self.columns, self.boundary, self.lag = columns, boundary, lag
        self.waiting: deque[Pane] = deque()
        #: Every instant up to this one has been answered.
        self.at = NEVER
        self.size = 0
        self.feeds: dict[int, Feed] = {}
        self._touched: dict[int, Touched] = {}
        #: For EMIT EMPTY: the first and last instant at which a feed's window held items, grouped or not.
        self.reach: dict[int, tuple[int, int]] = {}
        self.entered = Entered()
        #: Whether no more items will come.
        self.finishing = False
        #: Instants at which a late item became visible, for windows that speak whenever they change.
        self._openings: list[int] = []

    def join(self, feed: Feed) -> None:
        """Let a feed listen."""
        self.feeds[feed.number] = feed
        if feed.changes:
            self._touched[feed.number] = Touched()

    def leave(self, number: int) -> None:
        self.feeds.pop(number, None)
        self._touched.pop(number, None)

    def take(self, pane: Pane) -> None:
        """Accept a closed pane, later than all before."""
        self.waiting.append(pane)

    def run(self, upto: int | None) -> Iterator[Chunk]:
        """Answer every instant up to one; when finishing, no longer than some window still holds something."""
        while (at := self._next()) is not None and (upto is None or at <= upto):
            if self.finishing and self.exhausted() and not self._unsaid(at):
                break
            self.at = at
            opened = bool(self._openings) and self._openings[0] <= at
            self._openings = [opening for opening in self._openings if opening > at]
            yield from self.step(at, self._fresh(at), opened)
            yield from self._repeated(upto)
        if upto is not None and upto > self.at:
            self.pass_to(upto)

    def _repeated(self, upto: int | None) -> Iterator[Chunk]:
        """Say at all instants before the next change what is to be said at each: one chunk for each window."""
        last = min(self.quiet(), ALWAYS if upto is None else upto + 1) - 1
        if last <= self.at:
            return
        reached = self.at
        speaking = ((f, states) for feeds, states in self.standing() for f in feeds if f.empty or states[0][0].any())
        for feed, states in speaking:
            instants = self._instants(feed, last)
            if len(instants):
                reached = max(reached, int(instants[-1]))
                for chunk in self._chunks(int(instants[0]), [feed], states):
                    yield replace(chunk, again=instants[1:])
        self.pass_to(last if last < ALWAYS - 1 else reached)

    def _instants(self, feed: Feed, last: int) -> Longs:
        """The instants up to one at which a feed speaks that repeats whole states."""
        grid, first = feed.window.grid, self.at + 1
        if feed.empty:
            begin, end = self.reach.get(feed.number, (ALWAYS, NEVER))
            first, last = max(first, begin), min(last, end) if self.finishing else last
        if grid is None or feed.changes or first > last:
            return np.zeros(0, np.int64)
        return np.arange(on_grid(first, *grid), last + 1, grid[1])

    def quiet(self) -> int:
        """The first instant at which something may change: all before are answered as the last one was."""
        coming = [self.waiting[0].end + self.lag] if self.waiting else []
        for number, touched in self._touched.items():
            grid = self.feeds[number].window.grid
            coming += [on_grid(self.at + 1, *grid)] if grid and touched.codes else []
        return min([*coming, *self._openings[:1], *self.changing()], default=ALWAYS)

    @abstractmethod
    def changing(self) -> Iterator[int]:
        """Instants at which what is held changes by itself, the earliest of them included."""

    @abstractmethod
    def standing(self) -> Iterator[tuple[list[Feed], list[Words]]]:
        """The states that feeds have at present."""

    def pass_to(self, at: int) -> None:
        """Time has come to an instant at which there was nothing to say."""
        self.at = at
        self.absorb(at, self._fresh(at))

    def _fresh(self, at: int) -> list[Pane]:
        """The panes that have come in reach."""
        fresh = []
        while self.waiting and self.waiting[0].end <= at - self.lag:
            fresh.append(self.waiting.popleft())
        self._touch(self._touched, fresh)
        return fresh

    def insert(self, pane: Pane, visible: int) -> Iterator[Chunk]:
        """Let a late pane in that counts from the instant `visible` on; says again what it revises."""
        if any(not feed.periodic and self.hears(feed, pane, visible) for feed in self.feeds.values()):
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

    def _next(self) -> int | None:
        """The next instant of a window, or of the silence of one that reports empty states."""
        found = [] if (at := self.next_instant()) is None else [at]
        for number, (first, _) in self.reach.items():
            grid = self.feeds[number].window.grid if number in self.feeds else None
            found += [on_grid(max(self.at + 1, first), *grid)] if grid else []
        for number, touched in self._touched.items():
            grid = self.feeds[number].window.grid
            found += [on_grid(self.at + 1, *grid)] if grid and touched.codes and self.at > NEVER else []
        return min(found, default=None)

    def _unsaid(self, at: int) -> bool:
        """Whether there is something to say of an instant although no window holds anything: silence, or a loss."""
        lost = any(touched.codes for touched in self._touched.values())
        return lost or any(self._silence(feed, at) for feed in self.feeds.values())

    def _silence(self, feed: Feed, at: int) -> bool:
        """Whether an empty state is to be reported: from the first instant that saw an item, to the last."""
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
        """The next instant at which any window has something to say."""

    @abstractmethod
    def exhausted(self) -> bool:
        """Whether no window holds or awaits anything."""

    @abstractmethod
    def step(self, at: int, fresh: list[Pane], opened: bool) -> Iterator[Chunk]:
        """Move to an instant with the panes that have come in reach, and answer.

        `opened` says that late items have become visible since the last instant.
        """

    @abstractmethod
    def absorb(self, at: int, fresh: list[Pane]) -> None:
        """Move to an instant without answering."""

    @abstractmethod
    def admit(self, pane: Pane) -> None:
        """Let a late pane in among what has been answered already."""

    @property
    def unknown(self) -> int:
        """The newest position of which something may have been forgotten."""
        return NEVER

    @abstractmethod
    def panes(self) -> list[Pane]:
        """Every pane held, waiting ones excluded, oldest first."""

    @abstractmethod
    def load(self, panes: list[Pane]) -> None:
        """Take over what `panes` gave, with the groups it knew then or with new codes."""

    def _held(self) -> list[Pane]:
        """The panes as they are kept, not moved: moving one would make it another, to be written again."""
        return self.panes()

    def _hold(self, panes: list[Pane]) -> None:
        """Take over what `_held` gave."""
        self.load(panes)

    def state(self) -> Tree:
        """What must survive a restart."""
        return {
            "at": self.at,
            "openings": self._openings,
            "waiting": pane_tree(self.columns, self.waiting),
            "held": pane_tree(self.columns, self._held()),
            "touched": {str(number): touched.seen().tolist() for number, touched in self._touched.items()},
        }

    def restore(self, state: Tree) -> None:
        """Take over what `state` gave; the feeds have joined already."""
        self.at, self._openings = state["at"], state["openings"]
        self.waiting = deque(panes_from(self.columns, state["waiting"]))
        self._hold(panes_from(self.columns, state["held"]))
        for number, codes in state["touched"].items():
            self._touched[int(number)].add(np.array(codes, np.int64))

    def recode(self, codes: Longs) -> None:
        """Groups have new codes."""
        self.waiting = deque(pane.recoded(codes) for pane in self.waiting)
        self.load([pane.recoded(codes) for pane in self.panes()])
        for touched in self._touched.values():
            touched.codes = [codes[some] for some in touched.codes]

    def hears(self, feed: Feed, pane: Pane, visible: int) -> bool:
        """Whether a late pane is still in a feed's window when it becomes visible."""
        return True

    def unreported(self) -> Iterator[Longs]:
        """Groups of which something is still to be said, even if they are gone."""
        return (codes for touched in self._touched.values() for codes in touched.codes)

    def revisions(self, pane: Pane, visible: int) -> Iterator[Chunk]:
        """What a late pane changes about instants already answered; most holders do not look back."""
        return iter(())

    def _touch(self, touched: dict[int, Touched], panes: list[Pane]) -> None:
        for each in touched.values():
            for pane in panes:
                each.add(pane.codes)

    def _chunks(self, at: int, due: Sequence[Feed], states: list[Words], revised: bool = False) -> Iterator[Chunk]:
        """The chunks of feeds that share these states."""
        whole = tuple(f.number for f in due if not f.changes and not f.empty)
        if whole:
            present = np.flatnonzero(states[0][0])
            if len(present):
                where = index_of(present)
                yield Chunk(at, whole, present, [placed(words, where) for words in states], revised)
        for feed in due:
            if feed.changes or self._silence(feed, at):
                codes = self._touched[feed.number].taken() if feed.changes else np.zeros(1, np.int64)
                if len(codes):
                    yield Chunk(at, (feed.number,), codes, [placed(words, codes) for words in states], revised)


def on_grid(position: int, origin: int, step: int) -> int:
    """The first grid point that is not before a position."""
    return origin - (origin - position) // step * step
