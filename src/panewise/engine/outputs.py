"""Results of an engine: tables by query, cut out of the tables of families when they are accessed."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa

from panewise.aggregate import Int64Array, runs
from panewise.algebra.result_columns import AddedValues, added_types, combine_columns, dated_table, result_schema
from panewise.engine.panes.family import Member
from panewise.engine.report import ReportedRows, ReportFormat


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


class Emission(Mapping[str, pa.Table]):
    """The results of one `advance`, by the name of the query. A query without results has an empty table."""

    def __init__(
        self,
        outputs: Mapping[str, QueryOutput],
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
        tables = list(self._named_tables(names))
        return pa.concat_tables(tables) if tables else None

    def table(self) -> pa.Table:
        """All results as one table, whose first column names the query.

        A column is NULL for queries that do not have it. Where queries give one name to columns of several types, each
        type has a column of its own, with underscores after the name.
        """
        speaking = (name for name in self if name not in self._relations or self._relations[name].num_rows)
        tables = [table for table in self._named_tables(speaking) if table.num_rows]
        columns: dict[str, pa.DataType] = {"query": pa.string()}
        named = []
        for table in tables:
            names: list[str] = []
            for name, kind in zip(table.column_names, table.schema.types, strict=True):
                while name in names or columns.get(name, kind) != kind:
                    name += "_"
                columns[name] = kind
                names.append(name)
            named.append(table.rename_columns(names))
        return pa.concat_tables([pa.schema(columns.items()).empty_table(), *named], promote_options="default")

    def _named_tables(self, names: Iterable[str]) -> Iterator[pa.Table]:
        """The results of some queries, those that are reported together with the same columns as one table."""
        by_format: dict[tuple[int, tuple[str, ...]], dict[str, QueryOutput]] = {}
        for name in names:
            if name in self._relations:
                yield _with_query_name(name, self._relations[name])
            else:
                output = self._outputs[name]
                by_format.setdefault((id(output.report_format), tuple(output.added_types)), {})[name] = output
        for (number, _), outputs in by_format.items():
            yield from (_named_table(outputs, reported) for reported in self._reports.get(number, []))

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
    return dated_table(selected, _added_values(output, reported, places, levels), output.added_types)


def _named_table(outputs: Mapping[str, QueryOutput], reported: ReportedRows) -> pa.Table:
    """The results of queries with one report format and the same columns; the first column names the query."""
    pairs = [
        (number, level or 0, owner)
        for owner, output in enumerate(outputs.values())
        for number, level in output.member.subscriptions
    ]
    numbers, levels, owners = np.array(pairs, np.int64).T
    places, counts = _rows_of(numbers, reported)
    levels, owners = np.repeat(levels, counts), np.repeat(owners, counts)
    query = pa.array(list(outputs), pa.string()).take(pa.array(owners))
    columns = combine_columns({"query": query}, _columns_of(_take_rows(reported.selected, places)))
    output = next(iter(outputs.values()))
    return dated_table(columns, _added_values(output, reported, places, levels), output.added_types)


def _family_table(output: QueryOutput, reported: ReportedRows) -> pa.Table:
    """All rows of one report format, with the number of the subscription of each."""
    places = np.arange(len(reported.at))
    added = {"feed": reported.subscriptions, **_added_values(output, reported, places, None)}
    types = {name: kind for name, kind in output.added_types.items() if name != "w_level"}
    return dated_table(_columns_of(reported.selected), added, {"feed": pa.int64(), **types})


def _subscribed_rows(output: QueryOutput, reported: ReportedRows) -> tuple[Int64Array, Int64Array]:
    """The places of the rows of one query, and the level of each of them."""
    numbers, levels = zip(*output.member.subscriptions, strict=True)
    places, counts = _rows_of(np.array(numbers, np.int64), reported)
    return places, np.repeat([level or 0 for level in levels], counts)


def _rows_of(numbers: Int64Array, reported: ReportedRows) -> tuple[Int64Array, Int64Array]:
    """The places of the rows of some subscriptions, one subscription after the other, and how many each has."""
    firsts, stops = (np.searchsorted(reported.subscriptions, each) for each in (numbers, numbers + 1))
    counts = stops - firsts
    return np.repeat(stops - np.cumsum(counts), counts) + np.arange(counts.sum()), counts


def _added_values(
    output: QueryOutput, reported: ReportedRows, places: Int64Array, levels: Int64Array | None
) -> dict[str, AddedValues]:
    """The values of the added columns for some rows, whose levels are given where they are wanted."""
    known = {"ts": reported.at, **reported.added}
    found = {name: _take_values(known[name], places) for name in output.added_types if name in known}
    if "w_start" in output.added_types and "w_start" not in known:
        found["w_start"], found["w_end"] = _window_bounds(reported, places)
    return found if levels is None else found | {"w_level": levels}


def _window_bounds(reported: ReportedRows, places: Int64Array) -> tuple[pa.Array, Int64Array]:
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


def _take_values(values: AddedValues, places: Int64Array) -> AddedValues:
    """Some values; a run of them is not copied."""
    if (run := _run_of(places)) is not None:
        return values[run]
    return values.take(pa.array(places)) if isinstance(values, pa.Array) else values[places]


def _take_rows(table: pa.Table, places: Int64Array) -> pa.Table:
    """Some rows; a run of them is not copied."""
    if (run := _run_of(places)) is not None:
        return table.slice(run.start, len(places))
    return table.take(pa.array(places, pa.int64()))


def _run_of(places: Int64Array) -> slice | None:
    """Places that follow each other as a slice; None if they do not."""
    if len(places) and places[-1] - places[0] == len(places) - 1 and (places[1:] > places[:-1]).all():
        return slice(int(places[0]), int(places[-1]) + 1)
    return None
