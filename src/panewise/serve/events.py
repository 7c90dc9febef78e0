"""Continuous results as server-sent events: the answer of a query at each instant that becomes final.

The queue of a client holds instants, not answers, so that a slow client costs a few numbers. A client with too many
instants in its queue, or one that takes too long to accept an event, is disconnected, without effect on others.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, MutableMapping, Sequence
from typing import Any

import numpy as np
from starlette.responses import Response

from panewise.core.errors import BindProblem, PanewiseError
from panewise.core.time import floor_to_grid
from panewise.plan import PanePlan
from panewise.runtime.log_readers import LogReaders
from panewise.serve.limits import Limits
from panewise.serve.scheduler import run_in_thread

log = logging.getLogger("panewise.serve")

#: Seconds between heartbeats, and seconds that a client may take to accept an event.
HEARTBEAT, SEND_TIMEOUT = 15.0, 10.0


class EventClient:
    """One client: the instants that it has not received yet."""

    def __init__(self, query: str, since: int | None, waiting: int) -> None:
        self.query, self.last_sent = query, since
        #: None ends the stream.
        self.instants: asyncio.Queue[int | None] = asyncio.Queue(waiting)
        #: Set once nothing more can be sent.
        self.over = asyncio.Event()
        self.slow = False

    def queue_instant(self, instant: int | None) -> None:
        """Put an instant into the queue, or disconnect the client if the queue is full."""
        try:
            self.instants.put_nowait(instant)
            self.last_sent = instant
        except asyncio.QueueFull:
            self.drop()

    def drop(self) -> None:
        """Disconnect the client."""
        self.slow = True
        self.over.set()


class EventHub:
    """All event clients of a server."""

    def __init__(self, readers: LogReaders, limits: Limits) -> None:
        self._readers, self._limits = readers, limits
        self.listeners: set[EventClient] = set()
        self._closed = False

    async def join(self, query: str, since: int | None) -> EventClient:
        """Add a client; `since` is the last instant that it received."""
        if len(self.listeners) >= self._limits.listeners or self._closed:
            raise BindProblem("too many clients are listening", fix="try again later")
        listener = EventClient(query, since, self._limits.waiting)
        self.listeners.add(listener)
        await self._queue_instants([listener])
        return listener

    def leave(self, listener: EventClient) -> None:
        self.listeners.discard(listener)

    async def publish(self) -> None:
        """Queue new instants for all clients."""
        await self._queue_instants(list(self.listeners))

    def close(self) -> None:
        """Disconnect all clients."""
        self._closed = True
        for listener in list(self.listeners):
            listener.queue_instant(None)

    async def _queue_instants(self, listeners: Sequence[EventClient]) -> None:
        """Queue instants outside the event loop, since a log may be locked."""
        found = await run_in_thread(lambda: [self._new_instants(listener) for listener in listeners])
        for listener, instants in zip(listeners, found, strict=True):
            for instant in instants:
                listener.queue_instant(instant)

    def _new_instants(self, listener: EventClient) -> Sequence[int | None]:
        """The new instants for a client; None if its query does not exist any more."""
        try:
            reader, text = self._readers.find_log(listener.query)
            contents = reader.begun_contents
            plan = contents.plan_query(text)
            return _instants_since(contents.final, plan, listener.last_sent, self._limits.waiting)
        except PanewiseError:
            return [None]


def _instants_since(final: int | None, plan: PanePlan, last_sent: int | None, most: int) -> list[int]:
    """The instants that have become final since the one sent last, at most `most`; the newest one if none was sent."""
    if final is None:
        return []
    grids = [window.grid for _, window in plan.levels]
    origin, step = min((grid for grid in grids if grid is not None), key=lambda grid: grid[1], default=(0, 0))
    if not step:
        return [final] if last_sent is None or last_sent < final else []
    newest = int(floor_to_grid(np.array([final]), origin, step)[0])
    if last_sent is None:
        return [newest]
    first = int(floor_to_grid(np.array([last_sent]), origin, step)[0]) + step
    return list(range(max(first, newest - (most - 1) * step), newest + 1, step))


class EventStream(Response):
    """The events of one client, as long as it is connected."""

    def __init__(
        self, hub: EventHub, listener: EventClient, encode: Callable[[int], Awaitable[bytes]], heartbeat: float
    ) -> None:
        super().__init__(media_type="text/event-stream", headers={"cache-control": "no-store"})
        self._hub, self._listener, self._encode, self._heartbeat = hub, listener, encode, heartbeat

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        headers = [(name, value) for name, value in self.raw_headers if name != b"content-length"]
        gone = asyncio.ensure_future(self._wait_for_disconnect(receive))
        over = asyncio.ensure_future(self._listener.over.wait())
        try:
            await send({"type": "http.response.start", "status": 200, "headers": headers})
            more = True
            while more and not over.done():
                body, more = await self._next_event(over)
                await self._send(send({"type": "http.response.body", "body": body, "more_body": more}), over)
        finally:
            gone.cancel()
            over.cancel()
            self._hub.leave(self._listener)
            if self._listener.slow:
                log.info("a client that listened to %s was too slow and is sent away", self._listener.query)

    async def _next_event(self, over: asyncio.Future[Any]) -> tuple[bytes, bool]:
        """The next event, or a heartbeat; and whether more may come."""
        waiting = asyncio.ensure_future(self._listener.instants.get())
        await asyncio.wait({waiting, over}, timeout=self._heartbeat, return_when=asyncio.FIRST_COMPLETED)
        if not waiting.done():
            waiting.cancel()
            return b": still here\n\n", True
        instant = waiting.result()
        return (b"", False) if instant is None else (await self._encode(instant), True)

    async def _send(self, sending: Awaitable[None], over: asyncio.Future[Any]) -> None:
        """Send to the client, but do not wait for ever until it accepts."""
        task = asyncio.ensure_future(sending)
        await asyncio.wait({task, over}, timeout=SEND_TIMEOUT, return_when=asyncio.FIRST_COMPLETED)
        if not task.done():
            task.cancel()
            self._listener.drop()

    async def _wait_for_disconnect(self, receive: Callable[[], Awaitable[MutableMapping[str, Any]]]) -> None:
        """Wait until the client disconnects."""
        while (await receive())["type"] != "http.disconnect":
            pass
        self._listener.over.set()
