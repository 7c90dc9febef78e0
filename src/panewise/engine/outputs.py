"""Results of an engine: tables by query, cut out of the tables of families when they are accessed."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

import numpy as np
import pyarrow as pa

from panewise import kernels
from panewise.aggregate import Int64Array, runs
from panewise.algebra.result_columns import (
    AddedValues,
    added_types,
    combine_columns,
    dated_table,
    result_schema,
    typed_values,
)
from panewise.engine.panes.family import Member
from panewise.engine.report import ReportedRows, ReportFormat

#: When queries have spoken together in more ways than this, all layouts are forgotten.
MOST_LAYOUTS = 256
#: Some rows; those that follow each other are a slice, so that they are not copied.
Places: TypeAlias = Int64Array | slice


@dataclass(frozen=True, eq=False)
class QueryOutput:
    """The report format of a query, its subscriptions (in `member`), and the type of instants in its results."""

    report_format: ReportFormat
    member: Member
    instants: pa.DataType

    @cached_property
    def added_types(self) -> Mapping[str, pa.DataType]:
        """The added columns of the query's results."""
        return added_types(self.member.plan.query, self.instants)

    @cached_property
    def empty_table(self) -> pa.Table:
        return result_schema(self.member.plan.query, self.instants).empty_table()


@dataclass(frozen=True, eq=False)
class OutputGroup:
    """Queries with one report format and the same added columns, whose results are taken as one table."""

    outputs: Mapping[str, QueryOutput]

    @cached_property
    def names(self) -> pa.Array:
        return pa.array(list(self.outputs), pa.string())

    @cached_property
    def added_types(self) -> Mapping[str, pa.DataType]:
        return next(iter(self.outputs.values())).added_types

    @cached_property
    def column_names(self) -> list[str]:
        """The columns of its table: the name of the query, the selected and the added ones."""
        output = next(iter(self.outputs.values()))
        selected = dict.fromkeys(column.name for column in output.member.plan.query.root.columns)
        columns = combine_columns({"query": None}, selected)
        return list(combine_columns(columns, dict.fromkeys(self.added_types)))

    @cached_property
    def subscriptions(self) -> tuple[Int64Array, Int64Array, Int64Array]:
        """The number and the level of each subscription, and the place of its query."""
        pairs = [
            (number, level or 0, owner)
            for owner, output in enumerate(self.outputs.values())
            for number, level in output.member.subscriptions
        ]
        numbers, levels, owners = np.array(pairs, np.int64).T.copy()
        return numbers, levels, owners


@dataclass(frozen=True, eq=False)
class TableLayout:
    """The columns of several tables as those of one: no rows of it, and how the columns of each table are called."""

    empty: pa.Table
    names: Sequence[Sequence[str]]

    @classmethod
    def of(cls, tables: Iterable[pa.Table]) -> TableLayout:
        columns: dict[str, pa.DataType] = {"query": pa.string()}
        found = []
        for table in tables:
            names: list[str] = []
            for name, kind in zip(table.column_names, table.schema.types, strict=True):
                while name in names or columns.get(name, kind) != kind:
                    name += "_"
                columns[name] = kind
                names.append(name)
            found.append(names)
        return cls(pa.schema(columns.items()).empty_table(), found)


class EmittedOutputs(dict[str, QueryOutput]):
    """The outputs of all queries that an engine has at a moment; they are grouped when results are first taken."""

    @cached_property
    def layouts(self) -> dict[tuple[object, ...], TableLayout]:
        """How the results of some queries are put into one table; where few rows come, the same ones speak often."""
        return {}

    @cached_property
    def groups(self) -> Mapping[int, Sequence[OutputGroup]]:
        """By the identity of the report format."""
        found: dict[int, list[OutputGroup]] = {}
        for (number, _), outputs in self.by_format(self).items():
            found.setdefault(number, []).append(OutputGroup(outputs))
        return found

    def by_format(self, names: Iterable[str]) -> dict[tuple[int, tuple[str, ...]], dict[str, QueryOutput]]:
        """Some outputs by the identity of their report format and the names of their added columns."""
        found: dict[tuple[int, tuple[str, ...]], dict[str, QueryOutput]] = {}
        for name in names:
            output = self[name]
            found.setdefault((id(output.report_format), tuple(output.added_types)), {})[name] = output
        return found


