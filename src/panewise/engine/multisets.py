"""Equal rows that enter and leave at the same instant: as multisets, they are no change."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from panewise.aggregate import Int64Array
from panewise.aggregate.dictionary import IntegerCodes
from panewise.aggregate.ordering import fits_int64, to_longs
from panewise.engine.keys import Keys
from panewise.engine.places import take_rows
from panewise.kernels.ranges import OPEN

Flags = npt.NDArray[np.bool_]

Sketches: TypeAlias = npt.NDArray[np.uint64]
#: The first so many bits distinguish many sketches, and as many further ones the rest; a table for them stays in the
#: cache.
SKETCH_BITS = 21
SKETCH_MASK = np.uint64((1 << SKETCH_BITS) - 1)
#: Multiplied by this odd number, numbers that are close to each other differ in their first bits.
SPREAD = np.uint64(0x9E3779B97F4A7C15)


def uncancelled_rows(table: pa.Table, came: Int64Array, went: Int64Array, age: Int64Array) -> tuple[Flags, Flags]:
    """Which rows that enter, and which that leave, are left when equal ones of one instant have cancelled each other.

    The first rows of the table enter at the instants `came`, the others leave at the instants `went`. Of equal rows
    those with the greatest `age` are left.
    """
    ups, downs = np.ones(len(came), bool), np.ones(len(went), bool)
    if not len(came) or not len(went):
        return ups, downs
    # Few rows are equal, and finding those that may be costs less than numbering all.
    at = np.concatenate((came, went))
    up, down = _may_meet(*np.split(_sketches(table, at), [len(came)]))
    if not len(up) or not len(down):
        return ups, downs
    places = np.concatenate((up, len(came) + down))
    slots = IntegerCodes().encode(_labels(take_rows(table, places), at[places]))
    risen, fallen = (np.bincount(some, minlength=slots.max() + 1) for some in np.split(slots, [len(up)]))
    meets, net, ages = (risen > 0) & (fallen > 0), risen - fallen, age[places]
    ups[up] = _left_over(slots[: len(up)], meets, np.maximum(net, 0), ages[: len(up)])
    downs[down] = _left_over(slots[len(up) :], meets, np.maximum(-net, 0), ages[len(up) :])
    return ups, downs


def _sketches(table: pa.Table, at: Int64Array) -> Sketches:
    """Equal numbers for equal rows at one instant, and for some others: only columns that fit into numbers count."""
    found = at.view(np.uint64) * SPREAD
    for column in table.columns:
        if fits_int64(column.type):
            found = (found ^ _longs_or_zero(column.combine_chunks()).view(np.uint64)) * SPREAD
    return found


def _longs_or_zero(values: pa.Array) -> Int64Array:
    """Values as int64; NULL is zero."""
    if not values.null_count:
        return to_longs(values)
    longs = np.zeros(len(values), np.int64)
    longs[values.is_valid().to_numpy(zero_copy_only=False)] = to_longs(values.drop_null())
    return longs


def _labels(table: pa.Table, at: Int64Array) -> Int64Array:
    """Equal numbers for equal rows at one instant."""
    arrays = [column.combine_chunks() for column in table.columns]
    keys = Keys([array.type for array in arrays])
    codes = keys.encode(arrays, len(at))
    since = at - at.min()
    if int(since.max()) * len(keys) < OPEN:
        labels: Int64Array = since * len(keys) + codes
        return labels
    return IntegerCodes().encode(since) * len(keys) + codes


def _may_meet(one: Sketches, other: Sketches) -> tuple[Int64Array, Int64Array]:
    """Where each side has sketches that may be among those of the other: all that are, and a few that are not."""
    up, down = np.arange(len(one)), np.arange(len(other))
    for bits in (SKETCH_BITS, 2 * SKETCH_BITS):
        first, second = ((side >> np.uint64(64 - bits)) & SKETCH_MASK for side in (one[up], other[down]))
        up, down = up[_marks(second)[first]], down[_marks(first)[second]]
    return up, down


def _marks(places: Sketches) -> Flags:
    marks = np.zeros(1 << SKETCH_BITS, bool)
    marks[places] = True
    return marks


def _left_over(slots: Int64Array, meets: Flags, wanted: Int64Array, age: Int64Array) -> Flags:
    """Which rows are left: all of slots that do not meet, and of the others as many as are wanted, by age."""
    order = np.lexsort((age, slots))
    mine = slots[order]
    stops = np.searchsorted(mine, mine, side="right")
    left = np.empty(len(slots), bool)
    left[order] = ~meets[mine] | (stops - np.arange(len(mine)) <= wanted[mine])
    return left
