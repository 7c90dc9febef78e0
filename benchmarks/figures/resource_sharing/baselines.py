"""What "Resource sharing" compares its stores with. Only benchmarks use these."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar, TypeVar, cast

import numba
import numpy as np

from panewise.aggregate import Int64Array, StateArrays, StateWords

F = TypeVar("F", bound=Callable[..., Any])


def _compiled(function: F) -> F:
    made: Any = numba.njit(cache=True)(function)
    return cast(F, made)


class Baseline(ABC):
    """SUM over the last `reach` positions, compiled as the stores are, each word of the states by itself."""

    name: ClassVar[str]

    def __init__(self, column: StateArrays, reach: int) -> None:
        self.column, self.reach, self.length = column, reach, 0

    @abstractmethod
    def append(self, words: StateWords) -> None:
        """Add the states of the next positions."""

    @abstractmethod
    def lookup(self, firsts: Int64Array, lasts: Int64Array) -> StateWords:
        """The states over each window."""


class SearchTree(Baseline):
    """PSoup's augmented search tree ("Resource sharing" section 3.1.3). Update and lookup O(log reach).

    A complete binary tree over a circle of leaves: the newest position replaces the oldest. That is kinder to PSoup
    than a balanced tree with pointers, since nothing is ever rotated and a position is found by arithmetic.
    """

    name = "PSoup"

    def __init__(self, column: StateArrays, reach: int) -> None:
        super().__init__(column, reach)
        self._trees = column.identity(2 << (reach - 1).bit_length())

    def append(self, words: StateWords) -> None:
        for tree, word in zip(self._trees, words, strict=True):
            _replace_leaves(tree, word, self.length)
        self.length += len(words[0])

    def lookup(self, firsts: Int64Array, lasts: Int64Array) -> StateWords:
        return tuple(_climb(tree, firsts, lasts) for tree in self._trees)


@_compiled
def _replace_leaves(tree: Int64Array, values: Int64Array, length: int) -> None:
    size = len(tree) >> 1
    for i in range(len(values)):
        node = size + ((length + i) & (size - 1))
        tree[node] = values[i]
        node >>= 1
        while node:
            tree[node] = tree[2 * node] + tree[2 * node + 1]
            node >>= 1


@_compiled
def _climb(tree: Int64Array, firsts: Int64Array, lasts: Int64Array) -> Int64Array:
    size, out = len(tree) >> 1, np.zeros(len(firsts), np.int64)
    for i in range(len(firsts)):
        low, high = (firsts[i] - 1) & (size - 1), lasts[i] & (size - 1)
        wrapped = firsts[i] <= lasts[i] and high <= low
        for turn in range(2 if wrapped else 1):
            left = size + (0 if turn == 1 else low)
            right = 2 * size if wrapped and turn == 0 else size + high
            while left < right:
                if left & 1:
                    out[i] += tree[left]
                    left += 1
                if right & 1:
                    right -= 1
                    out[i] += tree[right]
                left, right = left >> 1, right >> 1
    return out


class MaterialiseAll(Baseline):
    """The answers of all suffix windows up to `reach`, kept up to date. Update O(reach), lookup O(1)."""

    name = "materialise all"

    def __init__(self, column: StateArrays, reach: int) -> None:
        super().__init__(column, reach)
        self._states, self._answers = column.identity(reach + 1), column.identity(reach + 1)

    def append(self, words: StateWords) -> None:
        for states, answers, word in zip(self._states, self._answers, words, strict=True):
            _bring_up_to_date(states, answers, word, self.length)
        self.length += len(words[0])

    def lookup(self, firsts: Int64Array, lasts: Int64Array) -> StateWords:
        assert (lasts == self.length).all(), "only suffix windows are kept"
        return tuple(answers[lasts - firsts + 1] for answers in self._answers)


@_compiled
def _bring_up_to_date(states: Int64Array, answers: Int64Array, values: Int64Array, length: int) -> None:
    """Each answer takes the newest state in and lets that go which is now further back than its window is wide."""
    for i in range(len(values)):
        place = (length + i) % len(states)
        for width in range(1, len(answers)):
            leaving = place - width
            answers[width] += values[i] - states[leaving if leaving >= 0 else leaving + len(states)]
        states[place] = values[i]


class MaterialiseNone(Baseline):
    """The states as they came. Update O(1), lookup O(W)."""

    name = "materialise none"

    def __init__(self, column: StateArrays, reach: int) -> None:
        super().__init__(column, reach)
        self._states = column.identity(1 << (reach - 1).bit_length())

    def append(self, words: StateWords) -> None:
        for states, word in zip(self._states, words, strict=True):
            states[np.arange(self.length, self.length + len(word)) & (len(states) - 1)] = word
        self.length += len(words[0])

    def lookup(self, firsts: Int64Array, lasts: Int64Array) -> StateWords:
        return tuple(_add_up(states, firsts, lasts) for states in self._states)


@_compiled
def _add_up(states: Int64Array, firsts: Int64Array, lasts: Int64Array) -> Int64Array:
    mask, out = len(states) - 1, np.zeros(len(firsts), np.int64)
    for i in range(len(firsts)):
        for position in range(firsts[i] - 1, lasts[i]):
            out[i] += states[position & mask]
    return out
