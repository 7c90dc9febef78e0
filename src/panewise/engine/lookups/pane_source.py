"""Answers lookups from the kept panes of one family."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

from panewise.aggregate import Int64Array, StateWords, states_at
from panewise.algebra import Host, Project
from panewise.algebra.result_columns import dated_table, has_levels, lookup_types
from panewise.core.errors import PanewiseError, SchemaProblem, did_you_mean
from panewise.core.time import Boundary, Ticks
from panewise.core.values import to_arrow
from panewise.engine.lookups.archive import Archive
from panewise.engine.panes.grouping import GroupEncoder
from panewise.engine.row_steps import apply_steps
from panewise.plan import PanePlan
from panewise.plan.rules.cover_lookups import state_column
from panewise.plan.rules.narrow_having import thresholds
from panewise.stores.chain import MIN_POSITION
from panewise.stores.pane import Pane
from panewise.window import LogicalWindow, Window

#: Key columns with the requested values, row by row.
KeyValues: TypeAlias = "pa.Table | Mapping[str, Sequence[Any]]"


@dataclass(frozen=True, eq=False)
class GroupAnswers:
    """Keys and answers of the groups of some windows, before HAVING and SELECT.

    It does not refer to kept panes, so that these may change while it is finished in another thread.
    """

    plan: PanePlan
    answers: pa.Table
    #: The window of each row, and the added columns of the windows.
    windows: pa.Array
    bounds: Sequence[pa.Array]
    level: int | None

    def finish(self, host: Host) -> pa.Table:
        """The rows that pass HAVING: the selected columns, then the bounds of the window."""
        table, kept = apply_steps(self.plan.after, self.answers, host)
        selected = table.select([column.name for column in self.plan.query.root.columns])
        windows = self.windows if kept is None else self.windows.take(pa.array(kept))
        starts, ends = (each.take(windows) for each in self.bounds)
        added = {"w_start": starts, "w_end": ends, "w_level": np.full(len(windows), self.level or 0)}
        types = lookup_types(starts.type, self.level is not None and has_levels(self.plan.query))
        return dated_table(dict(zip(selected.column_names, selected.columns, strict=True)), added, types)


class LookupSource(ABC):
    """Finds states for lookups of one family, and makes tables of them."""

    def __init__(self, groups: GroupEncoder, boundary: Boundary, instants: pa.DataType) -> None:
        self.groups, self.boundary, self.instants = groups, boundary, instants

    @abstractmethod
    def answer_at(self, plan: PanePlan, instants: Ticks, keys: KeyValues | None) -> list[GroupAnswers]:
        """The state of a query at some instants, one level after the other."""

    @abstractmethod
    def answer_between(self, plan: PanePlan, starts: Ticks, ends: Ticks, keys: KeyValues | None) -> list[GroupAnswers]:
        """The query over some stretches of time instead of its window."""

    def _group_codes(self, plan: PanePlan, keys: KeyValues | None) -> Int64Array:
        """The codes of the requested groups, ascending."""
        return np.arange(len(self.groups.keys)) if keys is None else requested_codes(self.groups, plan, keys)

    def _group_answers(
        self,
        plan: PanePlan,
        states: Sequence[StateWords],
        codes: Int64Array,
        bounds: Sequence[pa.Array],
        level: int | None,
    ) -> GroupAnswers:
        """States of some groups, window by window, as answers."""
        rows = np.arange(len(states[0][0])) if plan.empty else np.flatnonzero(states[0][0])
        windows = pa.array(rows // max(len(codes), 1))
        return GroupAnswers(plan, self._answers(plan, states, rows, codes), windows, bounds, level)

    def _answers(self, plan: PanePlan, states: Sequence[StateWords], rows: Int64Array, codes: Int64Array) -> pa.Table:
        """Keys and answers of the groups that have items."""
        had = self.groups.plan.group.keys
        found = dict(zip(had, self.groups.keys.take(codes[rows % max(len(codes), 1)]), strict=True))
        columns = [found[key] for key in plan.group.keys]
        for call in plan.group.calls:
            number = state_column(self.groups.plan, call.aggregate, call.arguments)
            assert number is not None, "a query that is not covered is refused"
            columns.append(self.groups.columns[number].lower(states_at(states[number], rows)))
        names = [*plan.group.keys, *(call.name for call in plan.group.calls)]
        return pa.table([*columns, pa.array(rows)], names=[*names, "#row"])


class PaneLookupSource(LookupSource):
    """Kept panes, and panes that are still open or late. Items up to `since` do not count."""

    def __init__(
        self,
        groups: GroupEncoder,
        boundary: Boundary,
        instants: pa.DataType,
        archive: Archive,
        pending: Sequence[Pane] = (),
        since: int = MIN_POSITION,
    ) -> None:
        super().__init__(groups, boundary, instants)
        self.archive, self.pending_panes, self.since = archive, pending, since

    def answer_at(self, plan: PanePlan, instants: Ticks, keys: KeyValues | None) -> list[GroupAnswers]:
        answers = []
        for level, window in plan.levels:
            lows, highs = scope_of(window, instants, self.boundary)
            bounds = bounds_of(window, instants, self.instants)
            answers.append(self._answer_windows(plan, lows, highs, bounds, keys, level))
        return answers

    def answer_between(self, plan: PanePlan, starts: Ticks, ends: Ticks, keys: KeyValues | None) -> list[GroupAnswers]:
        bounds = [pa.array(ticks).cast(self.instants) for ticks in (starts, ends)]
        return [self._answer_windows(plan, starts, ends, bounds, keys, None)]

    def _answer_windows(
        self,
        plan: PanePlan,
        lows: Ticks,
        highs: Ticks,
        bounds: Sequence[pa.Array],
        keys: KeyValues | None,
        level: int | None,
    ) -> GroupAnswers:
        lows = np.maximum(lows, self.since)
        highs = np.maximum(lows, highs)
        codes = self._group_codes(plan, keys) if keys is not None else self._candidate_codes(plan, lows, highs)
        states = self.archive.answers(lows, highs, codes, len(self.groups.keys), self.pending_panes, plan.query.domain)
        return self._group_answers(plan, states, codes, bounds, level)

    def _candidate_codes(self, plan: PanePlan, lows: Ticks, highs: Ticks) -> Int64Array:
        """All groups, or a superset of those that pass HAVING; states of the others are not needed."""
        # With EMIT EMPTY groups without items can pass, and a collective index does not contain these.
        for threshold in () if plan.empty else thresholds(plan):
            call = threshold.call
            number = state_column(self.groups.plan, call.aggregate, call.arguments)
            assert number is not None, "a query that is not covered is refused"
            found = self.archive.candidates(number, call.aggregate, threshold, lows, highs)
            if found is not None:
                return np.unique(np.concatenate([found, *(pane.codes for pane in self.pending_panes)]))
        return self._group_codes(plan, None)


def scope_of(window: Window, instants: Ticks, boundary: Boundary) -> tuple[Ticks, Ticks]:
    """The positions `(low, high]` of a window at each instant."""
    low, high = LogicalWindow.of(window).scope(instants, boundary)
    return low + boundary.shift - 1, high + boundary.shift


def bounds_of(window: Window, instants: Ticks, kind: pa.DataType) -> tuple[pa.Array, ...]:
    """The columns for the bounds of a window; NULL where it has no start."""
    starts, ends = window.spans(instants)
    return pa.nulls(len(ends), kind) if starts is None else pa.array(starts).cast(kind), pa.array(ends).cast(kind)


def requested_codes(groups: GroupEncoder, plan: PanePlan, keys: KeyValues) -> Int64Array:
    """The codes of the requested groups, ascending; unknown groups have no rows."""
    if not isinstance(keys, Mapping | pa.Table):
        raise SchemaProblem(f"keys={keys!r} names no columns", fix="give values by key, such as {'k': ['a', 'b']}")
    columns = keys if isinstance(keys, Mapping) else dict(zip(keys.column_names, keys.columns, strict=True))
    wanted = {_key_name(plan, key): key for key in groups.plan.group.keys}
    if len(wanted) < len(groups.plan.group.keys):
        raise SchemaProblem("two keys of the query have the same name", fix="select them under different names")
    if strange := [str(name) for name in columns if name not in wanted]:
        raise SchemaProblem(
            f"{strange[0]!r} is no key of the query", fix=did_you_mean(strange[0], wanted or ["GROUP BY"])
        )
    if missing := [name for name in wanted if name not in columns]:
        raise SchemaProblem(f"key {missing[0]!r} is not given", fix="give a value for each key of GROUP BY")
    kinds = dict(zip(groups.plan.group.keys, groups.keys.types, strict=True))
    arrays = [key_array(name, columns[name], kinds[key]) for name, key in wanted.items()]
    if len({len(array) for array in arrays}) > 1:
        raise SchemaProblem("key columns differ in length", fix="give one value of each key for each group")
    codes = groups.keys.find(arrays, len(arrays[0]) if arrays else 1)
    return np.unique(codes[codes >= 0])


def _key_name(plan: PanePlan, key: str) -> str:
    """The name of a key for users: the selected column that shows it, or else its own name."""
    shown = [items for step in plan.after if isinstance(step, Project) for items in step.items]
    return next((name for name, scalar in shown if scalar.column == key), key.rpartition(".")[2])


def key_array(name: str, values: Any, kind: pa.DataType, from_text: bool = False) -> pa.Array:
    """The values of a key as an array of its type; `from_text` if values of any type may be written as text."""
    if isinstance(values, str | bytes):
        raise SchemaProblem(f"the values of key {name!r} are no list: {values!r} is one value", fix="give a list")
    try:
        if isinstance(values, pa.ChunkedArray):
            values = values.combine_chunks()
        elif from_text and not pa.types.is_string(kind) and all(isinstance(value, str | None) for value in values):
            values = pa.array(values, pa.string())
        return values.cast(kind) if isinstance(values, pa.Array) else to_arrow(list(values), kind)
    except (pa.ArrowException, PanewiseError, TypeError, ValueError, ArithmeticError):
        raise SchemaProblem(f"the values of key {name!r} are no {kind}", fix="give values of its type") from None
