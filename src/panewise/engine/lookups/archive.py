"""Panes kept for lookups: every pane of a family as long as lookups may need it, and how lookups are answered.

Panes are taken in any order and may be parts: what overlaps is merged. A run of panes answers a window exactly if the
window's edges fall between panes.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from typing import Any

import numpy as np

from panewise.aggregate import Aggregate, Int64Array, StateArrays, StateWords
from panewise.core.errors import StateProblem
from panewise.core.time import Domain, duration_text, instant_text
from panewise.engine.lookups.having_index import HavingIndex
from panewise.engine.state.snapshot import Tree, pane_tree, panes_from
from panewise.plan.rules.choose_index import IndexChoice, LookupUsage, choose_index
from panewise.plan.rules.narrow_having import Threshold
from panewise.plan.rules.rule import RulesOff
from panewise.stores.chain import MIN_POSITION
from panewise.stores.indexes import PaneIndex
from panewise.stores.pane import Pane, merge_panes

#: After so many lookups or updates the planner chooses the index again.
REPLAN_INTERVAL = 64


class Archive:
    """The panes of one family that end no earlier than `keep` ticks before the newest; None keeps them all."""

    def __init__(
        self,
        columns: Sequence[StateArrays],
        keep: int | None,
        since: int = MIN_POSITION,
        rules_off: RulesOff = frozenset(),
    ) -> None:
        self.columns, self.keep, self.rules_off = columns, keep, rules_off
        self.panes: list[Pane] = []
        #: No pane up to this position is kept.
        self.lost = since
        self._pending: list[Pane] = []
        #: Where panes start and end, as long as they stay the same.
        self._edges: tuple[Int64Array, Int64Array] | None = None
        self._indexes: dict[int, PaneIndex] = {}
        self._having_indexes: dict[int, HavingIndex] = {}
        self.choices: dict[int, IndexChoice[PaneIndex]] = {}
        self.usage = LookupUsage()

    @property
    def newest(self) -> int:
        """The end of the newest pane."""
        self._merge_pending()
        return self.panes[-1].end if self.panes else MIN_POSITION

    @property
    def nbytes(self) -> int:
        self._merge_pending()
        return sum(pane.nbytes for pane in self.panes) + sum(index.nbytes for index in self._indexes.values())

    def take(self, pane: Pane) -> None:
        """Keep a pane, or one more part of it."""
        self._pending.append(pane)
        if len(self._pending) > REPLAN_INTERVAL:
            self._merge_pending()

    # ---- answers -----------------------------------------------------------------------------------------------

    def answers(
        self, lows: Int64Array, highs: Int64Array, codes: Int64Array, size: int, coming: Sequence[Pane], domain: Domain
    ) -> list[StateWords]:
        """For each column the states of some groups, ascending, over positions in each `(low, high]`, in this order.

        `coming` are panes that are not kept yet, because they are open or late. `size` is how many groups there are.
        """
        self._merge_pending()
        firsts, stops = self._pane_runs(lows, highs, domain)
        self.usage.record_lookups(stops - firsts, len(codes), size)
        joining = [(pane, np.flatnonzero((highs > pane.start) & (lows < pane.end))) for pane in coming]
        for pane, runs in joining:
            for low, high in zip(lows[runs].tolist(), highs[runs].tolist(), strict=True):
                _refuse_partial_pane(pane, low, high, domain)
        return [self._index(number).lookup(firsts, stops, codes, size, joining) for number in range(len(self.columns))]

    def panes_within(self, low: int, high: int, coming: Sequence[Pane], domain: Domain) -> list[Pane]:
        """All panes in `(low, high]`, oldest first, those that are not kept yet included."""
        self._merge_pending()
        (first,), (stop,) = self._pane_runs(np.array([low], np.int64), np.array([max(low, high)], np.int64), domain)
        found = Archive(self.columns, None)
        for pane in (*self.panes[first:stop], *(p for p in coming if p.start < high and p.end > low)):
            _refuse_partial_pane(pane, low, high, domain)
            found.take(pane)
        found._merge_pending()
        return found.panes

    def candidates(
        self, number: int, aggregate: Aggregate[Any], threshold: Threshold, lows: Int64Array, highs: Int64Array
    ) -> Int64Array | None:
        """Groups that may pass a threshold on a column in some windows that reach to the newest pane, or None: all."""
        if not len(highs) or highs.min() < self.newest:
            return None
        if number not in self._having_indexes:
            self._having_indexes[number] = HavingIndex(aggregate, self.columns[number], number)
        return self._having_indexes[number].candidates(threshold, np.maximum(lows, self.lost), highs, self.panes)

    def _pane_runs(self, lows: Int64Array, highs: Int64Array, domain: Domain) -> tuple[Int64Array, Int64Array]:
        """Which panes each window holds; refuses a window that reaches back too far, or cuts a pane in two."""
        if len(lows) and (low := int(lows.min())) < self.lost:
            raise lost_problem(self.lost, low, domain)
        if self._edges is None:
            both = np.array([(pane.start, pane.end) for pane in self.panes], np.int64).reshape(-1, 2)
            self._edges = both[:, 0].copy(), both[:, 1].copy()
        starts, ends = self._edges
        firsts, stops = np.searchsorted(ends, lows, "right"), np.searchsorted(ends, highs, "right")
        stops = np.maximum(stops, firsts)
        for edges, places in ((lows, firsts), (highs, stops)):
            inside = np.flatnonzero(places < len(self.panes))
            cut = inside[starts[places[inside]] < edges[inside]]
            if len(cut):
                raise _cut_problem(self.panes[int(places[cut[0]])], int(edges[cut[0]]), domain)
        return firsts, stops

    def _index(self, number: int) -> PaneIndex:
        """The index of a column; from time to time it is replaced by a cheaper kind."""
        current = self.choices.get(number)
        if current is None or self.usage.is_due(REPLAN_INTERVAL):
            cells = sum(len(pane.codes) for pane in self.panes)
            choice = choose_index(self.columns[number], self.usage, len(self.panes), cells, current, self.rules_off)
            if current is None or choice.index is not current.index:
                self._indexes.pop(number, None)
            self.choices[number] = choice
            if number == len(self.columns) - 1:
                self.usage.halve_counts()
        if number not in self._indexes:
            self._indexes[number] = self.choices[number].index(self.columns[number], number, self.panes)
        return self._indexes[number]

    # ---- panes come and go -------------------------------------------------------------------------------------

    def _merge_pending(self) -> None:
        """Put pending panes in their places, oldest first, and drop panes that are older than `keep`."""
        parts: dict[tuple[int, int], list[Pane]] = {}
        for pane in self._pending:
            parts.setdefault((pane.start, pane.end), []).append(pane)
        self._pending = []
        for _, some in sorted(parts.items(), key=lambda part: part[0][1]):
            self._insert_pane(merge_panes(self.columns, some))
        if parts:
            self._edges = None
        if parts and self.keep is not None and self.panes:
            self._forget(self.panes[-1].end - self.keep)

    def _insert_pane(self, pane: Pane) -> None:
        if pane.end <= self.lost:
            return
        self.usage.updates += 1
        if not self.panes or pane.start >= self.panes[-1].end:
            self.panes.append(pane)
            return
        first = bisect_left(self.panes, pane.start + 1, key=lambda p: p.end)
        stop = first
        while stop < len(self.panes) and self.panes[stop].start < pane.end:
            stop += 1
        overlapping = self.panes[first:stop]
        self.panes[first:stop] = [merge_panes(self.columns, [*overlapping, pane])]
        for sieve in self._having_indexes.values():
            sieve.restart()
        if len(overlapping) == 1:
            for index in self._indexes.values():
                index.revise(first, pane)
        else:
            self._indexes.clear()  # places have moved

    def _forget(self, upto: int) -> None:
        old = bisect_left(self.panes, upto + 1, key=lambda p: p.end)
        if old:
            self.lost = max(self.lost, self.panes[old - 1].end)
            del self.panes[:old]
            for index in self._indexes.values():
                index.drop_oldest(old)
            for sieve in self._having_indexes.values():
                sieve.drop_oldest(old, self.lost)

    def all_panes(self) -> list[Pane]:
        """All panes; those that are still pending come last."""
        return [*self.panes, *self._pending]

    def recode(self, codes: Int64Array) -> None:
        """Replace the codes of groups."""
        self.panes[:] = [pane.with_codes(codes) for pane in self.panes]
        self._pending = [pane.with_codes(codes) for pane in self._pending]
        self._indexes.clear()
        self._having_indexes.clear()

    # ---- restarts ----------------------------------------------------------------------------------------------

    def state(self) -> Tree:
        self._merge_pending()
        return {"lost": self.lost, "panes": pane_tree(self.columns, self.panes)}

    def restore(self, state: Tree) -> None:
        self.lost = state["lost"]
        self.panes[:] = panes_from(self.columns, state["panes"])
        self._edges = None


def lost_problem(lost: int, low: int, domain: Domain) -> StateProblem:
    """The problem of a window that begins before a position up to which nothing is kept."""
    return StateProblem(
        f"nothing up to {instant_text(lost, domain)} is kept, and a window begins at {instant_text(low, domain)}",
        fix="keep panes longer, with Engine(pool, keep=...), or ask for newer windows",
    )


def _refuse_partial_pane(pane: Pane, low: int, high: int, domain: Domain) -> None:
    """Refuse a window that holds only a part of a pane."""
    for edge in (low, high):
        if pane.start < edge < pane.end:
            raise _cut_problem(pane, edge, domain)


def _cut_problem(pane: Pane, edge: int, domain: Domain) -> StateProblem:
    span = f"{instant_text(pane.start, domain)} to {instant_text(pane.end, domain)}"
    return StateProblem(
        f"a window's edge at {instant_text(edge, domain)} lies inside the pane from {span}",
        fix=f"ask for edges at multiples of panes ({duration_text(pane.end - pane.start, domain)} here), "
        "or cut finer ones with Engine(pool, keep=..., grain=...)",
    )
