"""What every aggregate is: a meaning, a monoid that computes it piecewise, and the laws which that monoid keeps.

Defining a subclass with `names` registers it in `AGGREGATES`, where the language and the contract tests find it.
"""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from functools import reduce
from typing import Any, ClassVar, Generic, TypeVar, cast

import numpy as np
import pyarrow as pa

from panewise.aggregate.states import Int64Array, Items, StateArrays, StateWords, runs
from panewise.core.errors import AggregateProblem
from panewise.core.schema import type_name
from panewise.core.values import normalize_float, to_arrow, to_python

S = TypeVar("S")


class Fold(Enum):
    """The number to which an aggregate reduces its values, where kernels and indexes can do that."""

    COUNT = "how many values there are"
    SUM = "their sum"
    MEAN = "their mean"
    LEAST = "the least of them"
    GREATEST = "the greatest of them"


@dataclass(frozen=True)
class Laws:
    """What `combine` promises beyond associativity, and who relies on it.

    commutative: panes may be combined in any order (pre-aggregation, shards).
    invertible: a part can be taken out of a whole (running intervals, subtract on evict).
    idempotent: a part may be counted twice (overlapping cover of a window).
    bounded: the state has constant size (distributive and algebraic aggregates; holistic ones grow).
    approximate: answers are within a stated error of the meaning once there are many values, and exact before.
    """

    commutative: bool = True
    invertible: bool = False
    idempotent: bool = False
    bounded: bool = True
    approximate: bool = False

    @property
    def ordered(self) -> bool:
        """Whether the order of the parts is part of the meaning."""
        return not self.commutative

    def __str__(self) -> str:
        words = ("commutative", "invertible", "idempotent", "approximate")
        kept = [word for word in words if getattr(self, word)]
        return ", ".join(["associative", *kept, "constant state" if self.bounded else "growing state"])


class Aggregate(ABC, Generic[S]):
    """An aggregate bound to the types of its arguments.

    Values are Python values in the order of time, without NULLs unless `skip_nulls` is false. Timestamps are ticks.
    A value is a tuple if the aggregate takes several arguments.
    """

    #: SQL names, the first one canonical.
    names: ClassVar[tuple[str, ...]] = ()
    #: How many column arguments it takes.
    arity: ClassVar[int] = 1
    #: Names of literal parameters that follow the columns, such as the phi of QUANTILE.
    parameters: ClassVar[tuple[str, ...]] = ()
    #: Names of literal parameters that may follow those; they are left out from the right.
    options: ClassVar[tuple[str, ...]] = ()
    #: The name of literal parameters of which any number may follow; they are given as one tuple of texts.
    rest: ClassVar[str | None] = None
    #: Whether its last column is the time of items, which is not written in a call.
    timed: ClassVar[bool] = False
    #: Whether rows with a NULL argument are left out.
    skip_nulls: ClassVar[bool] = True
    #: Whether the answer depends on where in the window items lie: see `aggregate.positional`.
    positional: ClassVar[bool] = False
    #: Whether the answer is the number of rows of a group, which is kept for every group anyway.
    counts_rows: ClassVar[bool] = False
    #: The number that the kernel for frames and the index for HAVING compute for it; None if they do not support it.
    fold: ClassVar[Fold | None] = None
    laws: ClassVar[Laws]

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if cls.names and not inspect.isabstract(cls):
            for name in cls.names:
                AGGREGATES[name] = cls

    def __init__(self, *types: pa.DataType) -> None:
        self.types = types
        self.result = self.result_type()

    @classmethod
    def variant(cls, literals: Sequence[str]) -> type[Aggregate[Any]]:
        """The aggregate that a call with these literals means: this one, or another of the same name."""
        return cls

    @abstractmethod
    def result_type(self) -> pa.DataType:
        """The type of the answer; raises AggregateProblem when the argument types do not fit."""

    @abstractmethod
    def meaning(self, values: Sequence[Any]) -> Any:
        """The answer by definition, from all values at once; the monoid below must give the same."""

    @abstractmethod
    def identity(self) -> S:
        """The state of no values."""

    @abstractmethod
    def lift(self, value: Any) -> S:
        """The state of one value."""

    @abstractmethod
    def combine(self, left: S, right: S) -> S:
        """The state of both parts, left before right."""

    @abstractmethod
    def lower(self, state: S) -> Any:
        """The answer from a state; None is NULL."""

    @property
    def exact(self) -> bool:
        """Whether states are not rounded, so that a part that is taken out again leaves no trace."""
        return True

    def gather(self, values: Sequence[Any]) -> S:
        """The state of many values at once."""
        return reduce(self.combine, map(self.lift, values), self.identity())

    def state_arrays(self) -> StateArrays:
        """The same states for many groups at once, in arrays."""
        if self.laws.ordered:
            raise TypeError(f"{type(self).__name__} is ordered: its state arrays must carry the time of items")
        return ObjectStates(self)

    def text(self, arguments: Sequence[str]) -> str:
        """The call as text."""
        return f"{self.names[0]}({', '.join(arguments)})"

    @property
    def literals(self) -> tuple[Any, ...]:
        """The literal parameters by which it differs from others of its kind and types."""
        return self._key()[2:]

    def _key(self) -> tuple[Any, ...]:
        return (type(self), self.types)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Aggregate) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def __repr__(self) -> str:
        return f"{self.names[0]}({', '.join(str(t) for t in self.types)})"


