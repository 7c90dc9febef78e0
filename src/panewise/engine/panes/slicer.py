"""Rows of one task as panes of one family, before they are merged with the panes of other tasks.

Paper: "Subsuming windows" section 2.2 cuts a stream once for all windows; here every task cuts its own part of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa

from panewise.aggregate import Int64Array, StateWords, runs, states_at
from panewise.core.time import MAX_TICK, MIN_TICK, Boundary
from panewise.engine.intake import Arrivals
from panewise.engine.panes.grouping import GroupEncoder, arrays_of
from panewise.engine.panes.open_panes import OpenPanes
from panewise.engine.routing import shards_of
from panewise.engine.state.snapshot import Tree, pane_table, read_panes
from panewise.plan import PanePlan
from panewise.plan.cuts import Cuts
from panewise.stores.pane import Pane


class Slicer(GroupEncoder):
    """Takes rows and returns panes. Codes are its own, so the keys are sent with the panes."""

    def __init__(self, plan: PanePlan, cuts: Cuts, boundary: Boundary) -> None:
        super().__init__(plan)
        self.boundary = boundary
        self.open = OpenPanes(self.columns, cuts)
        self.span = plan.window.admitted_times(boundary)

    def take(self, table: pa.Table, times: Int64Array, order: Int64Array) -> None:
        """Take rows after the steps of `between`: the keys and arguments of the group, their times and their order."""
        first, last = self.span
        if (first, last) != (MIN_TICK, MAX_TICK):
            inside = np.flatnonzero((times >= first) & (times <= last))
            table, times, order = table.take(pa.array(inside)), times[inside], order[inside]
        if len(times):
            for where, codes, items in self._encode_blocks(table, Arrivals(table, times, 0, order, None)):
                self.open.take(times[where] + self.boundary.shift, codes, items, len(self.keys))

    def take_numbered(self, table: pa.Table, numbers: Int64Array) -> None:
        """Take rows that already have the numbers of their panes, for aggregates that do not need times."""
        if len(numbers):
            for where, codes, items in self._encode_blocks(table, Arrivals(table, numbers, 0, numbers, None)):
                self.open.take_numbered(numbers[where], codes, items, len(self.keys))

    def take_states(self, keys: Sequence[pa.Array], numbers: Int64Array, states: Sequence[StateWords]) -> None:
        """Take states that have been gathered before, one for each pane and group."""
        codes = self.keys.encode(keys, len(numbers))
        order = np.lexsort((codes, numbers))
        cuts = self.open.eras[-1][1]
        for low, high in zip(*runs(numbers[order] - numbers.min()), strict=True):
            where = order[low:high]
            number = int(numbers[where[0]])
            some = tuple(states_at(words, where) for words in states)
            self.open.add(Pane(cuts.start(number), cuts.end(number), codes[where], some))

    def parcels(self, shards: int, alone: int) -> Iterator[tuple[int, Tree]]:
        """The parcel of each shard; without keys all panes go to one shard. Shards without a pane are left out."""
        panes = self.open.panes()
        keys = self.keys.take(np.arange(len(self.keys)))
        route = shards_of(keys, len(self.keys), shards) if keys else np.full(1, alone)
        for shard in range(shards):
            mine = [part for pane in panes if len((part := _pane_for_shard(pane, route, shard)).codes)]
            if mine:
                yield shard, self._parcel(mine)

    def _parcel(self, panes: list[Pane]) -> Tree:
        """Panes with their keys; codes are places among the keys that are sent."""
        used = np.unique(np.concatenate([pane.codes for pane in panes]))
        fresh = np.zeros(len(self.keys), np.int64)
        fresh[used] = np.arange(len(used))
        keys = self.keys.take(used)
        return {
            "keys": pa.table(keys, names=[str(n) for n in range(len(keys))]) if keys else None,
            "panes": pane_table(self.columns, [pane.with_codes(fresh) for pane in panes]),
        }


def read_parcel(grouping: GroupEncoder, parcel: Tree) -> tuple[list[pa.Array], list[Pane]]:
    """The keys and panes of a parcel."""
    keys = list(arrays_of(parcel["keys"]).values()) if parcel["keys"] is not None else []
    return keys, list(read_panes(grouping.columns, parcel["panes"]))


def _pane_for_shard(pane: Pane, route: Int64Array, shard: int) -> Pane:
    """The groups of a pane that belong to a shard."""
    mine = route[pane.codes] == shard
    if mine.all():
        return pane
    return Pane(pane.start, pane.end, pane.codes[mine], tuple(states_at(words, mine) for words in pane.states))
