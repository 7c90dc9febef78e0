"""The kernels of windows that move over rows: when counted rows enter and leave, and states over moving ranges.

Rows of one group follow each other. At every change the window is a range of them, from `low` to before `high`. States
over such ranges come from two scans: rows are cut into blocks, and every range is the end of one block and the
beginning of the next (two stacks, all of whose turns are known beforehand).
"""

from __future__ import annotations

import numpy as np

from panewise.kernels import Flags, Float64Array, Int32Array, Int64Array, UInt8Array, helper, kernel
from panewise.kernels.sums import _two_sum

_LEAST = np.int64(np.iinfo(np.int64).min)
#: A row leaves at an instant that will be reported. A row that never leaves has a later value, `window.FOREVER`.
OPEN = 2**62


@kernel
def range_steps(
    starts: Int64Array, enter: Int64Array, leave: Int64Array, since: int, limit: int, opening: bool
) -> tuple[Int64Array, Int64Array, Int64Array, Int64Array, Int64Array, Flags]:
    """The instants after `since` and up to `limit` at which each group changes, and its range of rows then.

    The rows of group `g` begin at `starts[g]` and enter and leave in their order. Returned are groups, instants, `low`,
    `high`, and `middle`, where the range passes from one block into the next; and where blocks begin. With `opening`,
    a group that has rows at `since` has a step there.
    """
    size = 2 * len(enter) + len(starts)
    groups, at = np.empty(size, np.int64), np.empty(size, np.int64)
    low, high, middle = np.empty(size, np.int64), np.empty(size, np.int64), np.empty(size, np.int64)
    cuts = np.zeros(len(enter) + 1, np.bool_)
    count = 0
    for group in range(len(starts) - 1):
        first = last = starts[group]
        end = starts[group + 1]
        cuts[first] = True
        while last < end and enter[last] <= since:
            last += 1
        while first < last and leave[first] <= since:
            first += 1
        border = last
        cuts[border] = True
        now = since
        if opening and first < last:
            groups[count], at[count], low[count], high[count], middle[count] = group, since, first, last, border
            count += 1
        while True:
            now = limit + 1
            if last < end and enter[last] < now:
                now = enter[last]
            if first < last and leave[first] < now:
                now = leave[first]
            if now > limit:
                break
            while last < end and enter[last] <= now:
                last += 1
            while first < last and leave[first] <= now:
                first += 1
            if first >= border:
                border = last
                cuts[border] = True
            groups[count], at[count], low[count], high[count], middle[count] = group, now, first, last, border
            count += 1
    return groups[:count], at[:count], low[:count], high[:count], middle[:count], cuts


@kernel
def range_sums(values: Int64Array, low: Int64Array, high: Int64Array) -> Int64Array:
    """The sum of the values of each range; none is too large for int64."""
    sums = np.empty(len(low), np.int64)
    first = last = total = np.int64(0)
    for step in range(len(low)):
        while last < high[step]:
            total += values[last]
            last += 1
        while first < low[step]:
            total -= values[first]
            first += 1
        sums[step] = total
    return sums


@kernel
def range_greatest(
    word: Int64Array, seen: Flags, low: Int64Array, high: Int64Array, middle: Int64Array
) -> tuple[Int64Array, Flags]:
    """The greatest value of each range, and whether it has any; `word` is the least of all where there is none.

    Up to `middle` the values of a block are replaced by the greatest from each one on; what follows is added as the
    range grows.
    """
    best, found = word.copy(), seen.copy()
    out, there = np.empty(len(low), np.int64), np.empty(len(low), np.bool_)
    border = filled = np.int64(-1)
    greatest, any_ = np.int64(0), False
    for step in range(len(low)):
        if middle[step] != border:
            border = filled = middle[step]
            for place in range(border - 2, low[step] - 1, -1):
                best[place] = max(best[place], best[place + 1])
                found[place] |= found[place + 1]
            greatest, any_ = _LEAST, False
        while filled < high[step]:
            greatest, any_ = max(greatest, word[filled]), any_ or seen[filled]
            filled += 1
        out[step], there[step] = greatest, any_
        if low[step] < border:
            out[step], there[step] = max(greatest, best[low[step]]), any_ or found[low[step]]
    return out, there


