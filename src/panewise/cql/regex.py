"""Regular expressions of Java, translated to RE2, which DuckDB uses.

Parts that mean the same in both stay; parts that can be written in another way are translated; parts that RE2 cannot
do, or would silently do differently, are refused. Where the two differ for some texts only, `guard_search` makes these
texts fail.
"""

from __future__ import annotations

import re

from panewise.core.errors import BindProblem
from panewise.cql.data_types import duckdb_text
from panewise.cql.functions.catalogue import error_call

#: Ends of lines in Java; RE2 has the first only.
_BREAKS = r"\n\r\x{85}\x{2028}\x{2029}"
_SPACE = r" \t\n\x0B\f\r"
#: Escapes that mean the same in both: classes of ASCII, ends of the text, characters by name or number.
_ALIKE = "dDwWAztnrfae"
_TOKEN = re.compile(
    r"(?P<quoted>\\Q.*?\\E)|\\x\{?[0-9A-Fa-f]+\}?|\\p\{?[A-Z][a-z]?\}?|\\P\{?[A-Z][a-z]?\}?|\\(?P<escape>.)"
    r"|(?P<special>\(\?(?!:))|(?P<open>\((?!\?))|(?P<possessive>[*+?}]\+)|.",
    re.DOTALL,
)


class Regex:
    """A pattern for RE2. One that is `only_matched` may match more than Java's, but not other texts."""

    def __init__(self, java: str, only_matched: bool = False) -> None:
        self.java, self._only_matched = java, only_matched
        self._folded = java.startswith("(?i)")
        self.groups = 0
        self._ends = self._words = False
        body = java[4:] if self._folded else java
        parts, place = [], 0
        while place < len(body):
            part, place = self._class(body, place) if body[place] == "[" else self._token(body, place)
            parts.append(part)
        self.text = "".join(parts)

    def guard_search(self, text: str, searched: str) -> str:
        """The search, which fails for texts in which RE2 and Java would find different matches."""
        if self._words:
            reason = r"looks for \b in a text that has other letters than a to z"
            searched = _guard(text, r"[^\x00-\x7F]", self._failure_text(reason), searched)
        if self._ends and not self._only_matched:
            reason = "looks for $ in a text that ends with a line break"
            searched = _guard(text, rf"[{_BREAKS}]\z", self._failure_text(reason), searched)
        return searched

    def refuse_empty(self) -> None:
        """Refuse a pattern that matches the empty text: hosts differ in where they find it."""
        try:
            empty = re.match(self.java.replace(r"\z", r"\Z"), "")
        except re.error:
            empty = None
        if empty is not None:
            raise BindProblem(f"the pattern {self.java!r} matches no text at all", fix="let it match one character")

    def _failure_text(self, reason: str) -> str:
        return f"the pattern {self.java} {reason}"

    def _refusal(self, what: str) -> BindProblem:
        return BindProblem(
            f"the pattern {self.java!r} has {what}, which not every host knows", fix="write it otherwise"
        )

    def _token(self, body: str, place: int) -> tuple[str, int]:
        found = _TOKEN.match(body, place)
        assert found is not None
        text = found[0]
        if found["special"]:
            raise self._refusal(f"{body[place : place + 4]}...")
        if found["possessive"]:
            raise self._refusal(text)
        if found["open"]:
            self.groups += 1
        return self._translate_token(text, found["escape"]), found.end()

    def _translate_token(self, text: str, escape: str | None) -> str:
        """Translate one token outside classes."""
        if escape is not None:
            return self._translate_escape(escape)
        if text == ".":
            return f"[^{_BREAKS}]"
        if text == "$":
            self._ends = True
            return rf"(?:\r\n|[{_BREAKS}])?\z" if self._only_matched else r"\z"
        if text == "^":
            return r"\A"
        if self._folded and text.isascii() and text.isalpha():
            return f"[{text.lower()}{text.upper()}]"
        return text

    def _translate_escape(self, letter: str) -> str:
        match letter:
            case "s":
                return f"[{_SPACE}]"
            case "S":
                return f"[^{_SPACE}]"
            case "b":
                self._words = True
                return r"\b"
        if letter in _ALIKE or not letter.isalnum():
            return f"\\{letter}"
        raise self._refusal(f"\\{letter}")

    def _class(self, body: str, place: int) -> tuple[str, int]:
        """Translate a class in brackets; nested and intersected classes exist in Java only."""
        end = place + 1 + body.startswith("^", place + 1)
        end += body.startswith("]", end)
        while end < len(body) and body[end] != "]":
            if body[end] == "[" or body.startswith("&&", end):
                raise self._refusal("a class within a class")
            end += 1 + (body[end] == "\\")
        if end >= len(body):
            raise BindProblem(f"the pattern {self.java!r} has a bracket that is not closed", fix="add ]")
        inner = body[place + 1 : end]
        if re.search(r"\\[bBShHvVRXGZ]", inner):
            raise self._refusal("an escape in brackets")
        inner = inner.replace(r"\s", _SPACE)
        if self._folded:
            ranges = re.findall(r"(?<!\\)[a-zA-Z](?:-[a-zA-Z])?", inner)
            inner += "".join(each.swapcase() for each in ranges)
        return f"[{inner}]", end + 1


def replacement(java: str, groups: int) -> str:
    """The replacement text, with Java's $1 as RE2's \\1."""
    parts, place = [], 0
    while place < len(java):
        character = java[place]
        if character == "\\" and place + 1 < len(java):
            parts.append(_plain(java[place + 1]))
            place += 2
        elif character == "$":
            number = re.match(r"\d", java[place + 1 :])
            if number is None or int(number[0]) > groups:
                raise BindProblem(f"{java!r} names a group that is not there", fix=r"write $1, or \\$ for a dollar")
            parts.append(f"\\{number[0]}")
            place += 2
        else:
            parts.append(_plain(character))
            place += 1
    return "".join(parts)


def _plain(character: str) -> str:
    return "\\\\" if character == "\\" else character


def _guard(text: str, odd: str, reason: str, searched: str) -> str:
    bad = error_call(reason, "filter such texts out, or change the pattern")
    return f"CASE WHEN regexp_matches({text}, {duckdb_text(odd)}) THEN {bad} ELSE {searched} END"