class Emission(Mapping[str, pa.Table]):
    """The results of one `advance`, by the name of the query. A query without results has an empty table."""

    def __init__(
        self,
        outputs: EmittedOutputs,
        reports: Mapping[int, list[ReportedRows]],
        relations: Mapping[str, pa.Table],
    ) -> None:
        self._outputs, self._reports, self._relations = outputs, reports, relations
        self._tables: dict[str, pa.Table] = dict(relations)

    def __getitem__(self, name: str) -> pa.Table:
        if name not in self._tables:
            output = self._outputs[name]
            found = [_query_table(output, each) for each in self._reports.get(id(output.report_format), [])]
            self._tables[name] = pa.concat_tables(found) if found else output.empty_table
        return self._tables[name]

    def __iter__(self) -> Iterator[str]:
        return iter({**self._outputs, **self._relations})

    def __len__(self) -> int:
        return len(self._outputs) + len(self._relations)

    def combined_table(self, names: Collection[str]) -> pa.Table | None:
        """The results of some queries with the same columns as one table, whose first column names the query."""
        tables = [_with_query_name(name, self._relations[name]) for name in names if name in self._relations]
        grouped = self._outputs.by_format(name for name in names if name not in self._relations)
        for (number, _), outputs in grouped.items():
            tables += (_named_table(OutputGroup(outputs), each) for each in self._reports.get(number, []))
        return pa.concat_tables(tables) if tables else None

    def table(self) -> pa.Table:
        """All results as one table, whose first column names the query.

        A column is NULL for queries that do not have it. Where queries give one name to columns of several types, each
        type has a column of its own, with underscores after the name.
        """
        tables = dict(self._speaking_tables())
        layouts, speaking = self._outputs.layouts, tuple(tables)
        if speaking not in layouts:
            if len(layouts) >= MOST_LAYOUTS:
                layouts.clear()
            layouts[speaking] = TableLayout.of(tables.values())
        layout = layouts[speaking]
        named = [table.rename_columns(names) for table, names in zip(tables.values(), layout.names, strict=True)]
        return pa.concat_tables([layout.empty, *named], promote_options="default")

    def _speaking_tables(self) -> Iterator[tuple[object, pa.Table]]:
        """All results that have rows, those that are reported together with the same columns as one table.

        With each comes what decides its columns.
        """
        for name, table in self._relations.items():
            if table.num_rows:
                yield name, _with_query_name(name, table)
        for number, several in self._reports.items():
            for turn, reported in enumerate(several):
                for group in self._outputs.groups.get(number, ()) if len(reported.at) else ():
                    if (table := _named_table(group, reported)).num_rows:
                        yield (group, turn), table

    def families(self) -> list[pa.Table]:
        """The same results, one table for each report format; the column `feed` has the number of the subscription."""
        outputs = {id(output.report_format): output for output in self._outputs.values()}
        return [_family_table(outputs[number], each) for number, several in self._reports.items() for each in several]


def _with_query_name(name: str, table: pa.Table) -> pa.Table:
    """A table with the name of its query as the first column."""
    query = {"query": pa.array([name] * table.num_rows, pa.string())}
    columns = combine_columns(query, _columns_of(table))
    return pa.table(list(columns.values()), names=list(columns))


def _query_table(output: QueryOutput, reported: ReportedRows) -> pa.Table:
    """The results of one query, in the order of time; levels follow each other."""
    places, levels = _subscribed_rows(output, reported)
    selected = _columns_of(_take_rows(reported.selected, places))
    return dated_table(selected, _added_values(output.added_types, reported, places, levels), output.added_types)


