"""From relations that change with time to result rows: whole states, insertions, deletions or signed changes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from panewise.algebra import Emit, Query, known_expiry
from panewise.algebra.result_columns import combine_columns
from panewise.core.time import Domain
from panewise.core.values import to_arrow
from panewise.reference.evaluate import Bag, Evaluation
from panewise.reference.history import Row
from panewise.reference.moments import Moment
from panewise.window import MultiGranular

#: Moments evaluated together: enough to spare the host many small calls, few enough to keep memory flat.
BLOCK = 128

#: Called with how many of how many moments are done.
Progress = Callable[[int, int], None]
#: The relation at each moment, in order.
States = Iterator[tuple[Moment, Bag]]


@dataclass(frozen=True)
class Result:
    """One emitted row: the row itself and when, why and for which window it was emitted."""

    row: Row
    moment: Moment
    sign: int = 1
    level: int | None = None


def emit_results(
    query: Query, evaluation: Evaluation, moments: list[Moment], level: int | None, progress: Progress
) -> Iterator[Result]:
    """All results of a query, in the order of its moments."""
    said = _whole_states if query.emit is Emit.RSTREAM else _changes
    states = _states(query, evaluation, moments, progress)
    yield from (replace(result, level=level) for result in said(query, states))


def _states(query: Query, evaluation: Evaluation, moments: list[Moment], progress: Progress) -> States:
    for start in range(0, len(moments), BLOCK):
        block = moments[start : start + BLOCK]
        yield from zip(block, evaluation.bags(query.root, block), strict=True)
        progress(start + len(block), len(moments))


def _whole_states(query: Query, states: States) -> Iterator[Result]:
    """The whole relation at each moment; a revision repeats it only where it differs from what was said before."""
    said: tuple[Moment, Counter[Any]] | None = None
    revision = 0
    for moment, bag in states:
        values = Counter(row.values for row in bag) if query.revise is not None else Counter()
        if moment.revision:
            if said and said[1] == values:
                continue
            revision += 1
        else:
            revision = 0
        said = (moment, values)
        yield from (Result(row, replace(moment, revision=revision)) for row in bag)


def _changes(query: Query, states: States) -> Iterator[Result]:
    """What differs between one moment and the next, as multisets: first what came, then what went."""
    before: Counter[tuple[Any, ...]] = Counter()
    for moment, bag in states:
        now = Counter(row.values for row in bag)
        if now != before:
            if query.emit is not Emit.DSTREAM:
                yield from (Result(row, moment) for row in _newest(bag, now - before))
            if query.emit is not Emit.ISTREAM:
                gone = (before - now).elements()
                yield from (Result(Row(values, moment.at), moment, -1) for values in gone)
        before = now


def _newest(bag: Bag, wanted: Counter[tuple[Any, ...]]) -> Bag:
    """Of equal rows the youngest are the ones that came."""
    found: Bag = []
    for row in sorted(bag, key=lambda r: r.time)[::-1]:
        if wanted[row.values] > 0:
            wanted[row.values] -= 1
            found.append(row)
    return found[::-1]


def to_table(query: Query, results: list[Result], time_type: pa.DataType) -> pa.Table:
    """Selected columns first, then the columns that say when."""
    selected = {
        column.name: to_arrow([r.row.values[place] for r in results], column.type)
        for place, column in enumerate(query.root.columns)
    }
    added = _added_columns(query, results, time_type)
    columns = combine_columns(selected, {name: to_arrow(values, kind) for name, (values, kind) in added.items()})
    return pa.table(list(columns.values()), names=list(columns))


def _added_columns(
    query: Query, results: list[Result], time_type: pa.DataType
) -> dict[str, tuple[list[Any], pa.DataType]]:
    added: dict[str, tuple[list[Any], pa.DataType]] = {}
    if query.emit is Emit.RSTREAM and query.periodic:
        added["w_start"] = [r.moment.start for r in results], time_type
        added["w_end"] = [r.moment.end for r in results], time_type
    else:
        added["ts"] = [r.moment.at for r in results], time_type
    if any(isinstance(w.window, MultiGranular) for w in query.windows):
        added["w_level"] = [r.level for r in results], pa.int32()
    if query.emit is Emit.CHANGES:
        added["sign"] = [r.sign for r in results], pa.int8()
    if query.emit in (Emit.CHANGES, Emit.ISTREAM):
        added |= _expiry_columns(query, results, time_type)
    if query.revise is not None:
        added["revision"] = [r.moment.revision for r in results], pa.int32()
    return added


def _expiry_columns(
    query: Query, results: list[Result], time_type: pa.DataType
) -> dict[str, tuple[list[Any], pa.DataType]]:
    """Columns for when a result leaves, where that is known beforehand; a join of counted windows has two orders."""
    added: dict[str, tuple[list[Any], pa.DataType]] = {}
    by_time, orders = known_expiry(query.root)
    if by_time:
        added["expires_at"] = [r.row.expires for r in results], time_type
    if orders == 1:
        added["expires_order"] = [r.row.orders[0] if r.row.orders else None for r in results], pa.int64()
    elif orders > 1:
        added["expires_order"] = [r.row.orders or None for r in results], pa.list_(pa.int64())
    return added


def time_type(domain: Domain, declared: pa.DataType) -> pa.DataType:
    """The type of instants in results: int64, or microseconds in the zone of the time column."""
    return pa.int64() if domain is Domain.INTEGER else pa.timestamp("us", declared.tz)
