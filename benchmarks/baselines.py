"""What the papers compare with. Only benchmarks use these."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from functools import reduce
from typing import TypeVar

from panewise.aggregate import Aggregate, Invertible, Laws
from panewise.stores import Store

S = TypeVar("S")


class SearchTree(Store[S]):
    """PSoup's augmented n-ary search tree ("Resource sharing" section 3.1.3). Update and lookup O(log reach).

    A complete tree over a circle of leaves: the newest position replaces the oldest. That is kinder to PSoup than a
    balanced tree with pointers, since nothing is ever rotated and a position is found by arithmetic.
    """

    name = "PSoup"
    requires = "an associative"
    update_cost, lookup_cost = "O(log N)", "O(log N)"

    def __init__(self, aggregate: Aggregate[S], reach: int, fanout: int = 2) -> None:
        super().__init__(aggregate, reach)
        self.fanout = fanout
        size = 1
        while size < reach:
            size *= fanout
        self._levels = [[aggregate.identity()] * size]
        while size > 1:
            size //= fanout
            self._levels.append([aggregate.identity()] * size)

    @classmethod
    def accepts(cls, laws: Laws) -> bool:
        return laws.bounded

    def _append(self, state: S) -> None:
        place = (self.length - 1) % len(self._levels[0])
        self._levels[0][place] = state
        for below, level in zip(self._levels, self._levels[1:], strict=False):
            place //= self.fanout
            children = below[place * self.fanout : (place + 1) * self.fanout]
            level[place] = reduce(self.aggregate.combine, children)

    def _lookup(self, first: int, last: int) -> S:
        size = len(self._levels[0])
        low, high = (first - 1) % size, (last - 1) % size + 1
        runs = [(low, high)] if low < high else [(low, size), (0, high)]
        nodes = [node for run in runs for node in self._cover(*run)] if first <= last else []
        return reduce(self.aggregate.combine, nodes, self.aggregate.identity())

    def _cover(self, low: int, high: int) -> list[S]:
        """The fewest nodes over the leaves from `low` up to `high`, oldest first."""
        before: list[S] = []
        after: list[S] = []
        for level in self._levels:
            while low < high and low % self.fanout:
                before.append(level[low])
                low += 1
            while low < high and high % self.fanout:
                high -= 1
                after.append(level[high])
            low, high = low // self.fanout, high // self.fanout
        return before + after[::-1]


class MaterialiseAll(Store[S]):
    """The answers of all suffix windows up to `reach`, kept up to date. Update O(reach), lookup O(1)."""

    name = "materialise all"
    requires = "an invertible"
    update_cost, lookup_cost = "O(N)", "O(1)"

    def __init__(self, aggregate: Invertible[S], reach: int) -> None:
        super().__init__(aggregate, reach)
        self._invertible = aggregate
        self._states: list[S] = []
        self._answers = [aggregate.identity()] * (reach + 1)

    @classmethod
    def accepts(cls, laws: Laws) -> bool:
        return laws.invertible

    def _append(self, state: S) -> None:
        self._states.append(state)
        for width in range(1, self.reach + 1):
            answer = self._invertible.combine(self._answers[width], state)
            if len(self._states) > width:
                answer = self._invertible.invert(answer, self._states[-width - 1])
            self._answers[width] = answer
        del self._states[: -self.reach]

    def _lookup(self, first: int, last: int) -> S:
        self._must_be_suffix(first, last)
        return self._answers[last - first + 1]


class CountedJoin(ABC):
    """A symmetric hash join over the last `limit` tuples of two streams, which takes one tuple after another."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        #: The keys and numbers of the tuples in both windows, and for each key the numbers, oldest first.
        self.windows: tuple[deque[tuple[int, int]], deque[tuple[int, int]]] = (deque(), deque())
        self.buckets: tuple[dict[int, deque[int]], dict[int, deque[int]]] = ({}, {})
        self.serial = 0

    def arrive(self, side: int, key: int | None) -> None:
        """One more tuple of a stream; one whose key is not known meets nobody."""
        self.serial += 1
        if key is None:
            key = -self.serial
        self.windows[side].append((key, self.serial))
        self.buckets[side].setdefault(key, deque()).append(self.serial)
        for other in self.buckets[1 - side].get(key, ()):
            self.pair(key, _pair(side, self.serial, other))
        if len(self.windows[side]) > self.limit:
            key, serial = self.windows[side].popleft()
            self.buckets[side][key].popleft()
            self.expire(side, key, serial)

    @abstractmethod
    def pair(self, key: int, pair: tuple[int, int]) -> None:
        """Remember a result: the numbers of its parts."""

    @abstractmethod
    def expire(self, side: int, key: int, serial: int) -> None:
        """Forget the results of a tuple that has left its window."""

    @abstractmethod
    def results(self) -> set[tuple[int, int]]:
        """Everything that is remembered."""


def _pair(side: int, serial: int, other: int) -> tuple[int, int]:
    return (serial, other) if side == 0 else (other, serial)


class NegativeJoin(CountedJoin):
    """Negative tuples: one that expires meets its partners again, and each result is looked for and taken back.

    As in "Consistent results" section 6.3, results are in a list for each key.
    """

    def __init__(self, limit: int) -> None:
        super().__init__(limit)
        self.lists: dict[int, list[tuple[int, int]]] = {}

    def pair(self, key: int, pair: tuple[int, int]) -> None:
        self.lists.setdefault(key, []).append(pair)

    def expire(self, side: int, key: int, serial: int) -> None:
        for other in self.buckets[1 - side].get(key, ()):
            self.lists[key].remove(_pair(side, serial, other))

    def results(self) -> set[tuple[int, int]]:
        return {pair for pairs in self.lists.values() for pair in pairs}


class OrderedJoin(CountedJoin):
    """Expiration orders: results are listed under their older part, and go with it all at once.

    Where the younger part leaves first, its results are dead until the older one takes them along.
    """

    def __init__(self, limit: int) -> None:
        super().__init__(limit)
        self.ending: dict[int, list[tuple[int, int]]] = {}

    def pair(self, key: int, pair: tuple[int, int]) -> None:
        self.ending.setdefault(min(pair), []).append(pair)

    def expire(self, side: int, key: int, serial: int) -> None:
        self.ending.pop(serial, None)

    def results(self) -> set[tuple[int, int]]:
        there = {serial for window in self.windows for _, serial in window}
        return {pair for pairs in self.ending.values() for pair in pairs if there.issuperset(pair)}
