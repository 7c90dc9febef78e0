"""The kernels of extremes: the greatest value, or the latest row, of each slot."""

from __future__ import annotations

import numpy as np

from panewise.kernels import Flags, Int64Array, kernel, loops_of

_BODY = np.int64(0x7FFF_FFFF_FFFF_FFFF)
_INFINITY, _NAN = np.int64(0x7FF0_0000_0000_0000), np.int64(0x7FF8_0000_0000_0000)


def take_greatest(slots: Int64Array, values: Int64Array, out: Int64Array, seen: Flags) -> None:
    """The greatest value of each slot, and whether it has any; `out` starts with the least of all values."""
    np.maximum.at(out, slots, values)
    seen[slots] = True


@loops_of(take_greatest)
def _take_greatest(slots: Int64Array, values: Int64Array, out: Int64Array, seen: Flags) -> None:
    for i in range(len(slots)):
        slot = slots[i]
        if values[i] > out[slot]:
            out[slot] = values[i]
        seen[slot] = True


def take_greatest_floats(slots: Int64Array, bits: Int64Array, flip: int, out: Int64Array, seen: Flags) -> None:
    """The same for the bits of doubles, as numbers that sort like them; `flip` -1 looks for the least instead."""
    values = bits.view(np.float64) + 0.0
    values[np.isnan(values)] = np.nan
    plain = values.view(np.int64)
    take_greatest(slots, (plain ^ ((plain >> 63) & _BODY)) ^ flip, out, seen)


@loops_of(take_greatest_floats)
def _take_greatest_floats(slots: Int64Array, bits: Int64Array, flip: int, out: Int64Array, seen: Flags) -> None:
    for i in range(len(slots)):
        slot, value = slots[i], bits[i]
        body = value & _BODY
        if body > _INFINITY:
            value = _NAN
        elif body == 0:
            value = np.int64(0)
        value = (value ^ ((value >> 63) & _BODY)) ^ flip
        if value > out[slot]:
            out[slot] = value
        seen[slot] = True


@kernel
def take_latest(
    slots: Int64Array,
    times: Int64Array,
    order: Int64Array,
    rows: Int64Array,
    out: tuple[Int64Array, Int64Array, Int64Array],
) -> None:
    """For each slot the row with the greatest (time, order); `out` holds that time, order and row."""
    best_time, best_order, best_row = out
    for i in range(len(slots)):
        slot = slots[i]
        if times[i] > best_time[slot] or (times[i] == best_time[slot] and order[i] >= best_order[slot]):
            best_time[slot], best_order[slot], best_row[slot] = times[i], order[i], rows[i]
