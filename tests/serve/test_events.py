"""Continuous results: every instant once and in order, and nobody waits for a slow client."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

import panewise as pw
from panewise.serve import Limits

from .logs import Writer, ask, ordered, rows
from .test_lookups import until

pytestmark = pytest.mark.slow


class Client:
    """Reads events from a socket."""

    def __init__(self, url: str, path: str, last: int | None = None, buffer: int | None = None) -> None:
        host, port = url.removeprefix("http://").split(":")
        self.socket = socket.socket()
        if buffer is not None:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer)
        self.socket.settimeout(10)
        self.socket.connect((host, int(port)))
        resume = f"Last-Event-ID: {last}\r\n" if last is not None else ""
        self.socket.sendall(f"GET {path} HTTP/1.1\r\nHost: localhost\r\n{resume}\r\n".encode())
        self.file = self.socket.makefile("rb")

    def lines(self) -> Iterator[str]:
        """What comes, without the sizes of chunks."""
        ending = time.monotonic() + 10
        for line in self.file:
            assert time.monotonic() < ending, "too little came"
            yield line.decode().rstrip("\r\n")

    def events(self, count: int) -> list[tuple[int, dict[str, Any]]]:
        found: list[tuple[int, dict[str, Any]]] = []
        name = None
        for line in self.lines():
            if line.startswith("id: "):
                name = int(line[4:])
            if line.startswith("data: ") and name is not None:
                found.append((name, json.loads(line[6:])))
                if len(found) == count:
                    return found
        raise AssertionError(f"only {len(found)} events came")

    def close(self) -> None:
        self.file.close()
        self.socket.close()


@contextmanager
def served(writer: Writer, **settings: Any) -> Iterator[str]:
    with pw.serve.LookupServer(writer.folder, poll=0.02, **settings) as server:
        yield server.url


def test_every_instant_that_becomes_final_is_said(folder: Path) -> None:
    writer = Writer(folder).write(rows(0, 40))
    with served(writer, heartbeat=0.05) as url, closing(Client(url, "/queries/q/events")) as client:
        assert client.events(1)[0][0] == 35
        assert ": still here" in client.lines()
        writer.write(rows(40, 62))
        events = client.events(5)
        assert [instant for instant, _ in events] == [40, 45, 50, 55, 60]
        for instant, event in events:
            assert ordered(event["rows"]) == ordered([row for row in writer.results() if row["w_end"] == instant])
        with closing(Client(url, "/queries/q/events?key=k1", last=45)) as again:
            assert [(i, [row["k"] for row in e["rows"]]) for i, e in again.events(3)] == [
                (50, ["k1"]),
                (55, ["k1"]),
                (60, ["k1"]),
            ]


def test_events_of_nothing(url: str) -> None:
    assert ask(url, "/queries/none/events").status == 404


def test_a_slow_client_is_sent_away_and_others_are_not_kept_waiting(folder: Path) -> None:
    """Each event has about 200 kB, of long keys; the slow client never reads."""
    writer = Writer(folder).write(rows(0, 40, 50, "k" * 4000))
    with served(writer, limits=Limits(waiting=4)) as url:
        with closing(Client(url, "/queries/q/events", buffer=4096)), closing(Client(url, "/queries/q/events")) as quick:
            assert quick.events(1)[0][0] == 35
            for first in range(40, 240, 20):
                writer.write(rows(first, first + 20, 50, "k" * 4000))
                start = time.monotonic()
                assert [instant for instant, _ in quick.events(4)] == list(range(first, first + 20, 5))
                assert time.monotonic() - start < 5
            until(lambda: listening(url) == 1)
        until(lambda: listening(url) == 0)


def listening(url: str) -> int:
    return int(ask(url, "/health").json["listeners"])


def test_stopping_ends_the_events_and_too_many_are_refused(writer: Writer) -> None:
    server = pw.serve.LookupServer(writer.folder, limits=Limits(listeners=1)).start()
    with closing(Client(server.url, "/queries/q/events")) as client:
        client.events(1)
        assert ask(server.url, "/queries/q/events").status == 422
        start = time.monotonic()
        server.stop()
        assert time.monotonic() - start < 4
        assert list(client.lines())[-2:] == ["0", ""]