@kernel
def range_float_sums(
    values: Float64Array, low: Int64Array, high: Int64Array, middle: Int64Array
) -> tuple[Float64Array, Float64Array, UInt8Array]:
    """The same for compensated sums of values, and for what is odd about these; see `add_floats` and `add_pairs`."""
    size, steps = len(values), len(low)
    total, error, odd = np.zeros(size), np.zeros(size), np.zeros(size, np.uint8)
    for place in range(size):
        value = values[place]
        if np.isfinite(value):
            total[place] = value
        else:
            odd[place] = 1 if np.isnan(value) else 2 if value > 0 else 4
    highs, lows, odds = np.empty(steps), np.empty(steps), np.empty(steps, np.uint8)
    border = filled = np.int64(-1)
    sum_, lost, strange = 0.0, 0.0, np.uint8(0)
    for step in range(steps):
        if middle[step] != border:
            border = filled = middle[step]
            for place in range(border - 2, low[step] - 1, -1):
                total[place], error[place] = _add_pair(total[place], error[place], total[place + 1], error[place + 1])
                odd[place] |= odd[place + 1]
            sum_, lost, strange = 0.0, 0.0, np.uint8(0)
        while filled < high[step]:
            sum_, lost = _add_pair(sum_, lost, total[filled], 0.0)
            strange |= odd[filled]
            filled += 1
        highs[step], lows[step], odds[step] = sum_, lost, strange
        if low[step] < border:
            highs[step], lows[step] = _add_pair(sum_, lost, total[low[step]], error[low[step]])
            odds[step] = strange | odd[low[step]]
    return highs, lows, odds


@helper
def _add_pair(high: float, low: float, more: float, rest: float) -> tuple[float, float]:
    """The sum of two compensated pairs."""
    total, error = _two_sum(high, more)
    small, lost = _two_sum(low, rest)
    total, error = _two_sum(total, error + small)
    return _two_sum(total, error + lost)


@kernel
def range_distinct(codes: Int64Array, low: Int64Array, high: Int64Array) -> Int64Array:
    """How many different codes each range has; rows with the code -1 have no value."""
    found, counts = np.empty(len(low), np.int64), np.zeros(codes.max() + 1 if len(codes) else 0, np.int64)
    first = last = different = 0
    for step in range(len(low)):
        while first < min(low[step], last):
            if codes[first] >= 0:
                counts[codes[first]] -= 1
                different -= counts[codes[first]] == 0
            first += 1
        first = max(first, low[step])
        last = max(last, first)
        while last < high[step]:
            if codes[last] >= 0:
                different += counts[codes[last]] == 0
                counts[codes[last]] += 1
            last += 1
        found[step] = different
    return found


@kernel
def range_ranked(
    starts: Int64Array,
    sorted_rows: Int64Array,
    low: Int64Array,
    high: Int64Array,
    groups: Int64Array,
    ranks: Int64Array,
) -> Int64Array:
    """The rows at some ranks of each range, counted from one, -1 where there is none.

    `sorted_rows` are the rows of each group that have a value, by value, and begin at the group's start; -1 follows
    them. Which of them are in the range is counted in a tree (Fenwick).
    """
    size = len(sorted_rows)
    place = np.full(size, -1)
    for number in range(size):
        if sorted_rows[number] >= 0:
            place[sorted_rows[number]] = number
    found, tree = np.full(ranks.shape, -1), np.zeros(size + 1, np.int32)
    first = last = np.int64(0)
    group = -1
    for step in range(len(low)):
        if groups[step] != group:
            group = groups[step]
            first = last = low[step]
        base, width = starts[group], starts[group + 1] - starts[group]
        while last < high[step]:
            _count_in_tree(tree, base, width, place[last] - base, 1)
            last += 1
        while first < low[step]:
            _count_in_tree(tree, base, width, place[first] - base, -1)
            first += 1
        for number in range(ranks.shape[0]):
            if ranks[number, step] > 0:
                found[number, step] = sorted_rows[base + _rank_in_tree(tree, base, width, ranks[number, step])]
    return found


@helper
def _count_in_tree(tree: Int32Array, base: int, width: int, place: int, by: int) -> None:
    """Count a row at its place among the sorted rows of its group; rows without a value have a negative place."""
    if place < 0:
        return
    node = place + 1
    while node <= width:
        tree[base + node - 1] += by
        node += node & -node


@helper
def _rank_in_tree(tree: Int32Array, base: int, width: int, rank: int) -> int:
    """The place of the row with a rank."""
    node, step = 0, 1
    while 2 * step <= width:
        step *= 2
    while step > 0:
        if node + step <= width and tree[base + node + step - 1] < rank:
            node += step
            rank -= tree[base + node - 1]
        step //= 2
    return node


