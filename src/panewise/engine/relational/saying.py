"""What a query says of a relation: the whole of it at instants, or what came and went between them.

Levels follow each other from the finest on. Inside one instant, what came is said before what went, and rows are in the
order of the time and arrival of the youngest item each came from.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from panewise.aggregate import Longs
from panewise.algebra import Emit, Query, announced
from panewise.algebra.added import beside
from panewise.engine.relational.leaves import View
from panewise.engine.relational.manner import Manner
from panewise.engine.relational.operators import counted, schema_of
from panewise.engine.relational.sessions import SessionLeaf
from panewise.engine.relational.spans import ANY_TIME, NEVER_SAID, NONE, Spans, Turn, no_spans
from panewise.engine.snapshot import Tree

Flags = np.ndarray[tuple[int], np.dtype[np.bool_]]


@dataclass(frozen=True, eq=False)
class Told:
    """Result rows with the instant of each, and the sign of changes."""

    rows: Spans
    at: Longs
    signs: Longs
    starts: Longs
    ends: Longs


class Saying(ABC):
    """One level of one query."""

    def __init__(self, query: Query, views: Sequence[View], manner: Manner) -> None:
        self.query, self.views, self.manner = query, views, manner
        #: Instants at which sessions ended and nothing has been said yet.
        self.moments = NONE

    @property
    def speakers(self) -> list[View]:
        return [view for view in self.views if view.window.periodic]

    @abstractmethod
    def turn(self, limit: int, given: Turn, finishing: bool = False) -> Told:
        """What there is to say up to an instant."""

    def _hear(self, after: bool) -> None:
        """Take note of sessions that ended, and of the instants after, at which they are gone."""
        for view in self.views:
            if isinstance(view, SessionLeaf):
                more = view.ended + 1 if after else NONE
                self.moments = np.unique(np.concatenate((self.moments, view.ended, more)))

    @abstractmethod
    def state(self) -> Tree:
        """All that is remembered."""

    @abstractmethod
    def restore(self, state: Tree) -> None:
        """Take over what `state` gave."""


def silence(query: Query) -> Told:
    """Nothing, in the columns of a query."""
    return Told(no_spans(schema_of(query.root), counted(query.root)), NONE, NONE, NONE, NONE)


def told_table(query: Query, told: Told, level: int | None, kind: pa.DataType) -> pa.Table:
    """Selected columns first, then the columns that say when."""
    selected = dict(zip(told.rows.table.column_names, told.rows.table.columns, strict=True))
    columns = beside(selected, _added(query, told, level, kind))
    return pa.table(list(columns.values()), names=list(columns))


def _added(query: Query, told: Told, level: int | None, kind: pa.DataType) -> dict[str, pa.Array]:
    added: dict[str, pa.Array] = {}
    if query.emit is Emit.RSTREAM and query.periodic:
        added["w_start"] = pa.array(told.starts, pa.int64(), mask=told.starts == NEVER_SAID).cast(kind)
        added["w_end"] = pa.array(told.ends, pa.int64(), mask=told.ends == -NEVER_SAID).cast(kind)
    else:
        added["ts"] = pa.array(told.at, pa.int64()).cast(kind)
    if level is not None:
        added["w_level"] = pa.array(np.full(len(told.at), level), pa.int32())
    if query.emit is Emit.CHANGES:
        added["sign"] = pa.array(told.signs, pa.int8())
    if query.emit in (Emit.CHANGES, Emit.ISTREAM):
        added |= _expiry(query, told, kind)
    return added


def _expiry(query: Query, told: Told, kind: pa.DataType) -> dict[str, pa.Array]:
    """Columns for when a result leaves, where that is known beforehand; what leaves says nothing."""
    added: dict[str, pa.Array] = {}
    by_time, orders = announced(query.root)
    gone = told.signs < 0
    if by_time:
        expires = told.rows.expires
        unsaid = gone | (expires == NEVER_SAID) | (expires == ANY_TIME)
        added["expires_at"] = pa.array(expires, pa.int64(), mask=unsaid).cast(kind)
    if orders == 1:
        (order,) = told.rows.orders
        added["expires_order"] = pa.array(order, pa.int64(), mask=gone | (order == NEVER_SAID))
    elif orders > 1:
        added["expires_order"] = _lists(told.rows.orders, gone)
    return added


def _lists(orders: Sequence[Longs], gone: Flags) -> pa.Array:
    """The orders of each row as one value, NULL for rows that are gone."""
    values = np.stack(orders, axis=1).ravel()
    offsets = np.arange(0, len(values) + 1, len(orders), dtype=np.int32)
    return pa.ListArray.from_arrays(pa.array(offsets), pa.array(values), mask=pa.array(gone))
