"""Where frames end that begin with any item, found without looking at all items of each.

A frame ends where an aggregate of its items first passes a limit. Where it never comes back from there, a frame that
begins later does not end earlier: both ends of the frame only move on. For sums, means, medians and quantiles that is a
condition on the difference of two running sums: those up to the last item and up to the one before the first. A tree
over these sums, whose inner nodes have the greater of their children, finds the first place from which it holds.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from panewise.kernels import Float64Array, Int64Array, helper, kernel
from panewise.kernels.frame_comparisons import Comparison, Material
from panewise.kernels.frames import COUNT_ROWS, LABEL, MEAN, MINIMUM, OLDEST, WIDTH, _compares
from panewise.kernels.regression_float import minus, plus

#: What is not certain because a number is near a limit: so much of the sum of all amounts of a group.
_NEAR = 2.0**-48
#: The rows of the levels of sums: a tree of what is searched, then of each place the running sum and what rounding lost
#: of it, that of all amounts, and how many values are known, and are no whole numbers.
TREE, TOTAL, LOST, AMOUNT, KNOWN, BROKEN = range(6)
#: Every whole number below this is a double.
_EXACT = 2.0**53
#: The rows of the levels of ranks: trees of the values that have not passed the limit, and of those that have, negated.
BELOW, ABOVE = range(2)


# ---- trees -----------------------------------------------------------------------------------------------------------


@helper
def _width(size: int) -> int:
    """So many leaves, of which the first are used, has a tree over so many places."""
    width = 1
    while width < size:
        width *= 2
    return width


@helper
def _fill(tree: Any, width: int) -> None:
    """The inner nodes of a tree from its leaves."""
    for node in range(width - 1, 0, -1):
        tree[node] = max(tree[2 * node], tree[2 * node + 1])


@helper
def _first_from(tree: Any, first: int, stop: int, bound: Any) -> int:
    """The first place from one on, before another, that is not below a bound; `stop` if there is none."""
    width = len(tree) // 2
    node = width + first
    while first < stop:
        while node % 2 == 0:
            node >>= 1
        if tree[node] >= bound:
            while node < width:
                node *= 2
                if tree[node] < bound:
                    node += 1
            return min(node - width, stop)
        node += 1
        if node & -node == node:
            break
    return stop


@helper
def _greatest(tree: Float64Array, first: int, last: int) -> float:
    """The greatest leaf from one place to another."""
    found, low, high = -np.inf, first + len(tree) // 2, last + len(tree) // 2 + 1
    while low < high:
        if low & 1:
            found = max(found, tree[low])
            low += 1
        if high & 1:
            high -= 1
            found = max(found, tree[high])
        low, high = low >> 1, high >> 1
    return found


@helper
def _passes(answer: float, operator: int, limit: float) -> bool:
    """Whether an answer ends a frame: it begins to hold, or ceases to. What is unknown does neither."""
    return not np.isnan(answer) and _compares(answer, operator, limit) == (operator < 2)


# ---- sums and means --------------------------------------------------------------------------------------------------


@kernel
def frame_sum_levels(
    begins: Int64Array, stops: Int64Array, values: Float64Array, comparison: Comparison
) -> Float64Array:
    """The levels of SUM, AVG and COUNT: running sums of each group, as pairs; means are searched less the limit."""
    aggregate, _, limit, _, _ = comparison
    width = _width(len(values))
    levels = np.zeros((6, 2 * width))
    levels[TREE] = -np.inf
    for group in range(len(begins)):
        total, amount, known, broken = (0.0, 0.0), 0.0, 0.0, 0.0
        for place in range(begins[group], stops[group]):
            value = 1.0 if aggregate == COUNT_ROWS and not np.isnan(values[place]) else values[place]
            if not np.isnan(value):
                total, amount, known = plus(total, (value, 0.0)), amount + abs(value), known + 1.0
                broken += value != np.floor(value)
            levels[TOTAL, place], levels[LOST, place] = total
            levels[AMOUNT, place], levels[KNOWN, place], levels[BROKEN, place] = amount, known, broken
            searched = total[0] - limit * known if aggregate == MEAN else total[0]
            # What is not finite is not searched, and must not hide what is.
            levels[TREE, width + place] = searched if np.isfinite(searched) else np.inf
    _fill(levels[TREE], width)
    return levels


@helper
def flip_summed(begin: int, first: int, stop: int, comparison: Comparison, levels: Float64Array) -> int:
    """Where a frame ends by a sum, a mean or a count, `stop` if nowhere, and -1 if only adding its items can tell."""
    aggregate, operator, limit, _, _ = comparison
    amount, many = levels[AMOUNT, stop - 1], levels[KNOWN, stop - 1]
    near = _NEAR * (amount + abs(limit) * (many if aggregate == MEAN else 1.0))
    if not near < np.inf:
        return -1
    # Added one by one, sums differ from exact ones by less than this before they are rounded.
    lost = many * many * 2.0**-104 * amount if levels[BROKEN, stop - 1] > 0 or amount >= _EXACT else 0.0
    before, base, had = (0.0, 0.0), 0.0, 0.0
    if first > begin:
        before, had = (levels[TOTAL, first - 1], levels[LOST, first - 1]), levels[KNOWN, first - 1]
        base = levels[TREE, len(levels[TREE]) // 2 + first - 1]
    bound = base + (0.0 if aggregate == MEAN else limit) - near
    place = first
    while True:
        place = _first_from(levels[TREE], place, stop, bound)
        if place == stop:
            return stop
        count = levels[KNOWN, place] - had
        if count > 0 or aggregate == COUNT_ROWS:
            total = plus((levels[TOTAL, place], levels[LOST, place]), minus(before))
            answer = total[0]
            if plus(total, (lost, 0.0))[0] != answer or plus(total, (-lost, 0.0))[0] != answer:
                return -1
            if _passes(answer / count if aggregate == MEAN else answer, operator, limit):
                return place
        place += 1


# ---- medians and quantiles -------------------------------------------------------------------------------------------


@kernel
def frame_rank_levels(
    begins: Int64Array, stops: Int64Array, values: Float64Array, comparison: Comparison
) -> tuple[Int64Array, Float64Array]:
    """The levels of MEDIAN and QUANTILE: how far the values that have passed the limit are in the majority.

    For a quantile, the share that counts is weighed against the values that have not passed it.
    """
    _, operator, limit, above, below = comparison
    width = _width(len(values))
    tree, levels = np.full(2 * width, np.iinfo(np.int64).min), np.full((2, 2 * width), -np.inf)
    for group in range(len(begins)):
        level = np.int64(0)
        for place in range(begins[group], stops[group]):
            value = values[place]
            if _passes(value, operator, limit):
                level += above if below > 0 else 1
                levels[ABOVE, width + place] = -value
            elif not np.isnan(value):
                level += above - below if below > 0 else -1
                levels[BELOW, width + place] = value
            tree[width + place] = level
    _fill(tree, width)
    _fill(levels[BELOW], width)
    _fill(levels[ABOVE], width)
    return tree, levels


@helper
def flip_ranked(begin: int, first: int, stop: int, comparison: Comparison, material: Material) -> int:
    """Where a frame ends by a median or a quantile, `stop` if nowhere."""
    _, operator, limit, _, below = comparison
    values, tree, levels = material
    while first < stop and np.isnan(values[first]):
        first += 1
    if first == stop or _passes(values[first], operator, limit):
        return first
    base = tree[len(tree) // 2 + first - 1] if first > begin else np.int64(0)
    if below > 0:
        # At least one value has not passed it: the rank is after all of these once their share allows for one more.
        return _first_from(tree, first, stop, base + below)
    place = first
    while True:
        place = _first_from(tree, place, stop, base)
        if place == stop or tree[len(tree) // 2 + place] > base:
            return place
        # As many have passed the limit as have not: both values in the middle decide.
        low, high = _greatest(levels[BELOW], first, place), -_greatest(levels[ABOVE], first, place)
        if _passes(low / 2 + high / 2, operator, limit):
            return place
        place += 1


# ---- what only grows with a frame ------------------------------------------------------------------------------------


@kernel
def frame_growing(
    starts: Int64Array, stops: Int64Array, values: Float64Array, codes: Int64Array, comparison: Comparison
) -> Int64Array:
    """Where each frame ends by the difference of its greatest and least values or the number of its different codes.

    A frame that begins with an unknown value has no difference and ends at once.
    """
    aggregate, operator, limit, _, _ = comparison
    ends = np.zeros(len(codes), np.int64)
    often = np.zeros(codes.max() + 1 if len(codes) else 0, np.int64)
    # Places with values that fall, and that rise: each is the greatest, or least, of all from it on.
    falling, rising = np.empty(len(values), np.int64), np.empty(len(values), np.int64)
    for group in range(len(stops)):
        first, stop = starts[group], stops[group]
        last, different, taken = first, 0, first
        top = bottom = top_end = bottom_end = 0
        while first < stop:
            last, taken = max(last, first), max(taken, first)
            unknown = aggregate == WIDTH and np.isnan(values[first])
            while last < stop and not unknown:
                if taken == last:
                    taken += 1
                    if aggregate != WIDTH:
                        different += _count(often, codes[last], 1)
                    elif not np.isnan(values[last]):
                        top_end = _settle(falling, top, top_end, last, values, 1.0)
                        bottom_end = _settle(rising, bottom, bottom_end, last, values, -1.0)
                answer = float(different)
                if aggregate == WIDTH:
                    greatest, least = values[falling[top]], values[rising[bottom]]
                    answer = 0.0 if greatest == least else greatest - least
                if _passes(answer, operator, limit):
                    break
                last += 1
            ends[first] = first if unknown else last
            if first < taken:
                different -= _count(often, codes[first], -1)
            top += top < top_end and falling[top] == first
            bottom += bottom < bottom_end and rising[bottom] == first
            first += 1
    return ends


@helper
def _count(often: Int64Array, code: int, by: int) -> int:
    """Count a code once more or less; returns 1 if it is the first or the last one, and 0 for no code."""
    if code < 0:
        return 0
    often[code] += by
    return 1 if often[code] == max(by, 0) else 0


@helper
def _settle(places: Int64Array, begin: int, end: int, place: int, values: Float64Array, sign: float) -> int:
    """Add a place to those with the greatest values from each on, without the ones it exceeds; returns their end."""
    while end > begin and sign * values[places[end - 1]] <= sign * values[place]:
        end -= 1
    places[end] = place
    return end + 1


@kernel
def frame_picked(starts: Int64Array, stops: Int64Array, values: Float64Array, comparison: Comparison) -> Int64Array:
    """Where each frame ends by a value that one item decides.

    The greatest value and the newest pass a limit with any item, the least and the oldest with the first one or never.
    A label ends with the first one that differs from it, and at once where there is none.
    """
    aggregate, operator, limit, _, _ = comparison
    ends = np.zeros(len(values), np.int64)
    for group in range(len(stops)):
        stop = following = stops[group]
        end = stop
        for place in range(stop - 1, starts[group] - 1, -1):
            value = values[place]
            if np.isnan(value):
                ends[place] = place if aggregate == LABEL else end
                continue
            if aggregate == LABEL:
                if following == stop or values[following] != value:
                    end = following
                following = place
            elif _passes(value, operator, limit):
                end = place
            elif aggregate in (MINIMUM, OLDEST):
                end = stop
            ends[place] = end
    return ends