@kernel
def range_counted(
    starts: Int64Array, visible: Int64Array, since: int, limit: int, lag: int, count: int
) -> tuple[Int64Array, Int64Array]:
    """When the rows of partitions enter the last `count` rows before the newest `lag`, and when they leave.

    The rows of partition `p` begin at `starts[p]`, ordered by time; `visible` is when each comes. Instants up to
    `since` are past and not told apart; those after `limit` are OPEN.
    """
    enter, leave = np.full(len(visible), OPEN), np.full(len(visible), OPEN)
    for partition in range(len(starts) - 1):
        begin, end = starts[partition], starts[partition + 1]
        if _rises(visible[begin:end]):
            while end > begin and visible[end - 1] > limit:
                end -= 1
            for place in range(begin, end - lag):
                enter[place] = visible[place + lag]
                if place + lag + count < end:
                    leave[place] = visible[place + lag + count]
        else:
            _insert_rows(begin, end, visible, since, limit, lag, count, enter, leave)
    return enter, leave


@helper
def _rises(instants: Int64Array) -> bool:
    """Whether each is the one before it or later."""
    in_order = True
    for place in range(1, len(instants)):
        in_order &= instants[place] >= instants[place - 1]
    return in_order


@helper
def _insert_rows(
    begin: int,
    end: int,
    visible: Int64Array,
    since: int,
    limit: int,
    lag: int,
    count: int,
    enter: Int64Array,
    leave: Int64Array,
) -> None:
    """The same for one partition in which late rows come between others: each moves all older rows on by one."""
    line, size = np.empty(end - begin, np.int64), 0
    for place in range(begin, end):
        if visible[place] <= since:
            line[size] = place
            size += 1
    for rank in range(lag, size):
        enter[line[size - 1 - rank]] = since
        if rank >= lag + count:
            leave[line[size - 1 - rank]] = since
    fresh = begin + np.argsort(visible[begin:end], kind="mergesort")
    for place in fresh:
        if visible[place] <= since or visible[place] > limit:
            continue
        at = size
        while at > 0 and line[at - 1] > place:
            line[at] = line[at - 1]
            at -= 1
        line[at] = place
        size += 1
        newer = size - 1 - at
        if lag < newer < lag + count:
            enter[place] = visible[place]
        if newer <= lag < size:
            enter[line[size - 1 - lag]] = visible[place]
        if newer <= lag + count < size:
            leave[line[size - 1 - lag - count]] = visible[place]


@kernel
def range_numbers(
    starts: Int64Array, visible: Int64Array, since: int, limit: int
) -> tuple[Int64Array, Int64Array, Int64Array]:
    """The number of each row in its partition, from 0, when it comes or at `since`; and the rows and instants at which
    numbers rise by one, because a late row has come before them.
    """
    numbers = np.zeros(len(visible), np.int64)
    places, at = [0 for _ in range(0)], [0 for _ in range(0)]
    for partition in range(len(starts) - 1):
        begin, end = starts[partition], starts[partition + 1]
        if _rises(visible[begin:end]):
            numbers[begin:end] = np.arange(end - begin)
            continue
        line = np.empty(end - begin, np.int64)
        for size, place in enumerate(begin + np.argsort(visible[begin:end], kind="mergesort")):
            if visible[place] > limit:
                break
            older = size
            while older > 0 and line[older - 1] > place:
                line[older] = line[older - 1]
                if visible[place] <= since:
                    numbers[line[older]] += 1
                else:
                    places.append(line[older])
                    at.append(visible[place])
                older -= 1
            line[older] = place
            numbers[place] = older
    return numbers, np.array(places, np.int64), np.array(at, np.int64)


@kernel
def range_newer(edges: Int64Array, visible: Int64Array, places: Int64Array, enough: int) -> Int64Array:
    """How many newer rows of its partition were there when each of some rows became visible, `enough` at most.

    The rows of partition `p` begin at `edges[p]`, ordered by time.
    """
    found = np.zeros(len(places), np.int64)
    for number, place in enumerate(places):
        end = edges[np.searchsorted(edges, place, side="right")]
        newer = end - 1
        while newer > place and found[number] < enough:
            found[number] += visible[newer] <= visible[place]
            newer -= 1
    return found
