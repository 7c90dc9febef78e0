"""The limits of what one client may request of a server."""

from __future__ import annotations

from dataclasses import dataclass, fields

from panewise.core.errors import PanewiseError


class TooLarge(PanewiseError):
    """A request or its answer is larger than the server allows."""


class Busy(PanewiseError):
    """The server has more requests than it can serve; a later attempt may succeed."""


@dataclass(frozen=True)
class Limits:
    """The limits of a server; a client that needs more sends several requests."""

    #: Windows in one lookup.
    windows: int = 10_000
    #: Groups that one lookup may name.
    keys: int = 10_000
    #: Windows times groups that one lookup may read.
    cells: int = 20_000_000
    #: Rows of one answer.
    rows: int = 200_000
    #: Bytes of one answer.
    bytes: int = 64 << 20
    #: The longest stretch of time that a window may cover, in ticks; None for any.
    reach: int | None = None
    #: Bytes of the body of a request.
    body: int = 1 << 20
    #: Characters of a query.
    text: int = 10_000
    #: Seconds that one lookup may take.
    seconds: int = 10
    #: Bytes of memory that the expressions of one text may take.
    memory: int = 512 << 20
    #: Long lookups of registered queries that are answered at once; the others wait.
    lookups: int = 2
    #: Lookups by text that are answered at once, and those that wait for one of these; further ones are refused.
    texts: int = 2
    queue: int = 16
    #: Queries that clients may register.
    queries: int = 100
    #: Clients that listen to events at once.
    listeners: int = 100
    #: Events in the queue of a slow client; with one more it is disconnected.
    waiting: int = 64

    def __post_init__(self) -> None:
        for each in fields(self):
            value = getattr(self, each.name)
            if value is not None and (not isinstance(value, int) or value < 1):
                raise PanewiseError(f"limit {each.name} is {value!r}", fix="use a whole number above zero")
