"""States of one aggregate for many groups at once: parallel arrays, one place a group.

The vectorised twin of the monoid in `aggregate.base`. States are *words*, a tuple of arrays of equal length; combining
never depends on the order of its parts, because what needs an order carries the time and arrival of its items.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from sys import getsizeof
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

Int64Array: TypeAlias = npt.NDArray[np.int64]
StateWords: TypeAlias = tuple[npt.NDArray[Any], ...]


@dataclass(frozen=True)
class Items:
    """Rows on their way into states: the arguments, and what orders rows (time, then arrival)."""

    arguments: tuple[pa.Array, ...]
    times: Int64Array
    order: Int64Array

    def __len__(self) -> int:
        return len(self.times)

    def present(self) -> npt.NDArray[np.bool_] | None:
        """Which rows have all arguments; None where all have."""
        holes = [a for a in self.arguments if a.null_count]
        if not holes:
            return None
        valid = np.ones(len(self), bool)
        for argument in holes:
            valid &= pc.is_valid(argument).to_numpy(zero_copy_only=False)
        return valid

    def at(self, places: Int64Array) -> Items:
        """The rows at some places."""
        index = pa.array(places)
        return Items(tuple(a.take(index) for a in self.arguments), self.times[places], self.order[places])

    def take(self, keep: npt.NDArray[np.bool_]) -> Items:
        mask = pa.array(keep)
        return Items(tuple(a.filter(mask) for a in self.arguments), self.times[keep], self.order[keep])


class FusedOperation(Enum):
    """What combines states where one operation says it all, so that a kernel can do it without asking."""

    ADDED = "every word is a long and is added"
    GREATEST = "the greater long, and a flag that is set where either is"


class StateArrays(ABC):
    """How the states of one aggregate live in arrays."""

    #: Whether a part can be taken out of a whole again without any loss.
    exact: bool = False
    #: Set only where `combine` does exactly this and `identity` is its neutral element.
    fused: FusedOperation | None = None

    @abstractmethod
    def identity(self, size: int) -> StateWords:
        """The states of groups without items."""

    @abstractmethod
    def _gather(self, slots: Int64Array, items: Items, into: StateWords) -> None:
        """Add items without NULLs to the states they belong to, in place."""

    @abstractmethod
    def combine(self, left: StateWords, right: StateWords) -> StateWords:
        """The states of both parts, place by place."""

    @abstractmethod
    def lower(self, words: StateWords) -> pa.Array:
        """The answers held in states."""

    def write(self, words: StateWords) -> list[pa.Array] | None:
        """States as arrays that mean the same elsewhere; None where the words, as numbers or text, do."""
        return None

    def read(self, arrays: Sequence[pa.Array]) -> StateWords:
        """What `write` wrote."""
        raise TypeError(f"{type(self).__name__} writes its words as they are")

    def invert(self, whole: StateWords, part: StateWords) -> StateWords:
        """The whole without a part that was combined into it; only where `exact`."""
        raise TypeError(f"{type(self).__name__} cannot take a part out again")

    def gather(self, slots: Int64Array, items: Items, size: int) -> StateWords:
        """The states of `size` groups from items, `slots` saying which group each belongs to."""
        words = self.identity(size)
        present = items.present()
        if present is not None:
            slots, items = slots[present], items.take(present)
        self._gather(slots, items, words)
        return words


def runs(numbers: Int64Array) -> tuple[Int64Array, Int64Array]:
    """Where each run of equal numbers (not negative) starts and stops."""
    edges = np.append(np.flatnonzero(np.diff(numbers, prepend=-1)), len(numbers))
    return edges[:-1], edges[1:]


def states_at(words: StateWords, where: Any) -> StateWords:
    """The states at some places."""
    return tuple(word[where] for word in words)


def put(words: StateWords, where: Any, values: StateWords) -> None:
    """Write states to some places."""
    for word, value in zip(words, values, strict=True):
        word[where] = value


def bytes_of(words: StateWords) -> int:
    """The memory of states; what objects refer to in turn is not followed."""
    objects = (state for word in words if word.dtype.hasobject for state in word)
    return sum(word.nbytes for word in words) + sum(map(getsizeof, objects))


def concat_states(parts: Sequence[StateWords]) -> StateWords:
    """Several runs of states as one."""
    return tuple(np.concatenate(words) for words in zip(*parts, strict=True))
