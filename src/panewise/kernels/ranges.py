"""The kernels of windows that move over rows: when counted rows enter and leave, and states over moving ranges.

Rows of one group follow each other. At every change the window is a range of them, from `low` to before `high`. States
over such ranges come from two scans: rows are cut into blocks, and every range is the end of one block and the
beginning of the next (two stacks, all of whose turns are known beforehand).
"""

from __future__ import annotations

import numpy as np

from panewise.kernels import Flags, Float64Array, Int64Array, UInt8Array, helper, kernel
from panewise.kernels.sums import _two_sum

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


@helper
def _neighbour(place: int, size: int, cuts: Flags, backward: bool) -> int:
    """The row of the same block that a scan has passed just before a row; -1 where the block begins."""
    if backward:
        return place + 1 if place + 1 < size and not cuts[place + 1] else -1
    return place - 1 if not cuts[place] else -1


@kernel
def range_sums(word: Int64Array, cuts: Flags, backward: bool) -> None:
    """Running sums inside of blocks, in place, from their beginning or `backward` from their end."""
    size = len(word)
    for number in range(size):
        place = size - 1 - number if backward else number
        before = _neighbour(place, size, cuts, backward)
        if before >= 0:
            word[place] += word[before]


@kernel
def range_greatest(word: Int64Array, seen: Flags, cuts: Flags, backward: bool) -> None:
    """The same for the greatest value, and whether there is any."""
    size = len(word)
    for number in range(size):
        place = size - 1 - number if backward else number
        before = _neighbour(place, size, cuts, backward)
        if before >= 0:
            word[place] = max(word[place], word[before])
            seen[place] |= seen[before]


@kernel
def range_pairs(high: Float64Array, low: Float64Array, odd: UInt8Array, cuts: Flags, backward: bool) -> None:
    """The same for compensated sums, and for what is odd about their values."""
    size = len(high)
    for number in range(size):
        place = size - 1 - number if backward else number
        before = _neighbour(place, size, cuts, backward)
        if before >= 0:
            total, error = _two_sum(high[before], high[place])
            small, lost = _two_sum(low[before], low[place])
            total, error = _two_sum(total, error + small)
            high[place], low[place] = _two_sum(total, error + lost)
            odd[place] |= odd[before]


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
        in_order = True
        for place in range(begin + 1, end):
            in_order &= visible[place] >= visible[place - 1]
        if in_order:
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
