"""`pw.serve.LookupServer`: reads pane logs and answers lookups over HTTP."""

from __future__ import annotations

import asyncio
import faulthandler
import gc
import socket
import sys
import threading
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType, TracebackType
from typing import Any, cast

import uvicorn

from panewise.core.errors import PanewiseError, SourceProblem, StateProblem
from panewise.core.time import DurationLike
from panewise.runtime.log_readers import LogReaders
from panewise.runtime.signals import signals
from panewise.serve.app import application
from panewise.serve.connections import Connections, most_connections
from panewise.serve.events import HEARTBEAT, EventHub
from panewise.serve.guard import Guard, check_token
from panewise.serve.limits import Limits
from panewise.serve.scheduler import LookupScheduler

#: Seconds that requests may still take once the server stops.
GRACE_SECONDS = 5
#: Seconds that a thread may run while the event loop, which serves all clients, waits for Python's lock.
SWITCH_INTERVAL = 0.0005
#: Seconds after which the process ends, whatever it does.
HARD_STOP_SECONDS = 8


class LookupServer:
    """A server for one or more pane logs. As a context manager it runs in a thread of its own.

    `keep` is how far back lookups may reach, a duration; everything by default. Logs are polled every `poll` seconds,
    and need not exist yet. By default only this machine can reach the server; `token` is needed to register queries,
    and for every request if other machines can reach `host`. Port 0 is any free one.
    """

    def __init__(
        self,
        *logs: str | Path,
        host: str = "127.0.0.1",
        port: int = 0,
        token: str | None = None,
        keep: DurationLike | None = None,
        poll: float = 0.5,
        limits: Limits | None = None,
        heartbeat: float = HEARTBEAT,
    ) -> None:
        if not logs:
            raise PanewiseError("there is no pane log to serve", fix="name the folder that PANES INTO writes")
        if poll <= 0 or heartbeat <= 0:
            raise PanewiseError("poll and heartbeat are not above zero", fix="use seconds such as 0.5")
        self._token, self._limits = check_token(token, host), limits or Limits()
        self._address = (host, port)
        self._readers = LogReaders(logs, keep)
        self._hub = EventHub(self._readers, self._limits)
        self._scheduler = LookupScheduler(self._limits)
        app = application(self._readers, self._hub, self._scheduler, self._limits, poll, heartbeat)
        self._app = Guard(app, self._token, host, self._limits.body)
        self._socket: socket.socket | None = None
        self._server: _Server | None = None
        self._thread: threading.Thread | None = None

    @property
    def url(self) -> str:
        """The address of the server."""
        if self._socket is None:
            raise StateProblem("the server does not listen", fix="start it first")
        host, port = self._socket.getsockname()[:2]
        return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"

    def listen(self) -> socket.socket:
        """Bind the address, so that it is known; nothing is answered yet."""
        if self._socket is not None:
            raise StateProblem("the server listens already", fix="stop it first")
        host, port = self._address
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        try:
            self._socket = socket.create_server((host, port), family=family, backlog=1024)
        except OSError as problem:
            raise SourceProblem(
                f"{host}:{port} cannot be listened on: {problem.strerror}", fix="choose another port"
            ) from None
        # Heads and bodies are sent separately; without this a body would wait until its head has been acknowledged.
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return self._socket

    def run(self) -> None:
        """Serve until SIGINT or SIGTERM."""
        listening = self._socket or self.listen()
        # The present objects stay: searching them for garbage would take a tenth of a second now and then.
        gc.freeze()
        sys.setswitchinterval(SWITCH_INTERVAL)
        try:
            self._build_server().run([listening])
        finally:
            faulthandler.cancel_dump_traceback_later()

    def start(self) -> LookupServer:
        """Serve in a thread of its own; when this returns, the server listens and has read its logs."""
        listening, server = self.listen(), self._build_server()
        self._thread = threading.Thread(target=server.run, args=([listening],), name="panewise-serve", daemon=True)
        self._thread.start()
        while not server.started:
            if not self._thread.is_alive():
                raise StateProblem("the server did not start", fix="see its log")
            time.sleep(0.01)
        return self

    def stop(self) -> None:
        """Wait for running requests, and stop."""
        if self._server is not None and self._thread is not None:
            self._server.should_exit = True
            self._thread.join(2 * GRACE_SECONDS)
        if self._socket is not None:
            self._socket.close()
        self._server = self._thread = self._socket = None

    def __enter__(self) -> LookupServer:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, where: TracebackType | None
    ) -> None:
        self.stop()

    def _build_server(self) -> _Server:
        most = most_connections()
        config = uvicorn.Config(
            self._app,
            access_log=False,  # paths hold keys, which may be private
            log_level="warning",
            server_header=False,
            proxy_headers=False,
            http=cast(type[asyncio.Protocol], Connections(most).protocol),
            limit_concurrency=2 * most,
            timeout_graceful_shutdown=GRACE_SECONDS,
            lifespan="on",
        )
        self._server = _Server(config, self._hub, self._scheduler)
        return self._server


class _Server(uvicorn.Server):
    """Disconnects event clients first, which would stay for ever, and ends without an error when asked to stop."""

    def __init__(self, config: uvicorn.Config, hub: EventHub, scheduler: LookupScheduler) -> None:
        super().__init__(config)
        self._hub, self._scheduler = hub, scheduler

    @contextmanager
    def capture_signals(self) -> Generator[None]:
        with signals(self._on_stop_signal):
            yield

    def _on_stop_signal(self, number: int, frame: FrameType | None) -> None:
        # Not even a call that never returns to Python can delay this.
        faulthandler.dump_traceback_later(HARD_STOP_SECONDS, exit=True)
        self.handle_exit(number, frame)

    async def shutdown(self, sockets: Any = None) -> None:
        self._hub.close()
        self._scheduler.close()
        await super().shutdown(sockets)
