"""What every clause between brackets is: read from tokens, printed again as it was written, and bound to a stream."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

import pyarrow as pa

from panewise.core.errors import PanewiseError, Place, WindowProblem, did_you_mean
from panewise.core.schema import StreamSchema
from panewise.core.time import Domain, Duration, Instant
from panewise.cql.scope import Scope
from panewise.cql.tokens import Cursor, word
from panewise.frame.frame import Frame
from panewise.window import Window

#: How the clause that begins with a word is read; the cursor is after that word.
READERS: dict[str, Callable[[Cursor, str], WindowClause]] = {}


@dataclass(frozen=True)
class WindowClause(ABC):
    """A window between brackets. `places` has the place of each duration, instant, count and name in it.

    A subclass is registered for the `words` with which its clause may begin.
    """

    place: Place | None = field(default=None, compare=False, repr=False, kw_only=True)
    places: Mapping[str, Place] = field(default_factory=dict, compare=False, repr=False, kw_only=True)

    def __init_subclass__(cls, words: tuple[str, ...] = ()) -> None:
        READERS.update(dict.fromkeys(words, cls.read))

    @classmethod
    @abstractmethod
    def read(cls, cursor: Cursor, opening: str) -> WindowClause:
        """The clause that follows its opening word."""

    @abstractmethod
    def bind(self, binder: ClauseBinder) -> Window | Frame:
        """The window or the frames of the clause, in ticks and with the columns of its stream."""

    @abstractmethod
    def text(self) -> str:
        """The clause without its brackets; reading it gives the same clause again."""


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
    clause = reader(cursor, opening)
    cursor.expect_end()
    return replace(clause, place=place, places=cursor.places)


def bind_clause(clause: WindowClause, scope: Scope, schema: StreamSchema) -> Window | Frame:
    """The window or the frames that a clause means for a stream whose columns are in scope."""
    integer = schema.domain is Domain.INTEGER
    time_type = pa.int64() if integer else pa.timestamp("us", schema.schema.field(schema.time).type.tz)
    with errors_at(clause.place):
        return clause.bind(ClauseBinder(scope, schema.domain, time_type, clause))


@dataclass(frozen=True)
class ClauseBinder:
    """Binds the parts of one clause: columns of its stream, and durations and instants in its time domain."""

    scope: Scope
    domain: Domain
    time_type: pa.DataType
    clause: WindowClause

    def place_of(self, part: object) -> Place | None:
        """Where a part of the clause was written."""
        return self.clause.places.get(str(part))

    def column(self, name: str) -> str:
        """The column of a name that was written in the clause."""
        return self.scope.find(name, None, self.place_of(name) or self.clause.place).name

    def length(self, name: str, duration: Duration, least: int = 1) -> int:
        """A duration of at least one tick, or of zero ticks where that makes sense."""
        try:
            ticks = duration.ticks(self.domain)
        except PanewiseError as problem:
            raise problem.at(self.place_of(duration)) from None
        if ticks < least:
            message = f"{name} {duration} is {'not positive' if least else 'negative'}"
            fix = f"use {'more than zero' if least else 'zero or more'}"
            raise WindowProblem(message, fix=fix, place=self.place_of(duration))
        return ticks

    def instant(self, value: str | int | None) -> Instant | None:
        """The instant that was written, if there is one."""
        if value is None:
            return None
        with errors_at(self.place_of(value)):
            return Instant.parse(value, self.domain)


@contextmanager
def errors_at(place: Place | None) -> Iterator[None]:
    """Give errors without a place this place."""
    try:
        yield
    except PanewiseError as problem:
        raise problem.at(place) from None
