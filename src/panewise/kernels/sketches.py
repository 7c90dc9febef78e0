"""The kernels of sketches: HyperLogLog over runs, and multisets of which only heavy values are kept.

A run of HyperLogLog has the different hashes of its values, ascending, as long as they are few; then it is *folded*,
and has an entry `register * 256 + rank` for every register that is in use, ascending.
"""

from __future__ import annotations

from math import log
from typing import Any

import numpy as np

from panewise.kernels import Flags, Float64Array, Int64Array, helper, kernel
from panewise.kernels.ragged import Multisets

_FNV, _SEED = np.uint64(0x100000001B3), np.uint64(0xCBF29CE484222325)
_ONE, _TWO = np.uint64(0xFF51AFD7ED558CCD), np.uint64(0xC4CEB9FE1A85EC53)
_SIGN, _SHIFT = np.uint64(1 << 63), np.uint64(33)
#: The entry of a register is its number times this, plus its rank.
_RANKS = 256


@helper
def _mix(number: Any) -> Any:
    """The finalizer of MurmurHash3: different numbers stay different."""
    number = (number ^ (number >> _SHIFT)) * _ONE
    number = (number ^ (number >> _SHIFT)) * _TWO
    return number ^ (number >> _SHIFT)


@kernel
def sketch_hash_longs(values: Int64Array) -> Int64Array:
    """Different hashes of different numbers."""
    out = np.empty(len(values), np.int64)
    bits = out.view(np.uint64)
    for i in range(len(values)):
        bits[i] = _mix(np.uint64(values[i]))
    return out


@kernel
def sketch_hash_bytes(runs: Int64Array, data: Any) -> Int64Array:
    """Hashes of runs of bytes: FNV-1a, mixed."""
    out = np.empty(len(runs), np.int64)
    bits = out.view(np.uint64)
    for i in range(len(runs)):
        number = _SEED
        for place in range(runs[i, 0], runs[i, 0] + runs[i, 1]):
            number = (number ^ np.uint64(data[place])) * _FNV
        bits[i] = _mix(number)
    return out


@helper
def _entry_of(value: Any, lg_k: int) -> Any:
    """The register of a hash and its rank: how many zeros its other bits begin with, and one."""
    bits = np.uint64(value) ^ _SIGN
    rank, most = 1, 65 - lg_k
    rest = bits << np.uint64(lg_k)
    while rank < most and not rest & _SIGN:
        rest = rest << np.uint64(1)
        rank += 1
    return np.int64(bits >> np.uint64(64 - lg_k)) * _RANKS + rank


@helper
def _next_entry(entries: Int64Array, place: int, stop: int, folded: bool, lg_k: int) -> tuple[int, int]:
    """The entry of the next register, and the place after all that belongs to it."""
    if folded:
        return entries[place], place + 1
    found = _entry_of(entries[place], lg_k)
    place += 1
    while place < stop:
        other = _entry_of(entries[place], lg_k)
        if other // _RANKS != found // _RANKS:
            break
        found, place = max(found, other), place + 1
    return found, place


