"""Multi-granular windows: nested frames of time, or of tuples, over one stream, each with its own slide.

Paper: "Multi-granular windows" section III; frames of tuples are among the future work of its section VII.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Generic, TypeVar

from panewise.core.errors import WindowProblem
from panewise.core.time import Boundary, Domain, Ticks, duration_text
from panewise.window.base import Contents, Edges, Pattern, Window, WindowRetention, unique_instants
from panewise.window.rows import Rows
from panewise.window.sliding import Sliding

LevelT = TypeVar("LevelT", Sliding, Rows)


@dataclass(frozen=True)
class Hierarchy(Window, Generic[LevelT]):
    """Nested windows. Level 0 is the finest; `levels` is ordered from it to the widest.

    Slides never shrink and ranges grow from level to level, so every frame is nested in the next one. A query over
    the window is the same query over each level; each result row has the number of its level.
    """

    levels: tuple[LevelT, ...] = field()

    def __post_init__(self) -> None:
        if not self.levels:
            raise WindowProblem("a multi-granular window has no levels", fix="give at least one range and slide")
        for number, (finer, coarser) in enumerate(zip(self.levels, self.levels[1:], strict=False)):
            if coarser.range <= finer.range:
                raise WindowProblem(
                    f"range {coarser.range} of level {number + 1} is not wider than {finer.range} below it",
                    fix="order the levels from the narrowest to the widest",
                )
            if coarser.step < finer.step:
                raise WindowProblem(
                    f"slide {coarser.step} of level {number + 1} is shorter than {finer.step} below it",
                    fix="let slides grow, or stay, towards wider levels",
                )
        if any(level.slide is None for level in self.levels):
            raise WindowProblem("a level has no slide", fix="give one slide for each range")

    @property
    def retention(self) -> WindowRetention:
        return self.levels[0].retention

    @property
    def pattern(self) -> Pattern:
        return max(level.pattern for level in self.levels)

    @property
    def periodic(self) -> bool:
        return self.levels[0].periodic

    @property
    def logical(self) -> bool:
        return self.levels[0].logical

    def members(self, contents: Contents, at: int, boundary: Boundary) -> Ticks:
        """The union of all levels: the items of the widest one, and newer items of finer ones."""
        return unique_instants(*(level.members(contents, at, boundary) for level in self.levels))

    def instants(self, contents: Contents, boundary: Boundary) -> Ticks:
        return unique_instants(*(level.instants(contents, boundary) for level in self.levels))

    def spans(self, instants: Ticks) -> tuple[Ticks | None, Ticks]:
        return self.levels[-1].spans(instants)


@dataclass(frozen=True)
class MultiGranular(Hierarchy[Sliding]):
    """`[RANGES r2, r1, r0 SLIDES s2, s1, s0]`: nested frames of time."""

    @property
    def time_span(self) -> tuple[int, int]:
        return self.levels[0].time_span

    @property
    def edges(self) -> tuple[Edges, ...]:
        return tuple(edge for level in self.levels for edge in level.edges)

    def anchor_to(self, first: int) -> MultiGranular:
        return MultiGranular(tuple(level.anchor_to(first) for level in self.levels))

    def text(self, domain: Domain) -> str:
        wide_first = self.levels[::-1]
        ranges = ", ".join(duration_text(level.range, domain) for level in wide_first)
        slides = ", ".join(duration_text(level.step, domain) for level in wide_first)
        origin = wide_first[0].origin
        start = f" START AT {origin.text(domain)}" if origin else ""
        return f"RANGES {ranges} SLIDES {slides}{start}"


@dataclass(frozen=True)
class RowHierarchy(Hierarchy[Rows]):
    """`[PARTITION BY columns ROWS n2, n1, n0 SLIDES m2, m1, m0]`: nested frames of tuples of the same partitions."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if len({(level.partition_by, level.lag) for level in self.levels}) > 1:
            raise WindowProblem("levels differ in their partitions or lags", fix="give all levels the same")

    @property
    def partition_by(self) -> tuple[str, ...]:
        return self.levels[0].partition_by

    @property
    def items_wait(self) -> bool:
        return self.levels[-1].items_wait

    def text(self, domain: Domain) -> str:
        wide_first = self.levels[::-1]
        counts = ", ".join(str(level.count) for level in wide_first)
        slides = ", ".join(str(level.step) for level in wide_first)
        return f"{wide_first[0].partition_text}ROWS {counts} SLIDES {slides}"
