"""Parses the text after FILL WITH: a stream, and which of its rows belong to a frame."""

from __future__ import annotations

from panewise.core.errors import Place
from panewise.core.time import Duration
from panewise.cql.syntax import Expr, FillSyntax
from panewise.cql.tokens import Cursor, word

_ENDS = ("FROM", "TO", "OFFSET")


def parse_fill(cursor: Cursor, place: Place) -> FillSyntax:
    """Parse a FILL WITH clause; the cursor is after FILL WITH."""
    source = cursor.name("the name of a stream")
    alias = cursor.name("an alias") if cursor.take("AS") else None
    on = _condition(cursor) if cursor.take("ON") else None
    lower = _shift(cursor, "START") if cursor.take("FROM") else None
    upper = _shift(cursor, "END") if cursor.take("TO") else None
    offset = cursor.duration() if cursor.take("OFFSET") else None
    cursor.expect_end(
        "write FILL WITH stream AS alias ON condition FROM START - duration TO END + duration OFFSET duration"
    )
    return FillSyntax(source, alias, on, lower, upper, offset, place, cursor.places)


def _condition(cursor: Cursor) -> Expr:
    start = cursor.offset
    while cursor.token is not None and word(cursor.token) not in _ENDS:
        cursor.at += 1
    node = cursor.source.parse(start, cursor.offset, [], "ON")
    return cursor.source.expr(node, "ON", start)


def _shift(cursor: Cursor, edge: str) -> Duration | None:
    """How far outside the edges of the frame rows still belong to it."""
    cursor.expect(edge)
    if cursor.peek("-"):
        return cursor.duration()
    return cursor.duration() if cursor.take("+") else None
