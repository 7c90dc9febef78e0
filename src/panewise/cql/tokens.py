"""The tokens of a text, with places for messages, and a cursor over them."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable
from dataclasses import replace
from typing import TypeVar

import sqlglot
from sqlglot import Token, TokenType, exp
from sqlglot.errors import ParseError, TokenError

from panewise.core.errors import Place, SyntaxProblem, TimeProblem, did_you_mean
from panewise.core.time import DURATION, Duration
from panewise.cql.dialect import CQL, canonical, string_text
from panewise.cql.syntax import Expr, place_of

T = TypeVar("T")

#: Complete strings, quoted names and comments; what remains of a text may contain one that is not closed.
_CLOSED = re.compile(r"""'(?:[^'\\]|\\.)*'|"[^"]*"|`[^`]*`|/\*.*?\*/|--[^\n]*""", re.DOTALL)


class ScriptText:
    """The text of a script and its tokens."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._lines = [0, *(i + 1 for i, c in enumerate(text) if c == "\n")]
        try:
            self.tokens: list[Token] = list(CQL().tokenize(text))
        except TokenError:
            raise self._unclosed_problem() from None

    def _unclosed_problem(self) -> SyntaxProblem:
        """The error for the first quote or comment that is not closed."""
        rest = _CLOSED.sub(lambda whole: " " * len(whole[0]), self.text)
        opened = re.search(r"'|\"|`|/\*", rest)
        mark, offset = (opened[0], opened.start()) if opened else ("a quote", 0)
        return SyntaxProblem(f"{mark} is never closed", fix="close it", place=self.place(offset))

    def place(self, offset: int, clause: str | None = None) -> Place:
        line = bisect_right(self._lines, offset)
        return Place(line, offset - self._lines[line - 1] + 1, clause)

    def blank_out(self, start: int, end: int, blanks: list[tuple[int, int]]) -> str:
        """The text with everything outside `[start, end)` and inside the blanks replaced by spaces.

        Offsets stay what they were, so sqlglot's positions are positions in the script.
        """
        keep = bytearray(len(self.text))
        keep[start:end] = b"\x01" * (end - start)
        for low, high in blanks:
            keep[low:high] = bytes(high - low)
        return "".join(c if k or c == "\n" else " " for c, k in zip(self.text, keep, strict=True))

    def parse(self, start: int, end: int, blanks: list[tuple[int, int]], clause: str) -> exp.Expr:
        """The tree that sqlglot parses from a part of the text."""
        if not self.text[start:end].strip():
            raise SyntaxProblem("an expression is missing", fix="write one here", place=self.place(start, clause))
        try:
            return sqlglot.parse_one(self.blank_out(start, end, blanks), dialect=CQL)
        except ParseError as problem:
            raise self._parse_problem(problem, start, end, clause) from None
        except RecursionError:
            raise SyntaxProblem("the expression is nested too deeply", place=self.place(start, clause)) from None

    def scalar(self, start: int, end: int, clause: str) -> exp.Expr:
        """One expression; words that begin a statement elsewhere, such as LOAD or SET, are names in it."""
        try:
            return sqlglot.parse_one(self.blank_out(start, end, []), into=exp.Condition, dialect=CQL)
        except (ParseError, RecursionError):
            return self.parse(start, end, [], clause)  # raises the error

    def _parse_problem(self, problem: ParseError, start: int, end: int, clause: str) -> SyntaxProblem:
        """sqlglot's error in our words, with the place of the word at which it stopped."""
        error = problem.errors[0] if problem.errors else {}
        near = str(error.get("highlight") or "").strip()
        line, col = int(error.get("line") or 1), int(error.get("col") or 1)
        offset = self._lines[min(line, len(self._lines)) - 1] + max(col - len(near), 0)
        reason = str(error.get("description") or "")
        message, fix = next((m, f) for pattern, m, f in _COMPLAINTS if re.search(pattern, f"{reason} at {near}"))
        if before := re.search(r"\b(GROUP|ORDER|PARTITION)\s*$", self.text[:offset].upper()):
            fix = f"write {before[1]} BY"
        wanted = re.match(r"Expect(?:ing|ed) (\S+)", reason)
        return SyntaxProblem(
            message.format(near=repr(near) if near else "the start", wanted=wanted[1] if wanted else "more"),
            fix=fix,
            place=self.place(min(max(offset, start), max(end - 1, start)), clause),
        )

    def _start_of(self, node: exp.Expr, offset: int, clause: str) -> Place:
        """Where a part of an expression starts: a sub-query at its SELECT, anything else at its first name."""
        first = min((p.meta["start"] for p in node.walk() if "start" in p.meta), default=offset)
        if isinstance(node, exp.Query):
            first = max((t.start for t in self.tokens if t.start <= first and word(t) == "SELECT"), default=first)
        return self.place(first, clause)

    def expr(self, node: exp.Expr, clause: str, offset: int) -> Expr:
        """A scalar expression in which every name and literal has its place; `offset` is for one without any."""
        for part in node.walk():
            for kind, (what, fix) in _FORBIDDEN.items():
                if isinstance(part, kind):
                    raise SyntaxProblem(
                        f"{what} cannot be used inside an expression",
                        fix=fix,
                        place=self._start_of(part, offset, clause),
                    )
            if isinstance(part, exp.Star) and any(part.args.values()):
                place = self._start_of(part, offset, clause)
                raise SyntaxProblem("* takes no EXCEPT, REPLACE or RENAME", fix="list the columns", place=place)
            if "start" in part.meta and "place" not in part.meta:
                part.meta["place"] = self.place(part.meta["start"], clause)
                part.meta["doubly_quoted"] = self.text[part.meta["start"]] == '"'
        return Expr(canonical(node), node, place_of(node, self.place(offset, clause)))