def _named_table(group: OutputGroup, reported: ReportedRows) -> pa.Table:
    """The results of queries with one report format and the same columns; the first column names the query."""
    numbers, levels, owners = group.subscriptions
    found, origin = kernels.range_subscribed(reported.subscriptions, numbers)
    places = _as_slice(found)
    added = _added_values(group.added_types, reported, places, levels[origin])
    selected = _take_rows(reported.selected, places).columns
    arrays = [group.names.take(pa.array(owners[origin])), *selected, *typed_values(added, group.added_types)]
    return pa.Table.from_arrays(arrays, group.column_names)


def _family_table(output: QueryOutput, reported: ReportedRows) -> pa.Table:
    """All rows of one report format, with the number of the subscription of each."""
    values = _added_values(output.added_types, reported, slice(0, len(reported.at)), None)
    types = {name: kind for name, kind in output.added_types.items() if name != "w_level"}
    added = {"feed": reported.subscriptions, **values}
    return dated_table(_columns_of(reported.selected), added, {"feed": pa.int64(), **types})


def _subscribed_rows(output: QueryOutput, reported: ReportedRows) -> tuple[Places, Int64Array | None]:
    """The places of the rows of one query, and the level of each of them where it is wanted."""
    numbers, levels = zip(*output.member.subscriptions, strict=True)
    if len(numbers) == 1 and "w_level" not in output.added_types:
        first, stop = np.searchsorted(reported.subscriptions, (numbers[0], numbers[0] + 1))
        return slice(int(first), int(stop)), None
    places, origin = kernels.range_subscribed(reported.subscriptions, np.array(numbers, np.int64))
    return _as_slice(places), np.array([level or 0 for level in levels])[origin]


def _added_values(
    types: Mapping[str, pa.DataType], reported: ReportedRows, places: Places, levels: Int64Array | None
) -> dict[str, AddedValues]:
    """The values of the added columns for some rows, whose levels are given where they are wanted."""
    known = {"ts": reported.at, **reported.added}
    found = {name: _take_values(known[name], places) for name in types if name in known}
    if "w_start" in types and "w_start" not in known:
        found["w_start"], found["w_end"] = _window_bounds(reported, places)
    return found if levels is None else found | {"w_level": levels}


def _window_bounds(reported: ReportedRows, places: Places) -> tuple[pa.Array, Int64Array]:
    """The start and end of the window of some rows; the start is NULL where there is none."""
    at, subscriptions = reported.at[places], reported.subscriptions[places]
    starts, ends = np.zeros(len(at), np.int64), np.zeros(len(at), np.int64)
    unbounded = np.zeros(len(at), bool)
    for low, high in zip(*runs(subscriptions), strict=True):
        begins, ends[low:high] = reported.windows[int(subscriptions[low])].spans(at[low:high])
        starts[low:high], unbounded[low:high] = (0, True) if begins is None else (begins, False)
    return pa.array(starts, mask=unbounded), ends


def _columns_of(table: pa.Table) -> dict[str, pa.ChunkedArray]:
    return dict(zip(table.column_names, table.columns, strict=True))


def _take_values(values: AddedValues, places: Places) -> AddedValues:
    if isinstance(values, pa.Array) and not isinstance(places, slice):
        return values.take(pa.array(places))
    return values[places]


def _take_rows(table: pa.Table, places: Places) -> pa.Table:
    if not isinstance(places, slice):
        return table.take(pa.array(places, pa.int64()))
    count = places.stop - places.start
    return table if count == table.num_rows else table.slice(places.start, count)


def _as_slice(places: Int64Array) -> Places:
    """Places that follow each other as a slice; others as they are."""
    if len(places) and places[-1] - places[0] == len(places) - 1 and (places[1:] > places[:-1]).all():
        return slice(int(places[0]), int(places[-1]) + 1)
    return places
