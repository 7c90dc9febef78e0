"""From a window clause to a window spec, in the time domain of its stream."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pyarrow as pa

from panewise.errors import BindProblem, PanewiseError
from panewise.lang.extent import SqlExtent
from panewise.lang.syntax import (
    Clause,
    CumulateClause,
    Expr,
    LandmarkClause,
    NowClause,
    RangeClause,
    RowsClause,
    SessionClause,
    VaryingClause,
    WhereClause,
)
from panewise.scalar import Scalar
from panewise.time import Domain, Duration, Instant
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

    def bind(self, clause: Clause) -> Window:
        try:
            return self._bind(clause)
        except PanewiseError as problem:
            raise (problem.at(clause.place) if clause.place else problem) from None

    def _bind(self, clause: Clause) -> Window:
        match clause:
            case NowClause():
                return NOW
            case RangeClause(several=True):
                return self._levels(clause)
            case RangeClause((size,), slides, lag, start):
                slide = self._ticks(slides[0]) if slides else None
                return Sliding(self._ticks(size), slide, self._ticks(lag) if lag else 0, self._instant(start))
            case VaryingClause(extent, slide):
                return Varying(SqlExtent(self._extent(extent), self.time_type), self._ticks(slide))
            case LandmarkClause(lower, upper, slide):
                return Landmark(self._instant(lower), self._instant(upper), self._ticks(slide) if slide else None)
            case RowsClause(count, lag, columns):
                return Rows(count, lag, tuple(map(self.column, columns)))
            case SessionClause(gap, columns):
                return Session(self._ticks(gap), tuple(map(self.column, columns)))
            case CumulateClause(size, step, start):
                return Cumulate(self._ticks(size), self._ticks(step), self._instant(start))
            case WhereClause(condition):
                return Predicate(self.scalar(condition, "WHERE"))
        raise TypeError(f"cannot bind {type(clause).__name__}")

    def _levels(self, clause: RangeClause) -> Window:
        origin = self._instant(clause.start)
        pairs = zip(clause.ranges, clause.slides, strict=True)
        levels = [Sliding(self._ticks(size), self._ticks(slide), origin=origin) for size, slide in pairs]
        return MultiGranular(tuple(levels[::-1]))

    def _extent(self, extent: Expr) -> Scalar:
        bound = self.extent(extent)
        wanted = pa.types.is_integer if self.domain is Domain.INTEGER else pa.types.is_interval
        if not wanted(bound.type):
            kind = "a whole number" if self.domain is Domain.INTEGER else "an INTERVAL"
            raise BindProblem(f"the varying RANGE {extent.sql} has type {bound.type}", fix=f"return {kind}")
        return bound

    def _ticks(self, duration: Duration) -> int:
        return duration.ticks(self.domain)

    def _instant(self, value: str | int | None) -> Instant | None:
        return None if value is None else Instant.parse(value, self.domain)
