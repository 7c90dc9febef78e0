"""A family: queries that are equal in stream, filters, grouping and aggregates, and differ in their windows."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from panewise.aggregate import Items, Longs
from panewise.algebra import Host
from panewise.engine.blame import blaming
from panewise.engine.feeds import Chunk, Feed
from panewise.engine.grouping import Grouping, admitted
from panewise.engine.holders import Entered
from panewise.engine.intake import Arrivals
from panewise.engine.lateness import Ledger
from panewise.engine.rowwise import passed
from panewise.engine.snapshot import Tree
from panewise.plan import Aggregation
from panewise.stores.pane import Pane
from panewise.stores.stairs import NEVER
from panewise.time import FIRST_TICK, LAST_TICK, Boundary
from panewise.window import Window


@dataclass(frozen=True, eq=False)
class Entering:
    """Rows that are about to enter windows, as these see them and as groups do."""

    rows: Arrivals
    windowed: pa.Table
    grouped: pa.Table
    #: Which rows are grouped; None where all are.
    kept: Longs | None


@dataclass(frozen=True)
class Member:
    """One query of a family: its plan, and which feed serves each of its levels."""

    name: str
    plan: Aggregation
    feeds: tuple[tuple[int, int | None], ...]


class Family(Grouping, ABC):
    """What all families have in common: feeds and the queries that listen to them."""

    def __init__(self, plan: Aggregation, boundary: Boundary, host: Host) -> None:
        super().__init__(plan)
        self.boundary, self.host = boundary, host
        self.members: dict[str, Member] = {}
        self.feeds: dict[int, Feed] = {}
        self._numbers: dict[object, int] = {}
        self._listeners: dict[int, int] = {}
        self._next_feed = 0
        #: What is known of the items of landmarks and varying windows.
        self.entered = Entered()
        #: Every instant up to this one has been answered.
        self.passed = NEVER
        self.said: list[Chunk] = []
        #: Panes that have been finished and not been fetched yet; None where nobody asks for them.
        self.shed: list[Pane] | None = None
        #: Whoever remembers groups by code and must hear when codes change.
        self.recoded: Callable[[Longs], None] = lambda codes: None

    # ---- queries -----------------------------------------------------------------------------------------------

    def join(self, name: str, plan: Aggregation, since: int = NEVER) -> None:
        """One more query; windows that are there already serve it too. Items up to `since` do not count for it."""
        feeds = tuple((self._feed(window, plan, since), level) for level, window in plan.levels)
        self.members[name] = Member(name, plan, feeds)

    def leave(self, name: str) -> None:
        """One query less; windows nobody listens to any more are given up."""
        for number, _ in self.members.pop(name).feeds:
            self._listeners[number] -= 1
            if not self._listeners[number]:
                feed = self.feeds.pop(number)
                del self._listeners[number], self._numbers[_wanted(feed)]
                self._left(feed)

    def _feed(self, window: Window, plan: Aggregation, since: int) -> int:
        wanted = (window, plan.changes, plan.empty, plan.query.revise, since)
        if wanted in self._numbers:
            self._listeners[self._numbers[wanted]] += 1
            return self._numbers[wanted]
        feed = Feed(self._next_feed, *wanted)
        self._next_feed += 1
        self._listen(feed)
        self._joined(feed)
        return feed.number

    def _listen(self, feed: Feed) -> None:
        self.feeds[feed.number] = feed
        self._numbers[_wanted(feed)] = feed.number
        self._listeners[feed.number] = 1

    @abstractmethod
    def _joined(self, feed: Feed) -> None:
        """A window nobody asked for before."""

    @abstractmethod
    def _left(self, feed: Feed) -> None:
        """A window nobody asks for any more."""

    # ---- rows and time -----------------------------------------------------------------------------------------

    def read(self, arrivals: Arrivals) -> Entering | None:
        """The rows that enter windows, None where none does; an expression that fails does so here."""
        with blaming(self.members):
            table, rows = self._entering(arrivals)
            if not len(rows):
                return None
            grouped, kept = passed(self.plan.between, table, self.host)
            return Entering(rows, table, grouped, kept)

    @abstractmethod
    def take(self, entering: Entering, ledger: Ledger) -> None:
        """Take rows in, and note in the ledger what became of late ones."""

    def audience(self) -> dict[int, list[str]]:
        """The queries that listen to each feed."""
        found: dict[int, list[str]] = {number: [] for number in self.feeds}
        for member in self.members.values():
            for number, _ in member.feeds:
                found[number].append(member.name)
        return found

    @abstractmethod
    def advance(self, limit: int) -> None:
        """Say everything about instants up to `limit`, which have become final."""

    @abstractmethod
    def finish(self, until: int | None) -> None:
        """No more rows will come: speak until no window holds anything, or until an instant."""

    def tidy(self) -> None:
        """Everything has been said: forget groups that no window can see any more, once they are the greater part."""
        if kept := self.keys.thinned(self.live):
            self.keys = kept.keys
            self.recode(kept.codes)
            self.recoded(kept.codes)

    @abstractmethod
    def live(self) -> Iterable[Longs]:
        """The codes of groups that some window holds."""

    @abstractmethod
    def recode(self, codes: Longs) -> None:
        """Groups have new codes."""

    def state(self) -> Tree:
        """What must survive a restart, keys first: everything else speaks in their codes."""
        members = [[member.name, [number for number, _ in member.feeds]] for member in self.members.values()]
        return {
            "members": members,
            "next_feed": self._next_feed,
            "since": [[feed.number, feed.since] for feed in self.feeds.values() if feed.since > NEVER],
            "passed": self.passed,
            "keys": self.keys.state(),
        }

    def restore(self, state: Tree) -> None:
        """Take over what `state` gave; the members have been there again already."""
        self._next_feed, self.passed = state["next_feed"], state["passed"]
        self.keys.restore(state["keys"])

    def rejoin(self, name: str, plan: Aggregation, numbers: Sequence[int], since: Mapping[int, int]) -> None:
        """A query is back after a restart, with the feeds it had."""
        feeds = []
        for number, (level, window) in zip(numbers, plan.levels, strict=True):
            if number in self.feeds:
                self._listeners[number] += 1
            else:
                feed = Feed(number, window, plan.changes, plan.empty, plan.query.revise, since.get(number, NEVER))
                self._listen(feed)
            feeds.append((number, level))
        self.members[name] = Member(name, plan, tuple(feeds))

    @property
    @abstractmethod
    def nbytes(self) -> int:
        """How much memory the states take."""

    def _entering(self, arrivals: Arrivals) -> tuple[pa.Table, Arrivals]:
        """The rows that enter windows: those of the right time that pass the filters below."""
        source = self.plan.source
        table = arrivals.table.rename_columns([column.name for column in source.columns])
        first, last = admitted(self.plan, self.boundary)
        if (first, last) != (FIRST_TICK, LAST_TICK):
            places = np.flatnonzero((arrivals.times >= first) & (arrivals.times <= last))
            arrivals, table = arrivals.chosen(places), table.take(pa.array(places))
        table, kept = passed(self.plan.before, table, self.host)
        return table, arrivals if kept is None else arrivals.chosen(kept)


def _wanted(feed: Feed) -> tuple[object, ...]:
    """What queries must agree in to listen to the same feed."""
    return feed.window, feed.changes, feed.empty, feed.revise, feed.since


def chosen(items: Sequence[Items], keep: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> list[Items]:
    """Some of the rows of every column."""
    return [each.take(keep) for each in items]
