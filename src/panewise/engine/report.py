"""The results of queries: grouped rows selected and projected, as whole states, as changes or as revisions.

Queries of a family that differ only in their windows have one report format, so that their rows are reported together.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa

from panewise.aggregate import Int64Array, nullable_array
from panewise.aggregate.dictionary import IntegerCodes
from panewise.algebra import Emit, Project
from panewise.algebra.result_columns import AddedValues
from panewise.core.errors import Failure, PanewiseError, QueryProblem
from panewise.core.values import to_arrow, to_python
from panewise.engine.blame import find_failures
from panewise.engine.group_changes import CODE_BITS, PresentRows, slots_of, without_cancelled
from panewise.engine.panes.chunks import ChangeRun, Chunk
from panewise.engine.panes.family import Family, Member
from panewise.engine.panes.grouping import expiry_column
from panewise.engine.panes.lowering import GroupRows, locate_overflow, lower_chunks
from panewise.engine.places import take_rows
from panewise.engine.row_steps import apply_steps
from panewise.engine.state.snapshot import Tree
from panewise.kernels import Flags, Int8Array
from panewise.plan import PanePlan
from panewise.plan.explain.query import call_text
from panewise.plan.pane_plan import step_contents
from panewise.window import Window, WindowRetention


@dataclass(frozen=True, eq=False)
class ReportedRows:
    """Result rows of one report format, by subscription: the selected columns, the instants, and added columns.

    The bounds of a window are among the added columns only if items decide them; otherwise the window knows them.
    """

    selected: pa.Table
    subscriptions: Int64Array
    at: Int64Array
    windows: Mapping[int, Window]
    added: Mapping[str, AddedValues]


class Reporter:
    """All report formats of one family."""

    def __init__(self, family: Family) -> None:
        self.family = family
        self.formats: dict[object, ReportFormat] = {}
        self.format_of: dict[str, ReportFormat] = {}

    def join(self, member: Member) -> ReportFormat:
        """Add a query; returns its report format."""
        key = _format_key(member.plan)
        report_format = self.formats.get(key)
        if report_format is None:
            report_format = self.formats[key] = ReportFormat(self.family, member.plan)
        report_format.subscriptions.update(number for number, _ in member.subscriptions)
        self.format_of[member.name] = report_format
        return report_format

    def leave(self, member: Member) -> None:
        report_format = self.format_of.pop(member.name)
        report_format.subscriptions.subtract(number for number, _ in member.subscriptions)
        for number in {number for number, _ in member.subscriptions}:
            if not report_format.subscriptions[number]:
                report_format.forget(number)
        if not report_format.subscriptions:
            del self.formats[_format_key(member.plan)]

    def take_reports(self) -> Iterator[tuple[int, ReportedRows]]:
        """The new result rows of all turns of the family. A turn is dropped only when it has become results."""
        while self.family.pending:
            yield from self.report(self.family.pending[0]).items()
            del self.family.pending[0]

    def report(self, chunks: Sequence[Chunk | ChangeRun]) -> dict[int, ReportedRows]:
        """The new result rows of each report format, by its identity."""
        if not chunks:
            return {}
        rows = self._lower_chunks(chunks)
        formats = list(self.formats.values())
        if len(formats) > 1:
            speaking = set(rows.subscriptions.tolist())
            formats = [each for each in formats if not speaking.isdisjoint(each.subscriptions)]
        # All that can fail comes first, so that no format records rows as reported that were never returned.
        drafts, failures = [], []
        for report_format in formats:
            try:
                drafts.append((report_format, *report_format.select(rows, len(self.formats) == 1)))
            except PanewiseError:
                failures += self._find_failures(report_format, rows)
        if failures:
            raise QueryProblem(failures)
        return {id(report_format): report_format.new_rows(*draft) for report_format, *draft in drafts}

    def _lower_chunks(self, chunks: Sequence[Chunk | ChangeRun]) -> GroupRows:
        """Chunks as rows. If that fails, the error names the queries that report the failing groups."""
        try:
            return lower_chunks(self.family, chunks)
        except PanewiseError:
            own = {name: _chunks_of(chunks, member) for name, member in self.family.members.items()}
            raise QueryProblem(find_failures(own, lambda name: locate_overflow(self.family, own[name]))) from None

    def _find_failures(self, report_format: ReportFormat, rows: GroupRows) -> list[Failure]:
        """The queries whose own rows fail, of those that are reported together."""

        def attempt(name: str) -> object:
            own = [number for number, _ in self.family.members[name].subscriptions]
            return report_format.select(rows.take(np.flatnonzero(np.isin(rows.subscriptions, own))))

        found = find_failures([name for name, its in self.format_of.items() if its is report_format], attempt)
        asked = {call.name: call_text(call) for call in self.family.plan.group.calls}
        for each in found:
            each.problem.row = {asked.get(name, name): value for name, value in (each.problem.row or {}).items()}
        return found

    def state(self) -> list[Tree]:
        """The state that is needed after a restart, in the order in which queries were added."""
        return [report_format.state() for report_format in self.formats.values()]

    def restore(self, states: list[Tree]) -> None:
        for report_format, state in zip(self.formats.values(), states, strict=True):
            report_format.restore(state)

    def recode(self, codes: Int64Array) -> None:
        """Replace the codes of groups."""
        for report_format in self.formats.values():
            report_format.recode(codes)


def _chunks_of(chunks: Sequence[Chunk | ChangeRun], member: Member) -> list[Chunk | ChangeRun]:
    """The chunks of one query."""
    own = {number for number, _ in member.subscriptions}
    return [mine for chunk in chunks if (mine := chunk.part_of(own)) is not None]


def _format_key(plan: PanePlan) -> object:
    """The value that is equal for queries with the same report format."""
    query = plan.query
    revises, expiry = query.revise is not None, expiry_column(plan)
    return step_contents(plan.after), query.root.columns, query.emit, plan.empty, revises, expiry


@dataclass
class ReportFormat:
    """One way of reporting, and the reported rows that it needs again."""

    family: Family
    plan: PanePlan
    subscriptions: Counter[int] = field(default_factory=Counter)
    #: For revisions: the last report of each instant of a subscription, and how many there were.
    last_reports: dict[tuple[int, int], tuple[int, Counter[Any]]] = field(default_factory=dict)

    @cached_property
    def present_rows(self) -> PresentRows:
        """For changes: the rows that are present, by subscription and group."""
        schema = pa.schema([(column.name, column.type) for column in self.plan.query.root.columns])
        return PresentRows(schema, self._fixed_columns)

    def select(self, rows: GroupRows, alone: bool = False) -> tuple[GroupRows, pa.Table, Int64Array]:
        """The rows of its subscriptions, the selected table, and the places of the rows from which that comes.

        If it is `alone`, all rows are of its subscriptions.
        """
        if not alone:
            mine = np.flatnonzero(np.isin(rows.subscriptions, np.fromiter(self.subscriptions, np.int64)))
            rows = rows if len(mine) == len(rows) else rows.take(mine)
        shown = np.flatnonzero(rows.present | self.plan.empty)
        table = rows.table if len(shown) == len(rows) else take_rows(rows.table, shown)
        table, kept = apply_steps(self.plan.after, table, self.family.host)
        selected = table.select(self._column_names)
        return rows, selected, shown if kept is None else shown[kept]

    def new_rows(self, rows: GroupRows, selected: pa.Table, places: Int64Array) -> ReportedRows:
        """The result rows that have to be reported."""
        if self.plan.reports_changes:
            return self._changes(rows, selected, places)
        if self.plan.query.revise is not None:
            return self._revisions(rows, selected, places)
        at = rows.at[places]
        bounds = {} if rows.starts is None else {"w_start": rows.starts[places], "w_end": at}
        return ReportedRows(selected, rows.subscriptions[places], at, self._windows(), bounds)

    def _windows(self) -> dict[int, Window]:
        """The windows of its subscriptions; reported rows keep them, since a query may leave before they are read."""
        return {number: self.family.subscriptions[number].window for number in self.subscriptions}

    def forget(self, number: int) -> None:
        """Drop the state of a subscription that no query uses any more."""
        del self.subscriptions[number]
        self.present_rows.forget(number)
        self.last_reports = {key: last for key, last in self.last_reports.items() if key[0] != number}

    def state(self) -> Tree:
        last = [
            (*key, revision, count, row)
            for key, (revision, rows) in self.last_reports.items()
            for row, count in rows.items()
        ]
        return {
            "present": self.present_rows.state(),
            "told": [list(entry[:4]) for entry in last],
            "told_rows": self._table([entry[4] for entry in last]),
        }

    def restore(self, state: Tree) -> None:
        self.present_rows.restore(state["present"])
        for (number, at, revision, count), row in zip(state["told"], _tuples(state["told_rows"]), strict=True):
            self.last_reports.setdefault((number, at), (revision, Counter()))[1][row] = count

    def _table(self, rows: list[tuple[Any, ...]]) -> pa.Table:
        """Result rows as a table."""
        schema = pa.schema([(column.name, column.type) for column in self.plan.query.root.columns])
        columns = list(zip(*rows, strict=True)) or [()] * len(schema)
        return pa.table([to_arrow(list(c), f.type) for c, f in zip(columns, schema, strict=True)], schema=schema)

    def recode(self, codes: Int64Array) -> None:
        self.present_rows.recode(codes)

    def _changes(self, rows: GroupRows, selected: pa.Table, places: Int64Array) -> ReportedRows:
        """The differences between one state of a group and the next, as multisets: insertions before deletions."""
        slots = slots_of(rows.subscriptions, rows.codes)
        found = self.present_rows.changes(slots, rows.at, selected, places)
        if not self._identifies_groups:
            turns = IntegerCodes().encode((rows.subscriptions << CODE_BITS) ^ IntegerCodes().encode(rows.at))
            found = without_cancelled(found, turns[found.origin], -rows.codes[found.origin])
        emit = self.plan.query.emit
        if emit is not Emit.CHANGES:
            found = found.with_sign(1 if emit is Emit.ISTREAM else -1)
        origin, signs = found.origin, found.signs
        added: dict[str, AddedValues] = {"sign": signs, **self._expiry(rows, origin, signs)}
        table = take_rows(found.table, found.rows)
        return ReportedRows(table, found.subscriptions, found.at, self._windows(), added)

    @cached_property
    def _fixed_columns(self) -> dict[str, str]:
        """The selected columns that are keys of groups, and which."""
        found = {key: key for key in self.plan.group.keys}
        for step in self.plan.after:
            if isinstance(step, Project):
                found = {name: found[s.column] for name, s in step.items if s.column in found}
        return found

    @cached_property
    def _column_names(self) -> list[str]:
        return [column.name for column in self.plan.query.root.columns]

    @cached_property
    def _expiry_column(self) -> str | None:
        return expiry_column(self.plan)

    @cached_property
    def _identifies_groups(self) -> bool:
        """Whether rows of different groups always differ."""
        return set(self._fixed_columns.values()) == set(self.plan.group.keys)

    def _expiry(self, rows: GroupRows, origin: Int64Array, signs: Int8Array) -> dict[str, pa.Array]:
        """The column with the expiry of results, if it is known beforehand; NULL in rows that leave."""
        column = self._expiry_column
        if rows.oldest is None or column is None or self.plan.query.emit is Emit.DSTREAM:
            return {}
        if rows.expires:
            return {column: _values_at(rows.oldest, origin, signs > 0)}
        if self.plan.window.retention is WindowRetention.FOLLOWS_SESSIONS:
            return {column: nullable_array(rows.at[origin] + 1, signs < 0)}
        oldest = rows.oldest.take(pa.array(origin))
        ticks = oldest.fill_null(0).to_numpy(zero_copy_only=False)
        expires = np.zeros(len(ticks), np.int64)
        subscriptions = rows.subscriptions[origin]
        for number in np.unique(subscriptions):
            at = np.flatnonzero(subscriptions == number)
            order = at[np.argsort(ticks[at], kind="stable")]
            window = self.family.subscriptions[int(number)].window
            leaving = window.expires_order(ticks[order])
            if leaving is None:
                leaving = window.expires_at(ticks[order], self.family.boundary)
            assert leaving is not None
            expires[order] = leaving
        return {column: pa.array(expires, mask=(signs < 0) | oldest.is_null().to_numpy(zero_copy_only=False))}

    def _revisions(self, rows: GroupRows, selected: pa.Table, places: Int64Array) -> ReportedRows:
        """The whole state again at every instant at which a late item changed it."""
        values = dict(zip(places.tolist(), zip(range(len(places)), _tuples(selected), strict=True), strict=True))
        kept: list[int] = []
        numbers: list[int] = []
        for turn in rows.by_turn():
            shown = [values[place] for place in turn if place in values]
            key = int(rows.subscriptions[turn.start]), int(rows.at[turn.start])
            state = Counter(row for _, row in shown)
            revision, before = self.last_reports.get(key, (0, Counter()))
            if rows.revised[turn.start]:
                if state == before:
                    continue
                revision += 1
            self.last_reports[key] = revision, state
            kept += [place for place, _ in shown]
            numbers += [revision] * len(shown)
        self._forget_final_instants()
        chosen = np.array(kept, np.int64)
        table = take_rows(selected, chosen)
        origin, added = places[chosen], {"revision": np.array(numbers, np.int64)}
        return ReportedRows(table, rows.subscriptions[origin], rows.at[origin], self._windows(), added)

    def _forget_final_instants(self) -> None:
        """Drop instants that no late item can change any more."""
        patience = self.plan.query.revise or 0
        since = self.family.answered_until - patience
        self.last_reports = {key: last for key, last in self.last_reports.items() if key[1] >= since}


def _values_at(numbers: pa.Array, places: Int64Array, wanted: Flags) -> pa.Array:
    """The numbers at some places, NULL where they are not wanted."""
    if numbers.null_count:
        wanted &= numbers.is_valid().to_numpy(zero_copy_only=False)[places]
        numbers = numbers.fill_null(0)
    return nullable_array(numbers.to_numpy()[places], ~wanted)


def _tuples(table: pa.Table) -> list[tuple[Any, ...]]:
    columns = [to_python(column) for column in table.columns]
    return list(zip(*columns, strict=True)) if columns else [()] * table.num_rows
