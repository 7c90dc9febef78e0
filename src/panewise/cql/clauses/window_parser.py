"""Parses the window between brackets."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from sqlglot import TokenType

from panewise.core.errors import SyntaxProblem, did_you_mean
from panewise.core.time import Duration
from panewise.cql.clauses.frame_parser import parse_frame
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
from panewise.cql.tokens import Cursor, word


def parse_window(cursor: Cursor) -> WindowClause:
    """Parse a window clause; the cursor has the tokens inside the brackets."""
    opening = word(cursor.token) if cursor.token else ""
    reader = READERS.get(opening)
    if reader is None:
        listed = "start it with one of {}"
        raise cursor.problem("expected a window", did_you_mean(opening, sorted(READERS), listed))
    cursor.clause = opening
    place = cursor.place()
    cursor.at += 1
    clause = reader(cursor)
    cursor.expect_end()
    return replace(clause, place=place, places=cursor.places)


def _now(cursor: Cursor) -> WindowClause:
    return NowClause()


def _range(cursor: Cursor) -> WindowClause:
    if cursor.token and cursor.token.token_type is TokenType.L_PAREN:
        return _varying_range(cursor)
    size = cursor.duration()
    slides = (cursor.duration(),) if cursor.take("SLIDE") else ()
    return RangeClause((size,), slides, cursor.duration() if cursor.take("LAG") else None, _start(cursor))


def _varying_range(cursor: Cursor) -> WindowClause:
    extent = _extent_in_parentheses(cursor)
    if not cursor.take("SLIDE"):
        raise cursor.problem("a varying RANGE needs a SLIDE", "add SLIDE and a duration")
    return VaryingClause(extent, cursor.duration())


def _ranges(cursor: Cursor) -> WindowClause:
    ranges = _durations(cursor)
    cursor.expect("SLIDES")
    slides = _durations(cursor)
    if len(ranges) != len(slides):
        raise SyntaxProblem(
            f"there are {len(ranges)} RANGES but {len(slides)} SLIDES",
            fix="give one slide for each range",
            place=cursor.place(),
        )
    return RangeClause(ranges, slides, None, _start(cursor), several=True)


def _rows(cursor: Cursor) -> RowsClause:
    count = cursor.integer("a number of rows")
    return RowsClause(count, cursor.integer("a number of rows") if cursor.take("LAG") else 0)


def _session(cursor: Cursor) -> SessionClause:
    return SessionClause(cursor.duration())


def _partition(cursor: Cursor) -> WindowClause:
    names = [cursor.name("a partition column")]
    while cursor.take(","):
        names.append(cursor.name("a partition column"))
    if cursor.take("ROWS"):
        return replace(_rows(cursor), partition_by=tuple(names))
    if cursor.take("SESSION"):
        return replace(_session(cursor), partition_by=tuple(names))
    raise cursor.problem("expected ROWS or SESSION after PARTITION BY", "write PARTITION BY columns ROWS n")


def _unbounded_window(cursor: Cursor) -> WindowClause:
    lower = _start(cursor)
    return LandmarkClause(lower, None, _slide(cursor))


def _until(cursor: Cursor) -> WindowClause:
    return LandmarkClause(None, cursor.instant(), _slide(cursor))


def _from(cursor: Cursor) -> WindowClause:
    lower = cursor.instant()
    cursor.expect("UNTIL")
    return LandmarkClause(lower, cursor.instant(), _slide(cursor))


def _cumulate(cursor: Cursor) -> WindowClause:
    size = cursor.duration()
    cursor.expect("STEP")
    return CumulateClause(size, cursor.duration(), _start(cursor))


def _where(cursor: Cursor) -> WindowClause:
    if cursor.token is None:
        raise cursor.problem("expected a condition", "write one after WHERE")
    return WhereClause(_rest(cursor, cursor.end))


READERS: dict[str, Callable[[Cursor], WindowClause]] = {
    "NOW": _now,
    "RANGE": _range,
    "RANGES": _ranges,
    "ROWS": _rows,
    "SESSION": _session,
    "PARTITION BY": _partition,
    "UNBOUNDED": _unbounded_window,
    "UNTIL": _until,
    "FROM": _from,
    "CUMULATE": _cumulate,
    "WHERE": _where,
    "FRAME": parse_frame,
}


def _start(cursor: Cursor) -> str | int | None:
    if not cursor.take("START"):
        return None
    cursor.expect("AT")
    return cursor.instant()


def _slide(cursor: Cursor) -> Duration | None:
    return cursor.duration() if cursor.take("SLIDE") else None


def _durations(cursor: Cursor) -> tuple[Duration, ...]:
    found = [cursor.duration()]
    while cursor.take(","):
        found.append(cursor.duration())
    return tuple(found)


def _extent_in_parentheses(cursor: Cursor) -> Expr:
    depth, first = 0, cursor.at
    while cursor.token:
        depth += {TokenType.L_PAREN: 1, TokenType.R_PAREN: -1}.get(cursor.token.token_type, 0)
        cursor.at += 1
        if not depth:
            break
    end = cursor.tokens[cursor.at - 1].start
    inner = cursor.tokens[first].end + 1
    return _expression(cursor, inner, end)


def _rest(cursor: Cursor, end: int) -> Expr:
    start, cursor.at = cursor.offset, len(cursor.tokens)
    return _expression(cursor, start, end)


def _expression(cursor: Cursor, start: int, end: int) -> Expr:
    node = cursor.source.scalar(start, end, cursor.clause)
    return cursor.source.expr(node, cursor.clause, start)
