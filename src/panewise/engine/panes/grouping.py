"""Turns rows into codes of groups and into the inputs of each column of states."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property

import pyarrow as pa

from panewise.aggregate import CountStates, Int64Array, Items, Min, StateArrays
from panewise.algebra import Call, known_expiry
from panewise.engine.intake import Arrivals
from panewise.engine.keys import Keys
from panewise.plan import PanePlan
from panewise.plan.rules import share_panes

SMALLEST_BLOCK, LARGEST_BLOCK = 1 << 17, 1 << 22


class GroupEncoder:
    """The keys and the columns of states of an aggregation, made when the first rows come: many never meet any."""

    def __init__(self, plan: PanePlan) -> None:
        self.plan = plan

    @cached_property
    def keys(self) -> Keys:
        types = {c.name: c.type for c in self.plan.group.child.columns}
        return Keys([types[key] for key in self.plan.group.keys])

    @cached_property
    def expiry_column(self) -> str | None:
        return expiry_column(self.plan)

    @cached_property
    def columns(self) -> list[StateArrays]:
        """Presence first, then one for each aggregate, then the oldest item if results have an expiry."""
        found: list[StateArrays] = [CountStates(), *(call.aggregate.state_arrays() for call in self.stored_calls)]
        return [*found, Min(pa.int64()).state_arrays()] if self.expiry_column else found

    @cached_property
    def stored_calls(self) -> list[Call]:
        """The calls that have a column of their own; COUNT(*) is the presence."""
        return [call for call in self.plan.group.calls if not call.aggregate.counts_rows]

    @cached_property
    def answer_places(self) -> list[int]:
        """The column of states that has the answer of each call."""
        stored = self.stored_calls
        return [1 + stored.index(call) if call in stored else 0 for call in self.plan.group.calls]

    @cached_property
    def answer_names(self) -> list[str]:
        """The columns of lowered states: keys, answers and codes."""
        group = self.plan.group
        return [*group.keys, *(call.name for call in group.calls), "#code"]

    def _encode_blocks(self, table: pa.Table, rows: Arrivals) -> Iterator[tuple[slice, Int64Array, list[Items]]]:
        """Rows in blocks: their slice, their codes, and the inputs of each column of states.

        Blocks are small enough to stay in the cache, and not smaller than the number of groups.
        """
        arrays = arrays_of(table)
        where = slice(0, 0)
        while where.stop < len(rows):
            start = where.stop
            size = min(max(4 * len(self.keys), SMALLEST_BLOCK), LARGEST_BLOCK)
            where = slice(start, min(start + size, len(rows)))
            part = {name: array.slice(start, where.stop - start) for name, array in arrays.items()}
            codes = self.keys.encode([part[key] for key in self.plan.group.keys], where.stop - start)
            yield where, codes, self._items(part, rows.times[where], rows.order_of(where))

    def _encode_rows(self, table: pa.Table, rows: Arrivals) -> tuple[Int64Array, list[Items]]:
        """The same in one piece."""
        arrays = arrays_of(table)
        codes = self.keys.encode([arrays[key] for key in self.plan.group.keys], len(rows))
        return codes, self._items(arrays, rows.times, rows.order)

    def _items(self, part: Mapping[str, pa.Array], times: Int64Array, order: Int64Array) -> list[Items]:
        items = [Items((), times, order)]
        items += [Items(tuple(part[a] for a in call.arguments), times, order) for call in self.stored_calls]
        if self.expiry_column:
            items.append(Items((pa.array(times),), times, order))
        return items


def expiry_column(plan: PanePlan) -> str | None:
    """The column with the expiry of results; None if the query has none."""
    by_time, orders = known_expiry(plan.query.root) if plan.reports_changes else (False, 0)
    return "expires_at" if by_time else "expires_order" if orders else None


#: The family of a query, and whether its results have an expiry.
FamilyKey = tuple[object, bool]


def family_key(plan: PanePlan) -> FamilyKey:
    """The family key of a query: queries with equal keys share panes."""
    return share_panes.family_key(plan), expiry_column(plan) is not None


def arrays_of(table: pa.Table) -> dict[str, pa.Array]:
    """Each column as one array; often they are single arrays already."""
    return {
        name: column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()
        for name, column in zip(table.column_names, table.columns, strict=True)
    }
