"""Limits on connections: a client that sends no request, sends it too slowly or does not read its answer is cut off,
and first of all when there is no room for another client.

Uvicorn waits for ever for the first request of a connection and for the rest of one that has begun.
"""

from __future__ import annotations

import asyncio
import resource
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol

#: The most connections at once, and how many files the process needs for itself.
MAX_CONNECTIONS, RESERVED_FILES = 2048, 128
#: Seconds within which a complete request must arrive, from the connection or the answer before.
REQUEST_TIMEOUT = 10.0
#: Bytes of an answer that a client must read in that time, at least.
MIN_PROGRESS = 1 << 16


def most_connections() -> int:
    """The number of connections that there is room for."""
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return max(min(MAX_CONNECTIONS, files - RESERVED_FILES), 1) if files != resource.RLIM_INFINITY else MAX_CONNECTIONS


class Connections:
    """All connections of one server; those that wait for a complete request are in a queue, the oldest first."""

    def __init__(self, most: int, patience: float = REQUEST_TIMEOUT) -> None:
        self.most, self.patience = most, patience
        self._all: set[Connection] = set()
        self._waiting: dict[Connection, float] = {}
        self._sweeping = False

    def protocol(self, **arguments: Any) -> Connection:
        """The protocol object that uvicorn makes for a new connection."""
        return Connection(self, **arguments)

    def add(self, connection: Connection) -> None:
        """Add a connection; if there is no room, the one that has waited longest is cut."""
        self._all.add(connection)
        self.mark_waiting(connection)
        if len(self._all) > self.most:
            self.cut(next(iter(self._waiting)))

    def mark_waiting(self, connection: Connection) -> None:
        """Record that the connection waits for a request."""
        self._waiting.pop(connection, None)
        self._waiting[connection] = connection.loop.time()
        if not self._sweeping:
            self._sweeping = True
            connection.loop.call_later(self.patience / 10, self._sweep, connection.loop)

    def mark_busy(self, connection: Connection) -> None:
        """Record that a complete request has arrived."""
        self._waiting.pop(connection, None)

    def remove(self, connection: Connection) -> None:
        self._all.discard(connection)
        self._waiting.pop(connection, None)

    def cut(self, connection: Connection) -> None:
        """Close a connection at once, without waiting for its client."""
        self.remove(connection)
        connection.transport.abort()

    def _sweep(self, loop: asyncio.AbstractEventLoop) -> None:
        """Cut connections that have waited too long, and schedule the next sweep while any are left."""
        late = loop.time() - self.patience
        while self._waiting and next(iter(self._waiting.values())) <= late:
            self.cut(next(iter(self._waiting)))
        self._sweeping = bool(self._waiting)
        if self._sweeping:
            loop.call_later(self.patience / 10, self._sweep, loop)


class Connection(H11Protocol):
    """One connection, which reports whether it waits or is busy."""

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

    # ---- answers that are not read ------------------------------------------------------------------------------

    def pause_writing(self) -> None:
        super().pause_writing()
        self._check_progress(self.transport.get_write_buffer_size() + MIN_PROGRESS)

    def resume_writing(self) -> None:
        self._cancel_check()
        super().resume_writing()

    def _check_progress(self, before: int) -> None:
        """Cut the client off if it has read next to nothing since the last check."""
        left = self.transport.get_write_buffer_size()
        if before - left < MIN_PROGRESS:
            self._room.cut(self)
        else:
            self._taking = self.loop.call_later(self._room.patience, self._check_progress, left)

    def _cancel_check(self) -> None:
        if self._taking is not None:
            self._taking.cancel()
            self._taking = None
