"""Equal rows that enter and leave at the same instant: as multisets, they are no change."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from panewise.aggregate import Int64Array
from panewise.aggregate.dictionary import IntegerCodes
from panewise.engine.keys import Keys
from panewise.kernels.ranges import OPEN

Flags = npt.NDArray[np.bool_]

#: So many bits distinguish most labels; a table for all of them stays in the cache.
LABEL_BITS = 21


def uncancelled_rows(table: pa.Table, came: Int64Array, went: Int64Array, age: Int64Array) -> tuple[Flags, Flags]:
    """Which rows that enter, and which that leave, are left when equal ones of one instant have cancelled each other.

    The first rows of the table enter at the instants `came`, the others leave at the instants `went`. Of equal rows
    those with the greatest `age` are left.
    """
    ups, downs = np.ones(len(came), bool), np.ones(len(went), bool)
    if not len(came) or not len(went):
        return ups, downs
    rising, falling = np.split(_labels(table, np.concatenate((came, went))), [len(came)])
    # Few rows are equal, and finding those that may be costs less than numbering all.
    up, down = _may_meet(rising, falling)
    if not up.any():
        return ups, downs
    slots = IntegerCodes().encode(np.concatenate((rising[up], falling[down])))
    risen, fallen = (np.bincount(some, minlength=slots.max() + 1) for some in np.split(slots, [up.sum()]))
    meets, net = (risen > 0) & (fallen > 0), risen - fallen
    ages = np.split(age, [len(came)])
    ups[up] = _left_over(slots[: up.sum()], meets, np.maximum(net, 0), ages[0][up])
    downs[down] = _left_over(slots[up.sum() :], meets, np.maximum(-net, 0), ages[1][down])
    return ups, downs


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


def _may_meet(one: Int64Array, other: Int64Array) -> tuple[Flags, Flags]:
    """Which labels of each side may be among those of the other: all that are, and a few that are not."""
    spread = np.uint64(0x9E3779B97F4A7C15)
    first, second = ((side.view(np.uint64) * spread) >> np.uint64(64 - LABEL_BITS) for side in (one, other))
    return _mark_places(second)[first], _mark_places(first)[second]


def _mark_places(places: npt.NDArray[np.uint64]) -> Flags:
    marks = np.zeros(1 << LABEL_BITS, bool)
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
