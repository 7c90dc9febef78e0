"""What a query reports of a relation: all of it at instants, or the rows that entered and left between them.

Levels follow each other from the finest on. Inside one instant, insertions come before deletions, and rows are in the
order of the time and arrival of the youngest item each came from.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from panewise.aggregate import Int64Array
from panewise.algebra import Emit, Query, known_expiry
from panewise.algebra.result_columns import combine_columns
from panewise.engine.rows.inputs.sessions import SessionInput
from panewise.engine.rows.inputs.timed import WindowView
from panewise.engine.rows.operators.base import order_count, schema_of
from panewise.engine.rows.spans import EMPTY, NO_EXPIRY, UNKNOWN_EXPIRY, RelationDelta, Spans, empty_spans
from panewise.engine.rows.variants import OperatorVariant
from panewise.engine.state.snapshot import Tree

Flags = np.ndarray[tuple[int], np.dtype[np.bool_]]


@dataclass(frozen=True, eq=False)
class EmittedRows:
    """Result rows with the instant of each, and the sign of changes."""

    rows: Spans
    at: Int64Array
    signs: Int64Array
    starts: Int64Array
    ends: Int64Array


class Emitter(ABC):
    """Emits the results of one level of one query."""

    def __init__(self, query: Query, views: Sequence[WindowView], manner: OperatorVariant) -> None:
        self.query, self.views, self.variant = query, views, manner
        #: Instants at which sessions ended and that have not been reported yet.
        self.session_ends = EMPTY

    @property
    def periodic_views(self) -> list[WindowView]:
        return [view for view in self.views if view.window.periodic]

    @abstractmethod
    def advance(self, limit: int, given: RelationDelta, finishing: bool = False) -> EmittedRows:
        """The result rows up to an instant."""

    def _note_sessions(self, after: bool) -> None:
        """Note the instants at which sessions ended, and the instants after them, at which they are gone."""
        for view in self.views:
            if isinstance(view, SessionInput):
                more = view.ended_at + 1 if after else EMPTY
                self.session_ends = np.unique(np.concatenate((self.session_ends, view.ended_at, more)))

    @abstractmethod
    def state(self) -> Tree:
        """The state that is needed after a restart."""

    @abstractmethod
    def restore(self, state: Tree) -> None:
        """Restore what `state` returned."""


def nothing_emitted(query: Query) -> EmittedRows:
    """No rows, in the columns of a query."""
    return EmittedRows(empty_spans(schema_of(query.root), order_count(query.root)), EMPTY, EMPTY, EMPTY, EMPTY)


def emitted_table(query: Query, told: EmittedRows, level: int | None, kind: pa.DataType) -> pa.Table:
    """The selected columns first, then the added columns."""
    selected = dict(zip(told.rows.table.column_names, told.rows.table.columns, strict=True))
    columns = combine_columns(selected, _time_columns(query, told, level, kind))
    return pa.table(list(columns.values()), names=list(columns))


def _time_columns(query: Query, told: EmittedRows, level: int | None, kind: pa.DataType) -> dict[str, pa.Array]:
    added: dict[str, pa.Array] = {}
    if query.emit is Emit.RSTREAM and query.periodic:
        added["w_start"] = pa.array(told.starts, pa.int64(), mask=told.starts == NO_EXPIRY).cast(kind)
        added["w_end"] = pa.array(told.ends, pa.int64(), mask=told.ends == -NO_EXPIRY).cast(kind)
    else:
        added["ts"] = pa.array(told.at, pa.int64()).cast(kind)
    if level is not None:
        added["w_level"] = pa.array(np.full(len(told.at), level), pa.int32())
    if query.emit is Emit.CHANGES:
        added["sign"] = pa.array(told.signs, pa.int8())
    if query.emit in (Emit.CHANGES, Emit.ISTREAM):
        added |= _expiry_columns(query, told, kind)
    return added


def _expiry_columns(query: Query, told: EmittedRows, kind: pa.DataType) -> dict[str, pa.Array]:
    """Columns for the expiry of results, if it is known beforehand; NULL in rows that leave."""
    added: dict[str, pa.Array] = {}
    by_time, orders = known_expiry(query.root)
    gone = told.signs < 0
    if by_time:
        expires = told.rows.expires
        unsaid = gone | (expires == NO_EXPIRY) | (expires == UNKNOWN_EXPIRY)
        added["expires_at"] = pa.array(expires, pa.int64(), mask=unsaid).cast(kind)
    if orders == 1:
        (order,) = told.rows.orders
        added["expires_order"] = pa.array(order, pa.int64(), mask=gone | (order == NO_EXPIRY))
    elif orders > 1:
        added["expires_order"] = _order_lists(told.rows.orders, gone)
    return added


def _order_lists(orders: Sequence[Int64Array], gone: Flags) -> pa.Array:
    """The orders of each row as one value, NULL for rows that are gone."""
    values = np.stack(orders, axis=1).ravel()
    offsets = np.arange(0, len(values) + 1, len(orders), dtype=np.int32)
    return pa.ListArray.from_arrays(pa.array(offsets), pa.array(values), mask=pa.array(gone))
