"""Results of an engine: tables by query, cut out of the tables of families when they are accessed."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from panewise.aggregate import Int64Array, runs
from panewise.algebra import Emit
from panewise.algebra.result_columns import combine_columns
from panewise.engine.panes.family import Member
from panewise.engine.report import ReportedRows, ReportFormat
from panewise.window import MultiGranular, Session, Window


@dataclass(frozen=True, eq=False)
class QueryOutput:
    """The report format of a query, its subscriptions (in `member`), and the type of instants in its results."""

    manner: ReportFormat
    member: Member
    instants: pa.DataType


class Emission(Mapping[str, pa.Table]):
    """The results of one `advance`, by the name of the query. A query without results has an empty table."""

    def __init__(
        self,
        seats: Mapping[str, QueryOutput],
        heard: Mapping[int, list[ReportedRows]],
        relations: Mapping[str, pa.Table],
    ) -> None:
        self._outputs, self._reports, self._relations = seats, heard, relations
        self._tables: dict[str, pa.Table] = dict(relations)

    def __getitem__(self, name: str) -> pa.Table:
        if name not in self._tables:
            seat = self._outputs[name]
            said = self._reports.get(id(seat.manner)) or [_empty_report(seat)]
            self._tables[name] = pa.concat_tables([result_table(seat, each) for each in said])
        return self._tables[name]

    def __iter__(self) -> Iterator[str]:
        return iter({**self._outputs, **self._relations})

    def __len__(self) -> int:
        return len(self._outputs) + len(self._relations)

    def combined_table(self, names: Collection[str]) -> pa.Table | None:
        """The results of some queries with the same columns as one table, whose first column names the query."""
        manners: dict[int, dict[str, QueryOutput]] = {}
        tables = [_with_query_name(name, self._relations[name]) for name in names if name in self._relations]
        for name in names:
            if name in self._relations:
                continue
            manners.setdefault(id(self._outputs[name].manner), {})[name] = self._outputs[name]
        heard = [(said, seats) for manner, seats in manners.items() for said in self._reports.get(manner, [])]
        tables += [_per_query_table(said, listeners) for said, listeners in heard]
        return pa.concat_tables(tables) if tables else None

    def families(self) -> list[pa.Table]:
        """The same results, one table for each report format; the column `feed` has the number of the subscription."""
        seats = {id(seat.manner): seat for seat in self._outputs.values()}
        return [family_table(seats[manner], each) for manner, said in self._reports.items() for each in said]


def _with_query_name(name: str, table: pa.Table) -> pa.Table:
    """A table with the name of its query as the first column."""
    query = {"query": pa.array([name] * table.num_rows, pa.string())}
    columns = combine_columns(query, dict(zip(table.column_names, table.columns, strict=True)))
    return pa.table(list(columns.values()), names=list(columns))


def result_table(seat: QueryOutput, said: ReportedRows) -> pa.Table:
    """The table of one query, in the order of time; levels follow each other."""
    pieces = [np.arange(*np.searchsorted(said.feeds, (feed, feed + 1))) for feed, _ in seat.member.feeds]
    levels = np.repeat([level if level is not None else -1 for _, level in seat.member.feeds], list(map(len, pieces)))
    places = np.concatenate(pieces)
    columns = dict(zip(said.selected.column_names, _take_rows(said.selected, places).columns, strict=True))
    return _with_time_columns(seat, said, places, levels, columns)


def _with_time_columns(
    seat: QueryOutput, said: ReportedRows, places: Int64Array, levels: Int64Array, columns: dict[str, pa.Array]
) -> pa.Table:
    """The selected columns, followed by the added columns for time, level and sign."""
    added = _time_columns(seat, said, places)
    if isinstance(seat.member.plan.window, MultiGranular):
        added["w_level"] = pa.array(levels, pa.int32())
    columns = combine_columns(columns, {name: added[name] for name in _COLUMN_ORDER if name in added})
    return pa.table(list(columns.values()), names=list(columns))


_COLUMN_ORDER = ("w_start", "w_end", "ts", "w_level", "sign", "expires_at", "expires_order", "revision")


def _per_query_table(said: ReportedRows, seats: Mapping[str, QueryOutput]) -> pa.Table:
    """All rows of one report format, once for each query that has a subscription to them."""
    names: list[str] = []
    levels: list[int] = []
    pieces: list[Int64Array] = []
    for name, listener in seats.items():
        for feed, level in listener.member.feeds:
            piece = np.arange(*np.searchsorted(said.feeds, (feed, feed + 1)))
            if len(piece):
                names.append(name)
                levels.append(-1 if level is None else level)
                pieces.append(piece)
    sizes = list(map(len, pieces))
    places = np.concatenate(pieces) if pieces else np.zeros(0, np.int64)
    query = pa.array(names, pa.string()).take(pa.array(np.repeat(np.arange(len(names)), sizes)))
    selected = zip(said.selected.column_names, _take_rows(said.selected, places).columns, strict=True)
    columns = combine_columns({"query": query}, dict(selected))
    seat = next(iter(seats.values()))
    return _with_time_columns(seat, said, places, np.repeat(levels, sizes), columns)


def family_table(seat: QueryOutput, said: ReportedRows) -> pa.Table:
    """All rows of one report format, with the number of the subscription of each."""
    places = np.arange(len(said.feeds))
    columns = dict(zip(said.selected.column_names, said.selected.columns, strict=True))
    columns = combine_columns(columns, {"feed": pa.array(said.feeds), **_time_columns(seat, said, places)})
    return pa.table(list(columns.values()), names=list(columns))


def _time_columns(seat: QueryOutput, said: ReportedRows, places: Int64Array) -> dict[str, pa.Array]:
    """The added columns that give the time of a result."""
    query, added = seat.member.plan.query, {}
    at, feeds = said.at[places], said.feeds[places]
    if query.emit is Emit.RSTREAM and query.periodic:
        if isinstance(seat.member.plan.window, Session):
            starts = said.starts if said.starts is not None else at
            added["w_start"], added["w_end"] = _instants(starts[places], seat.instants), _instants(at, seat.instants)
        else:
            added["w_start"], added["w_end"] = _window_bounds(said.windows, feeds, at, seat.instants)
    else:
        added["ts"] = _instants(at, seat.instants)
    if query.emit is Emit.CHANGES:
        signs = said.signs if said.signs is not None else np.zeros(0)
        added["sign"] = pa.array(signs[places].astype(np.int8))
    if seat.manner.family.expiry_column and query.emit in (Emit.CHANGES, Emit.ISTREAM):
        expires = said.expires if said.expires is not None else pa.array([], pa.int64())
        kind = seat.instants if seat.manner.family.expiry_column == "expires_at" else pa.int64()
        added[seat.manner.family.expiry_column] = expires.take(pa.array(places)).cast(kind)
    if query.revise is not None:
        revisions = said.revisions if said.revisions is not None else np.zeros(0)
        added["revision"] = pa.array(revisions[places].astype(np.int32))
    return added


def _window_bounds(
    windows: Mapping[int, Window], feeds: Int64Array, at: Int64Array, kind: pa.DataType
) -> tuple[pa.Array, pa.Array]:
    starts, ends = np.zeros(len(at), np.int64), np.zeros(len(at), np.int64)
    unbounded = np.zeros(len(at), bool)
    for low, high in zip(*runs(feeds), strict=True):
        begins, ends[low:high] = windows[int(feeds[low])].spans(at[low:high])
        starts[low:high], unbounded[low:high] = (0, True) if begins is None else (begins, False)
    return _instants(starts, kind, unbounded), _instants(ends, kind)


def _instants(ticks: Int64Array, kind: pa.DataType, missing: Int64Array | None = None) -> pa.Array:
    return pa.array(ticks, pa.int64(), mask=missing).cast(kind)


def _take_rows(table: pa.Table, places: Int64Array) -> pa.Table:
    """Some rows; a run of them is not copied."""
    if len(places) and places[-1] - places[0] == len(places) - 1 and (np.diff(places) == 1).all():
        return table.slice(int(places[0]), len(places))
    return table.take(pa.array(places, pa.int64()))


def _empty_report(seat: QueryOutput) -> ReportedRows:
    columns = seat.member.plan.query.root.columns
    schema = pa.schema([(column.name, column.type) for column in columns])
    return ReportedRows(schema.empty_table(), np.zeros(0, np.int64), np.zeros(0, np.int64), {})
