"""The conditions after the kind of a frame: how they are read, and the expressions, numbers and lengths in them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from sqlglot import Token, TokenType, exp

from panewise.core.errors import SyntaxProblem, did_you_mean
from panewise.core.time import Duration
from panewise.cql.syntax import Expr
from panewise.cql.tokens import Cursor, word
from panewise.frame.conditions import CONDITION_WORDS

SPANS = ("MINIMAL", "MAXIMAL", "MAXIMUM")
SCHEMES = ("PARTITION", "COVER", "ADJACENT", "ADVANCING", "DISJOINT", "UNCONSTRAINED")
CHOICES = ("SATURATED", "DRAINED")


@dataclass(frozen=True)
class LengthSyntax:
    """A duration, or a number of rows."""

    amount: Duration | int

    def __str__(self) -> str:
        return f"{self.amount} ROWS" if isinstance(self.amount, int) else str(self.amount)


def read_condition(cursor: Cursor, given: dict[str, Any]) -> None:
    """Add the next condition to those that were given before it."""
    opening = word(cursor.token) if cursor.token else ""
    for name, words in (("span", SPANS), ("scheme", SCHEMES), ("choice", CHOICES)):
        if opening in words:
            _set_condition(cursor, given, name, opening)
            cursor.at += 1
            if opening == "ADJACENT":
                given["overlap"] = cursor.duration()
            return
    reader = _CONDITIONS.get(opening)
    if reader is None:
        raise _no_condition(cursor)
    place = cursor.at
    cursor.at += 1
    for name, value in reader(cursor).items():
        cursor.at, after = place, cursor.at
        _set_condition(cursor, given, name, value)
        cursor.at = after


def _no_condition(cursor: Cursor) -> SyntaxProblem:
    opening = word(cursor.token) if cursor.token else ""
    return cursor.problem("expected a condition of frames", did_you_mean(opening, _WORDS))


def _set_condition(cursor: Cursor, given: dict[str, Any], name: str, value: object) -> None:
    if name in given:
        words = CONDITION_WORDS[name].removesuffix(" EVERY")
        twice = words or (value == given[name])
        problem = f"{words or value} is written twice" if twice else f"{value} contradicts {given[name]} before it"
        raise SyntaxProblem(problem, fix="keep one of them", place=cursor.place())
    cursor.places[f"#{name}"] = cursor.place()
    given[name] = value


def _partition(cursor: Cursor) -> dict[str, Any]:
    return {"partition_by": cursor.comma_list(lambda: cursor.name("a partition column"))}


def _some(cursor: Cursor) -> dict[str, Any]:
    cursor.expect("SOME")
    return {"some": read_expression(cursor)}


def _for(cursor: Cursor) -> dict[str, Any]:
    cursor.expect("AT")
    name = "least" if cursor.take("LEAST") else "most"
    if name == "most" and not cursor.take("MOST"):
        raise cursor.problem("expected LEAST or MOST", "write FOR AT LEAST or FOR AT MOST and a length")
    return {name: _length(cursor)}


def _extent(cursor: Cursor) -> dict[str, Any]:
    return {"extent": read_one_of(cursor, ("CONSERVATIVE", "LIBERAL"))}


def _interpretation(cursor: Cursor) -> dict[str, Any]:
    return {"reading": read_one_of(cursor, ("POINTS", "INTERVALS"))}


def _schedule(cursor: Cursor) -> dict[str, Any]:
    found: dict[str, Any] = {"every": cursor.duration()}
    if cursor.take("MISSING"):
        found["missing"] = read_one_of(cursor, ("FAILS", "QUALIFIES", "NEIGHBOURS"))
    return found


def _duplicates(cursor: Cursor) -> dict[str, Any]:
    return {"duplicates": read_one_of(cursor, ("KEEP", "ERROR", "FIRST", "LAST", "AVG", "MIN", "MAX", "SUM"))}


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


# ---- lengths, numbers, expressions -------------------------------------------------------------------------------


def _length(cursor: Cursor) -> LengthSyntax:
    """A duration, or a number and ROWS."""
    ahead = cursor.tokens[cursor.at + 1 : cursor.at + (3 if cursor.peek("-") else 2)]
    if any(word(token) in ("ROWS", "ROW") for token in ahead):
        found = cursor.integer("a number of rows")
        cursor.at += 1
        return LengthSyntax(found)
    return LengthSyntax(cursor.duration())


def read_one_of(cursor: Cursor, words: tuple[str, ...]) -> str:
    """One of some words."""
    for each in words:
        if cursor.take(each):
            return each
    found = cursor.token.text if cursor.token else ""
    raise cursor.problem(
        f"expected {', '.join(words[:-1])} or {words[-1]}", did_you_mean(found, words, "write one of them")
    )


def read_number(cursor: Cursor) -> str:
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
ENDS = {*_WORDS, "WITHIN", "ON", "OF"}
_NESTING = {TokenType.L_PAREN: 1, TokenType.R_PAREN: -1, TokenType.L_BRACKET: 1, TokenType.R_BRACKET: -1}
#: Tokens after which an expression may end, so that a plain word after one does not belong to it.
_OPERANDS = {TokenType.VAR, TokenType.IDENTIFIER, TokenType.NUMBER, TokenType.STRING, TokenType.R_PAREN}
_OPERANDS |= {TokenType.NULL, TokenType.TRUE, TokenType.FALSE, TokenType.R_BRACKET}


def read_expression(cursor: Cursor) -> Expr:
    """The expression up to a word that cannot be part of it."""
    first, start, depth, cases = cursor.at, cursor.offset, 0, 0
    while cursor.token is not None:
        token, keyword = cursor.token, word(cursor.token)
        if not depth and not cases and (keyword in ENDS or cursor.peek("END", "WHEN")):
            break
        depth += _NESTING.get(token.token_type, 0)
        cases += (keyword == "CASE") - (keyword == "END" and cases > 0)
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