_FORBIDDEN: dict[type[exp.Expr], tuple[str, str]] = {
    exp.Query: ("a sub-query", "join with the sub-query in FROM"),
    exp.Window: ("OVER", "write a window in brackets after the stream"),
    exp.Filter: ("FILTER", "write CASE WHEN inside the aggregate"),
    exp.WithinGroup: ("WITHIN GROUP", "write QUANTILE(column, phi)"),
    exp.IgnoreNulls: ("IGNORE NULLS", "leave it out, aggregates ignore NULLs"),
    exp.RespectNulls: ("RESPECT NULLS", "leave it out, aggregates ignore NULLs"),
}

#: Patterns of sqlglot's messages, our sentences instead, and ways out; the first pattern that matches is used.
_COMPLAINTS = (
    (r"table name", "the name of a stream is missing after {near}", "name a stream"),
    (r"END after CASE|Expecting END", "CASE is never closed, last read was {near}", "write END after its last branch"),
    (r"Expecting \)", "a parenthesis is still open at {near}", "close it before that"),
    (r"Expecting \]", "a bracket is still open at {near}", "close it before that"),
    (r"(?i)type", "{near} is not a type", "use one such as BIGINT, DOUBLE, STRING or TIMESTAMP"),
    (r"^Expect(ing|ed) \S{1,9} at", "expected {wanted} at {near}", "check the words around it"),
    (r"number of provided arguments", "there are too many arguments before {near}", "check what the function takes"),
    (r"Required keyword.* at \)$", "an argument is missing before {near}", "check what the function takes"),
    (r"Required keyword|Required argument", "something is missing after {near}", "complete the expression"),
    (
        r"Unexpected token|No expression",
        "{near} was not expected here",
        "remove it, or write a comma or an operator before it",
    ),
    (r"", "the text cannot be read at {near}", "check the words around it"),
)


