"""From relations that change with time to result rows: whole states, insertions, deletions or signed changes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from panewise.algebra import Emit, Query
from panewise.algebra.result_columns import dated_table
from panewise.core.values import to_arrow
from panewise.reference.evaluate import Bag, Evaluation
from panewise.reference.history import Row
from panewise.reference.moments import Moment

#: Moments evaluated together: enough to avoid many small calls of the host, few enough to bound memory.
BLOCK = 128

#: Called with the number of moments that are done, and of all moments.
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
    emitted = _whole_states if query.emit is Emit.RSTREAM else _changes
    states = _states(query, evaluation, moments, progress)
    yield from (replace(result, level=level) for result in emitted(query, states))


def _states(query: Query, evaluation: Evaluation, moments: list[Moment], progress: Progress) -> States:
    for start in range(0, len(moments), BLOCK):
        block = moments[start : start + BLOCK]
        yield from zip(block, evaluation.bags(query.root, block), strict=True)
        progress(start + len(block), len(moments))


def _whole_states(query: Query, states: States) -> Iterator[Result]:
    """The whole relation at each moment; a revision repeats it only where it differs from the report before."""
    reported: tuple[Moment, Counter[Any]] | None = None
    revision = 0
    for moment, bag in states:
        values = Counter(row.values for row in bag) if query.revise is not None else Counter()
        if moment.revision:
            if reported and reported[1] == values:
                continue
            revision += 1
        else:
            revision = 0
        reported = (moment, values)
        yield from (Result(row, replace(moment, revision=revision)) for row in bag)


def _changes(query: Query, states: States) -> Iterator[Result]:
    """The difference between one moment and the next, as multisets: first rows that appeared, then those that left."""
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
    """Of equal rows, the youngest count as those that appeared."""
    found: Bag = []
    for row in sorted(bag, key=lambda r: r.time)[::-1]:
        if wanted[row.values] > 0:
            wanted[row.values] -= 1
            found.append(row)
    return found[::-1]


def to_table(query: Query, results: list[Result], types: Mapping[str, pa.DataType]) -> pa.Table:
    """Selected columns first, then the added ones of these types."""
    selected = {
        column.name: to_arrow([r.row.values[place] for r in results], column.type)
        for place, column in enumerate(query.root.columns)
    }
    added = {name: to_arrow(_added_values(name, results, kind), kind) for name, kind in types.items()}
    return dated_table(selected, added, types)


#: The value of a result in each added column.
_ADDED_VALUES: dict[str, Callable[[Result], Any]] = {
    "w_start": lambda result: result.moment.start,
    "w_end": lambda result: result.moment.end,
    "ts": lambda result: result.moment.at,
    "w_level": lambda result: result.level,
    "sign": lambda result: result.sign,
    "expires_at": lambda result: result.row.expires,
    "expires_order": lambda result: result.row.orders or None,
    "revision": lambda result: result.moment.revision,
}


def _added_values(name: str, results: list[Result], kind: pa.DataType) -> list[Any]:
    found = [_ADDED_VALUES[name](result) for result in results]
    if name == "expires_order" and not pa.types.is_list(kind):
        return [orders and orders[0] for orders in found]
    return found
