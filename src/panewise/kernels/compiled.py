"""The kernels, compiled. Read `plain` for what each of them means."""

from __future__ import annotations

import numpy as np

from panewise.kernels import frames as framing
from panewise.kernels import intervals, levels, quantiles, running
from panewise.kernels import max_index as peaks
from panewise.kernels import regression_float as moments
from panewise.kernels import regression_int as powers
from panewise.kernels.compiling import compile_kernel
from panewise.kernels.plain import Chain, Flags, Float64Array, Int64Array, Table, UInt8Array

_BODY = np.int64(0x7FFF_FFFF_FFFF_FFFF)
_INFINITY, _NAN = np.int64(0x7FF0_0000_0000_0000), np.int64(0x7FF8_0000_0000_0000)


@compile_kernel
def pane_numbers(positions: Int64Array, origin: int, width: int) -> Int64Array:
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


@compile_kernel
def dense_slots(panes: Int64Array, codes: Int64Array, first: int, keys: int) -> Int64Array:
    out = np.empty(len(panes), np.int64)
    for i in range(len(panes)):
        out[i] = (panes[i] - first) * keys + codes[i]
    return out


@compile_kernel
def table_codes(values: Int64Array, base: int, table: Int64Array) -> tuple[Int64Array, bool]:
    out = np.empty(len(values), np.int64)
    complete = True
    size = len(table)
    for i in range(len(values)):
        place = values[i] - base
        code = table[place] if 0 <= place < size else -1
        complete &= code >= 0
        out[i] = code
    return out, complete


@compile_kernel
def hash_codes(
    values: Int64Array, table: Table, uniques: Int64Array, known: int, codes: Int64Array, start: int
) -> tuple[int, int]:
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


@compile_kernel
def count(slots: Int64Array, out: Int64Array) -> None:
    for i in range(len(slots)):
        out[slots[i]] += 1


@compile_kernel
def add_integers(slots: Int64Array, values: Int64Array, high: Int64Array, low: Int64Array) -> None:
    for i in range(len(slots)):
        slot, value = slots[i], values[i]
        high[slot] += value >> 32
        low[slot] += value & 0xFFFFFFFF


@compile_kernel
def add_floats(slots: Int64Array, values: Float64Array, high: Float64Array, low: Float64Array, odd: UInt8Array) -> None:
    for i in range(len(slots)):
        slot, value = slots[i], values[i]
        if np.isfinite(value):
            before = high[slot]
            total = before + value
            shadow = total - before
            if np.isfinite(total):
                low[slot] += (before - (total - shadow)) + (value - shadow)
            high[slot] = total
        elif np.isnan(value):
            odd[slot] |= 1
        elif value > 0:
            odd[slot] |= 2
        else:
            odd[slot] |= 4


@compile_kernel
def _two_sum(a: float, b: float) -> tuple[float, float]:
    total = a + b
    if not np.isfinite(total):
        return total, 0.0
    shadow = total - a
    return total, (a - (total - shadow)) + (b - shadow)


@compile_kernel
def add_pairs(
    high: Float64Array, low: Float64Array, more: Float64Array, rest: Float64Array
) -> tuple[Float64Array, Float64Array]:
    highs, lows = np.empty(len(high)), np.empty(len(high))
    for i in range(len(high)):
        total, error = _two_sum(high[i], more[i])
        small, lost = _two_sum(low[i], rest[i])
        total, error = _two_sum(total, error + small)
        highs[i], lows[i] = _two_sum(total, error + lost)
    return highs, lows


@compile_kernel
def take_greatest(slots: Int64Array, values: Int64Array, out: Int64Array, seen: Flags) -> None:
    for i in range(len(slots)):
        slot = slots[i]
        if values[i] > out[slot]:
            out[slot] = values[i]
        seen[slot] = True


@compile_kernel
def take_greatest_floats(slots: Int64Array, bits: Int64Array, flip: int, out: Int64Array, seen: Flags) -> None:
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


@compile_kernel
def take_latest(
    slots: Int64Array,
    times: Int64Array,
    order: Int64Array,
    rows: Int64Array,
    out: tuple[Int64Array, Int64Array, Int64Array],
) -> None:
    best_time, best_order, best_row = out
    for i in range(len(slots)):
        slot = slots[i]
        if times[i] > best_time[slot] or (times[i] == best_time[slot] and order[i] >= best_order[slot]):
            best_time[slot], best_order[slot], best_row[slot] = times[i], order[i], rows[i]


@compile_kernel
def bucket_order(codes: Int64Array, size: int) -> Int64Array:
    starts = np.zeros(size + 1, np.int64)
    for code in codes:
        starts[code + 1] += 1
    for code in range(size):
        starts[code + 1] += starts[code]
    order = np.empty(len(codes), np.int64)
    for place in range(len(codes)):
        code = codes[place]
        order[starts[code]] = place
        starts[code] += 1
    return order


