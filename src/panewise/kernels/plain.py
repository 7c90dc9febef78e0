"""The kernels in NumPy: the twin that says what the compiled ones must do."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

Int64Array: TypeAlias = npt.NDArray[np.int64]
Float64Array: TypeAlias = npt.NDArray[np.float64]
UInt8Array: TypeAlias = npt.NDArray[np.uint8]
Flags: TypeAlias = npt.NDArray[np.bool_]
#: Open addressing: keys and codes side by side, a code of -1 marks a free place. The size is a power of two.
Table: TypeAlias = tuple[Int64Array, Int64Array]

_BODY = 0x7FFF_FFFF_FFFF_FFFF


def pane_numbers(positions: Int64Array, origin: int, width: int) -> Int64Array:
    """The number of the pane `(origin + (n - 1) * width, origin + n * width]` that holds each position."""
    return (positions - origin - 1) // width + 1


def dense_slots(panes: Int64Array, codes: Int64Array, first: int, keys: int) -> Int64Array:
    """One slot for each combination of pane and key."""
    return (panes - first) * keys + codes


def table_codes(values: Int64Array, base: int, table: Int64Array) -> tuple[Int64Array, bool]:
    """The code `table[value - base]` of each value, -1 where there is none, and whether all have one."""
    inside = (values >= base) & (values < base + len(table))
    codes = np.full(len(values), -1, np.int64)
    codes[inside] = table[values[inside] - base]
    return codes, bool((codes >= 0).all())


def hash_codes(
    values: Int64Array, table: Table, uniques: Int64Array, known: int, codes: Int64Array, start: int
) -> tuple[int, int]:
    """Number different values in the order in which they appear, from place `start` on.

    Fills `codes`, and `uniques` with the value of each code. Stops when the table is half full; returns how many
    codes there are and the place it stopped at.
    """
    keys, numbers = table
    found = {int(k): int(n) for k, n in zip(keys, numbers, strict=True) if n >= 0}
    limit = len(keys) // 2
    place = start
    for place in range(start, len(values)):
        value = int(values[place])
        if value not in found:
            if known >= limit:
                break
            found[value] = known
            uniques[known] = value
            known += 1
        codes[place] = found[value]
    else:
        place = len(values)
    numbers[:] = -1
    for value, number in found.items():
        spot = _first_place(value, len(keys) - 1)
        while numbers[spot] >= 0:
            spot = (spot + 1) & (len(keys) - 1)
        keys[spot], numbers[spot] = value, number
    return known, place


def _first_place(value: int, mask: int) -> int:
    mixed = (value * 0x9E3779B97F4A7C15) & (2**64 - 1)
    return ((mixed >> 32) ^ mixed) & mask


def count(slots: Int64Array, out: Int64Array) -> None:
    """How many rows each slot has."""
    out += np.bincount(slots, minlength=len(out))


def add_integers(slots: Int64Array, values: Int64Array, high: Int64Array, low: Int64Array) -> None:
    """Exact sums in two words: `high * 2**32 + low`; no addition of a lifetime can overflow them."""
    np.add.at(high, slots, values >> 32)
    np.add.at(low, slots, values & 0xFFFFFFFF)


def add_floats(slots: Int64Array, values: Float64Array, high: Float64Array, low: Float64Array, odd: UInt8Array) -> None:
    """Compensated sums of the finite values; `odd` has bit 1 for NaN, 2 for infinity and 4 for minus infinity."""
    for slot, value in zip(slots, values, strict=True):
        if np.isfinite(value):
            high[slot], error = two_sum(high[slot], value)
            low[slot] += error
        else:
            odd[slot] |= 1 if np.isnan(value) else 2 if value > 0 else 4


def add_pairs(
    high: Float64Array, low: Float64Array, more: Float64Array, rest: Float64Array
) -> tuple[Float64Array, Float64Array]:
    """The sums of compensated pairs, as pairs. An overflow stays infinite instead of turning into NaN."""
    total, error = two_sum(high, more)
    small, lost = two_sum(low, rest)
    total, error = two_sum(total, error + small)
    return two_sum(total, error + lost)


def two_sum(a: Any, b: Any) -> tuple[Any, Any]:
    """The rounded sum and what rounding lost; an overflow loses nothing that could be said."""
    with np.errstate(over="ignore", invalid="ignore"):
        total = a + b
        shadow = total - a
        lost = (a - (total - shadow)) + (b - shadow)
    return total, np.where(np.isfinite(total), lost, 0.0)


def take_greatest(slots: Int64Array, values: Int64Array, out: Int64Array, seen: Flags) -> None:
    """The greatest value of each slot, and whether it has any; `out` starts with the least of all values."""
    np.maximum.at(out, slots, values)
    seen[slots] = True


def take_greatest_floats(slots: Int64Array, bits: Int64Array, flip: int, out: Int64Array, seen: Flags) -> None:
    """The same for the bits of doubles, as numbers that sort like them; `flip` -1 looks for the least instead."""
    values = bits.view(np.float64) + 0.0
    values[np.isnan(values)] = np.nan
    plain = values.view(np.int64)
    take_greatest(slots, (plain ^ ((plain >> 63) & _BODY)) ^ flip, out, seen)


def take_latest(
    slots: Int64Array,
    times: Int64Array,
    order: Int64Array,
    rows: Int64Array,
    out: tuple[Int64Array, Int64Array, Int64Array],
) -> None:
    """For each slot the row with the greatest (time, order); `out` holds that time, order and row."""
    best_time, best_order, best_row = out
    for i in np.lexsort((order, times)):
        slot = slots[i]
        if (times[i], order[i]) >= (best_time[slot], best_order[slot]):
            best_time[slot], best_order[slot], best_row[slot] = times[i], order[i], rows[i]


#: One side of a join: codes of new rows, where they begin, when all rows enter and leave, and the chains of codes:
#: `heads` is the newest row of each, `links` the one before each row. The last says whether rows leave as they came.
Chain = tuple[Int64Array, int, Int64Array, Int64Array, Int64Array, Int64Array, bool]


def bucket_order(codes: Int64Array, size: int) -> Int64Array:
    """The order by code, of codes below a size; equal ones stay as they are."""
    return np.argsort(codes, kind="stable")


def overlap_join(left: Chain, right: Chain) -> tuple[Int64Array, Int64Array]:
    """Pairs of rows with equal codes that are there at some same instant, as two lists of places.

    New rows of both sides, ordered by when they enter, are chained one after the other; each meets those that are.
    """
    found: list[tuple[int, int]] = []
    events = []
    for which, (codes, start, enters, *_) in enumerate((left, right)):
        events += [(int(enters[start + n]), which, n) for n in range(len(codes))]
    for _, which, n in sorted(events):
        codes, start, enters, leaves, heads, links, _ = (left, right)[which]
        _, _, others_enter, others_leave, other_heads, other_links, in_order = (left, right)[1 - which]
        row, code = start + n, codes[n]
        other = int(other_heads[code])
        while other >= 0 and not (in_order and others_leave[other] <= enters[row]):
            if max(enters[row], others_enter[other]) < min(leaves[row], others_leave[other]):
                found.append((other, row) if which else (row, other))
            other = int(other_links[other])
        links[row], heads[code] = heads[code], row
    pairs = np.array(found, np.int64).reshape(-1, 2)
    return pairs[:, 0], pairs[:, 1]
