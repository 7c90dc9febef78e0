"""A circular array, in which all stores can keep their states ("Resource sharing" section 5)."""

from __future__ import annotations

from typing import Generic, TypeVar

T = TypeVar("T")


class Ring(Generic[T]):
    """The newest `size` of all appended values, which count from zero. Append and access to any of them O(1).

    It grows to its size with what it holds, so that a short stream in a large ring costs little.

    >>> ring = Ring[str](2)
    >>> for letter in "abc":
    ...     ring.append(letter)
    >>> ring[1], ring[2]
    ('b', 'c')
    """

    def __init__(self, size: int) -> None:
        self.size, self._appended = size, 0
        self._values: list[T] = []

    def __len__(self) -> int:
        return len(self._values)

    def append(self, value: T) -> None:
        if self._appended < self.size:
            self._values.append(value)
        else:
            self._values[self._appended % self.size] = value
        self._appended += 1

    def __getitem__(self, place: int) -> T:
        """Only for places that are still held; an older one would read the value that replaced it."""
        return self._values[place % self.size]
