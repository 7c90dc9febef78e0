"""Lookups of counted windows: the last so many rows, up to any instant, as far as rows are kept."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from panewise.aggregate import Int64Array, StateWords
from panewise.core.errors import BindProblem, StateProblem
from panewise.core.time import Boundary, Ticks
from panewise.engine.lookups.pane_source import GroupAnswers, KeyValues, LookupSource, bounds_of
from panewise.engine.panes.counted_family import CountedFamily
from panewise.engine.panes.partitions import ROW_ORDER, CountedRow, rows_by_partition
from panewise.plan import PanePlan
from panewise.window import Rows


class RowLookupSource(LookupSource):
    """The rows that a family of counted windows holds, and those that still wait for the watermark."""

    def __init__(self, family: CountedFamily, boundary: Boundary, instants: pa.DataType) -> None:
        super().__init__(family, boundary, instants)
        self.family = family

    def answer_at(self, plan: PanePlan, instants: Ticks, keys: KeyValues | None) -> list[GroupAnswers]:
        codes, window = self._group_codes(plan, keys), Rows.of(plan.window)
        found = [self._states(window, at, codes) for at in instants.tolist()]
        empty = [column.identity(0) for column in self.family.columns]
        states = [tuple(map(np.concatenate, zip(*words, strict=True))) for words in zip(*found, strict=True)] or empty
        return [self._group_answers(plan, states, codes, bounds_of(window, instants, self.instants), None)]

    def answer_between(self, plan: PanePlan, starts: Ticks, ends: Ticks, keys: KeyValues | None) -> list[GroupAnswers]:
        raise BindProblem("a counted window has no stretch of time", fix="use a window with RANGE")

    def _states(self, window: Rows, at: int, codes: Int64Array) -> list[StateWords]:
        """The states of some groups in the window at an instant: rows combined in their order."""
        held: dict[int, list[CountedRow]] = {}
        for row in sorted(self._rows_inside(window, at), key=ROW_ORDER):
            held.setdefault(row.code, []).append(row)
        mine = [held.get(code, []) for code in codes.tolist()]
        states: list[StateWords] = [(np.array([len(rows) for rows in mine], np.int64),)]
        for number, call in enumerate(self.family.stored_calls):
            word = np.full(len(codes), None, object)
            for place, rows in enumerate(mine):
                if rows:
                    word[place] = _combine_states(call.aggregate, [row.states[number] for row in rows])
            states.append((word,))
        return states

    def _rows_inside(self, window: Rows, at: int) -> Iterator[CountedRow]:
        """The rows of all partitions that are in the window at an instant."""
        waiting = rows_by_partition([*self.family.waiting, *(row for _, row in self.family.late)])
        for number in self.family.partitions.keys() | waiting.keys():
            partition = self.family.partitions.get(number)
            known = [*(partition.rows if partition else ()), *waiting.get(number, ())]
            rows = sorted((row for row in known if row.position <= at), key=ROW_ORDER)
            gone = partition.length - len(partition.rows) if partition else 0
            if partition and gone:
                # Late rows before the oldest kept row do not count: newer rows than these have been dropped.
                rows = [row for row in rows if row.place >= partition.rows[0].place]
            if gone and len(rows) < window.count + window.lag:
                raise StateProblem(
                    f"{len(rows)} rows are kept, and the window looks back over {window.count + window.lag}",
                    fix="register a window of so many rows, or ask for a later instant",
                )
            stop = max(len(rows) - window.lag, 0)
            yield from (row for row in rows[max(stop - window.count, 0) : stop] if row.code >= 0)


def _combine_states(aggregate: Any, states: list[Any]) -> Any:
    found = states[0]
    for state in states[1:]:
        found = aggregate.combine(found, state)
    return found
