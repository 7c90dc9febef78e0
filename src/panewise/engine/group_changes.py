"""The changes of grouped results: what enters and leaves from one state of a group to the next."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from panewise import kernels
from panewise.aggregate import Int64Array
from panewise.engine.keys import Keys
from panewise.engine.multisets import uncancelled_rows
from panewise.engine.nested_values import equal_lists, equal_structs
from panewise.engine.places import take_rows
from panewise.engine.sorting import order_by_code, order_by_instant
from panewise.kernels import Int8Array

Flags = npt.NDArray[np.bool_]
#: A slot is a subscription and the code of a group, which has so many bits.
CODE_BITS = 32
#: Where there are at most so many instants for each state, these are counted, not sorted.
MOST_TURNS = 16


@dataclass(frozen=True, eq=False)
class GroupChanges:
    """Rows that enter (sign 1) and leave (sign -1), by subscription and instant; `origin` is the state of each.

    `rows` are the places of the rows in `table`.
    """

    table: pa.Table
    rows: Int64Array
    origin: Int64Array
    signs: Int8Array
    subscriptions: Int64Array
    at: Int64Array

    def where(self, which: Flags) -> GroupChanges:
        rows, origin, subscriptions, at = (
            word[which] for word in (self.rows, self.origin, self.subscriptions, self.at)
        )
        return GroupChanges(self.table, rows, origin, self.signs[which], subscriptions, at)

    def with_sign(self, sign: int) -> GroupChanges:
        """Those of one sign."""
        return self.where(self.signs == sign)


class PresentRows:
    """The rows that have been reported as present, one for each slot that has one.

    Columns that are `fixed` are equal in all rows of a slot.
    """

    def __init__(self, schema: pa.Schema, fixed: Collection[str] = ()) -> None:
        self.fixed = fixed
        #: Ascending.
        self.slots = np.zeros(0, np.int64)
        self.table = schema.empty_table()

    def changes(self, slots: Int64Array, at: Int64Array, selected: pa.Table, shown: Int64Array) -> GroupChanges:
        """The changes from each state of a slot to the next; `shown` are the states that have a row in `selected`.

        Afterwards the last state of each slot is the one that is present.
        """
        now = np.arange(self.table.num_rows, self.table.num_rows + len(shown))
        if len(shown) < len(slots):
            shown_rows, now = now, np.full(len(slots), -1)
            now[shown] = shown_rows
        order = _slot_order(slots, at)
        if order is not None:
            slots, at, now = slots[order], at[order], now[order]
        table = pa.concat_tables([self.table, selected]).combine_chunks()
        before, same, self.slots, present = kernels.range_present(self.slots, slots, now)
        self.table = take_rows(table, present)
        for name, column in zip(table.column_names, table.columns, strict=True):
            if name not in self.fixed:
                _leave_equal(column.combine_chunks(), before, now, same)
        turns, of_turns, at_turns = _number_turns(slots >> CODE_BITS, at)
        rows, places, signs, counts = kernels.range_report(turns, len(at_turns), before, now, same)
        origin = places if order is None else order[places]
        return GroupChanges(table, rows, origin, signs, np.repeat(of_turns, counts), np.repeat(at_turns, counts))

    def forget(self, subscription: int) -> None:
        """Drop the rows of a subscription that no query uses any more."""
        self._keep(self.slots >> CODE_BITS != subscription)

    def recode(self, codes: Int64Array) -> None:
        """Replace the codes of groups."""
        subscriptions, mine = self.slots >> CODE_BITS, codes[self.slots & ((1 << CODE_BITS) - 1)]
        slots = slots_of(subscriptions, mine)
        order = np.argsort(slots, kind="stable")
        self.slots, self.table = slots[order], take_rows(self.table, order)

    def _keep(self, which: Flags) -> None:
        places = np.flatnonzero(which)
        self.slots, self.table = self.slots[places], take_rows(self.table, places)

    def state(self) -> pa.Table:
        names = [*self.table.column_names, "#slot"]
        return pa.table([*self.table.columns, pa.array(self.slots)], names=names)

    def restore(self, table: pa.Table) -> None:
        last = table.num_columns - 1
        self.slots = np.array(table.column(last).to_numpy(), np.int64)
        self.table = table.select(range(last)).rename_columns(self.table.column_names).cast(self.table.schema)


def slots_of(subscriptions: Int64Array, codes: Int64Array) -> Int64Array:
    return (subscriptions << CODE_BITS) | codes


def _slot_order(slots: Int64Array, at: Int64Array) -> Int64Array | None:
    """The order by slot, then by instant; None if they are in it."""
    in_order = (slots[1:] > slots[:-1]) | ((slots[1:] == slots[:-1]) & (at[1:] >= at[:-1]))
    return None if in_order.all() else np.lexsort((at, slots))


def report_order(subscriptions: Int64Array, at: Int64Array) -> Int64Array:
    """The order by subscription, then by instant."""
    if (at == at[:1]).all() and (subscriptions[1:] >= subscriptions[:-1]).all():
        return np.arange(len(at))
    order = order_by_instant(at)
    if (subscriptions == subscriptions[:1]).all():
        return order
    return order[order_by_code(subscriptions[order])]


def _number_turns(subscriptions: Int64Array, at: Int64Array) -> tuple[Int64Array, Int64Array, Int64Array]:
    """The number of each state's turn, a subscription (ascending) and an instant; and these of each turn, in order."""
    if not len(at):
        return at, at, at
    several, first, span = subscriptions[0] != subscriptions[-1], at.min(), int(at.max() - at.min()) + 1
    if not several and span <= MOST_TURNS * len(at):
        return at - first, np.full(span, subscriptions[0]), np.arange(first, first + span)
    owners, which = np.unique(subscriptions, return_inverse=True)
    instants, when = np.unique(at, return_inverse=True)
    known, turns = np.unique(which * len(instants) + when, return_inverse=True)
    return turns, owners[known // len(instants)], instants[known % len(instants)]


def _leave_equal(values: pa.Array, before: Int64Array, now: Int64Array, same: Flags) -> None:
    """Of the states that may be the same as before, leave only those whose value is equal, NULL to NULL, NaN to NaN."""
    kind = values.type
    if pa.types.is_list(kind) or pa.types.is_struct(kind):
        pairs = np.flatnonzero(same)
        same[pairs] = _equal_values(values, before[pairs], now[pairs])
        return
    if not pa.types.is_primitive(kind):
        values = pa.array(Keys([kind]).encode([values], len(values)))
    elif pa.types.is_temporal(kind):
        values = values.view(pa.int32() if kind.bit_width == 32 else pa.int64())
    elif pa.types.is_boolean(kind):
        values = values.cast(pa.int8())
    if values.null_count:
        kernels.range_equal(values.is_valid().to_numpy(zero_copy_only=False), before, now, same)
        values = values.fill_null(0)
    kernels.range_equal(values.to_numpy(), before, now, same)


def _equal_values(values: pa.Array, one: Int64Array, other: Int64Array) -> Flags:
    """Whether pairs of values are equal, NULL to NULL and NaN to NaN."""
    if pa.types.is_list(values.type):
        return equal_lists(values, one, other, _equal_values)
    if pa.types.is_struct(values.type):
        return equal_structs(values, one, other, _equal_values)
    if pa.types.is_nested(values.type):
        codes = Keys([values.type]).encode([values], len(values))
        return np.asarray(codes[one] == codes[other])
    if values.null_count == 0 and pa.types.is_primitive(values.type) and not pa.types.is_boolean(values.type):
        numbers = values.to_numpy(zero_copy_only=False)
        left, right = numbers[one], numbers[other]
        equal: Flags = left == right
        return equal | ((left != left) & (right != right)) if numbers.dtype.kind == "f" else equal
    left, right = values.take(pa.array(one)), values.take(pa.array(other))
    same = pc.or_(pc.fill_null(pc.equal(left, right), False), pc.and_(pc.is_null(left), pc.is_null(right)))
    if pa.types.is_floating(values.type):
        same = pc.or_(same, pc.fill_null(pc.and_(pc.is_nan(left), pc.is_nan(right)), False))
    return np.asarray(same.to_numpy(zero_copy_only=False))


def without_cancelled(changes: GroupChanges, turns: Int64Array, age: Int64Array) -> GroupChanges:
    """The same changes without equal rows of different groups that enter and leave in the same turn.

    Of equal rows, those of the greatest age are left.
    """
    order = np.argsort(-changes.signs, kind="stable")
    count = int(np.count_nonzero(changes.signs > 0))
    rows = take_rows(changes.table, changes.rows[order])
    left = np.empty(len(order), bool)
    left[order] = np.concatenate(uncancelled_rows(rows, turns[order[:count]], turns[order[count:]], age[order]))
    return changes.where(left)
