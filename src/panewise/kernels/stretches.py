"""The kernels of stretches of steps that overlap in any way."""

from __future__ import annotations

import numpy as np

from panewise.kernels import Flags, Int64Array, kernel

_LEAST = np.int64(np.iinfo(np.int64).min)


@kernel
def stretch_steps(
    starts: Int64Array,
    by_enter: Int64Array,
    by_leave: Int64Array,
    enter: Int64Array,
    leave: Int64Array,
    since: int,
    limit: int,
    opening: bool,
) -> tuple[Int64Array, Int64Array, Int64Array, Int64Array]:
    """The group and instant of each step at which a group changes after `since` and up to `limit`; and for each row the
    step with which it begins, or the first of its group, and the step with which it ends, or the end of its group.

    The rows of group `g` begin at `starts[g]`; both orders are by group. With `opening`, rows that are there at `since`
    begin with a step then.
    """
    size = 2 * len(enter)
    groups, at = np.empty(size, np.int64), np.empty(size, np.int64)
    low, high = np.empty(len(enter), np.int64), np.empty(len(enter), np.int64)
    count = 0
    for group in range(len(starts) - 1):
        coming = going = starts[group]
        end, first = starts[group + 1], count
        while not opening and coming < end and enter[by_enter[coming]] <= since:
            low[by_enter[coming]] = first
            coming += 1
        while True:
            now = limit + 1
            if coming < end:
                now = min(now, max(enter[by_enter[coming]], since))
            if going < end:
                now = min(now, leave[by_leave[going]])
            if now > limit:
                break
            while coming < end and enter[by_enter[coming]] <= now:
                low[by_enter[coming]] = count
                coming += 1
            while going < end and leave[by_leave[going]] <= now:
                high[by_leave[going]] = count
                going += 1
            groups[count], at[count] = group, now
            count += 1
        high[by_leave[going:end]] = count
    return groups[:count], at[:count], low, high


@kernel
def stretch_sums(word: Int64Array, low: Int64Array, high: Int64Array, count: int) -> Int64Array:
    """The sum of a word over all rows whose stretch has each step; it may wrap around."""
    steps = np.zeros(count + 1, np.int64)
    for row in range(len(word)):
        steps[low[row]] += word[row]
        steps[high[row]] -= word[row]
    for step in range(1, count):
        steps[step] += steps[step - 1]
    return steps[:count]


@kernel
def stretch_greatest(
    order: Int64Array, low: Int64Array, high: Int64Array, word: Int64Array, seen: Flags, count: int
) -> tuple[Int64Array, Flags]:
    """The greatest word of the rows whose stretch has each step, and whether there is any that is `seen`.

    `order` is that of words, the greatest first: each row decides the steps of its stretch that no row before it has
    decided. From a step, `onward` leads to the next one that is not decided.
    """
    best, there = np.full(count, _LEAST), np.zeros(count, np.bool_)
    onward = np.arange(count + 1)
    for row in order:
        if not seen[row]:
            continue
        step = low[row]
        while step < high[row]:
            if onward[step] == step:
                best[step], there[step] = word[row], True
                onward[step] = step + 1
            else:
                onward[step] = onward[onward[step]]
            step = onward[step]
    return best, there
