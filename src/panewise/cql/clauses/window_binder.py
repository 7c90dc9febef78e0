"""From a window clause to a window spec, in the time domain of its stream."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import pyarrow as pa

from panewise.core.errors import BindProblem, PanewiseError, Place, WindowProblem
from panewise.core.scalar import Scalar
from panewise.core.schema import type_name
from panewise.core.time import Domain, Duration, Instant
from panewise.cql.clauses.extent import SqlExtent
from panewise.cql.data_types import is_interval
from panewise.cql.syntax import (
    CumulateClause,
    Expr,
    LandmarkClause,
    NowClause,
    RangeClause,
    RowsClause,
    SessionClause,
    VaryingClause,
    WhereClause,
    WindowClause,
)
from panewise.window import (
    NOW,
    Cumulate,
    Landmark,
    MultiGranular,
    Predicate,
    Rows,
    Session,
    Sliding,
    Varying,
    Window,
)


@dataclass(frozen=True)
class WindowBinder:
    """Binds the window of one stream. `scalar` and `column` resolve names against that stream."""

    domain: Domain
    time_type: pa.DataType
    scalar: Callable[[Expr, str], Scalar]
    column: Callable[[str], str]
    extent: Callable[[Expr], Scalar]

    def bind(self, clause: WindowClause) -> Window:
        try:
            return self._bind(clause)
        except PanewiseError as problem:
            raise problem.at(clause.place) from None

    def _bind(self, clause: WindowClause) -> Window:
        match clause:
            case NowClause():
                return NOW
            case RangeClause(several=True):
                return self._levels(clause)
            case RangeClause((size,), slides, lag, start):
                slide = self._length("SLIDE", slides[0], clause) if slides else None
                back = self._length("LAG", lag, clause, least=0) if lag else 0
                return Sliding(self._length("RANGE", size, clause), slide, back, self._instant(start, clause))
            case VaryingClause(extent, slide):
                return Varying(
                    SqlExtent(self._extent(extent), self.time_type, extent.place), self._length("SLIDE", slide, clause)
                )
            case LandmarkClause():
                return self._landmark(clause)
            case RowsClause(count, lag, columns):
                with _errors_at(clause.places.get(str(count if count < 1 else lag))):
                    return Rows(count, lag, tuple(map(self.column, columns)))
            case SessionClause(gap, columns):
                return Session(self._length("SESSION", gap, clause), tuple(map(self.column, columns)))
            case CumulateClause():
                return self._cumulate(clause)
            case WhereClause(condition):
                return Predicate(self.scalar(condition, "WHERE"))
        raise TypeError(f"cannot bind {type(clause).__name__}")

    def _levels(self, clause: RangeClause) -> Window:
        """Check the levels here with the query's durations; `MultiGranular` would report ticks."""
        origin = self._instant(clause.start, clause)
        ranges = [self._length("RANGE", size, clause) for size in clause.ranges]
        slides = [self._length("SLIDE", slide, clause) for slide in clause.slides]
        for at in range(1, len(ranges)):
            if ranges[at] >= ranges[at - 1]:
                narrow, wide = clause.ranges[at], clause.ranges[at - 1]
                raise WindowProblem(
                    f"RANGES {narrow} is not narrower than {wide} before it",
                    fix="list the ranges from the widest to the narrowest",
                    place=clause.places.get(str(narrow)),
                )
            if slides[at] > slides[at - 1]:
                fine, coarse = clause.slides[at], clause.slides[at - 1]
                raise WindowProblem(
                    f"SLIDES {fine} is longer than {coarse} before it",
                    fix="let slides shrink, or stay, towards narrower ranges",
                    place=clause.places.get(str(fine)),
                )
        levels = [Sliding(size, slide, origin=origin) for size, slide in zip(ranges, slides, strict=True)]
        return MultiGranular(tuple(levels[::-1]))

    def _landmark(self, clause: LandmarkClause) -> Window:
        lower, upper = self._instant(clause.lower, clause), self._instant(clause.upper, clause)
        if lower and upper and lower.of_day == upper.of_day and upper.tick < lower.tick:
            raise WindowProblem(
                f"the window ends at {clause.upper!r}, before it starts at {clause.lower!r}",
                fix="exchange FROM and UNTIL",
                place=clause.places.get(str(clause.upper)),
            )
        return Landmark(lower, upper, self._length("SLIDE", clause.slide, clause) if clause.slide else None)

    def _cumulate(self, clause: CumulateClause) -> Window:
        size, step = self._length("CUMULATE", clause.size, clause), self._length("STEP", clause.step, clause)
        if size % step:
            raise WindowProblem(
                f"STEP {clause.step} does not divide {clause.size}",
                fix=f"choose a STEP that fits a whole number of times into {clause.size}",
                place=clause.places.get(str(clause.step)),
            )
        return Cumulate(size, step, self._instant(clause.start, clause))

    def _extent(self, extent: Expr) -> Scalar:
        bound = self.extent(extent)
        wanted = pa.types.is_integer if self.domain is Domain.INTEGER else is_interval
        if not wanted(bound.type):
            kind = "a whole number" if self.domain is Domain.INTEGER else "an INTERVAL"
            raise BindProblem(
                f"the varying RANGE {extent.sql} is {type_name(bound.type)}", fix=f"return {kind}", place=extent.place
            )
        return bound

    def _length(self, name: str, duration: Duration, clause: WindowClause, least: int = 1) -> int:
        """A duration of at least one tick, or of zero ticks where that makes sense."""
        ticks = self._ticks(duration, clause)
        if ticks < least:
            message = f"{name} {duration} is {'not positive' if least else 'negative'}"
            place = clause.places.get(str(duration))
            raise WindowProblem(message, fix=f"use {'more than zero' if least else 'zero or more'}", place=place)
        return ticks

    def _ticks(self, duration: Duration, clause: WindowClause) -> int:
        with _errors_at(clause.places.get(str(duration))):
            return duration.ticks(self.domain)

    def _instant(self, value: str | int | None, clause: WindowClause) -> Instant | None:
        with _errors_at(clause.places.get(str(value))):
            return None if value is None else Instant.parse(value, self.domain)


@contextmanager
def _errors_at(place: Place | None) -> Iterator[None]:
    """Give errors without a place this place."""
    try:
        yield
    except PanewiseError as problem:
        raise problem.at(place) from None
