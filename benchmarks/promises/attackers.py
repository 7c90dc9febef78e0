"""Clients that try to keep a lookup server from everybody else, in a process of their own.

`python -m benchmarks.promises.attackers PORT KIND SECONDS` talks to 127.0.0.1 only, and ends after so many seconds.
"""

from __future__ import annotations

import itertools
import json
import resource
import socket
import sys
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack, suppress

WINDOW = "FROM S [RANGE 600 SLIDE 10] GROUP BY k"
CLIENTS = 8
_NUMBERS = itertools.count()


def exchanged(count: int) -> str:
    """Letters of a long text exchanged, again and again: a tenth of a second for one row, without a look up."""
    found = f"REPEAT(k, {count})"
    for old, new in ("cy", "yc") * 12:
        found = f"REPLACE({found}, '{old}', '{new}')"
    return f"LENGTH({found})"


def long_text() -> str:
    return f"SELECT k, {', '.join(exchanged(50_000 + n) for n in range(12))}, SUM(v) AS s {WINDOW}"


def large_text() -> str:
    return f"SELECT k, REPEAT('x', 4000000) AS x, SUM(v) AS s {WINDOW}"


def huge_text() -> str:
    return f"SELECT k, REPEAT(k, 1000000000) AS x, SUM(v) AS s {WINDOW}"


def deep_text() -> str:
    return f"SELECT k, {'(' * 4000}SUM(v){')' * 4000} AS s {WINDOW}"


def wide_text() -> str:
    """Another one each time, so that none has been read before."""
    first = 1000 * next(_NUMBERS)
    return f"SELECT k, {', '.join(f'SUM(v) + {first + n} AS s{n}' for n in range(300))} {WINDOW}"


def fresh_text() -> str:
    return f"SELECT k, SUM(v) * {next(_NUMBERS)} AS s {WINDOW}"


TEXTS: dict[str, Callable[[], str]] = {
    "long texts": long_text,
    "large answers": large_text,
    "huge answers": huge_text,
    "deep texts": deep_text,
    "wide texts": wide_text,
    "new texts": fresh_text,
}
INSTANTS = "&".join(f"at={at}" for at in range(600, 1200, 30))
#: How many connections, what each sends at once, and what it sends again and again; nobody reads anything.
SILENT: dict[str, tuple[int, bytes, bytes]] = {
    "idle connections": (2100, b"", b""),
    "slow heads": (200, b"GET /health HTTP/1.1\r\nHost: localhost\r\n", b"X: y\r\n"),
    "slow bodies": (200, b"POST /lookup HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9999\r\n\r\n", b" "),
    "events nobody reads": (110, b"GET /queries/q/events HTTP/1.1\r\nHost: localhost\r\n\r\n", b""),
    "answers nobody takes": (20, f"GET /queries/q/lookup?{INSTANTS} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode(), b""),
}
ALL_GROUPS = "all groups"
KINDS = (*TEXTS, ALL_GROUPS, *SILENT)


def ask(port: int, request: bytes) -> None:
    """One request, and whatever comes of it."""
    with suppress(OSError), socket.create_connection(("127.0.0.1", port), 20) as client:
        client.sendall(request)
        while client.recv(1 << 20):
            pass


def posted(text: str) -> bytes:
    body = json.dumps({"query": text}).encode()
    head = "POST /lookup HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Type: application/json\r\n"
    return f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body


def talk(port: int, request: Callable[[], bytes], until: float) -> None:
    """Several clients ask, each again as soon as it is answered."""

    def client() -> None:
        while time.monotonic() < until:
            ask(port, request())

    threads = [threading.Thread(target=client, daemon=True) for _ in range(CLIENTS)]
    for thread in threads:
        thread.start()
    time.sleep(max(until - time.monotonic(), 0))


def keep_silent(port: int, count: int, first: bytes, more: bytes, until: float) -> None:
    """Connections that want nothing; those that are cut off come again."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(max(soft, count + 100), hard), hard))
    with ExitStack() as kept:
        clients: list[socket.socket] = []
        while time.monotonic() < until:
            clients = [client for client in clients if _sent(client, more)]
            for _ in range(min(count - len(clients), 100)):
                with suppress(OSError):
                    client = kept.enter_context(socket.create_connection(("127.0.0.1", port), 5))
                    client.setblocking(False)
                    clients += [client] if _sent(client, first) else []
            time.sleep(0.1)


def _sent(client: socket.socket, some: bytes) -> bool:
    """Whether a connection still stands."""
    try:
        client.send(some)
        return bool(some) or client.recv(1, socket.MSG_PEEK) != b""
    except BlockingIOError:
        return True
    except OSError:
        client.close()
        return False


def main(port: int, kind: str, seconds: float) -> None:
    until = time.monotonic() + seconds
    if kind in TEXTS:
        talk(port, lambda: posted(TEXTS[kind]()), until)
    elif kind == ALL_GROUPS:
        path = f"/queries/q/lookup?{INSTANTS}"
        talk(port, lambda: f"GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode(), until)
    else:
        keep_silent(port, *SILENT[kind], until)


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2], float(sys.argv[3]))
