"""A family: queries that are equal in stream, filters, grouping and aggregates, and differ in their windows."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType
from typing import ClassVar

import numpy as np
import pyarrow as pa

from panewise.aggregate import Int64Array, Items, StateWords
from panewise.algebra import Host
from panewise.core.scalar import Scalar
from panewise.core.time import MAX_TICK, MIN_TICK, Boundary
from panewise.cql.conditions import condition_of
from panewise.engine.blame import blame_queries
from panewise.engine.intake import Arrivals
from panewise.engine.lateness import Ledger
from panewise.engine.lookups.archive import Archive
from panewise.engine.panes.chunks import ChangeRun, Chunk
from panewise.engine.panes.evaluators import END_OF_TIME, EntryBounds, Subscription
from panewise.engine.panes.grouping import GroupEncoder
from panewise.engine.row_steps import KnownValues, apply_steps, step_scalars
from panewise.engine.state.snapshot import Tree
from panewise.plan import PanePlan, RowStep
from panewise.stores.chain import MIN_POSITION
from panewise.stores.pane import Pane
from panewise.window import Window

#: More rows than this do not wait: they cost so much that it does not matter into how many batches they are split.
MANY_ROWS = 4096


@dataclass(frozen=True, eq=False)
class EnteringRows:
    """Rows that are about to enter windows: all of them, and those that are grouped."""

    rows: Arrivals
    windowed: pa.Table
    grouped: pa.Table
    #: Which rows are grouped; None where all are.
    kept: Int64Array | None


@dataclass
class Backlog:
    """Rows that have come, and instants that have become final, before any window has something to report."""

    batches: list[Arrivals] = field(default_factory=list)
    rows: int = 0
    #: The earliest time of a row.
    first: int = END_OF_TIME
    limit: int = MIN_POSITION
    #: Nothing is reported before this instant; None where that is not known.
    until: int | None = None

    def add(self, arrivals: Arrivals) -> None:
        self.batches.append(arrivals)
        self.rows += len(arrivals)
        if arrivals.earliest < self.first:
            self.first, self.until = arrivals.earliest, None


@dataclass(frozen=True)
class Member:
    """One query of a family: its plan, and the subscription of each of its levels."""

    name: str
    plan: PanePlan
    subscriptions: tuple[tuple[int, int | None], ...]


class Family(GroupEncoder, ABC):
    """What all families have in common: subscriptions, and the queries that use them."""

    #: Whether `next_report` is often later than the next instant.
    reports_rarely: ClassVar[bool] = False

    def __init__(self, plan: PanePlan, boundary: Boundary, host: Host) -> None:
        super().__init__(plan)
        self.boundary, self.host = boundary, host
        self.members: dict[str, Member] = {}
        self.subscriptions: dict[int, Subscription] = {}
        self._numbers: dict[object, int] = {}
        self._subscriber_counts: dict[int, int] = {}
        self._next_subscription = 0
        #: The bounds of items that entered, for landmark and varying windows.
        self.entry_bounds = EntryBounds()
        #: Every instant up to this one has been answered.
        self.answered_until = MIN_POSITION
        #: What has to be reported, by the turns in which it was found.
        self.pending: list[list[Chunk | ChangeRun]] = []
        #: What waits until a window may report.
        self.backlog = Backlog()
        #: Whether time has moved on since groups were last counted.
        self.untidy = False
        #: Finished panes that have not been collected yet; None if they are not collected.
        self.finished_panes: list[Pane] | None = None
        #: Rows up to this position came before the family was created.
        self.created_at = MIN_POSITION
        #: Panes kept for lookups.
        self.archive: Archive | None = None
        #: Called with the new codes of groups when codes change.
        self.on_recode: Callable[[Int64Array], None] = lambda codes: None

    # ---- queries -----------------------------------------------------------------------------------------------

    def join(self, name: str, plan: PanePlan, since: int = MIN_POSITION) -> None:
        """Add a query; it shares the windows that are there already. Items up to `since` do not count for it."""
        self.catch_up()
        subscriptions = tuple((self._subscribe(window, plan, since), level) for level, window in plan.levels)
        self.members[name] = Member(name, plan, subscriptions)

    def leave(self, name: str) -> None:
        """Remove a query, and the windows that no other query uses."""
        if len(self.members) > 1:
            self.catch_up()
        for number, _ in self.members.pop(name).subscriptions:
            self._subscriber_counts[number] -= 1
            if not self._subscriber_counts[number]:
                subscription = self.subscriptions.pop(number)
                del self._subscriber_counts[number], self._numbers[_subscription_key(subscription)]
                self._on_unsubscribe(subscription)

    def _subscribe(self, window: Window, plan: PanePlan, since: int) -> int:
        wanted = (window, plan.reports_changes, plan.empty, plan.query.revise, since)
        if wanted in self._numbers:
            self._subscriber_counts[self._numbers[wanted]] += 1
            return self._numbers[wanted]
        subscription = Subscription(self._next_subscription, *wanted)
        self._next_subscription += 1
        self._add_subscription(subscription)
        self._on_subscribe(subscription)
        return subscription.number

    def _add_subscription(self, subscription: Subscription) -> None:
        self.subscriptions[subscription.number] = subscription
        self._numbers[_subscription_key(subscription)] = subscription.number
        self._subscriber_counts[subscription.number] = 1

    @abstractmethod
    def _on_subscribe(self, subscription: Subscription) -> None:
        """Called when a query needs a window that no query had before."""

    @abstractmethod
    def _on_unsubscribe(self, subscription: Subscription) -> None:
        """Called when no query needs a window any more."""

    # ---- rows and time -----------------------------------------------------------------------------------------

    def may_wait(self, arrivals: Arrivals) -> bool:
        """Whether rows may wait for the next report, if no expression fails on them: they are few and not late."""
        few = len(arrivals) + self.backlog.rows <= MANY_ROWS
        return few and arrivals.marks is None and self._is_patient and not self._keeps_panes

    def enter(self, found: EnteringRows | Arrivals | None, ledger: Ledger) -> None:
        """Take in what `read` returned, or rows that wait."""
        if isinstance(found, Arrivals):
            self.backlog.add(found)
        elif found is not None:
            self.catch_up()
            self.take(found, ledger)

    @cached_property
    def _is_patient(self) -> bool:
        """Whether reports are rare, and all that may fail is computed from rows as they come."""
        return self.reports_rarely and set(self.fallible_scalars) <= set(self.first_scalars)

    @cached_property
    def fallible_scalars(self) -> Sequence[Scalar]:
        """The expressions that may fail on some rows."""
        steps = (*self.plan.before, *self.plan.between)
        return [scalar for step in steps for scalar in step_scalars(step) if not _cannot_fail(scalar, step)]

    @property
    def _keeps_panes(self) -> bool:
        return self.archive is not None or self.finished_panes is not None

    def next_report(self) -> int:
        """An instant before which no window reports anything, whatever rows come after those of the backlog."""
        return self.answered_until + 1

    def move_to(self, limit: int) -> None:
        """Instants up to a limit have become final: answer them, or let them wait if there is nothing to report."""
        if not self._is_patient or self._keeps_panes or limit >= self._next_report():
            self._take_backlog()
            self.advance(limit)
            self.untidy = True
        else:
            self.backlog.limit = max(self.backlog.limit, limit)

    def _next_report(self) -> int:
        if self.backlog.until is None:
            self.backlog.until = self.next_report()
        return self.backlog.until

    def catch_up(self) -> None:
        """Take in all that waits, before anything else looks at the family."""
        limit = self.backlog.limit
        self._take_backlog()
        if limit > self.answered_until:
            self.untidy = True
            self.advance(limit)

    def _take_backlog(self) -> None:
        backlog, self.backlog = self.backlog, Backlog()
        if backlog.batches and (found := self.read(Arrivals.concat(backlog.batches))):
            self.take(found, Ledger())

    def read(self, arrivals: Arrivals, known: KnownValues = MappingProxyType({})) -> EnteringRows | None:
        """The rows that enter windows, None if there are none; an expression that fails raises its error here.

        Some of the `first_scalars` may be `known`.
        """
        with blame_queries(self.members):
            table, rows = self._filter_arrivals(arrivals, known)
            if not len(rows):
                return None
            known = {} if self.plan.before or len(rows) < len(arrivals) else known
            grouped, kept = apply_steps(self.plan.between, table, self.host, known)
            return EnteringRows(rows, table, grouped, kept)

    @cached_property
    def first_scalars(self) -> Sequence[Scalar]:
        """The expressions that are computed from rows as they come."""
        first = (*self.plan.before, *self.plan.between)[:1]
        return [scalar for step in first for scalar in step_scalars(step) if scalar.column is None]

    @abstractmethod
    def take(self, entering: EnteringRows, ledger: Ledger) -> None:
        """Take rows in, and record the verdicts of late rows in the ledger."""

    def queries_by_subscription(self) -> dict[int, list[str]]:
        """The queries of each subscription."""
        found: dict[int, list[str]] = {number: [] for number in self.subscriptions}
        for member in self.members.values():
            for number, _ in member.subscriptions:
                found[number].append(member.name)
        return found

    @abstractmethod
    def advance(self, limit: int) -> None:
        """Produce the chunks of all instants up to `limit`, which have become final."""

    @abstractmethod
    def finish(self, until: int | None) -> None:
        """Produce the remaining chunks, until no window holds anything or until an instant; no more rows will come."""

    # ---- panes for lookups -------------------------------------------------------------------------------------

    def start_archive(self, length: int, grain: int | None) -> None:
        """Keep panes for lookups from now on, cut to a grain at least."""
        self.archive = Archive(self.columns, length, self.created_at, self.plan.rules_off)

    def _keep_pane(self, pane: Pane) -> None:
        """Give a finished pane, or a late part of one, to the archive and to the pane log."""
        if self.archive is not None:
            self.archive.take(pane)
        if self.finished_panes is not None:
            self.finished_panes.append(pane)

    @property
    def pending_panes(self) -> list[Pane]:
        """Panes that are not in the archive yet: open ones, and late ones that wait for their instants."""
        return []

    def window_archives(self) -> list[Archive]:
        """The panes that windows hold, as archives; each may answer lookups."""
        return []

    # ---- forgetting and restarts -------------------------------------------------------------------------------

    def tidy(self) -> None:
        """Drop groups that no window can hold any more, once they are more than half; called after all reports."""
        if kept := self.keys.shrink_to_live(self.live_groups):
            self.keys = kept.keys
            self.recode(kept.codes)
            self.on_recode(kept.codes)
        for number, column in enumerate(self.columns):
            if column.oversized:
                column.forget(states[number] for states in self.kept_states())

    def _pending_turn(self) -> list[Chunk | ChangeRun]:
        """A new turn, to which the caller adds what has to be reported."""
        self.pending.append([])
        return self.pending[-1]

    def kept_states(self) -> Iterable[Sequence[StateWords]]:
        """All states that are kept, those of each column; here those of lookups and of the pane log."""
        return (pane.states for pane in self._panes_for_lookups())

    def live_groups(self) -> Iterable[Int64Array]:
        """The codes of groups that some window, lookups or the pane log hold; here those of the last two."""
        return (pane.codes for pane in self._panes_for_lookups())

    def _panes_for_lookups(self) -> Iterator[Pane]:
        if self.archive is not None:
            yield from self.archive.all_panes()
        yield from self.finished_panes or ()

    def recode(self, codes: Int64Array) -> None:
        """Replace the codes of groups; here those of lookups and of the pane log."""
        self.finished_panes = self.finished_panes and [pane.with_codes(codes) for pane in self.finished_panes]
        if self.archive is not None:
            self.archive.recode(codes)

    def state(self) -> Tree:
        """The state that is needed after a restart, keys first: all the rest uses their codes."""
        members = [[member.name, [number for number, _ in member.subscriptions]] for member in self.members.values()]
        return {
            "members": members,
            "next_feed": self._next_subscription,
            "since": [
                [subscription.number, subscription.since]
                for subscription in self.subscriptions.values()
                if subscription.since > MIN_POSITION
            ],
            "passed": self.answered_until,
            "keys": self.keys.state(),
            "founded": self.created_at,
            "archive": self.archive.state() if self.archive else None,
        }

    def restore(self, state: Tree) -> None:
        """Restore what `state` returned; the members have rejoined before."""
        self._next_subscription, self.answered_until = state["next_feed"], state["passed"]
        self.keys.restore(state["keys"])
        self.created_at = state["founded"]
        if self.archive is not None and state["archive"] is not None:
            self.archive.restore(state["archive"])

    def rejoin(self, name: str, plan: PanePlan, numbers: Sequence[int], since: Mapping[int, int]) -> None:
        """Add a query again after a restart, with the subscriptions that it had."""
        subscriptions = []
        for number, (level, window) in zip(numbers, plan.levels, strict=True):
            if number in self.subscriptions:
                self._subscriber_counts[number] += 1
            else:
                subscription = Subscription(
                    number, window, plan.reports_changes, plan.empty, plan.query.revise, since.get(number, MIN_POSITION)
                )
                self._add_subscription(subscription)
            subscriptions.append((number, level))
        self.members[name] = Member(name, plan, tuple(subscriptions))

    @property
    def nbytes(self) -> int:
        """How much memory states and rows take; here those of lookups."""
        return self.archive.nbytes if self.archive else 0

    def _filter_arrivals(self, arrivals: Arrivals, known: KnownValues) -> tuple[pa.Table, Arrivals]:
        """The rows that enter windows: those within the admitted times that pass the filters below the window."""
        source = self.plan.source
        table = arrivals.table.rename_columns([column.name for column in source.columns])
        first, last = self.plan.window.admitted_times(self.boundary)
        if (first, last) != (MIN_TICK, MAX_TICK):
            places = np.flatnonzero((arrivals.times >= first) & (arrivals.times <= last))
            arrivals, table, known = arrivals.take(places), table.take(pa.array(places)), {}
        table, kept = apply_steps(self.plan.before, table, self.host, known)
        return table, arrivals if kept is None else arrivals.take(kept)


def _cannot_fail(scalar: Scalar, step: RowStep) -> bool:
    """Whether an expression of a step has a value for any row: it is a column, or compares columns with numbers."""
    if scalar.column is not None:
        return True
    columns = tuple((column.name, column.type) for column in step.children[0].columns)
    return condition_of(scalar.sql, columns) is not None


def _subscription_key(subscription: Subscription) -> tuple[object, ...]:
    """The value that is equal for queries that share a subscription."""
    return subscription.window, subscription.changes, subscription.empty, subscription.revise, subscription.since


def filter_items(items: Sequence[Items], keep: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> list[Items]:
    """Some of the rows of every column."""
    return [each.take(keep) for each in items]
