"""What a query reports of a relation: all of it at instants, or the rows that entered and left between them.

Levels follow each other from the finest on. Inside one instant, insertions come before deletions, and rows are in the
order of the time and arrival of the youngest item each came from.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from panewise.aggregate import Int64Array
from panewise.algebra import Query
from panewise.algebra.result_columns import AddedValues, dated_table
from panewise.engine.places import take_rows
from panewise.engine.rows.inputs.timed import WindowView
from panewise.engine.rows.operators.base import OperatorVariant
from panewise.engine.rows.spans import EMPTY, NO_EXPIRY, UNKNOWN_EXPIRY, RelationDelta, Spans
from panewise.engine.state.snapshot import Tree

Flags = np.ndarray[tuple[int], np.dtype[np.bool_]]


@dataclass(frozen=True, eq=False)
class EmittedRows:
    """Result rows with the instant of each, and the sign of changes: the rows at some places of a relation."""

    relation: Spans
    places: Int64Array
    at: Int64Array
    signs: Int64Array
    starts: Int64Array
    ends: Int64Array

    @property
    def table(self) -> pa.Table:
        return take_rows(self.relation.table, self.places)

    @property
    def expires(self) -> Int64Array:
        return self.relation.expires[self.places]

    @property
    def orders(self) -> list[Int64Array]:
        return [order[self.places] for order in self.relation.orders]


class Emitter(ABC):
    """Emits the results of one level of one query."""

    def __init__(self, query: Query, views: Sequence[WindowView], variant: OperatorVariant) -> None:
        self.query, self.views, self.variant = query, views, variant
        #: Instants of windows without a grid that have not been reported yet.
        self.noted_instants = EMPTY

    @property
    def periodic_views(self) -> list[WindowView]:
        return [view for view in self.views if view.window.periodic]

    @property
    def grids(self) -> list[tuple[int, int]]:
        """The grids of its instants; none where it may report at any instant."""
        found = [view.window.grid for view in self.views]
        return [] if None in found else [grid for grid in found if grid]

    def next_change(self, after: int) -> int:
        """An instant before which it reports nothing after another one, if no rows enter or leave the relation."""
        return after + 1

    @abstractmethod
    def advance(self, limit: int, given: RelationDelta, finishing: bool = False) -> EmittedRows:
        """The result rows up to an instant."""

    def _note_instants(self, after: bool) -> None:
        """Note the instants of windows that have no grid, and those after them, at which sessions are gone."""
        for view in self.views:
            if len(view.own_instants):
                more = view.window.next_instants(view.own_instants) if after else EMPTY
                self.noted_instants = np.unique(np.concatenate((self.noted_instants, view.own_instants, more)))

    @abstractmethod
    def state(self) -> Tree:
        """The state that is needed after a restart."""

    @abstractmethod
    def restore(self, state: Tree) -> None:
        """Restore what `state` returned."""


def emitted_table(emitted: EmittedRows, level: int | None, types: Mapping[str, pa.DataType]) -> pa.Table:
    """The results of one level of a query as a table, with added columns of these types."""
    table = emitted.table
    added: dict[str, AddedValues] = {
        "ts": emitted.at,
        "w_level": np.full(len(emitted.at), level or 0),
        "sign": emitted.signs,
    }
    if "w_start" in types:
        added["w_start"] = pa.array(emitted.starts, mask=emitted.starts == NO_EXPIRY)
        added["w_end"] = pa.array(emitted.ends, mask=emitted.ends == -NO_EXPIRY)
    # The expiry of rows that leave is NULL.
    gone, expires = emitted.signs < 0, emitted.expires
    if "expires_at" in types:
        added["expires_at"] = pa.array(expires, mask=gone | (expires == NO_EXPIRY) | (expires == UNKNOWN_EXPIRY))
    if "expires_order" in types:
        added["expires_order"] = _order_values(emitted.orders, gone)
    return dated_table(dict(zip(table.column_names, table.columns, strict=True)), added, types)


def _order_values(orders: Sequence[Int64Array], gone: Flags) -> pa.Array:
    """The order of each row, or a list where there are several; NULL for rows that are gone."""
    if len(orders) == 1:
        return pa.array(orders[0], mask=gone | (orders[0] == NO_EXPIRY))
    values = np.stack(orders, axis=1).ravel()
    offsets = np.arange(0, len(values) + 1, len(orders), dtype=np.int32)
    return pa.ListArray.from_arrays(pa.array(offsets), pa.array(values), mask=pa.array(gone))
