"""The kinds of frames: what makes a stretch of items one ("Data-driven windows", section 4.3).

The attributes of a kind are all that planner, engine, reference and `explain` need of it. How its frames are found is
in the tables of `reference/stretches.py`, `engine/frames/kernel_runs.py` and `engine/frames/stretch_finders.py`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, ClassVar

from panewise.aggregate import Aggregate
from panewise.core.scalar import Scalar
from panewise.core.time import Domain, duration_text
from panewise.frame.conditions import Span


class FrameKind(ABC):
    """What makes a stretch of items a frame. A kind overrides the attributes in which it differs from most."""

    #: Whether every item is in some stretch of this kind, so that frames may divide the whole stream.
    dividing: ClassVar[bool] = False
    #: How many items a frame has at least.
    fewest_items: ClassVar[int] = 1
    #: Whether missing reports can be counted as part of a frame.
    takes_schedule: ClassVar[bool] = False
    #: Whether a frame may end, and an item may be dropped, because time passes without items.
    ends_in_silence: ClassVar[bool] = False

    @property
    @abstractmethod
    def scalars(self) -> tuple[Scalar, ...]:
        """The expressions that must be computed for each item."""

    @abstractmethod
    def text(self, domain: Domain) -> str:
        """The kind in CQL, in the units of that domain."""

    @property
    def grows(self) -> bool:
        """Whether a frame continues until its condition holds, instead of as long as it holds."""
        return False

    @property
    def certain_at_end(self) -> bool:
        """Whether a stretch becomes a frame only with its last item, and a stretch without such an item is no frame."""
        return self.grows

    @property
    def nested(self) -> bool:
        """Whether frames may begin inside each other, whatever the scheme is."""
        return False

    @property
    def keeps_items(self) -> bool:
        """Whether items must be kept until frames end: later ones decide, or much must be known of each."""
        return False

    def contradictions(self) -> Iterator[tuple[str, str]]:
        """Why no stream could satisfy the parameters of the kind, or why they would have no effect; and ways out."""
        return iter(())

    def span_contradictions(self, span: Span) -> Iterator[tuple[str, str]]:
        """Why frames of this kind cannot have a span."""
        if span is Span.MINIMAL:
            yield "every single item would be a MINIMAL frame", "use MAXIMAL, or RANGE for short windows"

    def known_text(self, reaches: bool) -> str:
        """When all of a frame is known; `reaches` is whether frames extend to the item after them."""
        if reaches:
            return "with the item after it, to which it reaches"
        return "with its last item" if self.certain_at_end else "with the first item that is not in it"


@dataclass(frozen=True)
class WhileFrames(FrameKind):
    """Threshold frames: a predicate is true for every item; NULL is not true."""

    takes_schedule = True

    condition: Scalar

    @property
    def scalars(self) -> tuple[Scalar, ...]:
        return (self.condition,)

    def text(self, domain: Domain) -> str:
        return f"WHILE {plain_sql(self.condition)}"


@dataclass(frozen=True)
class BoundaryFrames(FrameKind):
    """A value stays between two neighbouring boundaries: multiples of `step`, or those listed in `marks`.

    A boundary belongs to what is above it. An item without a value stays with the one before it.
    """

    dividing = True

    value: Scalar
    step: float | None
    marks: tuple[float, ...] = ()

    @property
    def scalars(self) -> tuple[Scalar, ...]:
        return (self.value,)

    def contradictions(self) -> Iterator[tuple[str, str]]:
        if self.step is not None and not self.step > 0:
            yield f"a boundary every {self.step:g} is not positive", "use more than zero"
        elif list(self.marks) != sorted(set(self.marks)):
            yield "the boundaries do not rise", "list each once, from the least to the greatest"

    def text(self, domain: Domain) -> str:
        lines = (
            f"EVERY {_number_text(self.step)}"
            if self.step is not None
            else f"AT ({', '.join(map(_number_text, self.marks))})"
        )
        return f"{lines} OF {plain_sql(self.value)}"


@dataclass(frozen=True)
class DeltaFrames(FrameKind):
    """The greatest and the least value are no more than `limit` apart; `open` where they must be less apart.

    An item without a value stays with the one before it.
    """

    dividing = True

    value: Scalar
    limit: float
    open: bool = False

    @property
    def scalars(self) -> tuple[Scalar, ...]:
        return (self.value,)

    def contradictions(self) -> Iterator[tuple[str, str]]:
        if self.limit < 0:
            yield f"DELTA {self.limit:g} is negative", "use zero or more"
        if self.open and self.limit == 0:
            yield "any two values are at least 0 apart", "use DELTA value > 0"

    def text(self, domain: Domain) -> str:
        return f"DELTA {plain_sql(self.value)} {'>=' if self.open else '>'} {_number_text(self.limit)}"


@dataclass(frozen=True)
class ReachFrames(FrameKind):
    """An aggregate over the items of the frame compares with a value: `operator` is one of <, <=, >, >=.

    `argument` is None for COUNT(*).
    """

    dividing = True

    aggregate: Aggregate[Any] = field(repr=False)
    argument: Scalar | None
    operator: str
    limit: float

    @property
    def scalars(self) -> tuple[Scalar, ...]:
        return (self.argument,) if self.argument else ()

    @property
    def grows(self) -> bool:
        return self.operator in (">", ">=")

    @property
    def keeps_items(self) -> bool:
        return self.aggregate.fold is None

    def span_contradictions(self, span: Span) -> Iterator[tuple[str, str]]:
        if span is Span.MAXIMUM or self.grows == (span is Span.MINIMAL):
            return
        grows = "grow without end once they qualify" if self.grows else "hold a shorter one each"
        fix = "use MINIMAL" if self.grows else "use MAXIMAL"
        yield f"frames whose aggregate is {self.operator} a value {grows}", fix

    def text(self, domain: Domain) -> str:
        called = self.aggregate.text([plain_sql(self.argument)] if self.argument else [])
        return f"{called} {self.operator} {_number_text(self.limit)}"


class Direction(Enum):
    RISING = "RISING"
    FALLING = "FALLING"
    FLAT = "FLAT"


@dataclass(frozen=True)
class TrendFrames(FrameKind):
    """Each value is above, below or within `tolerance` of the one before it; at least two items.

    An item without a value ends a trend and belongs to none.
    """

    fewest_items = 2

    value: Scalar
    direction: Direction
    tolerance: float = 0.0

    @property
    def scalars(self) -> tuple[Scalar, ...]:
        return (self.value,)

    def contradictions(self) -> Iterator[tuple[str, str]]:
        if self.tolerance < 0:
            yield f"WITHIN {self.tolerance:g} is negative", "use zero or more"

    def text(self, domain: Domain) -> str:
        within = f" WITHIN {_number_text(self.tolerance)}" if self.tolerance else ""
        return f"{self.direction.value} {plain_sql(self.value)}{within}"


@dataclass(frozen=True)
class DensityFrames(FrameKind):
    """At least `count` items in any stretch of `per` ticks, and all stretches that share items with it.

    With `chance`, only frames whose number of items is at most that likely where `expected` items come, on average, in
    `per` ticks (scan statistics).
    """

    ends_in_silence = True
    certain_at_end = True
    keeps_items = True
    scalars = ()

    count: int
    per: int
    chance: float | None = None
    expected: float | None = None

    def contradictions(self) -> Iterator[tuple[str, str]]:
        if self.count < 2:
            yield f"a density of {self.count} says nothing", "use at least 2 rows"
        elif self.chance is not None and not 0 < self.chance < 1:
            yield f"CHANCE {self.chance:g} is no probability", "use a number between 0 and 1"
        elif (self.chance is None) != (self.expected is None):
            yield "CHANCE and EXPECTED need each other", "say both or none"
        elif self.expected is not None and not self.expected > 0:
            yield f"EXPECTED {self.expected:g} is not positive", "use more than zero"

    def known_text(self, reaches: bool) -> str:
        return "when no item can join it any more"

    def text(self, domain: Domain) -> str:
        words = f"DENSITY {self.count} PER {duration_text(self.per, domain)}"
        if self.chance is None or self.expected is None:
            return words
        return f"{words} CHANCE {_number_text(self.chance)} EXPECTED {_number_text(self.expected)}"


class StartPolicy(Enum):
    """What a start inside an open frame does."""

    CLOSE = "CLOSE"  # the open frame ends before it and is reported
    DROP = "DROP"  # the open frame is forgotten
    CONTINUE = "CONTINUE"  # both continue, and end together


@dataclass(frozen=True)
class BetweenFrames(FrameKind):
    """From an item at which `start` holds to the next one at which `end` does, both included."""

    certain_at_end = True

    start: Scalar
    end: Scalar
    policy: StartPolicy = StartPolicy.CLOSE

    @property
    def scalars(self) -> tuple[Scalar, ...]:
        return self.start, self.end

    @property
    def nested(self) -> bool:
        return self.policy is StartPolicy.CONTINUE

    def known_text(self, reaches: bool) -> str:
        return super().known_text(reaches) if reaches else "with the item that ends it"

    def text(self, domain: Domain) -> str:
        words = f"START WHEN {plain_sql(self.start)} END WHEN {plain_sql(self.end)}"
        return words if self.policy is StartPolicy.CLOSE else f"{words} ON START {self.policy.value}"


@dataclass(frozen=True)
class CustomFrames(FrameKind):
    """A framing function of a user, by the name under which it can be imported or was registered."""

    certain_at_end = True
    keeps_items = True

    name: str
    value: Scalar

    @property
    def scalars(self) -> tuple[Scalar, ...]:
        return (self.value,)

    def known_text(self, reaches: bool) -> str:
        return "when its function says so"

    def text(self, domain: Domain) -> str:
        return f"USING '{self.name}' OF {plain_sql(self.value)}"


def plain_sql(scalar: Scalar) -> str:
    return scalar.sql.replace("`", "")


def _number_text(value: float) -> str:
    """The shortest text of a number that gives the same number when it is read."""
    return str(int(value)) if float(value).is_integer() and abs(value) < 1e15 else repr(value)
