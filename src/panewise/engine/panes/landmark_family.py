"""A family of queries over windows that nothing leaves, and that report whenever they change: totals are kept."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np

from panewise.aggregate import Int64Array, Items, StateWords, bytes_of, concat_states, put, states_at
from panewise.algebra import Host
from panewise.core.time import Boundary
from panewise.engine.group_steps import group_steps
from panewise.engine.lateness import Ledger, late_verdict
from panewise.engine.lookups.archive import Archive
from panewise.engine.panes.chunks import ChangeRun
from panewise.engine.panes.evaluators import Subscription
from panewise.engine.panes.family import EnteringRows
from panewise.engine.panes.held_rows import timed_lifetimes
from panewise.engine.panes.holding_family import HoldingFamily
from panewise.engine.state.snapshot import Tree, pane_tree, panes_from
from panewise.plan import PanePlan
from panewise.stores.pane import Pane
from panewise.window import LogicalWindow


class LandmarkFamily(HoldingFamily):
    """Rows are held until they enter the windows; from then on they are part of the totals of their groups."""

    def __init__(self, plan: PanePlan, boundary: Boundary, host: Host) -> None:
        super().__init__(plan, boundary, host)
        #: For each subscription the states of all groups.
        self.totals: dict[int, list[StateWords]] = {}

    def _on_subscribe(self, subscription: Subscription) -> None:
        self.totals[subscription.number] = [column.identity(0) for column in self.columns]

    def _on_unsubscribe(self, subscription: Subscription) -> None:
        del self.totals[subscription.number]

    def take(self, entering: EnteringRows, ledger: Ledger) -> None:
        fresh, late = self._hold(entering), entering.rows.late_flags()
        if late is None:
            return
        order, times, visible = fresh.order[late], fresh.times[late], fresh.visible[late]
        for number, queries in self.queries_by_subscription().items():
            window = LogicalWindow.of(self.subscriptions[number].window)
            ledger.add(late_verdict(window, self.boundary, order, times, visible), queries)

    # ---- time --------------------------------------------------------------------------------------------------

    def _turn(self, limit: int, finishing: bool) -> Iterator[ChangeRun]:
        """Report the changes up to an instant, and add the rows that have entered to the totals."""
        self._merge_incoming(limit)
        self._keep_fresh_panes(limit)
        for subscription in self.subscriptions.values():
            window = LogicalWindow.of(subscription.window)
            rows = timed_lifetimes(self.held, window, self.boundary, subscription.since)
            totals = self._grown_totals(subscription.number)
            for steps in group_steps(self.columns, rows, self._fresh_items, self.answered_until, limit, totals=totals):
                assert steps.ends is not None
                for total, words in zip(totals, steps.ends[1], strict=True):
                    put(total, steps.ends[0], words)
                yield ChangeRun(np.full(len(steps), subscription.number), steps)
        self.held = self.held.where(self.held.visible > limit)

    def _fresh_items(self, places: Int64Array) -> list[Items]:
        return self.held_items(self.held.times[places], places)

    def _grown_totals(self, number: int) -> list[StateWords]:
        """The totals of a subscription, with room for all groups."""
        size = len(self.keys)
        if len(self.totals[number][0][0]) < size:
            self.totals[number] = [
                concat_states([total, column.identity(size - len(total[0]))])
                for column, total in zip(self.columns, self.totals[number], strict=True)
            ]
        return self.totals[number]

    # ---- lookups -----------------------------------------------------------------------------------------------

    def window_archives(self) -> list[Archive]:
        found = []
        for pane in map(self._pane_of_totals, self.subscriptions):
            archive = Archive(self.columns, None, max(pane.start, self.created_at))
            if len(pane.codes):
                archive.take(pane)
            found.append(archive)
        return found

    def _pane_of_totals(self, number: int) -> Pane:
        """All that has entered the window of a subscription, as one pane."""
        totals, at = self._grown_totals(number), self.answered_until
        low, _ = LogicalWindow.of(self.subscriptions[number].window).scope(np.array([at], np.int64), self.boundary)
        codes = np.flatnonzero(totals[0][0])
        states = tuple(states_at(total, codes) for total in totals)
        return Pane(int(low[0]) + self.boundary.shift - 1, at, codes, states)

    # ---- forgetting and restarts -------------------------------------------------------------------------------

    @property
    def nbytes(self) -> int:
        return super().nbytes + sum(bytes_of(total) for totals in self.totals.values() for total in totals)

    def live_groups(self) -> Iterable[Int64Array]:
        yield from super().live_groups()
        yield from (self._pane_of_totals(number).codes for number in self.subscriptions)

    def kept_states(self) -> Iterable[Sequence[StateWords]]:
        yield from super().kept_states()
        yield from self.totals.values()

    def recode(self, codes: Int64Array) -> None:
        super().recode(codes)
        self._load_totals({number: self._pane_of_totals(number).with_codes(codes) for number in self.totals})

    def _load_totals(self, panes: Mapping[int, Pane]) -> None:
        for number, pane in panes.items():
            self.totals[number] = [column.identity(len(self.keys)) for column in self.columns]
            for total, words in zip(self.totals[number], pane.states, strict=True):
                put(total, pane.codes, words)

    def state(self) -> Tree:
        panes = [[number, pane_tree(self.columns, [self._pane_of_totals(number)])] for number in self.totals]
        return super().state() | {"totals": panes}

    def restore(self, state: Tree) -> None:
        super().restore(state)
        for subscription in self.subscriptions.values():
            self._on_subscribe(subscription)
        for number, saved in state["totals"]:
            (pane,) = panes_from(self.columns, saved)
            self._load_totals({number: pane})
