"""Frames: windows that follow the data ("Data-driven windows", section 4).

A frame is a stretch of consecutive items of one group, in the order of time. Its *kind* and its lengths are local
conditions: they can be judged for each stretch alone. Its *span* and its *scheme* are global ones: they choose among
the stretches that satisfy the local conditions. A spec is frozen data and refuses conditions that contradict each
other.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from panewise.aggregate import Aggregate
from panewise.errors import WindowProblem
from panewise.scalar import Scalar
from panewise.time import Domain, duration_text

# ---- kinds -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class While:
    """Threshold frames: a predicate holds for every item; unknown does not hold."""

    condition: Scalar

    def text(self, domain: Domain) -> str:
        return f"WHILE {_plain(self.condition)}"


@dataclass(frozen=True)
class Boundary:
    """A value stays between two neighbouring boundaries: multiples of `step`, or those listed in `marks`.

    A boundary belongs to what is above it. An item without a value stays with the one before it.
    """

    value: Scalar
    step: float | None
    marks: tuple[float, ...] = ()

    def text(self, domain: Domain) -> str:
        lines = (
            f"EVERY {_number(self.step)}" if self.step is not None else f"AT ({', '.join(map(_number, self.marks))})"
        )
        return f"{lines} OF {_plain(self.value)}"


@dataclass(frozen=True)
class Delta:
    """The greatest and the least value are no more than `limit` apart; `open` where they must be less apart.

    An item without a value stays with the one before it.
    """

    value: Scalar
    limit: float
    open: bool = False

    def text(self, domain: Domain) -> str:
        return f"DELTA {_plain(self.value)} {'>=' if self.open else '>'} {_number(self.limit)}"


@dataclass(frozen=True)
class Reach:
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
        called = self.aggregate.text([_plain(self.argument)] if self.argument else [])
        return f"{called} {self.operator} {_number(self.limit)}"


class Direction(Enum):
    RISING = "RISING"
    FALLING = "FALLING"
    FLAT = "FLAT"


@dataclass(frozen=True)
class Trend:
    """Each value is above, below or within `tolerance` of the one before it; at least two items.

    An item without a value ends a trend and belongs to none.
    """

    value: Scalar
    direction: Direction
    tolerance: float = 0.0

    def text(self, domain: Domain) -> str:
        within = f" WITHIN {_number(self.tolerance)}" if self.tolerance else ""
        return f"{self.direction.value} {_plain(self.value)}{within}"


@dataclass(frozen=True)
class Density:
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
        return f"{words} CHANCE {_number(self.chance)} EXPECTED {_number(self.expected)}"


class Policy(Enum):
    """What a start inside an open frame does."""

    CLOSE = "CLOSE"  # the open frame ends before it and is reported
    DROP = "DROP"  # the open frame is forgotten
    CONTINUE = "CONTINUE"  # both go on, and end together


@dataclass(frozen=True)
class Between:
    """From an item at which `start` holds to the next one at which `end` does, both included."""

    start: Scalar
    end: Scalar
    policy: Policy = Policy.CLOSE

    def text(self, domain: Domain) -> str:
        words = f"START WHEN {_plain(self.start)} END WHEN {_plain(self.end)}"
        return words if self.policy is Policy.CLOSE else f"{words} ON START {self.policy.value}"


@dataclass(frozen=True)
class Custom:
    """A framing function that somebody else wrote, by the name under which it can be imported or was registered."""

    name: str
    value: Scalar

    def text(self, domain: Domain) -> str:
        return f"USING '{self.name}' OF {_plain(self.value)}"


def _plain(scalar: Scalar) -> str:
    return scalar.sql.replace("`", "")


def _number(value: float) -> str:
    """The shortest way to write a number that loses nothing of it."""
    return str(int(value)) if float(value).is_integer() and abs(value) < 1e15 else repr(value)


Kind = While | Boundary | Delta | Reach | Trend | Density | Between | Custom


# ---- conditions --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Length:
    """A duration in ticks, or a number of rows."""

    amount: int
    rows: bool = False

    def text(self, domain: Domain) -> str:
        return f"{self.amount} ROWS" if self.rows else duration_text(self.amount, domain)


class Span(Enum):
    """Which stretches count: those that hold no other one, those that no other one holds, or the longest of all."""

    MINIMAL = "MINIMAL"
    MAXIMAL = "MAXIMAL"
    MAXIMUM = "MAXIMUM"


class Scheme(Enum):
    """How frames lie beside each other."""

    PARTITION = "PARTITION"  # each begins where the one before ended
    COVER = "COVER"  # every item is in some frame
    ADJACENT = "ADJACENT"  # each begins so long before the end of the one before
    ADVANCING = "ADVANCING"  # begins and ends move on
    DISJOINT = "DISJOINT"  # no item is in two frames
    UNCONSTRAINED = "UNCONSTRAINED"


class Choice(Enum):
    """Of sets of frames that satisfy all conditions: one to which nothing can be added, or nothing taken from."""

    SATURATED = "SATURATED"
    DRAINED = "DRAINED"


class Missing(Enum):
    """What a report that did not come counts as; a frame never starts with one."""

    FAILS = "FAILS"
    QUALIFIES = "QUALIFIES"
    NEIGHBOURS = "NEIGHBOURS"  # it qualifies where reports on both sides do


@dataclass(frozen=True)
class Schedule:
    """Each group reports every so many ticks, counted from its first report."""

    every: int
    missing: Missing = Missing.FAILS


class Duplicates(Enum):
    """What several items of a group at one time mean."""

    KEEP = "KEEP"  # each counts, in the order of arrival
    ERROR = "ERROR"
    FIRST = "FIRST"
    LAST = "LAST"
    AVG = "AVG"  # one item with the mean of what the frame looks at, and so on
    MIN = "MIN"
    MAX = "MAX"
    SUM = "SUM"


@dataclass(frozen=True)
class Frame:
    """`[FRAME ...]`: what makes a frame, and how it is reported."""

    kind: Kind
    partition_by: tuple[str, ...] = ()
    #: At least one item must satisfy this.
    some: Scalar | None = None
    least: Length | None = None
    most: Length | None = None
    span: Span | None = None
    scheme: Scheme | None = None
    choice: Choice | None = None
    #: For ADJACENT: how many ticks before the end of a frame the next one begins.
    overlap: int = 0
    #: Whether a frame reaches to the items beside it, where the truth may have changed earlier or later.
    liberal: bool = False
    #: Whether an item stands for all time until the next one, instead of for an instant.
    lasting: bool = False
    schedule: Schedule | None = None
    duplicates: Duplicates = Duplicates.KEEP
    #: Long frames are reported again whenever they have grown by so much.
    fragments: Length | None = None

    def __post_init__(self) -> None:
        for problem, fix in _contradictions(self):
            raise WindowProblem(problem, fix=fix)

    def text(self, domain: Domain) -> str:
        """The clause without its brackets: what differs from the defaults, in one order."""
        return " ".join(("FRAME", self.kind.text(domain), *self._conditions(domain)))

    def _conditions(self, domain: Domain) -> Iterator[str]:
        if self.some:
            yield f"WITH SOME {_plain(self.some)}"
        for words, length in (("FOR AT LEAST", self.least), ("FOR AT MOST", self.most)):
            yield from (f"{words} {length.text(domain)}",) if length else ()
        for said in (self.span, self.scheme):
            yield from (said.value,) if said else ()
        yield from (duration_text(self.overlap, domain),) if self.overlap else ()
        yield from (self.choice.value,) if self.choice else ()
        yield from (f"PARTITION BY {', '.join(self.partition_by)}",) if self.partition_by else ()
        yield from ("EXTENT LIBERAL",) if self.liberal else ()
        yield from ("AS INTERVALS",) if self.lasting else ()
        if self.schedule:
            yield f"EVERY {duration_text(self.schedule.every, domain)} MISSING {self.schedule.missing.value}"
        if self.duplicates is not (Duplicates.ERROR if self.schedule else Duplicates.KEEP):
            yield f"DUPLICATES {self.duplicates.value}"
        yield from (f"FRAGMENTS EVERY {self.fragments.text(domain)}",) if self.fragments else ()

    @property
    def spans(self) -> Span:
        """The span that was asked for, or the one that suits the kind."""
        grows = isinstance(self.kind, Reach) and self.kind.grows
        return self.span or (Span.MINIMAL if grows else Span.MAXIMAL)

    @property
    def schemes(self) -> Scheme:
        """The scheme that was asked for, or the one that suits the kind and the conditions."""
        return self.scheme or (Scheme.PARTITION if self.dividing and not self.selective else Scheme.DISJOINT)

    @property
    def dividing(self) -> bool:
        """Whether every item is in some stretch of this kind, so that frames may divide the whole stream."""
        return isinstance(self.kind, Boundary | Delta | Reach)

    @property
    def selective(self) -> bool:
        """Whether some stretches of this kind are no frames."""
        return bool(self.some or self.least or self.most)

    @property
    def bounded(self) -> bool:
        """Whether its frames are known only once the stream has ended."""
        return self.spans is Span.MAXIMUM

    @property
    def overlapping(self) -> bool:
        """Whether an item may be in several frames."""
        if isinstance(self.kind, Between):
            return self.kind.policy is Policy.CONTINUE
        every = self.schemes is Scheme.COVER and self.choice is Choice.SATURATED
        return self.dividing and (every or self.schemes in (Scheme.ADJACENT, Scheme.ADVANCING, Scheme.UNCONSTRAINED))

    @property
    def sudden(self) -> bool:
        """Whether a stretch becomes a frame only with its last item, and a tail that has none is no frame."""
        return isinstance(self.kind, Between | Density | Custom) or (isinstance(self.kind, Reach) and self.kind.grows)

    @property
    def scalars(self) -> tuple[Scalar, ...]:
        """The expressions that must be computed for each item."""
        match self.kind:
            case While(condition):
                own: tuple[Scalar, ...] = (condition,)
            case Between(start, end):
                own = (start, end)
            case Reach(argument=argument):
                own = (argument,) if argument else ()
            case Density():
                own = ()
            case _:
                own = (self.kind.value,)
        return (*own, self.some) if self.some else own


def _contradictions(frame: Frame) -> list[tuple[str, str]]:
    """Why no stream could satisfy a frame's conditions, or why they would say nothing."""
    return [*_lengths(frame), *_schemes(frame), *_reporting(frame)]


