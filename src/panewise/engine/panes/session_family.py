"""A family of queries over session windows: runs of items, reported once a gap has passed without an item."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from panewise.aggregate import Int64Array, StateWords
from panewise.algebra import Host
from panewise.core.time import Boundary
from panewise.engine.lateness import Ledger, Verdict
from panewise.engine.panes.chunks import ChangeRun
from panewise.engine.panes.evaluators import END_OF_TIME, Subscription
from panewise.engine.panes.family import EnteringRows
from panewise.engine.panes.grouping import arrays_of
from panewise.engine.panes.held_rows import HeldRows
from panewise.engine.panes.holding_family import HoldingFamily
from panewise.engine.panes.open_sessions import OpenSessions
from panewise.engine.state.snapshot import Tree
from panewise.kernels.ranges import OPEN
from panewise.plan import PanePlan


class SessionFamily(HoldingFamily):
    """Rows are held until the watermark reaches them, and then join sessions in the order in which they are visible."""

    reports_rarely = True

    def __init__(self, plan: PanePlan, boundary: Boundary, host: Host) -> None:
        super().__init__(plan, boundary, host)
        self.sessions: dict[int, OpenSessions] = {}

    @property
    def nbytes(self) -> int:
        return super().nbytes + sum(sessions.nbytes for sessions in self.sessions.values())

    def start_archive(self, length: int, grain: int | None) -> None:
        """Do nothing: sessions are not looked up, and their rows connect others, but belong to no pane."""

    def _on_subscribe(self, subscription: Subscription) -> None:
        """A new window does not count the rows that are held."""
        newest = max(int(rows.order.max(initial=-1)) for rows in (self.held, *self.incoming))
        self.sessions[subscription.number] = OpenSessions(self.columns, subscription, newest)

    def _on_unsubscribe(self, subscription: Subscription) -> None:
        del self.sessions[subscription.number]

    def take(self, entering: EnteringRows, ledger: Ledger) -> None:
        fresh, late = self._hold(entering), entering.rows.late_flags()
        if late is not None:
            # All rows that are visible before a late one are here; those that will be visible with it come after it.
            self._assign_rows(int(fresh.visible[late].max()), ledger)

    def _assign_rows(self, until: int, ledger: Ledger | None = None) -> None:
        """Add the rows that are visible up to an instant to sessions, and record the verdicts of late ones."""
        self._merge_incoming(until)
        due = self.held.visible <= until
        if not due.any():
            return
        rows, self.held = self.held.where(due), self.held.where(~due)
        late = rows.visible > rows.times + self.boundary.shift
        if late.any():
            order = np.lexsort((rows.order, rows.visible))
            rows, late = rows.at(order), late[order]
        audience = self.queries_by_subscription()
        for number, sessions in self.sessions.items():
            numbers = sessions.assign(rows, late, len(self.partition_keys))
            self._add_rows(sessions, rows, numbers)
            if ledger is not None:
                seen = numbers[late] >= 0
                ledger.add(Verdict(rows.order[late], np.ones(len(seen), bool), seen, ~seen), audience[number])

    def _add_rows(self, sessions: OpenSessions, rows: HeldRows, numbers: Int64Array) -> None:
        """Rows without a group only connect others."""
        grouped = (numbers >= 0) & (rows.codes >= 0)
        if not grouped.all():
            rows, numbers = rows.where(grouped), numbers[grouped]
        sessions.add(numbers, rows.codes, self._items(arrays_of(rows.arguments), rows.times, rows.order))

    def next_report(self) -> int:
        """The first instant at which a session may end, if no row extends it."""
        waiting = [self.backlog.first, *(int(r.times.min(initial=END_OF_TIME)) for r in (self.held, *self.incoming))]
        return min(sessions.next_end(min(waiting)) for sessions in self.sessions.values()) + self.boundary.shift

    def _turn(self, limit: int, finishing: bool) -> Iterable[ChangeRun]:
        self._assign_rows(OPEN if finishing else limit)
        # Under `[)` a row whose time is the limit may still come, and join a session that ends there.
        until = limit if finishing else limit - self.boundary.shift
        found = [sessions.report(until) for sessions in self.sessions.values()]
        return [run for run in found if run is not None]

    # ---- forgetting and restarts -------------------------------------------------------------------------------

    def live_groups(self) -> Iterable[Int64Array]:
        yield from super().live_groups()
        for sessions in self.sessions.values():
            yield from (sessions.groups.codes, sessions.fading.codes)

    def kept_states(self) -> Iterable[Sequence[StateWords]]:
        yield from super().kept_states()
        yield from (sessions.groups.states for sessions in self.sessions.values())

    def recode(self, codes: Int64Array) -> None:
        super().recode(codes)
        for sessions in self.sessions.values():
            sessions.recode(codes)

    def tidy(self) -> None:
        """Drop partitions too, for which no session is open."""
        super().tidy()
        if kept := self.partition_keys.shrink_to_live(self._live_partitions):
            self.partition_keys, self.held = kept.keys, self.held.with_partitions(kept.codes)
            for sessions in self.sessions.values():
                sessions.recode_partitions(kept.codes)

    def _live_partitions(self) -> Iterable[Int64Array]:
        self._merge_incoming()
        return [self.held.partitions, *(sessions.sessions[0] for sessions in self.sessions.values())]

    def state(self) -> Tree:
        return super().state() | {"sessions": [sessions.state() for sessions in self.sessions.values()]}

    def restore(self, state: Tree) -> None:
        super().restore(state)
        for saved in state["sessions"]:
            sessions = OpenSessions(self.columns, self.subscriptions[saved["feed"]], saved["since"])
            sessions.restore(saved)
            self.sessions[saved["feed"]] = sessions
