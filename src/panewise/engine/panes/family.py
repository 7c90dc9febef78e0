"""A family: queries that are equal in stream, filters, grouping and aggregates, and differ in their windows."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from panewise.aggregate import Int64Array, Items
from panewise.algebra import Host
from panewise.core.time import MAX_TICK, MIN_TICK, Boundary
from panewise.engine.blame import blame_queries
from panewise.engine.intake import Arrivals
from panewise.engine.lateness import Ledger
from panewise.engine.panes.evaluators import EntryBounds
from panewise.engine.panes.grouping import GroupEncoder, admitted_times
from panewise.engine.panes.subscriptions import Chunk, Subscription
from panewise.engine.row_steps import apply_steps
from panewise.engine.state.snapshot import Tree
from panewise.plan import PanePlan
from panewise.stores.chain import MIN_POSITION
from panewise.stores.pane import Pane
from panewise.window import Window


@dataclass(frozen=True, eq=False)
class EnteringRows:
    """Rows that are about to enter windows, as these see them and as groups do."""

    rows: Arrivals
    windowed: pa.Table
    grouped: pa.Table
    #: Which rows are grouped; None where all are.
    kept: Int64Array | None


@dataclass(frozen=True)
class Member:
    """One query of a family: its plan, and which feed serves each of its levels."""

    name: str
    plan: PanePlan
    feeds: tuple[tuple[int, int | None], ...]


class Family(GroupEncoder, ABC):
    """What all families have in common: feeds and the queries that listen to them."""

    def __init__(self, plan: PanePlan, boundary: Boundary, host: Host) -> None:
        super().__init__(plan)
        self.boundary, self.host = boundary, host
        self.members: dict[str, Member] = {}
        self.subscriptions: dict[int, Subscription] = {}
        self._numbers: dict[object, int] = {}
        self._subscriber_counts: dict[int, int] = {}
        self._next_subscription = 0
        #: What is known of the items of landmarks and varying windows.
        self.entry_bounds = EntryBounds()
        #: Every instant up to this one has been answered.
        self.answered_until = MIN_POSITION
        self.pending_chunks: list[Chunk] = []
        #: Panes that have been finished and not been fetched yet; None where nobody asks for them.
        self.finished_panes: list[Pane] | None = None
        #: Whoever remembers groups by code and must hear when codes change.
        self.on_recode: Callable[[Int64Array], None] = lambda codes: None

    # ---- queries -----------------------------------------------------------------------------------------------

    def join(self, name: str, plan: PanePlan, since: int = MIN_POSITION) -> None:
        """One more query; windows that are there already serve it too. Items up to `since` do not count for it."""
        feeds = tuple((self._subscribe(window, plan, since), level) for level, window in plan.levels)
        self.members[name] = Member(name, plan, feeds)

    def leave(self, name: str) -> None:
        """One query less; windows nobody listens to any more are given up."""
        for number, _ in self.members.pop(name).feeds:
            self._subscriber_counts[number] -= 1
            if not self._subscriber_counts[number]:
                feed = self.subscriptions.pop(number)
                del self._subscriber_counts[number], self._numbers[_subscription_key(feed)]
                self._on_unsubscribe(feed)

    def _subscribe(self, window: Window, plan: PanePlan, since: int) -> int:
        wanted = (window, plan.reports_changes, plan.empty, plan.query.revise, since)
        if wanted in self._numbers:
            self._subscriber_counts[self._numbers[wanted]] += 1
            return self._numbers[wanted]
        feed = Subscription(self._next_subscription, *wanted)
        self._next_subscription += 1
        self._add_subscription(feed)
        self._on_subscribe(feed)
        return feed.number

    def _add_subscription(self, feed: Subscription) -> None:
        self.subscriptions[feed.number] = feed
        self._numbers[_subscription_key(feed)] = feed.number
        self._subscriber_counts[feed.number] = 1

    @abstractmethod
    def _on_subscribe(self, feed: Subscription) -> None:
        """A window nobody asked for before."""

    @abstractmethod
    def _on_unsubscribe(self, feed: Subscription) -> None:
        """A window nobody asks for any more."""

    # ---- rows and time -----------------------------------------------------------------------------------------

    def read(self, arrivals: Arrivals) -> EnteringRows | None:
        """The rows that enter windows, None where none does; an expression that fails does so here."""
        with blame_queries(self.members):
            table, rows = self._filter_arrivals(arrivals)
            if not len(rows):
                return None
            grouped, kept = apply_steps(self.plan.between, table, self.host)
            return EnteringRows(rows, table, grouped, kept)

    @abstractmethod
    def take(self, entering: EnteringRows, ledger: Ledger) -> None:
        """Take rows in, and note in the ledger what became of late ones."""

    def queries_by_subscription(self) -> dict[int, list[str]]:
        """The queries that listen to each feed."""
        found: dict[int, list[str]] = {number: [] for number in self.subscriptions}
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
        if kept := self.keys.shrink_to_live(self.live_groups):
            self.keys = kept.keys
            self.recode(kept.codes)
            self.on_recode(kept.codes)

    @abstractmethod
    def live_groups(self) -> Iterable[Int64Array]:
        """The codes of groups that some window holds."""

    @abstractmethod
    def recode(self, codes: Int64Array) -> None:
        """Groups have new codes."""

    def state(self) -> Tree:
        """What must survive a restart, keys first: everything else speaks in their codes."""
        members = [[member.name, [number for number, _ in member.feeds]] for member in self.members.values()]
        return {
            "members": members,
            "next_feed": self._next_subscription,
            "since": [[feed.number, feed.since] for feed in self.subscriptions.values() if feed.since > MIN_POSITION],
            "passed": self.answered_until,
            "keys": self.keys.state(),
        }

    def restore(self, state: Tree) -> None:
        """Take over what `state` gave; the members have been there again already."""
        self._next_subscription, self.answered_until = state["next_feed"], state["passed"]
        self.keys.restore(state["keys"])

    def rejoin(self, name: str, plan: PanePlan, numbers: Sequence[int], since: Mapping[int, int]) -> None:
        """A query is back after a restart, with the feeds it had."""
        feeds = []
        for number, (level, window) in zip(numbers, plan.levels, strict=True):
            if number in self.subscriptions:
                self._subscriber_counts[number] += 1
            else:
                feed = Subscription(
                    number, window, plan.reports_changes, plan.empty, plan.query.revise, since.get(number, MIN_POSITION)
                )
                self._add_subscription(feed)
            feeds.append((number, level))
        self.members[name] = Member(name, plan, tuple(feeds))

    @property
    @abstractmethod
    def nbytes(self) -> int:
        """How much memory the states take."""

    def _filter_arrivals(self, arrivals: Arrivals) -> tuple[pa.Table, Arrivals]:
        """The rows that enter windows: those of the right time that pass the filters below."""
        source = self.plan.source
        table = arrivals.table.rename_columns([column.name for column in source.columns])
        first, last = admitted_times(self.plan, self.boundary)
        if (first, last) != (MIN_TICK, MAX_TICK):
            places = np.flatnonzero((arrivals.times >= first) & (arrivals.times <= last))
            arrivals, table = arrivals.take(places), table.take(pa.array(places))
        table, kept = apply_steps(self.plan.before, table, self.host)
        return table, arrivals if kept is None else arrivals.take(kept)


def _subscription_key(feed: Subscription) -> tuple[object, ...]:
    """What queries must agree in to listen to the same feed."""
    return feed.window, feed.changes, feed.empty, feed.revise, feed.since


def filter_items(items: Sequence[Items], keep: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> list[Items]:
    """Some of the rows of every column."""
    return [each.take(keep) for each in items]
