"""The meaning of every query, literal and slow: each result recomputed from the whole history at every instant.

Written first and never optimised; everything fast is compared with it. Read `evaluate` for the operators, `history`
for arrival and lateness, `moments` for when a query reports, `emit` for what it reports.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

import numpy as np
import pyarrow as pa

from panewise.algebra import Derived, Host, Query, Source, Windowed, default_host
from panewise.algebra.result_columns import added_types, instant_type
from panewise.core.accounting import Accounting, Outcome
from panewise.core.errors import BindProblem
from panewise.core.time import Boundary, Instant
from panewise.cql import bind_inputs
from panewise.reference.account import AnsweredQuery, account_stream
from panewise.reference.emit import Progress, Result, emit_results, to_table
from panewise.reference.evaluate import Evaluation, view_function
from panewise.reference.frame_queries import framing_table, late_arrivals
from panewise.reference.history import Arrival, History, Row, read_arrivals
from panewise.reference.lookup import lookup_table, stretch_table
from panewise.reference.moments import Moment, moments, replace_windows, split_levels
from panewise.window import Contents, Window

__all__ = ["Accounting", "Outcome", "execute", "lookup", "run"]


def run(
    query: str | Query,
    streams: Mapping[str, Any],
    *,
    time: str | None = None,
    boundary: str | Boundary = "(]",
    until: int | str | datetime | None = None,
) -> pa.Table:
    """The results of one SELECT over bounded streams."""
    return execute(query, streams, time=time, boundary=boundary, until=until).table_with_accounting()


def execute(
    query: str | Query,
    streams: Mapping[str, Any],
    *,
    time: str | None = None,
    boundary: str | Boundary = "(]",
    until: int | str | datetime | None = None,
    host: Host | None = None,
    progress: Progress = lambda done, total: None,
) -> Outcome:
    """The results of one SELECT, with the account of what was used, late and rejected.

    `progress` is called from time to time with the number of answered moments and the number of all.
    """
    host = host or default_host()
    boundary = Boundary.of(boundary)
    bound, given = bind_inputs(query, streams, time)
    arrivals = {name: read_arrivals(given[name]) for name in sorted(bound.root.streams)}
    session = _Run(arrivals, boundary, host, _tick(until, bound), progress)
    table = session.table(bound)
    accounts = {n: session.account(n, bound) for n in arrivals}
    return Outcome(table, {n: c for n, (c, _) in accounts.items()}, {n: late for n, (_, late) in accounts.items()})


def lookup(
    query: str | Query,
    streams: Mapping[str, Any],
    at: int | str | datetime | Sequence[int] = (),
    *,
    between: tuple[int | Sequence[int], int | Sequence[int]] | None = None,
    time: str | None = None,
    boundary: str | Boundary = "(]",
    host: Host | None = None,
) -> pa.Table:
    """The state of one SELECT at an instant, or at several, from all rows of the streams; none of them is late.

    `between` asks for stretches `(start, end]` instead: of time in ticks, or of row numbers where the window counts.
    """
    host = host or default_host()
    bound, given = bind_inputs(query, streams, time)
    used = {name: given[name] for name in sorted(bound.root.streams)}
    if between is not None:
        starts, ends = np.broadcast_arrays(*(np.atleast_1d(np.asarray(side, np.int64)) for side in between))
        return stretch_table(bound, used, (starts, ends), Boundary.of(boundary), host)
    instants = at if isinstance(at, Sequence) and not isinstance(at, str) else [_tick(at, bound)]
    return lookup_table(bound, used, [tick for tick in instants if tick is not None], Boundary.of(boundary), host)


@dataclass
class _Run:
    """One run over arrived streams; derived streams are run first and become history themselves."""

    arrivals: dict[str, Arrival]
    boundary: Boundary
    host: Host
    until: int | None
    progress: Progress

    def __post_init__(self) -> None:
        self.sources: dict[object, History] = {name: a.history for name, a in self.arrivals.items()}
        self.answered: list[AnsweredQuery] = []

    def table(self, query: Query) -> pa.Table:
        instants = instant_type(query, {name: arrival.stream.schema for name, arrival in self.arrivals.items()})
        if query.framed_node:
            last = None if self.until is None else self.until - self.boundary.shift
            return framing_table(query, Evaluation(self.sources, self.boundary, self.host), last, instants)
        return to_table(query, self.results(query), added_types(query, instants))

    def account(self, name: str, query: Query) -> tuple[Accounting, pa.Table]:
        """Where the rows of a stream went, and those that came too late."""
        late = None
        if query.framed_node:
            late = late_arrivals(query, name, Evaluation(self.sources, self.boundary, self.host))
        return account_stream(name, self.arrivals[name], self.answered, self.boundary, late)

    def results(self, query: Query) -> list[Result]:
        for node in query.root.walk():
            if isinstance(node, Derived) and node.query not in self.sources:
                self.sources[node.query] = _as_history(self.results(node.query))
        found: list[Result] = []
        anchored = self.anchor_windows(query)
        for level, single in split_levels(anchored):
            look = view_function(anchored, level or 0, self.boundary)
            evaluation = Evaluation(self.sources, self.boundary, self.host, query.empty, look)
            when = moments(single, evaluation.parts, self.boundary)
            if query.revise is not None:
                when = [m for moment in when for m in self._revisions(moment, query.revise)]
            self.answered.append(AnsweredQuery(single, evaluation, when))
            reported = [m for m in when if self.until is None or m.at <= self.until]
            found += emit_results(single, evaluation, reported, level, self.progress)
        return sorted(found, key=lambda r: r.moment.at)

    def anchor_windows(self, query: Query) -> Query:
        """The query with times of day resolved to the day of the first item of the streams below each window."""

        def anchor(node: Windowed) -> Window:
            leaves = (n for n in node.walk() if isinstance(n, Source | Derived))
            below = (self.sources[n.stream if isinstance(n, Source) else n.query] for n in leaves)
            firsts = [history.first for history in below if history.first is not None]
            return node.window.anchor_to(min(firsts, default=0))

        return replace(query, root=replace_windows(query.root, anchor))

    def _revisions(self, moment: Moment, patience: int) -> list[Moment]:
        """The moment, and again after each arrival that was late for it by no more than LATE REVISE admits."""
        admitted: set[tuple[int, int]] = set()
        for history in self.sources.values():
            c = history.contents
            upto = int(np.searchsorted(c.times, moment.at - self.boundary.shift, side="right"))
            late = history.late_for(moment.at, self.boundary, upto)
            late &= ~history.late_for(moment.at + patience, self.boundary, upto)
            admitted.update(zip(c.marks[:upto][late].tolist(), c.arrivals[:upto][late].tolist(), strict=True))
        return [moment, *(replace(moment, revision=n, admitted=a) for n, a in enumerate(sorted(admitted), start=1))]


def _as_history(results: list[Result]) -> History:
    ordered = sorted(results, key=lambda r: r.moment.at)
    return History(
        [Row(r.row.values, r.moment.at) for r in ordered],
        Contents.of(np.array([r.moment.at for r in ordered], np.int64)),
    )


def _tick(until: int | str | datetime | None, query: Query) -> int | None:
    if until is None:
        return None
    value = until.isoformat() if isinstance(until, datetime) else until
    instant = Instant.parse(value, query.domain)
    if instant.of_day:
        raise BindProblem(f"until={until!r} has no date", fix="write a date and a time")
    return instant.tick
