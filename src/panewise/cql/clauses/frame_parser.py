"""Parses the text after FRAME: a kind, then conditions in any order."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sqlglot import Token, TokenType, exp

from panewise.core.errors import SyntaxProblem, did_you_mean
from panewise.cql.clauses.frame_syntax import (
    BetweenSyntax,
    BoundarySyntax,
    CustomSyntax,
    DeltaSyntax,
    DensitySyntax,
    FrameClause,
    KindSyntax,
    LengthSyntax,
    ReachSyntax,
    TrendSyntax,
    WhileSyntax,
)
from panewise.cql.syntax import Expr
from panewise.cql.tokens import Cursor, word

SPANS = ("MINIMAL", "MAXIMAL", "MAXIMUM")
SCHEMES = ("PARTITION", "COVER", "ADJACENT", "ADVANCING", "DISJOINT", "UNCONSTRAINED")
CHOICES = ("SATURATED", "DRAINED")


def parse_frame(cursor: Cursor) -> FrameClause:
    """Parse a frame clause; the cursor is after FRAME."""
    cursor.clause = "FRAME"
    kind = _kind(cursor)
    said: dict[str, Any] = {}
    while cursor.token is not None:
        _condition(cursor, said)
    return FrameClause(kind, **said)


# ---- kinds -------------------------------------------------------------------------------------------------------


def _kind(cursor: Cursor) -> KindSyntax:
    opening = word(cursor.token) if cursor.token else ""
    cursor.places.setdefault("#kind", cursor.place())
    reader = _KINDS.get(opening)
    if reader is None:
        _refuse_misspelt(cursor, opening)
        return ReachSyntax(_expression(cursor))
    cursor.at += 1
    return reader(cursor)


def _refuse_misspelt(cursor: Cursor, opening: str) -> None:
    """Refuse a word that is no kind, unless it is an aggregate that is compared with a number."""
    ahead = cursor.tokens[cursor.at + 1 : cursor.at + 2]
    called = bool(ahead) and ahead[0].token_type is TokenType.L_PAREN
    meant = did_you_mean(opening, _KINDS, "")
    if not opening or opening in _ENDS or (meant and not called):
        fix = meant or f"start with one of {', '.join(_KINDS)}, or with an aggregate such as SUM(v) >= 100"
        raise cursor.problem("expected a kind of frames", fix)


def _while(cursor: Cursor) -> KindSyntax:
    return WhileSyntax(_expression(cursor))


def _every(cursor: Cursor) -> KindSyntax:
    step = _number(cursor)
    cursor.expect("OF")
    return BoundarySyntax(_expression(cursor), step)


def _at(cursor: Cursor) -> KindSyntax:
    cursor.expect("(")
    marks = [_number(cursor)]
    while cursor.take(","):
        marks.append(_number(cursor))
    cursor.expect(")")
    cursor.expect("OF")
    return BoundarySyntax(_expression(cursor), None, tuple(marks))


def _delta(cursor: Cursor) -> KindSyntax:
    return DeltaSyntax(_expression(cursor))


def _trend(cursor: Cursor) -> KindSyntax:
    direction = word(cursor.tokens[cursor.at - 1])
    value = _expression(cursor)
    return TrendSyntax(direction, value, _number(cursor) if cursor.take("WITHIN") else None)


def _density(cursor: Cursor) -> KindSyntax:
    count = cursor.integer("a number of rows")
    cursor.expect("PER")
    per = cursor.duration()
    chance = _number(cursor) if cursor.take("CHANCE") else None
    expected = None
    if chance is not None:
        cursor.expect("EXPECTED")
        expected = _number(cursor)
    return DensitySyntax(count, per, chance, expected)


def _between(cursor: Cursor) -> KindSyntax:
    cursor.expect("WHEN")
    start = _expression(cursor)
    cursor.expect("END")
    cursor.expect("WHEN")
    end = _expression(cursor)
    return BetweenSyntax(start, end, _one_of(cursor, _POLICIES) if cursor.take("ON", "START") else None)


def _custom(cursor: Cursor) -> KindSyntax:
    name = cursor.string("the name of a framing function")
    cursor.expect("OF")
    return CustomSyntax(name, _expression(cursor))


_POLICIES = ("CLOSE", "DROP", "CONTINUE")
_KINDS: dict[str, Callable[[Cursor], KindSyntax]] = {
    "WHILE": _while,
    "EVERY": _every,
    "AT": _at,
    "DELTA": _delta,
    "RISING": _trend,
    "FALLING": _trend,
    "FLAT": _trend,
    "DENSITY": _density,
    "START": _between,
    "USING": _custom,
}


# ---- conditions --------------------------------------------------------------------------------------------------


def _condition(cursor: Cursor, said: dict[str, Any]) -> None:
    opening = word(cursor.token) if cursor.token else ""
    for name, words in (("span", SPANS), ("scheme", SCHEMES), ("choice", CHOICES)):
        if opening in words:
            _set_condition(cursor, said, name, opening)
            cursor.at += 1
            if opening == "ADJACENT":
                said["overlap"] = cursor.duration()
            return
    reader = _CONDITIONS.get(opening)
    if reader is None:
        raise _no_condition(cursor)
    place = cursor.at
    cursor.at += 1
    for name, value in reader(cursor).items():
        cursor.at, after = place, cursor.at
        _set_condition(cursor, said, name, value)
        cursor.at = after


def _no_condition(cursor: Cursor) -> SyntaxProblem:
    opening = word(cursor.token) if cursor.token else ""
    return cursor.problem("expected a condition of frames", did_you_mean(opening, _WORDS))


def _set_condition(cursor: Cursor, said: dict[str, Any], name: str, value: object) -> None:
    if name in said:
        words = _CONDITION_WORDS.get(name)
        twice = words or (value == said[name])
        problem = f"{words or value} is said twice" if twice else f"{value} contradicts {said[name]} before it"
        raise SyntaxProblem(problem, fix="keep one of them", place=cursor.place())
    cursor.places[f"#{name}"] = cursor.place()
    said[name] = value


_CONDITION_WORDS = {
    "partition_by": "PARTITION BY",
    "some": "WITH SOME",
    "least": "FOR AT LEAST",
    "most": "FOR AT MOST",
    "extent": "EXTENT",
    "reading": "AS",
    "every": "EVERY",
    "duplicates": "DUPLICATES",
    "fragments": "FRAGMENTS",
}


def _partition(cursor: Cursor) -> dict[str, Any]:
    names = [cursor.name("a partition column")]
    while cursor.take(","):
        names.append(cursor.name("a partition column"))
    return {"partition_by": tuple(names)}


def _some(cursor: Cursor) -> dict[str, Any]:
    cursor.expect("SOME")
    return {"some": _expression(cursor)}


def _for(cursor: Cursor) -> dict[str, Any]:
    cursor.expect("AT")
    name = "least" if cursor.take("LEAST") else "most"
    if name == "most" and not cursor.take("MOST"):
        raise cursor.problem("expected LEAST or MOST", "write FOR AT LEAST or FOR AT MOST and a length")
    return {name: _length(cursor)}


def _extent(cursor: Cursor) -> dict[str, Any]:
    return {"extent": _one_of(cursor, ("CONSERVATIVE", "LIBERAL"))}


def _interpretation(cursor: Cursor) -> dict[str, Any]:
    return {"reading": _one_of(cursor, ("POINTS", "INTERVALS"))}


def _schedule(cursor: Cursor) -> dict[str, Any]:
    found: dict[str, Any] = {"every": cursor.duration()}
    if cursor.take("MISSING"):
        found["missing"] = _one_of(cursor, ("FAILS", "QUALIFIES", "NEIGHBOURS"))
    return found


def _duplicates(cursor: Cursor) -> dict[str, Any]:
    return {"duplicates": _one_of(cursor, ("KEEP", "ERROR", "FIRST", "LAST", "AVG", "MIN", "MAX", "SUM"))}


def _fragments(cursor: Cursor) -> dict[str, Any]:
    cursor.expect("EVERY")
    return {"fragments": _length(cursor)}


_CONDITIONS: dict[str, Callable[[Cursor], dict[str, Any]]] = {
    "PARTITION BY": _partition,
    "WITH": _some,
    "FOR": _for,
    "EXTENT": _extent,
    "AS": _interpretation,
    "EVERY": _schedule,
    "DUPLICATES": _duplicates,
    "FRAGMENTS": _fragments,
}


# ---- lengths, numbers-----------------------------------------------------------------------------------------------


def _length(cursor: Cursor) -> LengthSyntax:
    """A duration, or a number and ROWS."""
    ahead = cursor.tokens[cursor.at + 1 : cursor.at + (3 if cursor.peek("-") else 2)]
    if any(word(token) in ("ROWS", "ROW") for token in ahead):
        found = cursor.integer("a number of rows")
        cursor.at += 1
        return LengthSyntax(found)
    return LengthSyntax(cursor.duration())


def _one_of(cursor: Cursor, words: tuple[str, ...]) -> str:
    for each in words:
        if cursor.take(each):
            return each
    found = cursor.token.text if cursor.token else ""
    raise cursor.problem(
        f"expected {', '.join(words[:-1])} or {words[-1]}", did_you_mean(found, words, "write one of them")
    )


def _number(cursor: Cursor) -> str:
    """A number as it was written, so that no digit is lost."""
    place, sign = cursor.place(), "-" if cursor.take("-") else ""
    token = cursor.next("a number", "write a number")
    if token.token_type is not TokenType.NUMBER:
        cursor.at -= 1
        raise cursor.problem("expected a number", "write a number")
    cursor.places.setdefault(f"{sign}{token.text}", place)
    return f"{sign}{token.text}"


_WORDS = (*_CONDITIONS, *SPANS, *SCHEMES, *CHOICES)
#: Words that end an expression outside parentheses.
_ENDS = {*_WORDS, "WITHIN", "ON", "OF"}
_NESTING = {TokenType.L_PAREN: 1, TokenType.R_PAREN: -1, TokenType.L_BRACKET: 1, TokenType.R_BRACKET: -1}
#: Tokens after which an expression may end, so that a plain word after one does not belong to it.
_OPERANDS = {TokenType.VAR, TokenType.IDENTIFIER, TokenType.NUMBER, TokenType.STRING, TokenType.R_PAREN}
_OPERANDS |= {TokenType.NULL, TokenType.TRUE, TokenType.FALSE, TokenType.R_BRACKET}


def _expression(cursor: Cursor) -> Expr:
    """The expression up to a word that cannot be part of it."""
    first, start, depth, cases = cursor.at, cursor.offset, 0, 0
    while cursor.token is not None:
        token, said = cursor.token, word(cursor.token)
        if not depth and not cases and (said in _ENDS or cursor.peek("END", "WHEN")):
            break
        depth += _NESTING.get(token.token_type, 0)
        cases += (said == "CASE") - (said == "END" and cases > 0)
        cursor.at += 1
    try:
        node = cursor.source.scalar(start, cursor.offset, cursor.clause)
    except SyntaxProblem:
        _refuse_stray(cursor, first)
        raise
    if isinstance(node, exp.Alias):  # sqlglot took a misspelt condition for an alias
        _refuse_stray(cursor, first)
        cursor.at -= 1
        raise _no_condition(cursor)
    return cursor.source.expr(node, cursor.clause, start)


def _refuse_stray(cursor: Cursor, first: int) -> None:
    """Refuse a text that is no expression: the first word that cannot continue one was meant as a condition."""
    read, depth = cursor.tokens[first : cursor.at], 0
    for place in range(1, len(read)):
        depth += _NESTING.get(read[place - 1].token_type, 0)
        if not depth and read[place].token_type is TokenType.VAR and _is_complete(read[:place]):
            cursor.at = first + place
            raise _no_condition(cursor)


def _is_complete(read: list[Token]) -> bool:
    unit = len(read) > 1 and word(read[-2]) == "INTERVAL"
    return read[-1].token_type in _OPERANDS and not unit