class Cursor:
    """Reads some tokens of a text from left to right."""

    def __init__(self, source: ScriptText, tokens: list[Token], end: int, clause: str) -> None:
        self.source, self.tokens, self.end, self.clause = source, tokens, end, clause
        self.at = 0
        #: Where each name, count, duration and instant was first read.
        self.places: dict[str, Place] = {}

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
        after = self.source.text[self.end : self.end + 1]
        found = self._token_text(self.token) if self.token else "']'" if after == "]" else "the end"
        return SyntaxProblem(f"{message}, but found {found}", fix=fix, place=self.place())

    def _token_text(self, token: Token) -> str:
        written = self.source.text[token.start : token.end + 1]
        return written.replace("\n", "\\n") if written[0] == '"' else repr(token.text)

    def expect_end(self, fix: str = "remove the rest") -> None:
        if self.token is not None:
            raise self.problem("nothing more was expected", fix)

    def comma_list(self, read: Callable[[], T]) -> tuple[T, ...]:
        """One or more parts with commas between them."""
        parts = [read()]
        while self.take(","):
            parts.append(read())
        return tuple(parts)

    # ---- names, numbers --------------------------------------------------------------------------------------------

    def name(self, what: str) -> str:
        token = self.next(what, f"write {what}")
        plain = token.token_type is not TokenType.STRING and (token.text[:1].isalpha() or token.text[:1] == "_")
        if (not plain and token.token_type is not TokenType.IDENTIFIER) or word(token) == "AS":
            self.at -= 1
            raise self.problem(f"expected {what}", "write a name")
        self.places.setdefault(token.text, self.source.place(token.start, self.clause))
        return str(token.text)

    def string(self, what: str) -> str:
        if not self.token or self.token.token_type is not TokenType.STRING:
            raise self.problem(f"expected {what} in quotes", self._quote_hint("put it between single quotes"))
        self.at += 1
        return str(self.tokens[self.at - 1].text)

    def integer(self, what: str, fix: str = "write a whole number") -> int:
        place, negative = self.place(), self.take("-")
        number = self.token
        if not number or number.token_type is not TokenType.NUMBER or not number.text.isdecimal():
            self.at -= negative
            raise self.problem(f"expected {what}", fix)
        if len(number.text) > 18:
            raise SyntaxProblem(f"{_short(number.text)} is too large", fix="use a smaller number", place=place)
        self.at += 1
        found = -int(number.text) if negative else int(number.text)
        self.places.setdefault(str(found), place)
        return found

    def duration(self) -> Duration:
        """`5`, `5 SECONDS`, `5s`, `'5 seconds'` or `INTERVAL '5' SECOND`."""
        place = self.place()
        self.take("INTERVAL")
        negative = self.take("-")
        count, unit, at = self._count()
        if not unit and self.token and self.token.text.isalpha() and word(self.token) not in _AFTER_DURATION:
            at = self.offset
            unit = self.next("a unit", "").text
        try:
            found = Duration.of(count, unit)
        except TimeProblem as problem:
            if unit and "not a unit" in problem.message and not str(problem.fix).startswith("did you mean"):
                problem.fix = did_you_mean(unit, _AFTER_DURATION, "") or problem.fix
            raise problem.at(self.source.place(at, self.clause)) from None
        found = replace(found, count=-found.count) if negative else found
        self.places.setdefault(str(found), place)
        return found

    def _count(self) -> tuple[str, str | None, int]:
        """A number with the unit that is written together with it, if any, and its place."""
        fix = "write a number and a unit, such as 5 SECONDS"
        token = self.next("a duration", fix)
        text = token.text if token.token_type is TokenType.STRING else self.source.text[token.start : token.end + 1]
        if not (match := DURATION.fullmatch(text)):
            self.at -= 1
            if token.token_type not in (TokenType.STRING, TokenType.NUMBER):
                raise self.problem("expected a duration", self._quote_hint(fix))
            raise SyntaxProblem(f"{_short(text)!r} is not a number", fix=fix, place=self.place())
        while self.token and self.token.start <= token.end:
            self.at += 1  # sqlglot splits 5d, as a number of type DOUBLE, into three tokens at one place
        if len(match["count"]) > 40:
            place = self.source.place(token.start, self.clause)
            raise SyntaxProblem(f"{_short(text)} is too long", fix="use a shorter number", place=place)
        glued = match["unit"] and token.token_type is not TokenType.STRING
        return match["count"], match["unit"], token.start + match.start("unit") if glued else token.start

    def instant(self) -> str | int:
        """A quoted timestamp, or a number on integer time."""
        place = self.place()
        if self.token and self.token.token_type is TokenType.STRING:
            found = self.string("an instant")
            self.places.setdefault(found, place)
            return found
        return self.integer("an instant", self._quote_hint("write a number, or a timestamp in quotes"))

    def _quote_hint(self, fix: str) -> str:
        """The suggestion where text is expected: double quotes are for names."""
        if self.token is None or self.source.text[self.token.start] != '"':
            return fix
        return f"write {string_text(self.token.text)}, double quotes are for names"


_AFTER_DURATION = {"SLIDE", "SLIDES", "LAG", "START", "STEP", "UNTIL", "FROM", "INTO", "EMIT", "LATE", "DELAY", "TIME"}
_AFTER_DURATION |= {
    "WITH",
    "FOR",
    "EXTENT",
    "AS",
    "EVERY",
    "MISSING",
    "DUPLICATES",
    "FRAGMENTS",
    "CHANCE",
    "TO",
    "OFFSET",
}
_AFTER_DURATION |= {"MINIMAL", "MAXIMAL", "MAXIMUM", "SATURATED", "DRAINED"}
_AFTER_DURATION |= {"PARTITION", "COVER", "ADJACENT", "ADVANCING", "DISJOINT", "UNCONSTRAINED"}


def _short(text: str) -> str:
    return text if len(text) <= 20 else f"{text[:17]}..."


def word(token: Token) -> str:
    """The token as a keyword; quoted names and strings are never keywords."""
    quoted = token.token_type in (TokenType.IDENTIFIER, TokenType.STRING)
    return "" if quoted else " ".join(token.text.upper().split())
