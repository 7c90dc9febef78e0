"""A family of queries over time-based windows: one set of panes, cut once, answers all of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import astuple, replace
from functools import cached_property

import numpy as np
import pyarrow as pa

from panewise.aggregate import Int64Array, StateWords
from panewise.algebra import Host
from panewise.core.time import Boundary, on_grid
from panewise.engine.intake import Arrivals
from panewise.engine.lateness import Ledger, late_verdict
from panewise.engine.lookups.archive import Archive
from panewise.engine.panes.chains import Chains, FamilyProgress
from panewise.engine.panes.chunks import Chunk
from panewise.engine.panes.evaluators import EntryBounds, Evaluator, Subscription
from panewise.engine.panes.family import EnteringRows, Family, filter_items
from panewise.engine.panes.kept_panes import KeptPanesEvaluator
from panewise.engine.panes.landmarks import AccumulatingEvaluator
from panewise.engine.panes.open_panes import LatePanes, OpenPanes
from panewise.engine.panes.tiers import TierChain, TierEvaluator
from panewise.engine.state.snapshot import Tree, pane_tree, panes_from
from panewise.plan import PanePlan, sliding_window
from panewise.plan.cuts import Cuts, coarsest_cuts
from panewise.plan.rules.choose_store import pane_totals
from panewise.plan.rules.group_windows import GroupingPolicy, WindowManager
from panewise.stores.chain import MIN_POSITION
from panewise.stores.pane import Pane
from panewise.window import Edges, LogicalWindow, Sliding, WindowRetention

#: Single ticks, for late rows.
TICK_CUTS = Cuts(0, 1, np.zeros(1, np.int64))
#: What answers windows that share no chain, and for LATE REVISE all windows.
EVALUATORS = {WindowRetention.ACCUMULATES: AccumulatingEvaluator, WindowRetention.LOOKS_BACK: KeptPanesEvaluator}


class TimeFamily(Family):
    """Rows go into open panes; closed panes go to the evaluators of all windows, which answer at their instants."""

    reports_rarely = True

    def __init__(self, plan: PanePlan, boundary: Boundary, host: Host, policy: GroupingPolicy) -> None:
        super().__init__(plan, boundary, host)
        self.policy = policy
        self.others: dict[int, Evaluator] = {}
        #: For positional aggregates: their tiers, by the position from which items count.
        self.tiers: dict[int, TierEvaluator] = {}
        self.late: list[LatePanes] = []
        #: The end of the newest pane that has been closed.
        self.closed = MIN_POSITION
        #: For windows that report empty states, the first and last instant at which they held items.
        self.reach: dict[int, tuple[int, int]] = {}
        self.begun = False
        #: The width to which panes kept for lookups are cut at least.
        self.grain: int | None = None
        #: The widest reach and the shortest step of all windows, and their grids; valid until another window comes.
        self._widest: tuple[int, int] | None = None
        self._grids: set[tuple[int, int] | None] | None = None
        #: The windows that have come and gone since the last rows, in this order, and whether they came.
        self._changes: list[tuple[Subscription, bool]] = []

    @cached_property
    def chains(self) -> Chains:
        return Chains(self.columns, pane_totals(self.columns, self.plan.rules_off), self.boundary, self.policy)

    @cached_property
    def open(self) -> OpenPanes:
        return OpenPanes(self.columns, TICK_CUTS)

    @property
    def evaluators(self) -> list[Evaluator]:
        self._apply_changes()
        return [*self.chains.evaluators, *self.others.values(), *self.tiers.values()]

    @property
    def running_managers(self) -> dict[int, WindowManager] | None:
        """The window managers by lag; None before the first rows."""
        self.catch_up()
        self._apply_changes()
        return self.chains.managers if self.begun else None

    @property
    def nbytes(self) -> int:
        pending = sum(pane.nbytes for pane in self.pending_panes)
        return super().nbytes + pending + sum(evaluator.nbytes for evaluator in self.evaluators)

    @property
    def pending_panes(self) -> list[Pane]:
        return [*self.open.panes(), *(pane for late in self.late for pane in late.panes)]

    def start_archive(self, length: int, grain: int | None) -> None:
        super().start_archive(length, grain)
        self.grain = grain

    def window_archives(self) -> list[Archive]:
        found = [self._archive_of(evaluator) for evaluator in self.evaluators]
        return found or [Archive(self.columns, None, self.created_at)]

    def _archive_of(self, evaluator: Evaluator) -> Archive:
        archive = Archive(self.columns, None, max(evaluator.forgotten_until, self.created_at))
        for pane in (*evaluator.panes(), *evaluator.waiting):
            archive.take(pane)
        return archive

    # ---- windows come and go -----------------------------------------------------------------------------------

    def _on_subscribe(self, subscription: Subscription) -> None:
        self._widest = self._grids = None
        if self.begun:
            self._changes.append((subscription, True))

    def _on_unsubscribe(self, subscription: Subscription) -> None:
        if self.begun:
            self._changes.append((subscription, False))

    def _apply_changes(self) -> None:
        """Let windows that have come and gone join and leave evaluators: all together, before anything else happens."""
        changes, self._changes = self._changes, []
        if not changes:
            return
        coming = [each for each, comes in changes if comes and each.number in self.subscriptions]
        if not self.open.eras[-1][1].cover(edge for each in coming for edge in each.window.edges):
            self.open.recut(self._cuts())
        windows = {each.number: self._chain_window(each) for each, _ in changes}
        chained = [(each, comes, window) for each, comes in changes if (window := windows[each.number])]
        self.chains.change(chained, self._progress())
        for gone in (each for each, comes in changes if not comes):
            self._remove_evaluator(gone)
        for new in (each for each in coming if windows[each.number] is None):
            self._add_evaluator(new)

    def _remove_evaluator(self, subscription: Subscription) -> None:
        self.others.pop(subscription.number, None)
        self.reach.pop(subscription.number, None)
        for since, evaluator in list(self.tiers.items()):
            evaluator.leave(subscription.number)
            if not evaluator.subscriptions:
                del self.tiers[since]

    def begin(self) -> None:
        """Put all windows into window groups, before the first rows are taken in."""
        self.begun = True
        self.open = OpenPanes(self.columns, self._cuts())
        self.chains.begin((member.plan for member in self.members.values()), self._progress())
        for subscription in self.subscriptions.values():
            if window := self._chain_window(subscription):
                self.chains.serve(subscription, window)
            else:
                self._add_evaluator(subscription)

    def _chain_window(self, subscription: Subscription) -> Sliding | None:
        """The window of a subscription, if it can share a chain with others."""
        return None if self.plan.positional else sliding_window(subscription.window, subscription.revise)

    def _add_evaluator(self, subscription: Subscription) -> None:
        if self.plan.positional:
            self._tier_evaluator(subscription.since).serve(subscription)
            return
        retention = subscription.window.retention if subscription.revise is None else WindowRetention.LOOKS_BACK
        if retention not in EVALUATORS:
            raise subscription.window.unsupported_retention()
        evaluator = EVALUATORS[retention](self.columns, subscription, self.boundary)
        evaluator.start(self.answered_until, len(self.keys))
        self.others[subscription.number] = evaluator

    def _tier_evaluator(self, since: int) -> TierEvaluator:
        """The tiers for subscriptions whose items count after a position; new tiers begin with later panes."""
        if since not in self.tiers:
            views = replace(self.plan.views, shift=self.boundary.shift)
            chain = TierChain(self.columns, self.chains.kinds, views)
            evaluator = TierEvaluator(chain, self.boundary, max(self.closed, since))
            evaluator.start(self.answered_until, len(self.keys))
            self.tiers[since] = evaluator
        return self.tiers[since]

    def _progress(self) -> FamilyProgress:
        windows = map(self._chain_window, self.subscriptions.values())
        origin = next((window.start for window in windows if window), 0)
        return FamilyProgress(origin, self.closed, self.answered_until, len(self.keys), self.open.panes())

    def _cuts(self) -> Cuts:
        kept = [] if self.grain is None else [Edges(0, self.grain)]
        windows = (edge for subscription in self.subscriptions.values() for edge in subscription.window.edges)
        return coarsest_cuts([*kept, *windows])

    # ---- rows and time -----------------------------------------------------------------------------------------

    def take(self, entering: EnteringRows, ledger: Ledger) -> None:
        self._apply_changes()
        self._note_arrivals(entering.rows, ledger)
        table, kept = entering.grouped, entering.kept
        rows = entering.rows if kept is None else entering.rows.take(kept)
        if not self.begun:
            self.begin()
        late = rows.late_flags()
        if late is not None:
            self._take_late(table.filter(pa.array(late)), rows.take(np.flatnonzero(late)))
            on_time = np.flatnonzero(~late)
            table, rows = table.take(pa.array(on_time)), rows.take(on_time)
        if not len(rows):
            return
        for where, codes, items in self._encode_blocks(table, rows):
            self.open.take(rows.times[where] + self.boundary.shift, codes, items, len(self.keys))

    def take_panes(self, keys: Sequence[pa.Array], panes: Sequence[Pane], mark: int) -> None:
        """Take in panes that were cut elsewhere, for the same windows; their codes are places in the given keys.

        A pane that ends before the watermark is late as a whole: no instant of any window lies inside it.
        """
        self._apply_changes()
        if not self.begun:
            self.begin()
        codes = self.keys.encode(keys, len(keys[0]) if keys else 1)
        visible, late = mark + self.boundary.shift, []
        for pane in panes:
            mine = pane.with_codes(codes)
            self.entry_bounds.note(mine.end, mine.end, [visible] if mine.end < visible else [])
            if mine.end < visible:
                late.append(mine)
            else:
                self.open.add(mine)
        if late:
            self.late.append(LatePanes(visible, late))

    def _note_arrivals(self, rows: Arrivals, ledger: Ledger) -> None:
        """Note the bounds of the items that enter windows, grouped or not, and which windows late ones missed."""
        late, shift, late_instants = rows.late_flags(), self.boundary.shift, np.zeros(0, np.int64)
        if late is not None and rows.marks is not None:
            late_instants = np.unique(rows.marks[late] + shift)
            self.record_late(rows.order[late], rows.times[late] + shift, rows.marks[late] + shift, ledger)
        if any(subscription.needs_newest for subscription in self.subscriptions.values()):
            self.entry_bounds.note(int(rows.times.min()) + shift, int(rows.times.max()) + shift, late_instants.tolist())
        for subscription in [subscription for subscription in self.subscriptions.values() if subscription.empty]:
            if len(seen := rows.instants_in(subscription.window, self.boundary)):
                first, last = self.reach.get(subscription.number, (int(seen[0]), int(seen[-1])))
                self.reach[subscription.number] = min(first, int(seen[0])), max(last, int(seen[-1]))

    def record_late(self, order: Int64Array, positions: Int64Array, visible: Int64Array, ledger: Ledger) -> None:
        """Note which windows late rows missed; they are visible from an instant on."""
        audience = self.queries_by_subscription()
        for subscription in self.subscriptions.values():
            times, patience = positions - self.boundary.shift, subscription.revise or 0
            window = LogicalWindow.of(subscription.window)
            verdict = late_verdict(window, self.boundary, order, times, visible, patience)
            ledger.add(verdict, audience[subscription.number])

    def _take_late(self, table: pa.Table, rows: Arrivals) -> None:
        """Late rows wait until the instants they are late for have been answered."""
        assert rows.marks is not None
        positions, visible = rows.times + self.boundary.shift, rows.marks + self.boundary.shift
        apart = any(subscription.revise is not None for subscription in self.subscriptions.values())
        for where, codes, items in self._encode_blocks(table, rows):
            turns = rows.order_of(where) if apart else visible[where]
            for turn in np.unique(turns):
                mine = turns == turn
                ticks = OpenPanes(self.columns, TICK_CUTS)
                ticks.take(positions[where][mine], codes[mine], filter_items(items, mine), len(self.keys))
                self.late.append(LatePanes(int(visible[where][mine][0]), ticks.panes()))

    def next_report(self) -> int:
        """The next instant of any window; before the first row, of those from that row on."""
        after = self.answered_until + 1
        if self.late:
            return after
        if self._grids is None:
            self._grids = {each.window.grid for each in self.subscriptions.values()}
        if not self.begun and self.entry_bounds.newest == MIN_POSITION:
            after = max(after, self.backlog.first + self.boundary.shift)
        return min(after if grid is None else on_grid(after, *grid) for grid in self._grids)

    def advance(self, limit: int) -> None:
        self._apply_changes()
        if limit > self.answered_until:
            self._refuse_endless(limit)
            self._close_panes(limit)
            self._report(limit)
            self.answered_until = limit
            self.entry_bounds.forget_until(limit)
            self.chains.repack(self._progress())

    def finish(self, until: int | None) -> None:
        self._apply_changes()
        self._refuse_endless(until)
        self._close_panes(None)
        self._report(until, finishing=True)

    def _close_panes(self, limit: int | None) -> None:
        for pane in self.open.close(limit):
            self.closed = pane.end
            self._keep_pane(pane)
            for evaluator in self.evaluators:
                evaluator.take(pane)

    def _refuse_endless(self, limit: int | None) -> None:
        """Refuse to report at billions of instants, which wrong times would cause; nothing has changed before."""
        closed = [self.closed] if self.closed > MIN_POSITION else []
        ends = np.array([*closed, *self.open.ends, *(p.end for late in self.late for p in late.panes)], np.int64)
        if not len(ends):
            return
        since, end = max(int(ends.min()), self.answered_until + 1), int(ends.max()) if limit is None else limit
        if self._surely_few_instants(max(end, int(ends.max())) - since):
            return
        for number, subscription in self.subscriptions.items():
            subscription.refuse_endless(ends, self.boundary, since, end, limit, self.reach.get(number))

    def _surely_few_instants(self, span: int) -> bool:
        """Whether a cheap test shows that instants are not too many: the common case, for any number of windows."""
        if self._widest is None:
            windows = [subscription.window for subscription in self.subscriptions.values()]
            widest = max([0, *(window.lag + (window.longest or 0) for window in windows)])
            self._widest = widest, min((window.grid or (0, 1))[1] for window in windows)
        reach, step = self._widest
        return (span + reach) // step < 1_000_000

    def _report(self, limit: int | None, finishing: bool = False) -> None:
        for evaluator in self.evaluators:
            evaluator.prepare(len(self.keys), self.reach, self.entry_bounds, finishing)
        found, waiting = self._pending_turn(), []
        for late in self.late:
            if limit is not None and late.visible > limit + 1:
                waiting.append(late)
                continue
            found += self._run_evaluators(late.visible - 1)
            for pane in late.panes:
                self._keep_pane(pane)
            for evaluator in self.evaluators:
                for pane in late.panes:
                    found += evaluator.insert(pane, late.visible)
        self.late = waiting
        found += self._run_evaluators(limit)
        if not finishing:
            self.chains.drop_finished_standins()

    def _run_evaluators(self, upto: int | None) -> list[Chunk]:
        return [chunk for evaluator in self.evaluators for chunk in evaluator.run(upto)]

    # ---- forgetting --------------------------------------------------------------------------------------------

    def _window_panes(self) -> Iterable[Pane]:
        """The panes that are not closed yet, and those of evaluators."""
        yield from self.pending_panes
        for evaluator in self.evaluators:
            yield from evaluator.waiting
            yield from evaluator.panes()

    def kept_states(self) -> Iterable[Sequence[StateWords]]:
        yield from super().kept_states()
        yield from (pane.states for pane in self._window_panes())

    def live_groups(self) -> Iterable[Int64Array]:
        yield from super().live_groups()
        yield from (pane.codes for pane in self._window_panes())
        for evaluator in self.evaluators:
            yield from evaluator.unreported_groups()

    def recode(self, codes: Int64Array) -> None:
        super().recode(codes)
        self.open.recode(codes)
        self.late = [LatePanes(late.visible, [pane.with_codes(codes) for pane in late.panes]) for late in self.late]
        for evaluator in self.evaluators:
            evaluator.recode(codes, len(self.keys))

    # ---- restarts ----------------------------------------------------------------------------------------------

    def state(self) -> Tree:
        self._apply_changes()
        return super().state() | {
            "begun": self.begun,
            "closed": self.closed,
            "reach": [[number, *span] for number, span in self.reach.items()],
            "entered": list(astuple(self.entry_bounds)),
            "chains": self.chains.state(),
            "open": self.open.state(),
            "late": [[late.visible, pane_tree(self.columns, late.panes)] for late in self.late],
            "tiers": [[since, evaluator.state()] for since, evaluator in self.tiers.items()],
            "others": [[number, evaluator.state()] for number, evaluator in self.others.items()],
        }

    def restore(self, state: Tree) -> None:
        super().restore(state)
        self.begun, self.closed = state["begun"], state["closed"]
        self.entry_bounds = EntryBounds(*state["entered"])
        self.reach = {number: (first, last) for number, first, last in state["reach"]}
        self.open.restore(state["open"])
        self.late = [LatePanes(visible, panes_from(self.columns, panes)) for visible, panes in state["late"]]
        self.chains.restore(state["chains"], self.subscriptions, self._progress())
        for number, saved in state["others"]:
            self._add_evaluator(self.subscriptions[number])
            self.others[number].restore(saved)
        for since, saved in state["tiers"]:
            evaluator = self._tier_evaluator(since)
            for number, *_ in saved["serving"]:
                evaluator.serve(self.subscriptions[number])
            evaluator.restore(saved)
