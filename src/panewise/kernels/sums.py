"""The kernels of counts and sums: rows are added to the slots they belong to, and sums to each other."""

from __future__ import annotations

import numpy as np

from panewise.kernels import Float64Array, Int64Array, UInt8Array, helper, kernel, loops_of


def count(slots: Int64Array, out: Int64Array) -> None:
    """How many rows each slot has."""
    out += np.bincount(slots, minlength=len(out))


@loops_of(count)
def _count(slots: Int64Array, out: Int64Array) -> None:
    for i in range(len(slots)):
        out[slots[i]] += 1


def add_integers(slots: Int64Array, values: Int64Array, high: Int64Array, low: Int64Array) -> None:
    """Exact sums in two words: `high * 2**32 + low`; no addition of a lifetime can overflow them."""
    np.add.at(high, slots, values >> 32)
    np.add.at(low, slots, values & 0xFFFFFFFF)


@loops_of(add_integers)
def _add_integers(slots: Int64Array, values: Int64Array, high: Int64Array, low: Int64Array) -> None:
    for i in range(len(slots)):
        slot, value = slots[i], values[i]
        high[slot] += value >> 32
        low[slot] += value & 0xFFFFFFFF


@helper
def _two_sum(a: float, b: float) -> tuple[float, float]:
    """The rounded sum and what rounding lost, which is 0 where the sum overflows."""
    total = a + b
    if not np.isfinite(total):
        return total, 0.0
    shadow = total - a
    return total, (a - (total - shadow)) + (b - shadow)


@kernel
def add_floats(slots: Int64Array, values: Float64Array, high: Float64Array, low: Float64Array, odd: UInt8Array) -> None:
    """Compensated sums of the finite values; `odd` has bit 1 for NaN, 2 for infinity and 4 for minus infinity."""
    for i in range(len(slots)):
        slot, value = slots[i], values[i]
        if np.isfinite(value):
            high[slot], lost = _two_sum(high[slot], value)
            low[slot] += lost
        else:
            odd[slot] |= 1 if np.isnan(value) else 2 if value > 0 else 4


@kernel
def add_pairs(
    high: Float64Array, low: Float64Array, more: Float64Array, rest: Float64Array
) -> tuple[Float64Array, Float64Array]:
    """The sums of compensated pairs, as pairs. An overflow stays infinite instead of turning into NaN."""
    highs, lows = np.empty(len(high)), np.empty(len(high))
    for i in range(len(high)):
        total, error = _two_sum(high[i], more[i])
        small, lost = _two_sum(low[i], rest[i])
        total, error = _two_sum(total, error + small)
        highs[i], lows[i] = _two_sum(total, error + lost)
    return highs, lows
