"""States of one aggregate for many groups at once: parallel arrays with one place for each group.

This is the vectorised twin of the monoid in `aggregate.base`. States are *words*, a tuple of arrays of equal length.
`combine` never depends on the order of its parts: states that need an order carry the time and arrival of their items.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from sys import getsizeof
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

if TYPE_CHECKING:
    from panewise.aggregate.moving import MovingRanges

Int64Array: TypeAlias = npt.NDArray[np.int64]
StateWords: TypeAlias = tuple[npt.NDArray[Any], ...]


@dataclass(frozen=True)
class Items:
    """The rows from which states are made: the arguments, and what orders rows (time, then arrival)."""

    arguments: tuple[pa.Array, ...]
    times: Int64Array
    order: Int64Array

    def __len__(self) -> int:
        return len(self.times)

    def present(self) -> npt.NDArray[np.bool_] | None:
        """Which rows have no NULL among their arguments; None if that holds for all rows."""
        holes = [a for a in self.arguments if a.null_count]
        if not holes:
            return None
        valid = np.ones(len(self), bool)
        for argument in holes:
            valid &= pc.is_valid(argument).to_numpy(zero_copy_only=False)
        return valid

    def present_values(self) -> tuple[Int64Array, pa.Array]:
        """The places of the rows that have a value as their only argument, and these values."""
        present = self.present()
        if present is None:
            return np.arange(len(self)), self.arguments[0]
        return np.flatnonzero(present), self.arguments[0].drop_null()

    def at(self, places: Int64Array) -> Items:
        """The rows at some places."""
        index = pa.array(places)
        return Items(tuple(a.take(index) for a in self.arguments), self.times[places], self.order[places])

    def then(self, others: Items) -> Items:
        """These rows and others."""
        return Items(
            tuple(pa.concat_arrays(pair) for pair in zip(self.arguments, others.arguments, strict=True)),
            np.concatenate((self.times, others.times)),
            np.concatenate((self.order, others.order)),
        )

    def take(self, keep: npt.NDArray[np.bool_]) -> Items:
        """The rows for which `keep` is set."""
        mask = pa.array(keep)
        return Items(tuple(a.filter(mask) for a in self.arguments), self.times[keep], self.order[keep])


class FusedOperation(Enum):
    """One array operation that does all that `combine` does, so that a kernel can do it."""

    ADDED = "every word is int64 and is added"
    GREATEST = "the greater int64, and a flag that is set where either flag is"


@dataclass(frozen=True)
class RankedValues:
    """States that are multisets of values (`aggregate.multisets`), of which the values at some ranks decide the answer.

    kind: the type of the values. ranks: from the sizes of multisets, the deciding ranks of each, counted from one.
    """

    kind: pa.DataType
    ranks: Callable[[Int64Array], list[Int64Array]]


class TotalStates(ABC):
    """How the totals of panes of one aggregate are kept in arrays."""

    @abstractmethod
    def identity(self, size: int) -> StateWords:
        """The states of groups without items."""

    @abstractmethod
    def combine(self, left: StateWords, right: StateWords) -> StateWords:
        """The states of both parts together, place by place."""

    def of_pane(self, words: StateWords) -> StateWords:
        """The states of a pane as totals keep them."""
        return words

    def invert(self, whole: StateWords, part: StateWords) -> StateWords:
        """The whole without a part that was combined into it; only where that loses nothing."""
        raise TypeError(f"{type(self).__name__} cannot take a part out again")


class StateArrays(TotalStates):
    """How the states of one aggregate are kept in arrays."""

    #: Whether a part can be taken out of a whole again without any loss.
    exact: bool = False
    #: Set only where `combine` does exactly this and `identity` is its neutral element.
    fused: FusedOperation | None = None
    #: Whether states depend on the times of items; if not, a row that is sent to a shard needs no time beside its pane.
    needs_time: bool = True
    #: Whether panes are weighed one by one at every instant, so that no totals need to be kept.
    apart: bool = False
    #: How an index of sorted values answers instead of `combine`, where it can.
    ranked_values: RankedValues | None = None

    @abstractmethod
    def _gather(self, slots: Int64Array, items: Items, into: StateWords) -> None:
        """Add items without NULLs to the states of their groups, in place."""

    @abstractmethod
    def lower(self, words: StateWords) -> pa.Array:
        """The answers held in states."""

    def write(self, words: StateWords) -> list[pa.Array] | None:
        """States as arrays that mean the same in another process; None where the words themselves do."""
        return None

    def read(self, arrays: Sequence[pa.Array]) -> StateWords:
        """The states that `write` wrote."""
        raise TypeError(f"{type(self).__name__} writes its words as they are")

    def settle(self, words: StateWords) -> StateWords:
        """States with the same answers, to which nothing is added any more: where states grow, these need not."""
        return words

    def gather(self, slots: Int64Array, items: Items, size: int) -> StateWords:
        """The states of `size` groups from items; `slots` has the group of each item."""
        words = self.identity(size)
        present = items.present()
        if present is not None:
            slots, items = slots[present], items.take(present)
        self._gather(slots, items, words)
        return words

    def scan(self, words: StateWords, cuts: npt.NDArray[np.bool_], backward: bool) -> StateWords:
        """The states of all rows from the beginning of a block up to each row, or `backward` from its end.

        `cuts` is where blocks begin. Each pass combines stretches of twice the length.
        """
        found = tuple(word.copy() for word in words)
        size = len(words[0])
        numbers = np.arange(size)
        if backward:
            ends = np.append(np.flatnonzero(cuts[1:size]) + 1, size)
            left = ends[np.searchsorted(ends, numbers, side="right")] - 1 - numbers
        else:
            begins = np.flatnonzero(cuts[:size])
            left = numbers - begins[np.searchsorted(begins, numbers, side="right") - 1]
        distance = 1
        while len(places := np.flatnonzero(left >= distance)):
            others = places + distance if backward else places - distance
            put(found, places, self.combine(states_at(found, places), states_at(found, others)))
            distance *= 2
        return found

    def moving_answers(self, items: Items, ranges: MovingRanges) -> tuple[StateArrays, StateWords] | None:
        """The states over ranges that move, and how they are lowered, where there is a better way than combining."""
        return None

    def running_answers(
        self, items: Items, ranges: MovingRanges, before: StateWords
    ) -> tuple[StateArrays, StateWords] | None:
        """The same for ranges that nothing leaves, together with the states that their groups had before."""
        first = self.as_items(before)
        if first is None:
            return None
        moved, order = ranges.after(np.ones(len(first), np.int64))
        return self.moving_answers(first.then(items).at(order), moved)

    def as_items(self, words: StateWords) -> Items | None:
        """Items from which these states could have been made, one for each, where there always is such an item."""
        return None

    def spark_sql(self, value: str) -> list[str] | None:
        """The aggregates of Spark SQL over a value from which `from_spark` makes states; None if there are none."""
        return None

    def from_spark(self, found: Sequence[pa.Array]) -> StateWords:
        """States from the results of `spark_sql`. Here they are the words themselves, all int64."""
        return tuple(np.asarray(array.fill_null(0).to_numpy(zero_copy_only=False), np.int64) for array in found)

    @property
    def oversized(self) -> bool:
        """Whether values are kept beside the states, and so many that `forget` may be worth its cost."""
        return False

    def forget(self, kept: Iterable[StateWords]) -> None:
        """Drop the values that no state needs; `kept` are all states that exist. Only where `oversized` is answered."""
        raise TypeError(f"{type(self).__name__} keeps nothing beside its states")


class AddedStates(StateArrays):
    """Words of int64 that are only added, so that parts can be subtracted; wrapping around 2**64 cancels out."""

    exact = True
    fused = FusedOperation.ADDED
    needs_time = False

    def combine(self, left: StateWords, right: StateWords) -> StateWords:
        return tuple(a + b for a, b in zip(left, right, strict=True))

    def invert(self, whole: StateWords, part: StateWords) -> StateWords:
        return tuple(a - b for a, b in zip(whole, part, strict=True))


class SolvedStates(StateArrays):
    """States of many words, whose answers are doubles. A settled state is its answer, and whether there is none."""

    @abstractmethod
    def solve(self, words: StateWords) -> StateWords:
        """The answers, any number where there is none, and where that is."""

    def settle(self, words: StateWords) -> StateWords:
        return words if len(words) == 2 else self.solve(words)

    def lower(self, words: StateWords) -> pa.Array:
        answers, missing = self.settle(words)
        return nullable_array(answers, missing)


def nullable_array(values: npt.NDArray[Any], missing: npt.NDArray[np.bool_]) -> pa.Array:
    """Numbers, NULL where they are missing; `pa.array` would copy them, and go through them once more."""
    if not missing.any():
        return pa.array(values)
    valid = pa.py_buffer(np.packbits(~missing, bitorder="little"))
    return pa.Array.from_buffers(pa.from_numpy_dtype(values.dtype), len(values), [valid, pa.py_buffer(values)])


def runs(numbers: Int64Array) -> tuple[Int64Array, Int64Array]:
    """The start and the stop of each run of equal numbers, none of which is negative."""
    if not len(numbers):
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    inner = np.flatnonzero(numbers[1:] != numbers[:-1])
    edges = np.empty(len(inner) + 2, np.int64)
    edges[0], edges[1:-1], edges[-1] = 0, inner + 1, len(numbers)
    return edges[:-1], edges[1:]


def states_at(words: StateWords, where: Any) -> StateWords:
    """The states at some places."""
    # NumPy takes rows by their numbers much faster than it indexes them.
    if isinstance(where, np.ndarray) and where.dtype != bool:
        return tuple(word.take(where, axis=0) for word in words)
    return tuple(word[where] for word in words)


def put(words: StateWords, where: Any, values: StateWords) -> None:
    """Write states to some places."""
    for word, value in zip(words, values, strict=True):
        word[where] = value


def bytes_of(words: StateWords) -> int:
    """The memory of states; objects to which values refer in turn are not counted."""
    objects = (state for word in words if word.dtype.hasobject for state in word)
    return sum(word.nbytes for word in words) + sum(map(getsizeof, objects))


def concat_states(parts: Sequence[StateWords]) -> StateWords:
    """Several runs of states as one."""
    return tuple(np.concatenate(words) for words in zip(*parts, strict=True))
