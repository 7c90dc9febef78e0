"""States over stretches of steps that overlap in any way: each item counts at all steps of its stretch."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from panewise import kernels
from panewise.aggregate.states import FusedOperation, Int64Array, Items, StateArrays, StateWords, states_at


@dataclass(frozen=True, eq=False)
class RowStretches:
    """The steps of groups at which their rows are there, of `count` steps: from `low` to before `high`.

    `by_end` are the rows by group and by the instant at which they leave; those of group `g` begin at `starts[g]`.
    """

    low: Int64Array
    high: Int64Array
    count: int
    by_end: Int64Array
    starts: Int64Array

    def by_word(self, word: Int64Array) -> Int64Array:
        """The rows of each group by a word, the greatest first; rows of other groups may come between them."""
        mine = word[self.by_end]
        falls = mine[1:] <= mine[:-1]
        falls[self.starts[1:-1] - 1] = True
        # When rows leave is often also what is asked of them.
        return self.by_end if falls.all() else np.argsort(word)[::-1]


def stretch_states(column: StateArrays, items: Items, rows: RowStretches) -> StateWords:
    """The state at each step."""
    low, high, count = rows.low, rows.high, rows.count
    if column.fused is FusedOperation.ADDED:
        words = column.gather(np.arange(len(items)), items, len(items))
        return tuple(kernels.stretch_sums(word, low, high, count) for word in words)
    if column.fused is FusedOperation.GREATEST:
        word, seen = column.gather(np.arange(len(items)), items, len(items))
        found: StateWords = kernels.stretch_greatest(rows.by_word(word), low, high, word, seen, count)
        return found
    nodes, places = _covering_nodes(low, high, count)
    return _push_down(column, column.gather(nodes, items.at(places), 2 * _width(count)), count)


def _width(count: int) -> int:
    return 1 << max(count - 1, 0).bit_length()


def _covering_nodes(low: Int64Array, high: Int64Array, count: int) -> tuple[Int64Array, Int64Array]:
    """The nodes of a tree over all steps that make up each stretch, and which stretch each is for."""
    left, right = low + _width(count), high + _width(count)
    nodes, places = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
    mine = np.flatnonzero(left < right)
    left, right = left[mine], right[mine]
    while len(mine):
        for odd, node in ((left % 2 == 1, left), (right % 2 == 1, right - 1)):
            nodes.append(node[odd])
            places.append(mine[odd])
        left, right = (left + 1) // 2, right // 2
        keep = left < right
        mine, left, right = mine[keep], left[keep], right[keep]
    return np.concatenate(nodes), np.concatenate(places)


def _push_down(column: StateArrays, words: StateWords, count: int) -> StateWords:
    """The state at each step: that of its leaf and of all nodes above."""
    width = _width(count)
    level = 1
    while level < width:
        above = states_at(words, np.repeat(np.arange(level, 2 * level), 2))
        below = slice(2 * level, 4 * level)
        both = column.combine(states_at(words, below), above)
        for word, value in zip(words, both, strict=True):
            word[below] = value
        level *= 2
    return states_at(words, slice(width, width + count))