def _lengths(frame: Frame) -> list[tuple[str, str]]:
    found = []
    for name, length in (("AT LEAST", frame.least), ("AT MOST", frame.most), ("FRAGMENTS EVERY", frame.fragments)):
        if length is not None and (length.amount < 0 or (length.amount == 0 and name != "AT LEAST")):
            found.append((f"{name} {length.amount} is not positive", "use more than zero"))
    least, most = frame.least, frame.most
    if least and most and least.rows == most.rows and least.amount > most.amount:
        found.append(("frames cannot last at least longer than they last at most", "exchange the two lengths"))
    if isinstance(frame.kind, Delta) and frame.kind.limit < 0:
        found.append((f"DELTA {frame.kind.limit:g} is negative", "use zero or more"))
    if isinstance(frame.kind, Delta) and frame.kind.open and frame.kind.limit == 0:
        found.append(("any two values are at least 0 apart", "use DELTA value > 0"))
    if isinstance(frame.kind, Trend) and frame.kind.tolerance < 0:
        found.append((f"WITHIN {frame.kind.tolerance:g} is negative", "use zero or more"))
    if isinstance(frame.kind, Boundary):
        found += _boundaries(frame.kind)
    if isinstance(frame.kind, Density):
        found += _density(frame.kind)
    return found


