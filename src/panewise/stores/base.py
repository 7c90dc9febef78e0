"""Where the states of consecutive panes are kept so that any run of them can be answered.

Positions count from one, as in "Resource sharing" section 3: `append` adds the next one, `lookup(l, r)` answers the
interval `(l, r)`, both ends included.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from enum import Enum
from typing import Any, ClassVar, Generic, TypeVar

from panewise.aggregate import Aggregate, Laws
from panewise.core.errors import PlanProblem

S = TypeVar("S")


class LookupKind(Enum):
    """What may be asked of a store, within its reach."""

    ANY = "any interval"
    DECLARED = "intervals whose widths were declared"
    SLIDING = "suffixes whose beginning never moves back"


class Store(ABC, Generic[S]):
    """The contract of a store over the last `reach` positions."""

    #: The paper's name.
    name: ClassVar[str]
    #: What it needs of an aggregate, for catalogues and refusals.
    requires: ClassVar[str]
    answers: ClassVar[LookupKind] = LookupKind.ANY
    update_cost: ClassVar[str]
    lookup_cost: ClassVar[str]

    def __init__(self, aggregate: Aggregate[S], reach: int) -> None:
        if not self.accepts(aggregate.laws):
            raise law_problem(self, aggregate)
        if reach < 1:
            raise PlanProblem(f"a store over {reach} panes holds nothing", fix="use at least one")
        self.aggregate, self.reach, self.length = aggregate, reach, 0

    @classmethod
    @abstractmethod
    def accepts(cls, laws: Laws) -> bool:
        """Whether an aggregate with these laws can be kept here."""

    def append(self, state: S) -> None:
        """Add the state of the next position and forget what no lookup can reach any more."""
        self.length += 1
        self._append(state)

    def lookup(self, first: int, last: int) -> S:
        """The combined state of positions `first` to `last`, oldest first."""
        if not (max(self.length - self.reach, 0) < first <= last + 1 and last <= self.length):
            raise PlanProblem(
                f"interval ({first}, {last}) is not within the last {self.reach} of {self.length} panes",
                fix="keep more panes or ask for newer ones",
            )
        return self._lookup(first, last)

    def _must_be_suffix(self, first: int, last: int) -> None:
        if last != self.length:
            raise PlanProblem(
                f"interval ({first}, {last}) does not end at the newest of {self.length} panes, as {self.name} expects",
                fix="choose a store for windows with a lag",
            )

    @abstractmethod
    def _append(self, state: S) -> None: ...

    @abstractmethod
    def _lookup(self, first: int, last: int) -> S: ...


def law_problem(store: type[Store[Any]] | Store[Any], aggregate: Aggregate[Any]) -> PlanProblem:
    return PlanProblem(
        f"{store.name} needs {store.requires} aggregate, but {aggregate.names[0]} is only {aggregate.laws}",
        fix="let the planner choose the store",
    )
