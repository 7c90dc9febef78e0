"""The kernels of panes and groups: times to the numbers of panes, keys to codes, both to slots."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np

from panewise.kernels import Int64Array, kernel, loops_of

#: Open addressing: keys and codes side by side, a code of -1 marks a free place. The size is a power of two.
Table: TypeAlias = tuple[Int64Array, Int64Array]


def pane_numbers(positions: Int64Array, origin: int, width: int) -> Int64Array:
    """The number of the pane `(origin + (n - 1) * width, origin + n * width]` that holds each position."""
    return (positions - origin - 1) // width + 1


@loops_of(pane_numbers)
def _pane_numbers(positions: Int64Array, origin: int, width: int) -> Int64Array:
    out = np.empty(len(positions), np.int64)
    number, low, high = np.int64(0), np.int64(1), np.int64(0)
    for i in range(len(positions)):
        position = positions[i]
        # Streams are nearly sorted: most rows lie in the pane of the row before, and a division costs more.
        if position <= low or position > high:
            number = (position - origin - 1) // width + 1
            high = origin + number * width
            low = high - width
        out[i] = number
    return out


@kernel
def dense_slots(panes: Int64Array, codes: Int64Array, first: int, keys: int) -> Int64Array:
    """One slot for each combination of pane and key."""
    return (panes - first) * keys + codes


def table_codes(values: Int64Array, base: int, table: Int64Array) -> tuple[Int64Array, bool]:
    """The code `table[value - base]` of each value, -1 where there is none, and whether all have one."""
    inside = (values >= base) & (values < base + len(table))
    codes = np.full(len(values), -1, np.int64)
    codes[inside] = table[values[inside] - base]
    return codes, bool((codes >= 0).all())


@loops_of(table_codes)
def _table_codes(values: Int64Array, base: int, table: Int64Array) -> tuple[Int64Array, bool]:
    out = np.empty(len(values), np.int64)
    complete = True
    size = len(table)
    for i in range(len(values)):
        place = values[i] - base
        code = table[place] if 0 <= place < size else -1
        complete &= code >= 0
        out[i] = code
    return out, complete


@kernel
def hash_codes(
    values: Int64Array, table: Table, uniques: Int64Array, known: int, codes: Int64Array, start: int
) -> tuple[int, int]:
    """Number different values in the order in which they appear, from place `start` on.

    Fills `codes`, and `uniques` with the value of each code. Stops when the table is half full; returns how many
    codes there are and the place it stopped at.
    """
    keys, numbers = table
    mask = len(keys) - 1
    limit = len(keys) // 2
    for i in range(start, len(values)):
        value = values[i]
        mixed = np.uint64(value) * np.uint64(0x9E3779B97F4A7C15)
        spot = np.int64((mixed >> np.uint64(32)) ^ mixed) & mask
        while numbers[spot] >= 0 and keys[spot] != value:
            spot = (spot + 1) & mask
        if numbers[spot] < 0:
            if known >= limit:
                return known, i
            keys[spot], numbers[spot], uniques[known] = value, known, value
            known += 1
        codes[i] = numbers[spot]
    return known, len(values)