class Invertible(Aggregate[S]):
    """An aggregate from whose state a part can be taken out again: `invert(combine(a, b), a) = b`.

    No other type has `invert`, so that subtracting a maximum does not type-check.
    """

    @abstractmethod
    def invert(self, whole: S, part: S) -> S:
        """The whole without a part that was combined into it."""


AGGREGATES: dict[str, type[Aggregate[Any]]] = {}


def numeric_type(aggregate: Aggregate[Any], position: int = 0) -> pa.DataType:
    """The type of a numeric argument, or a clear refusal."""
    kind = aggregate.types[position]
    if pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        return kind
    raise AggregateProblem(
        f"{aggregate.names[0]} takes numbers, not {type_name(kind)}",
        fix=f"cast the argument, or use COUNT or MIN instead of {aggregate.names[0]}",
    )


def orderable_type(aggregate: Aggregate[Any]) -> pa.DataType:
    """The type of an argument whose values can be compared, or a clear refusal."""
    kind = aggregate.types[0]
    if pa.types.is_nested(kind):
        raise AggregateProblem(
            f"{aggregate.names[0]} cannot order values of type {type_name(kind)}", fix="pick a field of it"
        )
    return kind


def whole_literal(name: str, what: str, given: str | int, least: int, most: int) -> int:
    """A literal parameter as a whole number, or a clear refusal."""
    if not str(given).isdigit() or not least <= int(given) <= most:
        raise AggregateProblem(
            f"{what} {given!r} of {name} is not a whole number from {least} to {most}",
            fix=f"use one such as {least + 6}",
        )
    return int(given)


class ObjectStates(StateArrays):
    """One word with the states of any aggregate as Python objects, for aggregates that have no faster arrays.

    None is the identity, so that empty groups cost nothing.
    """

    def __init__(self, aggregate: Aggregate[Any]) -> None:
        self.aggregate = aggregate
        self.exact = aggregate.laws.invertible and aggregate.exact

    def identity(self, size: int) -> StateWords:
        return (np.full(size, None, object),)

    def _gather(self, slots: Int64Array, items: Items, into: StateWords) -> None:
        # Items are sorted by time and arrival, as ordered aggregates need them.
        ranks = np.lexsort((items.order, items.times, slots))
        ordered = slots[ranks]
        columns = [to_python(a.take(pa.array(ranks))) for a in items.arguments]
        values = columns[0] if len(columns) == 1 else list(zip(*columns, strict=True))
        for start, stop in zip(*runs(ordered), strict=True):
            into[0][ordered[start]] = self.aggregate.gather(values[start:stop])

    def combine(self, left: StateWords, right: StateWords) -> StateWords:
        return (_pairwise(self._combine_two, left[0], right[0]),)

    def invert(self, whole: StateWords, part: StateWords) -> StateWords:
        return (_pairwise(self._subtract, whole[0], part[0]),)

    def lower(self, words: StateWords) -> pa.Array:
        empty = self.aggregate.identity()
        states = (empty if state is None else state for state in words[0])
        return to_arrow([normalize_float(self.aggregate.lower(state)) for state in states], self.aggregate.result)

    def _combine_two(self, left: Any, right: Any) -> Any:
        if left is None or right is None:
            return left if right is None else right
        return self.aggregate.combine(left, right)

    def _subtract(self, whole: Any, part: Any) -> Any:
        # This is called only if `exact` is set, which implies an `Invertible` aggregate.
        return whole if part is None else cast("Invertible[Any]", self.aggregate).invert(whole, part)


def _pairwise(function: Any, left: Any, right: Any) -> Any:
    out = np.empty(len(left), object)
    for i in range(len(left)):
        out[i] = function(left[i], right[i])
    return out


class PickAggregate(Aggregate[Any]):
    """Base of the aggregates whose answer is one of the values; that value is the state.

    None is the identity, since no type has a value that can be spared for it.
    """

    def identity(self) -> Any:
        return None

    def lift(self, value: Any) -> Any:
        return value

    def combine(self, left: Any, right: Any) -> Any:
        return self.meaning([v for v in (left, right) if v is not None])

    def lower(self, state: Any) -> Any:
        return state


class Multiset(Invertible["Counter[Any]"]):
    """Base of the aggregates that must keep every value: how often each occurs. Space O(distinct values)."""

    laws = Laws(invertible=True, bounded=False)

    def identity(self) -> Counter[Any]:
        return Counter()

    def lift(self, value: Any) -> Counter[Any]:
        return Counter([value])

    def gather(self, values: Sequence[Any]) -> Counter[Any]:
        return Counter(values)

    def combine(self, left: Counter[Any], right: Counter[Any]) -> Counter[Any]:
        return left + right

    def invert(self, whole: Counter[Any], part: Counter[Any]) -> Counter[Any]:
        return whole - part

    def lower(self, state: Counter[Any]) -> Any:
        return self.meaning(list(state.elements()))