@kernel
def sketch_union(
    left: Int64Array,
    left_entries: Int64Array,
    left_folded: Flags,
    right: Int64Array,
    right_entries: Int64Array,
    right_folded: Flags,
    lg_k: int,
    few: int,
) -> tuple[Int64Array, Int64Array, Flags]:
    """The sketches of both sides, place by place. More than a few hashes are folded."""
    runs, folded = np.empty((len(left), 2), np.int64), np.zeros(len(left), np.bool_)
    out = np.empty(left[:, 1].sum() + right[:, 1].sum(), np.int64)
    last = 0
    for i in range(len(left)):
        start = last
        a, a_stop, b, b_stop = left[i, 0], left[i, 0] + left[i, 1], right[i, 0], right[i, 0] + right[i, 1]
        one, other = left_folded[i], right_folded[i]
        if not one and not other:
            while a < a_stop or b < b_stop:
                if b >= b_stop or (a < a_stop and left_entries[a] <= right_entries[b]):
                    entry, b = left_entries[a], b + (b < b_stop and left_entries[a] == right_entries[b])
                    a += 1
                else:
                    entry = right_entries[b]
                    b += 1
                out[last] = entry
                last += 1
            folded[i] = last - start > few
            if folded[i]:
                place, stop, last = start, last, start
                while place < stop:
                    entry, place = _next_entry(out, place, stop, False, lg_k)
                    out[last] = entry
                    last += 1
        else:
            folded[i] = True
            while a < a_stop or b < b_stop:
                mine, a_next = _next_entry(left_entries, a, a_stop, one, lg_k) if a < a_stop else (-1, a)
                theirs, b_next = _next_entry(right_entries, b, b_stop, other, lg_k) if b < b_stop else (-1, b)
                if theirs < 0 or (mine >= 0 and mine // _RANKS < theirs // _RANKS):
                    out[last], a = mine, a_next
                elif mine < 0 or theirs // _RANKS < mine // _RANKS:
                    out[last], b = theirs, b_next
                else:
                    out[last], a, b = max(mine, theirs), a_next, b_next
                last += 1
        runs[i, 0], runs[i, 1] = start, last - start
    return runs, out[:last].copy(), folded


@kernel
def sketch_estimate(runs: Int64Array, entries: Int64Array, folded: Flags, lg_k: int) -> Float64Array:
    """How many values there are: the number of hashes, or Ertl's estimate from how many registers have each rank.

    Paper: "New cardinality estimation algorithms for HyperLogLog sketches", algorithm 6.
    """
    out = runs[:, 1].astype(np.float64)
    size, most = 1 << lg_k, 65 - lg_k
    for i in range(len(runs)):
        if folded[i]:
            counts = np.zeros(most + 1, np.int64)
            counts[0] = size - runs[i, 1]
            for place in range(runs[i, 0], runs[i, 0] + runs[i, 1]):
                counts[entries[place] % _RANKS] += 1
            out[i] = _estimate(counts, size)
    return out


@helper
def _estimate(counts: Int64Array, size: int) -> float:
    """How many values there are, if so many of `size` registers have each rank."""
    most = len(counts) - 1
    total = size * _tau(1.0 - counts[most] / size)
    for rank in range(most - 1, 0, -1):
        total = 0.5 * (total + counts[rank])
    total += size * _sigma(counts[0] / size)
    return size / (2 * log(2.0)) * (size / total)


@kernel
def sketch_entries(hashes: Int64Array, lg_k: int) -> Int64Array:
    """The entry of each hash."""
    out = np.empty(len(hashes), np.int64)
    for i in range(len(hashes)):
        out[i] = _entry_of(hashes[i], lg_k)
    return out


@kernel
def sketch_ranges(
    rows: tuple[Int64Array, Int64Array],
    entries: Int64Array,
    ranges: tuple[Int64Array, Int64Array, Int64Array],
    folded: Flags,
    lg_k: int,
    few: int,
) -> Float64Array:
    """How many different values are in each range: counted up to a few, estimated beyond, or if a group is folded.

    `rows` have the number of a value, -1 for none, and that of its entry, with which it stands in `entries`; `ranges`
    are `low`, `high` and groups. Of each register the bits of a mask say which ranks occur.
    """
    values, numbers = rows
    low, high, groups = ranges
    size, out = 1 << lg_k, np.empty(len(low))
    often = np.zeros(values.max() + 1 if len(values) else 0, np.int64)
    shared, masks = np.zeros(len(entries), np.int64), np.zeros(size, np.uint64)
    counts = np.zeros(66 - lg_k, np.int64)
    counts[0] = size
    first = last = different = 0
    for step in range(len(low)):
        while first < min(low[step], last):
            if values[first] >= 0:
                often[values[first]] -= 1
                if often[values[first]] == 0:
                    different -= 1
                    shared[numbers[first]] -= 1
                    if shared[numbers[first]] == 0:
                        _flip(entries[numbers[first]], masks, counts)
            first += 1
        first = max(first, low[step])
        last = max(last, first)
        while last < high[step]:
            if values[last] >= 0:
                often[values[last]] += 1
                if often[values[last]] == 1:
                    different += 1
                    shared[numbers[last]] += 1
                    if shared[numbers[last]] == 1:
                        _flip(entries[numbers[last]], masks, counts)
            last += 1
        out[step] = different
        if different > few or folded[groups[step]]:
            out[step] = _estimate(counts, size)
    return out


@helper
def _flip(entry: int, masks: Any, counts: Int64Array) -> None:
    """A rank of a register begins or ceases to occur."""
    register, bit = entry // _RANKS, np.uint64(1) << np.uint64(entry % _RANKS)
    before = _highest(masks[register])
    masks[register] = masks[register] ^ bit
    counts[before] -= 1
    counts[_highest(masks[register])] += 1


@helper
def _highest(mask: Any) -> int:
    """The place of the highest bit, 0 for none."""
    found = 0
    for width in (32, 16, 8, 4, 2, 1):
        if mask >> np.uint64(found + width):
            found += width
    return found


@helper
def _sigma(share: float) -> float:
    """What registers that are not in use add."""
    if share == 1.0:
        return np.inf
    weight, total, before = 1.0, share, -1.0
    while total != before:
        share, before = share * share, total
        total += share * weight
        weight += weight
    return total


@helper
def _tau(share: float) -> float:
    """What registers of the greatest rank add."""
    if share in (0.0, 1.0):
        return 0.0
    weight, total, before = 1.0, 1.0 - share, -1.0
    while total != before:
        share, before = np.sqrt(share), total
        weight *= 0.5
        total -= (1.0 - share) ** 2 * weight
    return total / 3.0


@kernel
def sketch_trim(runs: Int64Array, keys: Int64Array, counts: Int64Array, room: int, errors: Int64Array) -> Multisets:
    """Multisets without light values: where there are more different ones than `room`, all lose a count.

    It is that of the heaviest value of those too many, and is added to the errors.
    """
    out, fresh_keys, fresh_counts = np.empty_like(runs), np.empty_like(keys), np.empty_like(counts)
    last = 0
    for i in range(len(runs)):
        start, size = runs[i, 0], runs[i, 1]
        light = 0
        if size > room:
            light = np.partition(counts[start : start + size].copy(), size - room - 1)[size - room - 1]
            errors[i] += light
        out[i, 0] = last
        for place in range(start, start + size):
            if counts[place] > light:
                fresh_keys[last], fresh_counts[last] = keys[place], counts[place] - light
                last += 1
        out[i, 1] = last - out[i, 0]
    return out, fresh_keys[:last].copy(), fresh_counts[:last].copy()


@kernel
def sketch_heaviest(runs: Int64Array, order: Int64Array, keys: Int64Array, counts: Int64Array, most: int) -> Multisets:
    """The `most` entries with the greatest counts of each run, heaviest first, equals by `order`."""
    size = np.minimum(runs[:, 1], most).sum()
    out, found_keys, found_counts = (
        np.empty((len(runs), 2), np.int64),
        np.empty(size, np.int64),
        np.empty(size, np.int64),
    )
    places, first = np.empty(most, np.int64), 0
    for i in range(len(runs)):
        found = 0
        for place in range(runs[i, 0], runs[i, 0] + runs[i, 1]):
            hole = found
            if found == most:
                hole -= 1
                if not _is_heavier(order, counts, place, places[hole]):
                    continue
            else:
                found += 1
            while hole > 0 and _is_heavier(order, counts, place, places[hole - 1]):
                places[hole] = places[hole - 1]
                hole -= 1
            places[hole] = place
        out[i, 0], out[i, 1] = first, found
        for number in range(found):
            found_keys[first + number], found_counts[first + number] = keys[places[number]], counts[places[number]]
        first += found
    return out, found_keys, found_counts


@helper
def _is_heavier(keys: Int64Array, counts: Int64Array, one: int, other: int) -> bool:
    return bool(counts[one] > counts[other]) or bool(counts[one] == counts[other] and keys[one] < keys[other])
