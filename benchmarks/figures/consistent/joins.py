"""What "Consistent results" compares joins by: negative tuples and expiration orders. Only benchmarks use these."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque


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

    def entries(self) -> float:
        """How many entries the list has in which a result is looked for, on average; one where there is no result."""
        lengths = [len(pairs) for pairs in self.lists.values()]
        return sum(length**2 for length in lengths) / max(sum(lengths), 1) or 1.0


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