def _boundaries(kind: Boundary) -> list[tuple[str, str]]:
    if kind.step is not None and not kind.step > 0:
        return [(f"a boundary every {kind.step:g} is not positive", "use more than zero")]
    if list(kind.marks) != sorted(set(kind.marks)):
        return [("the boundaries do not rise", "list each once, from the least to the greatest")]
    return []


def _density(kind: Density) -> list[tuple[str, str]]:
    if kind.count < 2:
        return [(f"a density of {kind.count} says nothing", "use at least 2 rows")]
    if kind.chance is not None and not 0 < kind.chance < 1:
        return [(f"CHANCE {kind.chance:g} is no probability", "use a number between 0 and 1")]
    if (kind.chance is None) != (kind.expected is None):
        return [("CHANCE and EXPECTED need each other", "say both or none")]
    if kind.expected is not None and not kind.expected > 0:
        return [(f"EXPECTED {kind.expected:g} is not positive", "use more than zero")]
    return []


def _schemes(frame: Frame) -> list[tuple[str, str]]:
    scheme, span = frame.schemes, frame.spans
    found = []
    gapless = scheme in (Scheme.PARTITION, Scheme.COVER, Scheme.ADJACENT)
    if gapless and not frame.dividing:
        found.append((f"{scheme.value} wants every item in a frame, but some are in none", "use DISJOINT"))
    elif gapless and frame.selective:
        found.append((f"{scheme.value} wants every item in a frame, but conditions drop some", "use DISJOINT"))
    if isinstance(frame.kind, Reach) and span is not Span.MAXIMUM and frame.kind.grows != (span is Span.MINIMAL):
        grows = "grow without end once they qualify" if frame.kind.grows else "hold a shorter one each"
        fix = "use MINIMAL" if frame.kind.grows else "use MAXIMAL"
        found.append((f"frames whose aggregate is {frame.kind.operator} a value {grows}", fix))
    if span is Span.MINIMAL and not isinstance(frame.kind, Reach):
        found.append(("every single item would be a MINIMAL frame", "use MAXIMAL, or RANGE for short windows"))
    if scheme is Scheme.UNCONSTRAINED and frame.choice is Choice.DRAINED:
        found.append(("no frame at all is DRAINED and UNCONSTRAINED", "use SATURATED, or another scheme"))
    if span is Span.MAXIMUM and frame.fragments:
        found.append(("the longest frame is known at the end only, so it has no fragments", "leave FRAGMENTS out"))
    return found


def _reporting(frame: Frame) -> list[tuple[str, str]]:
    found = []
    if frame.most and frame.fragments:
        found.append(("a frame with AT MOST is certain only at its end, so it has no fragments", "leave one out"))
    if frame.sudden and frame.fragments:
        found.append(("these frames are certain only at their end, so they have no fragments", "leave FRAGMENTS out"))
    if frame.overlapping and frame.fragments:
        found.append(("frames that overlap have no fragments", "use DISJOINT, or leave FRAGMENTS out"))
    if frame.schedule and not isinstance(frame.kind, While):
        found.append(("reports can be missing from WHILE frames only", "leave EVERY out"))
    if frame.schedule and frame.duplicates is Duplicates.KEEP:
        found.append(("EVERY expects one report at a time, but DUPLICATES KEEP allows more", "use DUPLICATES ERROR"))
    if frame.schedule and frame.schedule.every <= 0:
        found.append((f"EVERY {frame.schedule.every} is not positive", "use more than zero"))
    return found
