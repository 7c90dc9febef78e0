"""`pw.run` and `pw.execute`: one SELECT over bounded input, embedded."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from typing import Any

import pyarrow as pa

from panewise import reference
from panewise.algebra import Host, Query, default_host
from panewise.algebra.hints import hints
from panewise.core.accounting import Outcome, loss_report
from panewise.core.errors import PanewiseWarning, QueryProblem
from panewise.core.schema import Stream
from panewise.core.time import Boundary
from panewise.cql import bind_inputs
from panewise.engine import Engine, Pool
from panewise.engine.pool import plan_for_engine
from panewise.plan import QueryPlan, Refusal

#: Rows fed at once: enough to be fast, few enough to report progress.
FEED_ROWS = 1_000_000


def run(
    query: str | Query,
    streams: Mapping[str, Any],
    *,
    time: str | None = None,
    boundary: str | Boundary = "(]",
    until: int | str | datetime | None = None,
) -> pa.Table:
    """Answer one continuous SELECT over bounded streams and return all its results.

    `streams` maps names to pyarrow, pandas or polars tables, whose time column is `time`, or to `pw.Stream`s, which
    have their own. The run ends when every item has been in all its windows, or at `until`.

    Rows that came too late or have no usable time are in no result: a `PanewiseWarning` gives their number. The account
    is in the metadata of the table (`pw.Accounting.of`); `pw.execute` returns it with the late rows themselves.

    >>> import pyarrow as pa, panewise as pw
    >>> s = pa.table({"t": [1, 2, 4], "v": [10, 20, 40]})
    >>> pw.run("SELECT SUM(v) AS total FROM S [RANGE 3 SLIDE 2]", {"S": s}, time="t", until=4).to_pylist()
    [{'total': 30, 'w_start': -1, 'w_end': 2}, {'total': 60, 'w_start': 1, 'w_end': 4}]
    """
    bound, given = bind_inputs(query, streams, time)
    outcome = execute(bound, given, boundary=boundary, until=until)
    for hint in hints(bound) if isinstance(query, str) else ():
        warnings.warn(hint, PanewiseWarning, stacklevel=2)
    if lost := loss_report(outcome.accounting):
        warnings.warn(lost, PanewiseWarning, stacklevel=2)
    return outcome.table_with_accounting()


def execute(
    query: str | Query,
    streams: Mapping[str, Any],
    *,
    time: str | None = None,
    boundary: str | Boundary = "(]",
    until: int | str | datetime | None = None,
    host: Host | None = None,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> Outcome:
    """The results of one SELECT over bounded streams, with the account of what was used, late and rejected, and the
    late rows themselves.

    The engine answers nearly all queries; the reference answers the few others.
    """
    host = host or default_host()
    bound, given = bind_inputs(query, streams, time)
    plan = plan_for_engine(bound)
    if isinstance(plan, Refusal):
        return reference.execute(bound, given, boundary=boundary, until=until, host=host, progress=progress)
    try:
        return _run_engine(plan, given, Boundary.of(boundary), until, host, progress)
    except QueryProblem as found:
        # There is only one query, and it has no name.
        raise found.failures[0].problem from None


def _run_engine(
    plan: QueryPlan,
    streams: Mapping[str, Stream],
    boundary: Boundary,
    until: int | str | datetime | None,
    host: Host,
    progress: Callable[[int, int], None],
) -> Outcome:
    read = {name: streams[name] for name in sorted(plan.query.root.streams)}
    pool = Pool({name: stream.schema for name, stream in read.items()}, boundary, host=host, bounded=True)
    pool.add_query(pool.prepare_query("query", plan))
    engine = Engine(pool)
    total, before = sum(stream.arrow.num_rows for stream in read.values()), 0
    for name, stream in read.items():
        for done in feed_in_parts(engine, name, stream):
            progress(before + done, 2 * total)
        before += stream.arrow.num_rows
    found = engine.finish(until)["query"]
    progress(1, 1)
    return Outcome(found, engine.accounting, {name: engine.late(name) for name in read})


def feed_in_parts(engine: Engine, name: str, stream: Stream) -> Iterator[int]:
    """Feed a bounded stream in parts; yields the number of rows fed so far."""
    engine.reject_after(name, stream.horizon)
    for start in range(0, stream.arrow.num_rows, FEED_ROWS):
        engine.feed(name, stream.arrow.slice(start, FEED_ROWS))
        yield min(start + FEED_ROWS, stream.arrow.num_rows)
