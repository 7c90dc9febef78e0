"""What every aggregate is: a meaning, a monoid that computes it piecewise, and the laws that monoid keeps.

Defining a subclass with `names` registers it: the language, the catalogue and the contract tests find it there.
"""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, TypeVar

import pyarrow as pa

from panewise.aggregate.states import ObjectStates, StateArrays
from panewise.aggregate.states.objects import fold_values
from panewise.core.errors import AggregateProblem
from panewise.core.schema import type_name

S = TypeVar("S")


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

    Values are Python values without NULLs (`skip_nulls` says who removes them), in time order. Timestamps are ticks.
    A value is a tuple when the aggregate takes several arguments.
    """

    #: SQL names, the first one canonical.
    names: ClassVar[tuple[str, ...]] = ()
    #: How many column arguments it takes.
    arity: ClassVar[int] = 1
    #: Names of literal parameters that follow the columns, such as the phi of QUANTILE.
    parameters: ClassVar[tuple[str, ...]] = ()
    #: Names of literal parameters that may follow those; they are left out from the right.
    options: ClassVar[tuple[str, ...]] = ()
    #: The name of literal parameters of which any number may follow; they come together, as a tuple of texts.
    rest: ClassVar[str | None] = None
    #: Whether its last column is the time of items, which nobody writes.
    timed: ClassVar[bool] = False
    skip_nulls: ClassVar[bool] = True
    #: Whether the answer depends on where in the window items lie: see `aggregate.positional`.
    positional: ClassVar[bool] = False
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
        """The aggregate that a call with these literals means, where it is not this one."""
        return cls

    @abstractmethod
    def result_type(self) -> pa.DataType:
        """The type of the answer; raises AggregateProblem when the argument types do not fit."""

    @abstractmethod
    def meaning(self, values: Sequence[Any]) -> Any:
        """The answer by definition, from all values at once: the judge of the monoid below."""

    @abstractmethod
    def identity(self) -> S: ...

    @abstractmethod
    def lift(self, value: Any) -> S: ...

    @abstractmethod
    def combine(self, left: S, right: S) -> S:
        """The state of both parts, left before right."""

    @abstractmethod
    def lower(self, state: S) -> Any:
        """The answer held in a state; None is NULL."""

    @property
    def exact(self) -> bool:
        """Whether states carry no rounding, so that what is taken out again leaves no trace."""
        return True

    def gather(self, values: Sequence[Any]) -> S:
        """The state of many values at once."""
        state: S = fold_values(self, values)
        return state

    def state_arrays(self) -> StateArrays:
        """The same states for many groups at once, in arrays."""
        return ObjectStates(self)

    def text(self, arguments: Sequence[str]) -> str:
        """The call as a person writes it."""
        return f"{self.names[0]}({', '.join(arguments)})"

    @property
    def literals(self) -> tuple[Any, ...]:
        """What its literal parameters make of it, beside its kind and types."""
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
    """An aggregate out of whose state a part can be taken again: `invert(combine(a, b), a) = b`.

    Structures that subtract accept only this type, so that subtracting a maximum does not type-check.
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
