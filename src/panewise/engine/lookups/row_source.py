"""Lookups from rows: windows that count rows, stretches of row numbers, and windows over time."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property

import numpy as np
import pyarrow as pa

from panewise.aggregate import Int64Array
from panewise.core.errors import StateProblem
from panewise.core.time import Boundary, Ticks
from panewise.engine.lookups.archive import lost_problem
from panewise.engine.lookups.pane_source import GroupAnswers, KeyValues, LookupSource, bounds_of, scope_of
from panewise.engine.lookups.row_archive import RowArchive
from panewise.engine.panes.grouping import GroupEncoder
from panewise.plan import PanePlan
from panewise.stores.chain import MIN_POSITION
from panewise.window import Rows, Window


class RowLookupSource(LookupSource):
    """Rows that are kept for lookups, or that windows hold. Items up to `since` are in no window over time."""

    def __init__(
        self,
        groups: GroupEncoder,
        boundary: Boundary,
        instants: pa.DataType,
        find: Callable[[], RowArchive],
        since: int = MIN_POSITION,
    ) -> None:
        super().__init__(groups, boundary, instants)
        self.since, self._find = since, find

    @cached_property
    def archive(self) -> RowArchive:
        """The rows, which are looked for when a lookup needs them."""
        found = self._find()
        found.merge_pending()
        return found

    def answer_at(self, plan: PanePlan, instants: Ticks, keys: KeyValues | None) -> list[GroupAnswers]:
        codes = self._group_codes(plan, keys)
        partitions = self.archive.partitions_of(codes)
        answers = []
        for level, window in plan.levels:
            lows, highs = self._numbers_at(plan, window, instants, partitions)
            states = self.archive.answers(lows, highs, partitions, codes)
            answers.append(self._group_answers(plan, states, codes, bounds_of(window, instants, self.instants), level))
        return answers

    def answer_between(self, plan: PanePlan, starts: Ticks, ends: Ticks, keys: KeyValues | None) -> list[GroupAnswers]:
        codes = self._group_codes(plan, keys)
        partitions = self.archive.partitions_of(codes)
        bounds = [pa.array(side) for side in (starts, ends)]
        if plan.window.logical:
            lows, highs = self._numbers_between(plan, starts, ends, partitions)
            bounds = [side.cast(self.instants) for side in bounds]
        else:
            self._refuse_dropped(starts)
            lows, highs = (np.repeat(side[:, None], len(partitions), axis=1) for side in (starts, ends))
        states = self.archive.answers(lows, highs, partitions, codes)
        return [self._group_answers(plan, states, codes, bounds, None)]

    # ---- windows as row numbers --------------------------------------------------------------------------------

    def _numbers_at(
        self, plan: PanePlan, window: Window, instants: Ticks, partitions: Int64Array
    ) -> tuple[Int64Array, Int64Array]:
        """The row numbers `(low, high]` of a window at each instant in each partition."""
        if window.logical:
            return self._numbers_between(plan, *scope_of(window, instants, self.boundary), partitions)
        counted = Rows.of(window)
        self._refuse_short_history(counted, instants)
        highs = self.archive.numbers_upto(instants, partitions) - counted.lag
        return highs - counted.count, highs

    def _numbers_between(
        self, plan: PanePlan, lows: Ticks, highs: Ticks, partitions: Int64Array
    ) -> tuple[Int64Array, Int64Array]:
        """The same for positions in time `(low, high]`."""
        lows = np.maximum(lows, self.since)
        lost = int(self.archive.dropped_until.max(initial=self.archive.since))
        if len(lows) and (low := int(lows.min())) < lost:
            raise lost_problem(lost, low, plan.query.domain)
        below, upto = (self.archive.numbers_upto(positions, partitions) for positions in (lows, highs))
        return below, np.maximum(below, upto)

    # ---- what is not kept --------------------------------------------------------------------------------------

    def _refuse_short_history(self, window: Rows, instants: Ticks) -> None:
        """Refuse a window that looks back further than rows of some partition are kept; the earliest decides."""
        every, reach = self.archive.partitions, window.count + window.lag
        lengths = self.archive.numbers_upto(instants.min(keepdims=True) if len(instants) else instants, every)
        least = int((lengths - self.archive.complete(every)).min(initial=reach))
        if least < reach:
            raise StateProblem(
                f"{least} rows are kept, and the window looks back over {reach}",
                fix="keep rows longer, with Engine(pool, keep=...), or register a window of so many rows, "
                "or ask for a later instant",
            )

    def _refuse_dropped(self, starts: Ticks) -> None:
        """Refuse row numbers that are not kept in some partition."""
        lost = int(self.archive.complete(self.archive.partitions).max(initial=0))
        if len(starts) and (first := int(np.maximum(starts, 0).min())) < lost:
            raise StateProblem(
                f"rows up to number {lost} are not kept, and row {first + 1} is asked for",
                fix="keep rows longer, with Engine(pool, keep=...), or ask for newer rows",
            )
