"""Rows of a relation that changes with time, each with the instants at which it is there.

A row is present from `enter` on and before `leave`. Where time decides, both are known from the beginning, and no
message is needed when a row leaves. Where tuples are counted, or where groups and multiplicities change, `leave` is
OPEN at first and is reported later: these are the negative tuples, with the number of the row instead of its values.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa

from panewise.aggregate import Int64Array
from panewise.engine.places import take_rows
from panewise.kernels.ranges import OPEN

#: No expiry is known: the row may stay for ever, or it may leave at any time.
NO_EXPIRY, UNKNOWN_EXPIRY = 2**62, -(2**62)

EMPTY = np.zeros(0, np.int64)


@dataclass(frozen=True, eq=False)
class Spans:
    """Rows with their lifetimes. `ids` distinguishes the rows of one operator."""

    table: pa.Table
    enter: Int64Array
    leave: Int64Array
    ids: Int64Array
    #: The time and arrival of the youngest item a row came from.
    time: Int64Array
    order: Int64Array
    #: The expiry of a row, by time and by the order of each counted window.
    expires: Int64Array
    orders: tuple[Int64Array, ...] = ()

    def __len__(self) -> int:
        return len(self.enter)

    @property
    def words(self) -> tuple[Int64Array, ...]:
        """All arrays of the rows besides their values."""
        return (self.enter, self.leave, self.ids, self.time, self.order, self.expires, *self.orders)

    @classmethod
    def of(cls, table: pa.Table, words: Sequence[Int64Array]) -> Spans:
        enter, leave, ids, time, order, expires, *orders = words
        return cls(table, enter, leave, ids, time, order, expires, tuple(orders))

    @classmethod
    def concat(cls, parts: Sequence[Spans]) -> Spans:
        """Several sets of rows as one; there must be at least one."""
        filled = [part for part in parts if len(part)] or list(parts[:1])
        if len(filled) == 1:
            return filled[0]
        words = [np.concatenate(some) for some in zip(*(part.words for part in filled), strict=True)]
        return cls.of(pa.concat_tables([part.table for part in filled]).combine_chunks(), words)

    def at(self, places: Int64Array) -> Spans:
        """The rows at some places."""
        return self.of(take_rows(self.table, places), [word[places] for word in self.words])

    def where(self, keep: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> Spans:
        return self if keep.all() else self.at(np.flatnonzero(keep))

    def state(self) -> pa.Table:
        """The rows as one table."""
        extra = {f"#{number}": pa.array(word) for number, word in enumerate(self.words)}
        return pa.table([*self.table.columns, *extra.values()], names=[*self.table.column_names, *extra])

    @classmethod
    def from_state(cls, table: pa.Table) -> Spans:
        """What `state` wrote."""
        # Words come last, under their numbers; a column may have any name.
        values = table.num_columns - int(table.column_names[-1].removeprefix("#")) - 1
        words = [np.array(table.column(n).to_numpy(), np.int64) for n in range(values, table.num_columns)]
        return cls.of(table.select(range(values)), words)


@dataclass(frozen=True, eq=False)
class RelationDelta:
    """The changes of a relation up to an instant: rows that entered, and rows whose end was not known before."""

    opened: Spans
    closed: Int64Array = field(default_factory=lambda: EMPTY)
    closed_at: Int64Array = field(default_factory=lambda: EMPTY)


def empty_spans(schema: pa.Schema, orders: int = 0) -> Spans:
    return Spans.of(schema.empty_table(), [EMPTY] * (6 + orders))


def end_instants(ids: Int64Array, turn: RelationDelta) -> Int64Array:
    """When rows of these numbers end, by the closed rows of a turn; OPEN for all others."""
    if not len(turn.closed) or not len(ids):
        return np.full(len(ids), OPEN)
    order = np.argsort(turn.closed, kind="stable")
    closed = turn.closed[order]
    places = np.minimum(np.searchsorted(closed, ids), len(closed) - 1)
    return np.where(closed[places] == ids, turn.closed_at[order][places], OPEN)


def with_ends(spans: Spans, turn: RelationDelta) -> Spans:
    """The same rows, those that a turn closes with the instant at which they leave."""
    if not len(turn.closed):
        return spans
    at = end_instants(spans.ids, turn)
    return replace(spans, leave=np.where(at < OPEN, np.minimum(spans.leave, at), spans.leave))
