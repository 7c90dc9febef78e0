"""Limits on the size of one statement: checked once, from left to right, before it is parsed.

Parsing and binding walk trees repeatedly and recursively: a text of a few kilobytes could take minutes, or exhaust the
stack. People do not write such texts, and programs can write several statements.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import Token, TokenType

from panewise.core.errors import Place, SyntaxProblem
from panewise.cql.tokens import ScriptText

#: Characters of one query.
MAX_CHARACTERS = 1_000_000
#: Words and signs of one statement, and SELECTs in it.
MAX_WORDS, MAX_SELECTS = 20_000, 100
#: Parentheses, brackets and CASEs inside each other.
MAX_DEPTH = 30
#: Operators in a row: `a + b + c` has two.
MAX_OPERATORS = 250

_OPENING = (TokenType.L_PAREN, TokenType.L_BRACKET, TokenType.L_BRACE, TokenType.CASE)
_CLOSING = (TokenType.R_PAREN, TokenType.R_BRACKET, TokenType.R_BRACE, TokenType.END)
#: Tokens that end an expression, after which another row of operators begins.
_CLAUSES = (TokenType.SELECT, TokenType.FROM, TokenType.WHERE, TokenType.GROUP_BY, TokenType.HAVING)
_ENDING = (
    *_CLAUSES,
    TokenType.COMMA,
    TokenType.WHEN,
    TokenType.THEN,
    TokenType.ELSE,
    TokenType.UNION,
    TokenType.EXCEPT,
)
_OPERANDS = (TokenType.VAR, TokenType.IDENTIFIER, TokenType.NUMBER, TokenType.STRING)


def refuse_long(text: str) -> None:
    """Refuse a query that is too long to be tokenized."""
    if len(text) > MAX_CHARACTERS:
        raise _refusal(f"the query has more than {MAX_CHARACTERS:,} characters", Place(1, 1))


def refuse_large(source: ScriptText, tokens: Sequence[Token]) -> None:
    """Refuse a statement that is too long, too deep, or has too long a row of operators."""
    if len(tokens) > MAX_WORDS:
        raise _refusal(f"the statement has more than {MAX_WORDS:,} words", source.place(tokens[MAX_WORDS].start))
    selects, rows = 0, [0]
    for token in tokens:
        kind = token.token_type
        if kind in _OPENING:
            rows.append(0)
        elif kind in _CLOSING:
            rows[:] = rows[:-1] or [0]
        elif kind in _ENDING:
            rows[-1] = 0
            selects += kind is TokenType.SELECT
        elif kind not in _OPERANDS:
            rows[-1] += 1
        if len(rows) > MAX_DEPTH + 1:
            raise _refusal(f"the expression is nested more than {MAX_DEPTH} deep", source.place(token.start))
        if rows[-1] > MAX_OPERATORS:
            raise _refusal(
                f"the expression has more than {MAX_OPERATORS} operators in a row", source.place(token.start)
            )
        if selects > MAX_SELECTS:
            raise _refusal(f"the statement has more than {MAX_SELECTS} SELECTs", source.place(token.start))


def _refusal(message: str, place: Place) -> SyntaxProblem:
    return SyntaxProblem(message, fix="write several statements, or views", place=place)
