"""Connections that cost nothing: whoever connects and does not ask, or asks too slowly, or does not take his answer, is
cut off, and first of all when there is no room for somebody else.

Uvicorn waits for ever for the first request of a connection and for the rest of one that has begun.
"""

from __future__ import annotations

import asyncio
import resource
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol

#: Connections at once, and files that a process needs for itself.
MAX_CONNECTIONS, RESERVED_FILES = 2048, 128
#: Seconds within which a request must have come whole, from the connection or the answer before.
REQUEST_TIMEOUT = 10.0
#: Bytes of an answer that a client must take in that time, at least.
MIN_PROGRESS = 1 << 16


def most_connections() -> int:
    """How many connections there is room for."""
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return max(min(MAX_CONNECTIONS, files - RESERVED_FILES), 1) if files != resource.RLIM_INFINITY else MAX_CONNECTIONS


class Connections:
    """All connections of one server; those that wait for a whole request stand in line, the oldest first."""

    def __init__(self, most: int, patience: float = REQUEST_TIMEOUT) -> None:
        self.most, self.patience = most, patience
        self._all: set[Connection] = set()
        self._waiting: dict[Connection, float] = {}
        self._sweeping = False

    def protocol(self, **arguments: Any) -> Connection:
        """What uvicorn makes of one more connection."""
        return Connection(self, **arguments)

    def add(self, connection: Connection) -> None:
        """Somebody has connected; where there is no room, whoever has waited longest goes."""
        self._all.add(connection)
        self.mark_waiting(connection)
        if len(self._all) > self.most:
            self.cut(next(iter(self._waiting)))

    def mark_waiting(self, connection: Connection) -> None:
        """From now on a request is waited for."""
        self._waiting.pop(connection, None)
        self._waiting[connection] = connection.loop.time()
        if not self._sweeping:
            self._sweeping = True
            connection.loop.call_later(self.patience / 10, self._sweep, connection.loop)

    def mark_busy(self, connection: Connection) -> None:
        """A request has come whole."""
        self._waiting.pop(connection, None)

    def remove(self, connection: Connection) -> None:
        self._all.discard(connection)
        self._waiting.pop(connection, None)

    def cut(self, connection: Connection) -> None:
        """Cut a connection off, without waiting until its client takes notice."""
        self.remove(connection)
        connection.transport.abort()

    def _sweep(self, loop: asyncio.AbstractEventLoop) -> None:
        """Cut off who has waited too long, and look again later as long as there is anybody."""
        late = loop.time() - self.patience
        while self._waiting and next(iter(self._waiting.values())) <= late:
            self.cut(next(iter(self._waiting)))
        self._sweeping = bool(self._waiting)
        if self._sweeping:
            loop.call_later(self.patience / 10, self._sweep, loop)


class Connection(H11Protocol):
    """One connection, which says what it is at."""

    def __init__(self, room: Connections, **arguments: Any) -> None:
        super().__init__(**arguments)
        self._room = room
        self._taking: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self._room.add(self)

    def connection_lost(self, exc: Exception | None) -> None:
        self._room.remove(self)
        self._cancel_check()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._update_state()

    def on_response_complete(self) -> None:
        self._room.mark_waiting(self)
        super().on_response_complete()
        self._update_state()

    def _update_state(self) -> None:
        if self.cycle is not None and not self.cycle.more_body and not self.cycle.response_complete:
            self._room.mark_busy(self)

    # ---- answers that are not taken ----------------------------------------------------------------------------

    def pause_writing(self) -> None:
        super().pause_writing()
        self._check_progress(self.transport.get_write_buffer_size() + MIN_PROGRESS)

    def resume_writing(self) -> None:
        self._cancel_check()
        super().resume_writing()

    def _check_progress(self, before: int) -> None:
        """Cut the client off if it has taken next to nothing since the last look."""
        left = self.transport.get_write_buffer_size()
        if before - left < MIN_PROGRESS:
            self._room.cut(self)
        else:
            self._taking = self.loop.call_later(self._room.patience, self._check_progress, left)

    def _cancel_check(self) -> None:
        if self._taking is not None:
            self._taking.cancel()
            self._taking = None