@compile_kernel
def overlap_join(left: Chain, right: Chain) -> tuple[Int64Array, Int64Array]:
    codes_a, start_a, enter_a, leave_a, heads_a, links_a, in_order_a = left
    codes_b, start_b, enter_b, leave_b, heads_b, links_b, in_order_b = right
    size = max(len(codes_a) + len(codes_b), 16)
    ours, theirs = np.empty(size, np.int64), np.empty(size, np.int64)
    found, i, j = 0, 0, 0
    while i < len(codes_a) or j < len(codes_b):
        first = j >= len(codes_b) or (i < len(codes_a) and enter_a[start_a + i] <= enter_b[start_b + j])
        if first:
            row, code = start_a + i, codes_a[i]
            enter, leave, other = enter_a[row], leave_a[row], heads_b[code]
        else:
            row, code = start_b + j, codes_b[j]
            enter, leave, other = enter_b[row], leave_b[row], heads_a[code]
        while other >= 0:
            since = enter_b[other] if first else enter_a[other]
            until = leave_b[other] if first else leave_a[other]
            if until <= enter and (in_order_b if first else in_order_a):
                break
            if max(enter, since) < min(leave, until):
                if found == size:
                    size *= 2
                    more, others = np.empty(size, np.int64), np.empty(size, np.int64)
                    more[:found], others[:found] = ours, theirs
                    ours, theirs = more, others
                ours[found], theirs[found] = (row, other) if first else (other, row)
                found += 1
            other = links_b[other] if first else links_a[other]
        if first:
            links_a[row], heads_a[code] = heads_a[code], row
            i += 1
        else:
            links_b[row], heads_b[code] = heads_b[code], row
            j += 1
    return ours[:found], theirs[:found]


@compile_kernel
def interval_run(totals: Int64Array, rows: Int64Array, length: int) -> None:
    mask = totals.shape[0] - 1
    for i in range(len(rows)):
        before, row = (length + i) & mask, (length + i + 1) & mask
        for group in range(rows.shape[1]):
            totals[row, group] = totals[before, group] + rows[i, group]


@compile_kernel
def interval_differences(totals: Int64Array, firsts: Int64Array, lasts: Int64Array, groups: Int64Array) -> Int64Array:
    flat, width, mask = totals.reshape(-1), totals.shape[1], totals.shape[0] - 1
    out = np.empty(len(firsts), np.int64)
    for i in range(len(firsts)):
        newer, older = (lasts[i] & mask) * width + groups[i], ((firsts[i] - 1) & mask) * width + groups[i]
        out[i] = flat[np.uint64(newer)] - flat[np.uint64(older)]
    return out


frame_flags = compile_kernel(framing.frame_flags)
frame_reports = compile_kernel(framing.frame_reports)
frame_labels = compile_kernel(framing.frame_labels)
frame_delta = compile_kernel(framing.frame_delta)
frame_trend = compile_kernel(framing.frame_trend)
frame_reach = compile_kernel(framing.frame_reach)
frame_between = compile_kernel(framing.frame_between)
frame_extents = compile_kernel(framing.frame_extents)
frame_numbers = compile_kernel(framing.frame_numbers)

interval_outside = compile_kernel(intervals.interval_outside)
interval_add = compile_kernel(intervals.interval_add)
interval_choose = compile_kernel(intervals.interval_choose)
interval_sums = compile_kernel(intervals.interval_sums)
interval_sums_of_all = compile_kernel(intervals.interval_sums_of_all)
interval_greatest = compile_kernel(intervals.interval_greatest)
interval_greatest_of_all = compile_kernel(intervals.interval_greatest_of_all)

level_count = compile_kernel(levels.level_count)
level_add = compile_kernel(levels.level_add)
level_lookup = compile_kernel(levels.level_lookup)

running_append = compile_kernel(running.running_append)
running_confirm = compile_kernel(running.running_confirm)

peak_update = compile_kernel(peaks.peak_update)
peak_build = compile_kernel(peaks.peak_build)
peak_lookup = compile_kernel(peaks.peak_lookup)
quantile_merge = compile_kernel(quantiles.quantile_merge)
quantile_sizes = compile_kernel(quantiles.quantile_sizes)
quantile_select = compile_kernel(quantiles.quantile_select)
line_points = compile_kernel(moments.line_points)
line_combine = compile_kernel(moments.line_combine)
line_slopes = compile_kernel(moments.line_slopes)
line_values = compile_kernel(moments.line_values)
line_fits = compile_kernel(moments.line_fits)
line_series = compile_kernel(moments.line_series)
line_series_end = compile_kernel(moments.line_series_end)
power_whole = compile_kernel(powers.power_whole)
power_whole_near = compile_kernel(powers.power_whole_near)
power_real = compile_kernel(powers.power_real)
power_moments = compile_kernel(powers.power_moments)
power_real_near = compile_kernel(powers.power_real_near)
power_add = compile_kernel(powers.power_add)
