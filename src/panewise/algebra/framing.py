"""Frames: windows that follow the data ("Data-driven windows", section 4).

A frame is a stretch of consecutive items of one group, in the order of time. Its *kind* and its lengths are local
conditions: they can be judged for each stretch alone. Its *span* and its *scheme* are global ones: they choose among
the stretches that satisfy the local conditions. A spec is frozen data and refuses conditions that contradict each
other.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from panewise.algebra.contradictions import contradictions
from panewise.algebra.frame_conditions import Choice, Duplicates, Length, Missing, Schedule, Scheme, Span
from panewise.algebra.frame_kinds import (
    Between,
    Boundary,
    Custom,
    Delta,
    Density,
    Direction,
    Kind,
    Policy,
    Reach,
    Trend,
    While,
    plain,
)
from panewise.errors import WindowProblem
from panewise.scalar import Scalar
from panewise.time import Domain, duration_text

__all__ = [
    "Between",
    "Boundary",
    "Choice",
    "Custom",
    "Delta",
    "Density",
    "Direction",
    "Duplicates",
    "Frame",
    "Kind",
    "Length",
    "Missing",
    "Policy",
    "Reach",
    "Schedule",
    "Scheme",
    "Span",
    "Trend",
    "While",
]


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
        for problem, fix in contradictions(self):
            raise WindowProblem(problem, fix=fix)

    def text(self, domain: Domain) -> str:
        """The clause without its brackets: what differs from the defaults, in one order."""
        return " ".join(("FRAME", self.kind.text(domain), *self._conditions(domain)))

    def _conditions(self, domain: Domain) -> Iterator[str]:
        if self.some:
            yield f"WITH SOME {plain(self.some)}"
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
