"""Lookups of counted windows: the last so many rows, up to any instant, as far as rows are held."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from panewise.aggregate import Int64Array, StateWords, concat_states
from panewise.core.errors import BindProblem, StateProblem
from panewise.core.time import Boundary, Ticks
from panewise.engine.lookups.pane_source import GroupAnswers, KeyValues, LookupSource, bounds_of
from panewise.engine.panes.held_rows import RowsByPartition
from panewise.engine.panes.row_family import RowFamily
from panewise.plan import PanePlan
from panewise.window import Rows


class RowLookupSource(LookupSource):
    """The rows that a family holds, also those that still wait for the watermark."""

    def __init__(self, family: RowFamily, boundary: Boundary, instants: pa.DataType) -> None:
        super().__init__(family, boundary, instants)
        self.family = family

    def answer_at(self, plan: PanePlan, instants: Ticks, keys: KeyValues | None) -> list[GroupAnswers]:
        codes, window = self._group_codes(plan, keys), Rows.of(plan.window)
        found = [self._states(window, at, codes) for at in instants.tolist()]
        empty = [column.identity(0) for column in self.family.columns]
        states = [concat_states(words) for words in zip(*found, strict=True)] or empty
        return [self._group_answers(plan, states, codes, bounds_of(window, instants, self.instants), None)]

    def answer_between(self, plan: PanePlan, starts: Ticks, ends: Ticks, keys: KeyValues | None) -> list[GroupAnswers]:
        raise BindProblem("a counted window has no stretch of time", fix="use a window with RANGE")

    def _states(self, window: Rows, at: int, codes: Int64Array) -> list[StateWords]:
        """The states of some groups in the window at an instant."""
        places = self._places_inside(window, at)
        slots = np.full(len(self.family.keys) + 1, -1)
        slots[codes] = np.arange(len(codes))
        mine = slots[self.family.held.codes[places]]
        places, mine = places[mine >= 0], mine[mine >= 0]
        items = self.family.held_items(self.family.held.times[places], places)
        return [column.gather(mine, each, len(codes)) for column, each in zip(self.family.columns, items, strict=True)]

    def _places_inside(self, window: Rows, at: int) -> Int64Array:
        """The places of the rows of all partitions that are in the window at an instant."""
        rows, reach = self.family.all_rows(), window.count + window.lag
        # Late rows before the oldest row that was held do not count: newer rows than these have been dropped.
        known = np.flatnonzero((rows.times + self.boundary.shift <= at) & ~self.family.rows_behind_dropped())
        order = RowsByPartition.of(rows.at(known))
        counts = np.diff(order.edges)
        partitions = rows.partitions[known[order.places[order.edges[:-1]]]]
        kept = np.zeros(len(self.family.dropped), np.int64)
        kept[partitions] = counts
        least = int(kept[self.family.dropped > 0].min(initial=reach))
        if least < reach:
            raise StateProblem(
                f"{least} rows are kept, and the window looks back over {reach}",
                fix="register a window of so many rows, or ask for a later instant",
            )
        ranks = np.repeat(order.edges[1:], counts) - 1 - np.arange(len(known))
        return known[order.places[(ranks >= window.lag) & (ranks < reach)]]
