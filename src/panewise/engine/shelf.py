"""What is kept of one family, and tables of answers from it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

from panewise.aggregate import Longs, Words, placed
from panewise.algebra import Host, Project
from panewise.engine.archive import Archive
from panewise.engine.grouping import Grouping
from panewise.engine.rowwise import passed
from panewise.errors import SchemaProblem, did_you_mean
from panewise.plan import Aggregation
from panewise.plan.covering import column_of
from panewise.stores.pane import Pane
from panewise.time import Boundary, Ticks
from panewise.values import to_arrow
from panewise.window import LogicalWindow, MultiGranular, Sliding, Window

#: Key columns with the values that are asked for, row by row.
Chosen: TypeAlias = "pa.Table | Mapping[str, Sequence[Any]]"


@dataclass(frozen=True, eq=False)
class Shelf:
    """What is kept of one family: its groups, its panes, and those that are on their way."""

    groups: Grouping
    archive: Archive
    coming: Sequence[Pane]
    boundary: Boundary
    host: Host
    instants: pa.DataType
    #: Items up to this position do not count.
    since: int

    def at(self, plan: Aggregation, instants: Ticks, keys: Chosen | None) -> pa.Table:
        """The state of a query at some instants, one level after the other."""
        tables = []
        for level, window in plan.levels:
            scope = _scope(window, instants, self.boundary)
            tables.append(self._table(plan, *scope, _bounds(window, instants, self.instants), keys, level))
        return pa.concat_tables(tables)

    def between(self, plan: Aggregation, starts: Ticks, ends: Ticks, keys: Chosen | None) -> pa.Table:
        """The query over some stretches of time instead of its window."""
        bounds = tuple(pa.array(ticks).cast(self.instants) for ticks in (starts, ends))
        return self._table(plan, starts, np.maximum(starts, ends), bounds, keys, None)

    def _table(
        self,
        plan: Aggregation,
        lows: Ticks,
        highs: Ticks,
        bounds: tuple[pa.Array, ...],
        keys: Chosen | None,
        level: int | None,
    ) -> pa.Table:
        """One window for each pair of positions: selected columns, then those that say which window."""
        size = len(self.groups.keys)
        codes = np.arange(size) if keys is None else chosen_codes(self.groups, plan, keys)
        lows = np.maximum(lows, self.since)
        highs = np.maximum(lows, highs)
        states = self.archive.answers(lows, highs, codes, size, self.coming, plan.query.domain)
        rows = np.arange(len(lows) * len(codes)) if plan.empty else np.flatnonzero(states[0][0])
        windows = pa.array(rows // max(len(codes), 1))
        table, kept = passed(plan.after, self._answers(plan, states, rows, codes), self.host)
        selected = table.select([column.name for column in plan.query.root.columns])
        windows = windows if kept is None else windows.take(pa.array(kept))
        columns = dict(zip(selected.column_names, selected.columns, strict=True))
        added: dict[str, pa.Array] = dict(zip(("w_start", "w_end"), (b.take(windows) for b in bounds), strict=True))
        if isinstance(plan.window, MultiGranular) and level is not None:
            added["w_level"] = pa.array(np.full(len(windows), level), pa.int32())
        for name, array in added.items():
            while name in columns:
                name += "_"
            columns[name] = array
        return pa.table(list(columns.values()), names=list(columns))

    def _answers(self, plan: Aggregation, states: list[Words], rows: Longs, codes: Longs) -> pa.Table:
        """Keys and answers of the groups that have items."""
        had = self.groups.plan.group.keys
        found = dict(zip(had, self.groups.keys.take(codes[rows % max(len(codes), 1)]), strict=True))
        columns = [found[key] for key in plan.group.keys]
        for call in plan.group.calls:
            number = column_of(self.groups.plan, call.aggregate, call.arguments)
            assert number is not None, "a query that is not covered is refused"
            columns.append(self.groups.columns[number].lower(placed(states[number], rows)))
        names = [*plan.group.keys, *(call.name for call in plan.group.calls)]
        return pa.table([*columns, pa.array(rows)], names=[*names, "#row"])


def _scope(window: Window, instants: Ticks, boundary: Boundary) -> tuple[Ticks, Ticks]:
    """The positions `(low, high]` of a window at each instant."""
    assert isinstance(window, LogicalWindow)
    low, high = window.scope(instants, boundary)
    return low + boundary.shift - 1, high + boundary.shift


def _bounds(window: Window, instants: Ticks, kind: pa.DataType) -> tuple[pa.Array, ...]:
    """What results say of a window's ends; none where it has none."""
    if isinstance(window, Sliding):
        ends = instants - (instants - window.start) % window.step - window.lag
        return pa.array(ends - window.range).cast(kind), pa.array(ends).cast(kind)
    both = [window.bounds(at) for at in instants.tolist()]
    return tuple(pa.array([pair[side] for pair in both], pa.int64()).cast(kind) for side in (0, 1))


def chosen_codes(groups: Grouping, plan: Aggregation, keys: Chosen) -> Longs:
    """The groups that somebody asks for, ascending; those that are not known have no rows."""
    columns = keys if isinstance(keys, Mapping) else dict(zip(keys.column_names, keys.columns, strict=True))
    wanted = {_name(plan, key): key for key in groups.plan.group.keys}
    if strange := [name for name in columns if name not in wanted]:
        raise SchemaProblem(
            f"{strange[0]!r} is no key of the query", fix=did_you_mean(strange[0], wanted or ["GROUP BY"])
        )
    if missing := [name for name in wanted if name not in columns]:
        raise SchemaProblem(f"key {missing[0]!r} is not given", fix="give a value for each key of GROUP BY")
    kinds = dict(zip(groups.plan.group.keys, groups.keys.types, strict=True))
    arrays = [_array(name, columns[name], kinds[key]) for name, key in wanted.items()]
    if len({len(array) for array in arrays}) > 1:
        raise SchemaProblem("key columns differ in length", fix="give one value of each key for each group")
    codes = groups.keys.find(arrays, len(arrays[0]) if arrays else 1)
    return np.unique(codes[codes >= 0])


def _name(plan: Aggregation, key: str) -> str:
    """What users call a key: the selected column that shows it, or else its own name."""
    shown = [items for step in plan.after if isinstance(step, Project) for items in step.items]
    return next((name for name, scalar in shown if scalar.column == key), key.rpartition(".")[2])


def _array(name: str, values: Any, kind: pa.DataType) -> pa.Array:
    try:
        if isinstance(values, pa.ChunkedArray | pa.Array):
            return (values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values).cast(kind)
        return to_arrow(list(values), kind)
    except (pa.ArrowException, TypeError, ValueError) as problem:
        raise SchemaProblem(f"values of key {name!r} are no {kind}: {problem}", fix="give values of its type") from None
