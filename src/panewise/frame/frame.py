"""Frames: windows that follow the data ("Data-driven windows", section 4).

A frame is a stretch of consecutive items of one group, in the order of time. Its *kind* and its lengths are local
conditions: they can be judged for each stretch alone. Its *span* and its *scheme* are global ones: they choose among
the stretches that satisfy the local conditions. A spec is frozen data and refuses conditions that contradict each
other.
"""

from __future__ import annotations

from dataclasses import dataclass

from panewise.core.errors import WindowProblem
from panewise.core.scalar import Scalar
from panewise.core.time import Domain, duration_text
from panewise.frame.conditions import (
    Duplicates,
    FrameLength,
    Missing,
    Saturation,
    Schedule,
    Scheme,
    Span,
    condition_texts,
)
from panewise.frame.contradictions import contradictions
from panewise.frame.kinds import (
    BetweenFrames,
    BoundaryFrames,
    CustomFrames,
    DeltaFrames,
    DensityFrames,
    Direction,
    FrameKind,
    ReachFrames,
    StartPolicy,
    TrendFrames,
    WhileFrames,
    plain_sql,
)

__all__ = [
    "BetweenFrames",
    "BoundaryFrames",
    "CustomFrames",
    "DeltaFrames",
    "DensityFrames",
    "Direction",
    "Duplicates",
    "Frame",
    "FrameKind",
    "FrameLength",
    "Missing",
    "ReachFrames",
    "Saturation",
    "Schedule",
    "Scheme",
    "Span",
    "StartPolicy",
    "TrendFrames",
    "WhileFrames",
]


@dataclass(frozen=True)
class Frame:
    """`[FRAME ...]`: what makes a frame, and how it is reported."""

    kind: FrameKind
    partition_by: tuple[str, ...] = ()
    #: At least one item must satisfy this.
    some: Scalar | None = None
    least: FrameLength | None = None
    most: FrameLength | None = None
    span: Span | None = None
    scheme: Scheme | None = None
    choice: Saturation | None = None
    #: For ADJACENT: how many ticks before the end of a frame the next one begins.
    overlap: int = 0
    #: Whether a frame reaches to the items beside it, since its condition may have changed at any time between them.
    liberal: bool = False
    #: Whether an item holds for all time until the next one, instead of for an instant.
    lasting: bool = False
    schedule: Schedule | None = None
    duplicates: Duplicates = Duplicates.KEEP
    #: Long frames are reported again whenever they have grown by this length.
    fragments: FrameLength | None = None

    def __post_init__(self) -> None:
        for problem, fix in contradictions(self):
            raise WindowProblem(problem, fix=fix)

    def text(self, domain: Domain) -> str:
        """The clause without its brackets: what differs from the defaults, in one order."""
        schedule = self.schedule
        usual = Duplicates.ERROR if schedule else Duplicates.KEEP
        given = {
            "some": self.some and plain_sql(self.some),
            "least": self.least and self.least.text(domain),
            "most": self.most and self.most.text(domain),
            "span": self.span and self.span.value,
            "scheme": self.scheme and self.scheme.value,
            "overlap": self.overlap and duration_text(self.overlap, domain),
            "choice": self.choice and self.choice.value,
            "partition_by": ", ".join(self.partition_by),
            "extent": "LIBERAL" if self.liberal else None,
            "reading": "INTERVALS" if self.lasting else None,
            "every": schedule and duration_text(schedule.every, domain),
            "missing": schedule and schedule.missing.value,
            "duplicates": None if self.duplicates is usual else self.duplicates.value,
            "fragments": self.fragments and self.fragments.text(domain),
        }
        return " ".join(("FRAME", self.kind.text(domain), *condition_texts(given)))

    @property
    def effective_span(self) -> Span:
        """The span that was written, or the one that suits the kind."""
        return self.span or (Span.MINIMAL if self.kind.grows else Span.MAXIMAL)

    @property
    def effective_scheme(self) -> Scheme:
        """The scheme that was written, or the one that suits the kind and the conditions."""
        return self.scheme or (Scheme.PARTITION if self.kind.dividing and not self.selective else Scheme.DISJOINT)

    @property
    def selective(self) -> bool:
        """Whether some stretches of this kind are no frames."""
        return bool(self.some or self.least or self.most)

    @property
    def known_at_end(self) -> bool:
        """Whether its frames are known only once the stream has ended."""
        return self.effective_span is Span.MAXIMUM

    @property
    def begins_everywhere(self) -> bool:
        """Whether a frame of a dividing kind may begin with every item."""
        scheme = self.effective_scheme
        return scheme in (Scheme.UNCONSTRAINED, Scheme.ADVANCING) or (
            scheme is Scheme.COVER and self.choice is Saturation.SATURATED
        )

    @property
    def overlapping(self) -> bool:
        """Whether an item may be in several frames."""
        crossing = self.begins_everywhere or self.effective_scheme is Scheme.ADJACENT
        return self.kind.nested or (self.kind.dividing and crossing)

    @property
    def keeps_items(self) -> bool:
        """Whether frames keep their items until they end, since items may be in several, or come to be in one."""
        return self.overlapping or self.kind.keeps_items

    @property
    def scalars(self) -> tuple[Scalar, ...]:
        """The expressions that must be computed for each item: those of the kind, then WITH SOME."""
        return (*self.kind.scalars, self.some) if self.some else self.kind.scalars
