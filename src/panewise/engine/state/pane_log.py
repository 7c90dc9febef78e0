"""Finished panes as rows of a table, as a pane log holds them, and the way back to panes.

A log has one row for each pane and group: where the pane begins and ends, the keys, how many items it has, and the
states of all aggregates, word by word; states that are objects are text. Panes are *partial*: a late item is one more
small pane, which readers combine with what they have.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from itertools import islice
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from panewise.aggregate import Int64Array, StateArrays, StateWords, concat_states, runs, states_at
from panewise.algebra import Project
from panewise.algebra.result_columns import free_name
from panewise.core.errors import BindProblem
from panewise.engine.engine import Engine
from panewise.engine.keys import Keys
from panewise.engine.panes.family import Family
from panewise.engine.panes.grouping import GroupEncoder, arrays_of
from panewise.engine.pool import RegisteredQuery
from panewise.engine.state.codec import from_text, to_text
from panewise.plan import PanePlan
from panewise.stores.pane import Pane


def logged_plan(registered: RegisteredQuery) -> PanePlan:
    """The plan of a query whose panes can be logged; refuses any other."""
    plan, reason = registered.plan, None
    if not isinstance(plan, PanePlan):
        reason = "it is not answered from panes, but from rows"
    elif not plan.window.logical:
        reason = "its windows do not follow time alone"
    elif plan.window.has_time_of_day:
        reason = "its window starts at a time of day, whose date a reader cannot know"
    if reason is not None or not isinstance(plan, PanePlan):
        fix = "log the panes of a grouped aggregate over a window of time, whose instants have dates"
        raise BindProblem(f"query {registered.name!r} has no panes to log: {reason}", fix=fix)
    return plan


class PaneCollector:
    """Collects the panes that an engine finishes for some queries, as rows of their logs."""

    def __init__(self, engine: Engine, names: Collection[str]) -> None:
        self._engine, self._names = engine, names

    def open(self) -> None:
        """Collect panes from now on; to be called before every `advance`, since queries may have joined."""
        for _, family in self._families():
            family.finished_panes = [] if family.finished_panes is None else family.finished_panes

    def collect(self) -> dict[str, pa.Table]:
        """The panes that have been finished since the last call."""
        found = {
            name: self._format_of(name).table(family.keys, family.finished_panes or [])
            for name, family in self._families()
        }
        for _, family in self._families():
            family.finished_panes = []
        return found

    def _format_of(self, name: str) -> PaneLogFormat:
        plan = self._engine.pool.queries[name].aggregation
        return PaneLogFormat(plan, self._engine.pool.streams[plan.source.stream].instants)

    def _families(self) -> Iterator[tuple[str, Family]]:
        for name in self._names:
            if (family := self._engine.family(name)) is not None:
                yield name, family


class PaneLogFormat:
    """The columns of the pane log of a query, and the way from panes to rows and back."""

    def __init__(self, plan: PanePlan, instants: pa.DataType) -> None:
        grouping = GroupEncoder(plan)
        self._columns, self._instants = grouping.columns, instants
        #: The types of the keys.
        self.types = grouping.keys.types
        #: The keys under the names by which the query selects them; other columns are renamed if they have these names.
        self.keys = _key_names(plan)
        empty = [_to_plain(column, column.identity(0)) for column in self._columns]
        #: How many arrays each column of states takes.
        self._widths = [len(arrays) for arrays in empty]
        words = {
            "count" if number == 0 else f"s{number}_{place}": array.type
            for number, arrays in enumerate(empty)
            for place, array in enumerate(arrays)
        }
        fields = [(free_name(name, self.keys), instants) for name in ("pane_start", "pane_end")]
        fields += zip(self.keys, self.types, strict=True)
        fields += [(free_name(name, self.keys), kind) for name, kind in words.items()]
        self.schema = pa.schema(fields)

    def table(self, keys: Keys, panes: Sequence[Pane]) -> pa.Table:
        """Panes as rows; their codes are those of `keys`."""
        if not panes:
            return self.schema.empty_table()
        sizes = [len(pane.codes) for pane in panes]
        bounds = [np.repeat(np.array(ticks, np.int64), sizes) for ticks in _bounds(panes)]
        codes = np.concatenate([pane.codes for pane in panes])
        columns = [*(pa.array(b).cast(self._instants) for b in bounds), *keys.take(codes)]
        for number, column in enumerate(self._columns):
            columns += _to_plain(column, concat_states([pane.states[number] for pane in panes]))
        return pa.table(columns, schema=self.schema)

    def read(self, table: pa.Table) -> tuple[list[pa.Array], list[Pane]]:
        """Keys, and panes whose codes are places in them. Rows of the same pane and group become panes of their own."""
        arrays = list(arrays_of(table.select(self.schema.names).cast(self.schema)).values())
        keys = Keys(self.types)
        starts, ends = (array.cast(pa.int64()).to_numpy() for array in arrays[:2])
        first = 2 + len(self.types)
        codes = keys.encode(arrays[2:first], table.num_rows)
        order, turns = _pane_order(starts, ends, codes)
        stored = iter(arrays[first:])
        states: list[StateWords] = []
        for column, width in zip(self._columns, self._widths, strict=True):
            states.append(states_at(_from_plain(column, list(islice(stored, width))), order))
        panes = []
        for low, high in zip(*runs(turns), strict=True):
            where = slice(int(low), int(high))
            part = tuple(tuple(word[where] for word in each) for each in states)
            panes.append(Pane(int(starts[order[low]]), int(ends[order[low]]), codes[order[where]], part))
        return keys.take(np.arange(len(keys))), panes


def _bounds(panes: Sequence[Pane]) -> tuple[list[int], list[int]]:
    return [pane.start for pane in panes], [pane.end for pane in panes]


def _pane_order(starts: Int64Array, ends: Int64Array, codes: Int64Array) -> tuple[Int64Array, Int64Array]:
    """The order of rows by pane and group, and for each place in it the number of its pane.

    A group that occurs several times in a pane is put into several panes with the same bounds.
    """
    order = np.lexsort((codes, starts, ends))
    places = np.arange(len(order))
    first = np.where(_change_flags(starts[order], ends[order], codes[order]), places, 0)
    turn = places - np.maximum.accumulate(first)
    again = np.lexsort((codes[order], turn, starts[order], ends[order]))
    order, turn = order[again], turn[again]
    return order, np.cumsum(_change_flags(starts[order], ends[order], turn))


def _change_flags(*columns: Int64Array) -> npt.NDArray[np.bool_]:
    """Where any column differs from the row before."""
    found = np.zeros(len(columns[0]), bool)
    for column in columns:
        found[1:] |= column[1:] != column[:-1]
    return found


def _key_names(plan: PanePlan) -> list[str]:
    """Keys as the query selects them, otherwise as they are called in the stream."""
    last = plan.after[-1] if plan.after else None
    selected = {scalar.column: name for name, scalar in reversed(last.items)} if isinstance(last, Project) else {}
    names: list[str] = []
    for key in plan.group.keys:
        names.append(free_name(selected.get(key) or key.rpartition(".")[2], names))
    return names


#: Types that Spark does not support, and the types that replace them.
_PLAIN = {
    pa.uint8(): pa.int16(),
    pa.uint16(): pa.int32(),
    pa.uint32(): pa.int64(),
    pa.uint64(): pa.int64(),
    pa.large_string(): pa.string(),
    pa.large_binary(): pa.binary(),
}


def _to_plain(column: StateArrays, words: StateWords) -> list[pa.Array]:
    """The states of one column, one array a word, or as many as the column writes; objects are text."""
    written = column.write(words)
    arrays = [_array(word) for word in words] if written is None else written
    return [array.cast(_plain_type(array.type)) for array in arrays]


def _from_plain(column: StateArrays, arrays: Sequence[pa.Array]) -> StateWords:
    """What `_to_plain` wrote."""
    nothing = column.identity(0)
    written = column.write(nothing)
    if written is not None:
        return column.read([array.cast(like.type) for array, like in zip(arrays, written, strict=True)])
    return tuple(_word(array, like) for array, like in zip(arrays, nothing, strict=True))


def _plain_type(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return pa.list_(_plain_type(kind.value_type))
    if pa.types.is_struct(kind):
        return pa.struct([(field.name, _plain_type(field.type)) for field in kind])
    return _PLAIN.get(kind, kind)


def _array(word: Any) -> pa.Array:
    if word.dtype.hasobject:
        return pa.array([to_text(state) for state in word], pa.string())
    if word.ndim > 1:
        offsets = np.arange(len(word) + 1, dtype=np.int32) * word.shape[1]
        return pa.ListArray.from_arrays(pa.array(offsets), pa.array(np.ascontiguousarray(word).ravel()))
    return pa.array(word.view(np.int64) if word.dtype == np.uint64 else word)


def _word(array: pa.Array, like: Any) -> Any:
    if like.dtype.hasobject:
        out = np.empty(len(array), object)
        out[:] = [from_text(text) for text in array.to_pylist()]
        return out
    if like.ndim > 1:
        # Copied, because states are written in place and Arrow's memory is not ours.
        return np.array(array.flatten().to_numpy(zero_copy_only=False), like.dtype).reshape(len(array), *like.shape[1:])
    found = array.to_numpy(zero_copy_only=False)
    return found.view(np.uint64) if like.dtype == np.uint64 else found.astype(like.dtype)
