"""What one client may ask of a server."""

from __future__ import annotations

from dataclasses import dataclass, fields

from panewise.core.errors import PanewiseError


class TooLarge(PanewiseError):
    """A request or its answer is larger than the server allows."""


class Busy(PanewiseError):
    """More is asked of the server than it can do; later it may."""


@dataclass(frozen=True)
class Limits:
    """The most of everything; whoever needs more asks several times."""

    #: Windows in one lookup.
    windows: int = 10_000
    #: Groups that one lookup may name.
    keys: int = 10_000
    #: Windows times groups that one lookup may look at.
    cells: int = 20_000_000
    #: Rows of one answer.
    rows: int = 200_000
    #: Bytes of one answer.
    bytes: int = 64 << 20
    #: The longest stretch of time that a window may reach over, in ticks; None for any.
    reach: int | None = None
    #: Bytes of the body of a request.
    body: int = 1 << 20
    #: Characters of a query.
    text: int = 10_000
    #: Seconds that one lookup may take.
    seconds: int = 10
    #: Bytes of memory that the expressions of one text may take.
    memory: int = 512 << 20
    #: Long lookups of queries that stand that are answered at once; the others wait.
    lookups: int = 2
    #: Lookups by text that are answered at once, and those that wait for one of these; one more is sent away.
    texts: int = 2
    queue: int = 16
    #: Queries that clients may register.
    queries: int = 100
    #: Clients that listen to events at once.
    listeners: int = 100
    #: Events that wait for a client that is slow to take them; one more, and it is sent away.
    waiting: int = 64

    def __post_init__(self) -> None:
        for each in fields(self):
            value = getattr(self, each.name)
            if value is not None and (not isinstance(value, int) or value < 1):
                raise PanewiseError(f"limit {each.name} is {value!r}", fix="use a whole number above zero")
