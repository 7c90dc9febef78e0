"""The kinds of frames: what makes a stretch of items one ("Data-driven windows", section 4.3)."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from panewise.aggregate import Aggregate
from panewise.core.scalar import Scalar
from panewise.core.time import Domain, duration_text


@dataclass(frozen=True)
class WhileFrames:
    """Threshold frames: a predicate holds for every item; unknown does not hold."""

    condition: Scalar

    def text(self, domain: Domain) -> str:
        return f"WHILE {plain_sql(self.condition)}"


@dataclass(frozen=True)
class BoundaryFrames:
    """A value stays between two neighbouring boundaries: multiples of `step`, or those listed in `marks`.

    A boundary belongs to what is above it. An item without a value stays with the one before it.
    """

    value: Scalar
    step: float | None
    marks: tuple[float, ...] = ()

    def text(self, domain: Domain) -> str:
        lines = (
            f"EVERY {_number_text(self.step)}"
            if self.step is not None
            else f"AT ({', '.join(map(_number_text, self.marks))})"
        )
        return f"{lines} OF {plain_sql(self.value)}"


@dataclass(frozen=True)
class DeltaFrames:
    """The greatest and the least value are no more than `limit` apart; `open` where they must be less apart.

    An item without a value stays with the one before it.
    """

    value: Scalar
    limit: float
    open: bool = False

    def text(self, domain: Domain) -> str:
        return f"DELTA {plain_sql(self.value)} {'>=' if self.open else '>'} {_number_text(self.limit)}"


@dataclass(frozen=True)
class ReachFrames:
    """An aggregate over the items of the frame compares with a value: `operator` is one of <, <=, >, >=.

    `argument` is None for COUNT(*).
    """

    aggregate: Aggregate[Any] = field(repr=False)
    argument: Scalar | None
    operator: str
    limit: float

    @property
    def grows(self) -> bool:
        """Whether the frame goes on until the comparison holds, instead of for as long as it does."""
        return self.operator in (">", ">=")

    def text(self, domain: Domain) -> str:
        called = self.aggregate.text([plain_sql(self.argument)] if self.argument else [])
        return f"{called} {self.operator} {_number_text(self.limit)}"


class Direction(Enum):
    RISING = "RISING"
    FALLING = "FALLING"
    FLAT = "FLAT"


@dataclass(frozen=True)
class TrendFrames:
    """Each value is above, below or within `tolerance` of the one before it; at least two items.

    An item without a value ends a trend and belongs to none.
    """

    value: Scalar
    direction: Direction
    tolerance: float = 0.0

    def text(self, domain: Domain) -> str:
        within = f" WITHIN {_number_text(self.tolerance)}" if self.tolerance else ""
        return f"{self.direction.value} {plain_sql(self.value)}{within}"


@dataclass(frozen=True)
class DensityFrames:
    """At least `count` items in any stretch of `per` ticks, and all stretches that share items with it.

    With `chance`, only frames whose number of items is at most that likely where `expected` items come, on average, in
    `per` ticks (scan statistics).
    """

    count: int
    per: int
    chance: float | None = None
    expected: float | None = None

    def text(self, domain: Domain) -> str:
        words = f"DENSITY {self.count} PER {duration_text(self.per, domain)}"
        if self.chance is None or self.expected is None:
            return words
        return f"{words} CHANCE {_number_text(self.chance)} EXPECTED {_number_text(self.expected)}"


class StartPolicy(Enum):
    """What a start inside an open frame does."""

    CLOSE = "CLOSE"  # the open frame ends before it and is reported
    DROP = "DROP"  # the open frame is forgotten
    CONTINUE = "CONTINUE"  # both go on, and end together


@dataclass(frozen=True)
class BetweenFrames:
    """From an item at which `start` holds to the next one at which `end` does, both included."""

    start: Scalar
    end: Scalar
    policy: StartPolicy = StartPolicy.CLOSE

    def text(self, domain: Domain) -> str:
        words = f"START WHEN {plain_sql(self.start)} END WHEN {plain_sql(self.end)}"
        return words if self.policy is StartPolicy.CLOSE else f"{words} ON START {self.policy.value}"


@dataclass(frozen=True)
class CustomFrames:
    """A framing function that somebody else wrote, by the name under which it can be imported or was registered."""

    name: str
    value: Scalar

    def text(self, domain: Domain) -> str:
        return f"USING '{self.name}' OF {plain_sql(self.value)}"


def plain_sql(scalar: Scalar) -> str:
    return scalar.sql.replace("`", "")


def _number_text(value: float) -> str:
    """The shortest way to write a number that loses nothing of it."""
    return str(int(value)) if float(value).is_integer() and abs(value) < 1e15 else repr(value)


FrameKind = (
    WhileFrames
    | BoundaryFrames
    | DeltaFrames
    | ReachFrames
    | TrendFrames
    | DensityFrames
    | BetweenFrames
    | CustomFrames
)
