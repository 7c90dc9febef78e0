"""Errors, in one sentence that names the place, the value and the way out."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Place:
    """Where in a query text a problem lies; lines and columns count from one."""

    line: int
    column: int
    clause: str | None = None


class PanewiseError(Exception):
    """Base of every error Panewise raises on purpose: catch this one.

    `message` names what is wrong and the value, `fix` what to write instead, and `place` the line and the column.
    `row` is the row on which an expression failed.
    """

    row: Mapping[str, Any] | None = None

    def __init__(self, message: str, *, fix: str | None = None, place: Place | None = None) -> None:
        self.message = message
        self.fix = fix
        self.place = place
        super().__init__(message)

    def at(self, place: Place | None) -> PanewiseError:
        """The same error with a place, unless it already has one or none is given."""
        return self if self.place or place is None else type(self)(self.message, fix=self.fix, place=place)

    def __str__(self) -> str:
        where = ""
        if self.place:
            clause = f", in {self.place.clause}" if self.place.clause else ""
            where = f"line {self.place.line}, column {self.place.column}{clause}: "
        return f"{where}{self.message}{'; ' + self.fix if self.fix else ''}"


def did_you_mean(name: str, known: Iterable[str], otherwise: str = "use one of {}") -> str:
    """The suggestion for an unknown name: the name that was probably meant, or all names.

    >>> did_you_mean("pricee", ["price", "volume"])
    "did you mean 'price'?"
    """
    by_case = {word.lower(): word for word in known}
    close = difflib.get_close_matches(name.lower(), by_case, n=1, cutoff=0.7)
    if close:
        return f"did you mean {by_case[close[0]]!r}?"
    return (otherwise if len(by_case) > 1 else otherwise.replace("one of ", "")).format(", ".join(by_case.values()))


class SyntaxProblem(PanewiseError):
    """The query text cannot be read."""


class BindProblem(PanewiseError):
    """The query text can be read, but names or types in it do not fit the streams."""


class WindowProblem(PanewiseError):
    """A window specification contradicts itself."""


class TimeProblem(PanewiseError):
    """A duration or an instant cannot be understood in the stream's time domain."""


class SchemaProblem(PanewiseError):
    """A table or a stream declaration does not fit its use."""


class AggregateProblem(PanewiseError):
    """An aggregate cannot take these values or arguments."""


class PlanProblem(PanewiseError):
    """A plan asks a structure for something its laws do not allow."""


class SourceProblem(PanewiseError):
    """A file or address cannot be read or written."""


class LimitExceeded(PanewiseError):
    """The work takes longer, or more memory, than it may."""

    #: No row is the cause.
    row: Mapping[str, Any] | None = {}


class StateProblem(PanewiseError):
    """A snapshot that cannot be taken or restored."""


@dataclass(frozen=True)
class Failure:
    """One registered query that failed on its input, and why."""

    query: str
    problem: PanewiseError

    @property
    def reason(self) -> str:
        return str(self.problem)

    @property
    def row(self) -> dict[str, str]:
        """The row on which it failed, as far as it is known: values as text, long ones cut off."""
        return row_texts(self.problem.row or {})

    def __str__(self) -> str:
        on = ", ".join(f"{name}={value}" for name, value in self.row.items())
        return f"query {self.query!r} fails{f' on {on}' if on else ''}: {self.problem.message}"


class QueryProblem(PanewiseError):
    """Registered queries failed on their input. The others lose nothing, and continue once these have been removed."""

    def __init__(self, failures: Sequence[Failure]) -> None:
        self.failures = tuple(failures)
        first, *others = self.failures
        more = f" (and so do {', '.join(repr(each.query) for each in others)})" if others else ""
        super().__init__(f"{first}{more}", fix=first.problem.fix)

    def at(self, place: Place | None) -> PanewiseError:
        """The same error: its cause is in the input, not in a text."""
        return self


class PackageProblem(PanewiseError, ImportError):
    """A package is missing that only a part of Panewise needs."""


@contextmanager
def require_extra(name: str, user: str) -> Iterator[None]:
    """A context for imports of packages that one of our extras installs; the error names the extra."""
    try:
        yield
    except ModuleNotFoundError as problem:
        raise PackageProblem(
            f"{user} needs the package {problem.name!r}", fix=f"pip install 'panewise[{name}]'"
        ) from None


#: No value of a row is shown longer than this.
_MAX_VALUE_LENGTH = 200


def row_texts(row: Mapping[str, Any]) -> dict[str, str]:
    """A row as text, long values cut off."""
    texts = {name: repr(value) if isinstance(value, str | bytes) else str(value) for name, value in row.items()}
    return {
        name: text if len(text) <= _MAX_VALUE_LENGTH else f"{text[:_MAX_VALUE_LENGTH]}..."
        for name, text in texts.items()
    }


class PanewiseWarning(UserWarning):
    """Something was done that may not have been meant; `warnings.simplefilter("error", PanewiseWarning)` refuses it."""
