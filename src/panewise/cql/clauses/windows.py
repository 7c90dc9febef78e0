"""The window clauses, one class each."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any

import numpy as np
import pyarrow as pa
from sqlglot import TokenType

from panewise.algebra import Column, default_host
from panewise.core.errors import BindProblem, Place, WindowProblem
from panewise.core.scalar import Scalar
from panewise.core.schema import type_name
from panewise.core.time import Domain, Duration, Ticks
from panewise.cql.clauses.base import READERS, ClauseBinder, WindowClause
from panewise.cql.clauses.levels import check_levels, read_slides
from panewise.cql.clauses.rows import RowsClause, partition_text
from panewise.cql.data_types import is_interval
from panewise.cql.dialect import string_text
from panewise.cql.group_by import without_aggregates
from panewise.cql.scope import Scope
from panewise.cql.syntax import Expr
from panewise.cql.tokens import Cursor
from panewise.window import (
    NOW,
    Cumulate,
    Landmark,
    MultiGranular,
    Predicate,
    Session,
    Sliding,
    Varying,
    Window,
)


@dataclass(frozen=True)
class NowClause(WindowClause, words=("NOW",)):
    @classmethod
    def read(cls, cursor: Cursor, opening: str) -> NowClause:
        return cls()

    def bind(self, binder: ClauseBinder) -> Window:
        return NOW

    def text(self) -> str:
        return "NOW"


@dataclass(frozen=True)
class RangeClause(WindowClause, words=("RANGE",)):
    size: Duration
    slide: Duration | None = None
    lag: Duration | None = None
    start: str | int | None = None

    @classmethod
    def read(cls, cursor: Cursor, opening: str) -> WindowClause:
        if cursor.token and cursor.token.token_type is TokenType.L_PAREN:
            return VaryingClause.read(cursor, opening)
        size, slide = cursor.duration(), _read_slide(cursor)
        return cls(size, slide, cursor.duration() if cursor.take("LAG") else None, _read_start(cursor))

    def bind(self, binder: ClauseBinder) -> Window:
        slide = binder.length("SLIDE", self.slide) if self.slide else None
        lag = binder.length("LAG", self.lag, least=0) if self.lag else 0
        return Sliding(binder.length("RANGE", self.size), slide, lag, binder.instant(self.start))

    def text(self) -> str:
        lag = f" LAG {self.lag}" if self.lag else ""
        return f"RANGE {self.size}{_slide_text(self.slide)}{lag}{_start_text(self.start)}"


@dataclass(frozen=True)
class LevelsClause(WindowClause, words=("RANGES",)):
    """Several ranges, from the widest to the narrowest, with a slide each."""

    ranges: tuple[Duration, ...]
    slides: tuple[Duration, ...]
    start: str | int | None = None

    @classmethod
    def read(cls, cursor: Cursor, opening: str) -> LevelsClause:
        ranges = cursor.comma_list(cursor.duration)
        return cls(ranges, read_slides(cursor, cursor.duration, "RANGES", len(ranges)), _read_start(cursor))

    def bind(self, binder: ClauseBinder) -> Window:
        origin = binder.instant(self.start)
        ranges = [binder.length("RANGE", size) for size in self.ranges]
        slides = [binder.length("SLIDE", slide) for slide in self.slides]
        sizes, steps = zip(ranges, self.ranges, strict=True), zip(slides, self.slides, strict=True)
        check_levels(binder, "RANGES", list(sizes), list(steps))
        levels = [Sliding(size, slide, origin=origin) for size, slide in zip(ranges, slides, strict=True)]
        return MultiGranular(tuple(levels[::-1]))

    def text(self) -> str:
        ranges, slides = ", ".join(map(str, self.ranges)), ", ".join(map(str, self.slides))
        return f"RANGES {ranges} SLIDES {slides}{_start_text(self.start)}"


@dataclass(frozen=True)
class VaryingClause(WindowClause):
    """RANGE with an expression of the instant, in parentheses; `RangeClause` reads the word RANGE."""

    extent: Expr
    slide: Duration

    @classmethod
    def read(cls, cursor: Cursor, opening: str) -> VaryingClause:
        extent = _read_parentheses(cursor)
        if not cursor.take("SLIDE"):
            raise cursor.problem("a varying RANGE needs a SLIDE", "add SLIDE and a duration")
        return cls(extent, cursor.duration())

    def bind(self, binder: ClauseBinder) -> Window:
        now = Scope([Column("now", binder.time_type)])
        bound = now.bind(without_aggregates(self.extent, "compute it from now"))
        integer = binder.domain is Domain.INTEGER
        if not (pa.types.is_integer(bound.type) if integer else is_interval(bound.type)):
            raise BindProblem(
                f"the varying RANGE {self.extent.sql} is {type_name(bound.type)}",
                fix=f"return {'a whole number' if integer else 'an INTERVAL'}",
                place=self.extent.place,
            )
        extent = SqlExtent(bound, binder.time_type, self.extent.place)
        return Varying(extent, binder.length("SLIDE", self.slide))

    def text(self) -> str:
        return f"RANGE ({self.extent.sql}) SLIDE {self.slide}"


@dataclass(frozen=True)
class SqlExtent:
    """Ticks, or an interval on timestamps, for each instant; the host computes it, the instant is the column `now`."""

    scalar: Scalar
    time_type: pa.DataType
    place: Place | None = field(default=None, compare=False, repr=False)

    def __call__(self, instants: Ticks) -> Ticks:
        now = pa.array(instants, pa.int64()).cast(self.time_type)
        (values,) = default_host().evaluate([self.scalar], pa.table({"#row": pa.array(instants), "now": now}))
        return np.array([self._ticks(v) for v in values.to_pylist()], np.int64)

    def _ticks(self, value: Any) -> int:
        match value:
            case int() if value >= 0:
                return value
            case timedelta() if value >= timedelta(0):
                return value // timedelta(microseconds=1)
            case None:
                found = "NULL"
            case (months, _, _) if months:
                found = f"counted in months ({months})"
            case _:
                found = f"{value}, below zero" if isinstance(value, int) else "an interval below zero"
        raise WindowProblem(
            f"the varying RANGE is {found}", fix="let it be zero or more, without months", place=self.place
        )

    def __str__(self) -> str:
        return f"({self.scalar.sql})"


@dataclass(frozen=True)
class LandmarkClause(WindowClause, words=("UNBOUNDED", "UNTIL", "FROM")):
    lower: str | int | None = None
    upper: str | int | None = None
    slide: Duration | None = None

    @classmethod
    def read(cls, cursor: Cursor, opening: str) -> LandmarkClause:
        if opening == "UNBOUNDED":
            return cls(_read_start(cursor), None, _read_slide(cursor))
        lower = cursor.instant() if opening == "FROM" else None
        if opening == "FROM":
            cursor.expect("UNTIL")
        return cls(lower, cursor.instant(), _read_slide(cursor))

    def bind(self, binder: ClauseBinder) -> Window:
        lower, upper = binder.instant(self.lower), binder.instant(self.upper)
        if lower and upper and lower.of_day == upper.of_day and upper.tick < lower.tick:
            raise WindowProblem(
                f"the window ends at {self.upper!r}, before it starts at {self.lower!r}",
                fix="exchange FROM and UNTIL",
                place=binder.place_of(self.upper),
            )
        return Landmark(lower, upper, binder.length("SLIDE", self.slide) if self.slide else None)

    def text(self) -> str:
        if self.upper is None:
            return f"UNBOUNDED{_start_text(self.lower)}{_slide_text(self.slide)}"
        lower = "" if self.lower is None else f"FROM {_instant_text(self.lower)} "
        return f"{lower}UNTIL {_instant_text(self.upper)}{_slide_text(self.slide)}"


@dataclass(frozen=True)
class SessionClause(WindowClause, words=("SESSION",)):
    gap: Duration
    partition_by: tuple[str, ...] = ()

    @classmethod
    def read(cls, cursor: Cursor, opening: str) -> SessionClause:
        return cls(cursor.duration())

    def bind(self, binder: ClauseBinder) -> Window:
        return Session(binder.length("SESSION", self.gap), tuple(map(binder.column, self.partition_by)))

    def text(self) -> str:
        return f"{partition_text(self.partition_by)}SESSION {self.gap}"


def _read_partitioned(cursor: Cursor, opening: str) -> WindowClause:
    """A clause after PARTITION BY and its columns."""
    columns = cursor.comma_list(lambda: cursor.name("a partition column"))
    if cursor.take("ROWS"):
        return replace(RowsClause.read(cursor, "ROWS"), partition_by=columns)
    if cursor.take("SESSION"):
        return replace(SessionClause.read(cursor, "SESSION"), partition_by=columns)
    raise cursor.problem("expected ROWS or SESSION after PARTITION BY", "write PARTITION BY columns ROWS n")


READERS["PARTITION BY"] = _read_partitioned


@dataclass(frozen=True)
class CumulateClause(WindowClause, words=("CUMULATE",)):
    size: Duration
    step: Duration
    start: str | int | None = None

    @classmethod
    def read(cls, cursor: Cursor, opening: str) -> CumulateClause:
        size = cursor.duration()
        cursor.expect("STEP")
        return cls(size, cursor.duration(), _read_start(cursor))

    def bind(self, binder: ClauseBinder) -> Window:
        size, step = binder.length("CUMULATE", self.size), binder.length("STEP", self.step)
        if size % step:
            raise WindowProblem(
                f"STEP {self.step} does not divide {self.size}",
                fix=f"choose a STEP that fits a whole number of times into {self.size}",
                place=binder.place_of(self.step),
            )
        return Cumulate(size, step, binder.instant(self.start))

    def text(self) -> str:
        return f"CUMULATE {self.size} STEP {self.step}{_start_text(self.start)}"


@dataclass(frozen=True)
class WhereClause(WindowClause, words=("WHERE",)):
    condition: Expr

    @classmethod
    def read(cls, cursor: Cursor, opening: str) -> WhereClause:
        if cursor.token is None:
            raise cursor.problem("expected a condition", "write one after WHERE")
        start, cursor.at = cursor.offset, len(cursor.tokens)
        return cls(_read_expression(cursor, start, cursor.end))

    def bind(self, binder: ClauseBinder) -> Window:
        condition = without_aggregates(self.condition, "compare plain columns")
        return Predicate(binder.scope.predicate(condition, "WHERE"))

    def text(self) -> str:
        return f"WHERE {self.condition.sql}"


# ---- parts of clauses --------------------------------------------------------------------------------------------


def _read_start(cursor: Cursor) -> str | int | None:
    if not cursor.take("START"):
        return None
    cursor.expect("AT")
    return cursor.instant()


def _start_text(value: str | int | None) -> str:
    return "" if value is None else f" START AT {_instant_text(value)}"


def _instant_text(value: str | int) -> str:
    return str(value) if isinstance(value, int) else string_text(value)


def _read_slide(cursor: Cursor) -> Duration | None:
    return cursor.duration() if cursor.take("SLIDE") else None


def _slide_text(slide: Duration | None) -> str:
    return f" SLIDE {slide}" if slide else ""


def _read_parentheses(cursor: Cursor) -> Expr:
    """The expression between parentheses, at the first of which the cursor is."""
    depth, first = 0, cursor.at
    while cursor.token:
        depth += {TokenType.L_PAREN: 1, TokenType.R_PAREN: -1}.get(cursor.token.token_type, 0)
        cursor.at += 1
        if not depth:
            break
    return _read_expression(cursor, cursor.tokens[first].end + 1, cursor.tokens[cursor.at - 1].start)


def _read_expression(cursor: Cursor, start: int, end: int) -> Expr:
    return cursor.source.expr(cursor.source.scalar(start, end, cursor.clause), cursor.clause, start)
