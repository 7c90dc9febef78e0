"""A walk over the tokens of a text, with places for messages."""

from __future__ import annotations

from bisect import bisect_right

import sqlglot
from sqlglot import exp
from sqlglot.errors import ParseError, TokenError
from sqlglot.tokens import Token, TokenType

from panewise.errors import Place, SyntaxProblem, TimeProblem
from panewise.lang.dialect import CQL
from panewise.time import Duration


class Source:
    """The text of a script and its tokens."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._lines = [0, *(i + 1 for i, c in enumerate(text) if c == "\n")]
        try:
            self.tokens: list[Token] = list(CQL().tokenize(text))
        except TokenError:
            raise SyntaxProblem("the text has a quote or comment that never ends", fix="close it") from None

    def place(self, offset: int, clause: str | None = None) -> Place:
        line = bisect_right(self._lines, offset)
        return Place(line, offset - self._lines[line - 1] + 1, clause)

    def only(self, start: int, end: int, blanks: list[tuple[int, int]]) -> str:
        """The text with everything outside `[start, end)` and inside the blanks replaced by spaces.

        Offsets stay what they were, so sqlglot's positions are positions in the script.
        """
        keep = bytearray(len(self.text))
        keep[start:end] = b"\x01" * (end - start)
        for low, high in blanks:
            keep[low:high] = bytes(high - low)
        return "".join(c if k or c == "\n" else " " for c, k in zip(self.text, keep, strict=True))

    def parse(self, start: int, end: int, blanks: list[tuple[int, int]], clause: str) -> exp.Expression:
        """What sqlglot makes of a part of the text."""
        try:
            return sqlglot.parse_one(self.only(start, end, blanks), dialect=CQL)
        except ParseError as problem:
            raise self._explained(problem, start, end, clause) from None
        except RecursionError:
            raise SyntaxProblem("the expression is nested too deeply", place=self.place(start, clause)) from None

    def _explained(self, problem: ParseError, start: int, end: int, clause: str) -> SyntaxProblem:
        error = problem.errors[0] if problem.errors else {}
        near = str(error.get("highlight") or "").strip()
        line, col = int(error.get("line") or 1), int(error.get("col") or 1)
        offset = self._lines[min(line, len(self._lines)) - 1] + max(col - len(near), 0)
        reason = str(error.get("description") or "it is not a query").split(" but got")[0].rstrip(".")
        where = f"{near!r} was not expected here" if near else "the text ends too early"
        return SyntaxProblem(
            f"{where} ({reason[0].lower()}{reason[1:]})",
            fix="check the words before it",
            place=self.place(min(max(offset, start), max(end - 1, start)), clause),
        )


class Cursor:
    """Reads some of a source's tokens from left to right."""

    def __init__(self, source: Source, tokens: list[Token], end: int, clause: str) -> None:
        self.source, self.tokens, self.end, self.clause = source, tokens, end, clause
        self.at = 0

    @property
    def token(self) -> Token | None:
        return self.tokens[self.at] if self.at < len(self.tokens) else None

    @property
    def offset(self) -> int:
        return self.token.start if self.token else self.end

    def place(self) -> Place:
        return self.source.place(self.offset, self.clause)

    def peek(self, *words: str) -> bool:
        """Whether the next tokens are these words."""
        ahead = self.tokens[self.at : self.at + len(words)]
        return len(ahead) == len(words) and all(word(t) == w for t, w in zip(ahead, words, strict=True))

    def take(self, *words: str) -> bool:
        if found := self.peek(*words):
            self.at += len(words)
        return found

    def expect(self, *words: str) -> None:
        if not self.take(*words):
            raise self.problem(f"expected {' '.join(words)}", f"write {' '.join(words)} here")

    def next(self, what: str, fix: str) -> Token:
        if self.token is None:
            raise self.problem(f"expected {what}", fix)
        self.at += 1
        return self.tokens[self.at - 1]

    def problem(self, message: str, fix: str) -> SyntaxProblem:
        found = f"{self.token.text!r}" if self.token else "the end"
        return SyntaxProblem(f"{message}, but found {found}", fix=fix, place=self.place())

    def done(self) -> None:
        if self.token is not None:
            raise self.problem("nothing more was expected", "remove the rest")

    # ---- small things ----------------------------------------------------------------------------------------------

    def name(self, what: str) -> str:
        token = self.next(what, f"write {what}")
        plain = token.token_type is not TokenType.STRING and (token.text[:1].isalpha() or token.text[:1] == "_")
        if not plain and token.token_type is not TokenType.IDENTIFIER:
            self.at -= 1
            raise self.problem(f"expected {what}", "write a name")
        return str(token.text)

    def string(self, what: str) -> str:
        if not self.token or self.token.token_type is not TokenType.STRING:
            raise self.problem(f"expected {what} in quotes", "put it between single quotes")
        self.at += 1
        return str(self.tokens[self.at - 1].text)

    def integer(self, what: str) -> int:
        token = self.token
        if not token or token.token_type is not TokenType.NUMBER or not token.text.isdigit():
            raise self.problem(f"expected {what}", "write a whole number")
        self.at += 1
        return int(token.text)

    def duration(self) -> Duration:
        """`5`, `5 SECONDS` or `INTERVAL '5' SECOND`."""
        place = self.place()
        quoted = self.take("INTERVAL")
        token = self.next("a duration", "write a number and a unit, such as 5 SECONDS")
        negative = token.text == "-"
        if negative:
            token = self.next("a duration", "write a number and a unit, such as 5 SECONDS")
        if token.token_type is not TokenType.NUMBER and not (quoted and token.token_type is TokenType.STRING):
            raise SyntaxProblem(
                f"{token.text!r} is not a duration", fix="write a number and a unit, such as 5 SECONDS", place=place
            )
        unit = None
        if self.token and self.token.text.isalpha() and word(self.token) not in _AFTER_DURATION:
            unit = self.next("a unit", "").text
        try:
            return Duration.of(("-" if negative else "") + token.text, unit)
        except ValueError:
            raise SyntaxProblem(f"{token.text!r} is not a number", fix="write digits", place=place) from None
        except TimeProblem as problem:
            raise problem.at(place) from None

    def instant(self) -> str | int:
        """A quoted timestamp, or a number on integer time."""
        if self.token and self.token.token_type is TokenType.STRING:
            return self.string("an instant")
        sign = -1 if self.take("-") else 1
        return sign * self.integer("an instant, quoted or as a number")


_AFTER_DURATION = {"SLIDE", "SLIDES", "LAG", "START", "STEP", "UNTIL", "FROM", "INTO", "EMIT", "LATE", "DELAY", "TIME"}


def word(token: Token) -> str:
    """The token as a keyword; quoted names and strings are nobody's keyword."""
    quoted = token.token_type in (TokenType.IDENTIFIER, TokenType.STRING)
    return "" if quoted else " ".join(token.text.upper().split())
