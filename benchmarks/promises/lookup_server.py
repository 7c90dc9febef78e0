"""How long clients of the lookup server wait, when a thousand of them ask every second."""

from __future__ import annotations

import asyncio
import gc
import os
import random
import subprocess
import sys
import tempfile
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from time import perf_counter

import numpy as np
import pyarrow as pa

import panewise as pw
from benchmarks.harness.figure import Figure, Finding, Points, Row
from panewise.engine.state.pane_log import PaneCollector
from panewise.runtime.pane_log import Header, PaneLog

HALF, MOST, PROMISED = "p50", "p99", "promised p99"
NEWEST, GROWING, ANY = "newest instant", "newest, log grows", "any instant"
#: Milliseconds.
BOUND = 10.0
PANE, RANGE = 10, 600
#: Seconds before the clock starts: kernels are loaded, and often asked instants found.
WARM = 1.0
#: Seconds after which a request that is not answered is given up.
PATIENCE = 30.0
SCHEMA = pa.schema([("t", pa.int64()), ("k", pa.string()), ("v", pa.int64())])
QUERY = (
    f"SELECT k, SUM(v) AS s, MAX(v) AS top, COUNT(*) AS n FROM S [RANGE {RANGE} SLIDE {PANE}] GROUP BY k"  # 60 panes
)


@dataclass(frozen=True)
class Settings:
    keys: int
    #: Requests a second, and for how long.
    rate: int
    seconds: float
    repeats: int
    connections: int = 32
    #: Rows of every pane.
    rows: int = 40_000


def measure(settings: Settings) -> Iterator[Row]:
    with tempfile.TemporaryDirectory(prefix="panewise-") as name:
        log, coming = logged(Path(name), settings)
        with served(log.folder) as port:
            for case in (NEWEST, ANY, GROWING):
                asyncio.run(loaded(port, settings, case, WARM, [], log))
                fresh = coming if case == GROWING else []
                runs = range(settings.repeats)
                found = [asyncio.run(loaded(port, settings, case, settings.seconds, fresh, log)) for _ in runs]
                yield Row(HALF, case, median(float(np.percentile(each, 50)) for each in found))
                yield Row(MOST, case, median(float(np.percentile(each, 99)) for each in found))
                yield Row(PROMISED, case, BOUND)


def logged(folder: Path, settings: Settings) -> tuple[PaneLog, list[pa.Table]]:
    """A log with two ranges of panes, and further batches of one pane each that are not there yet."""
    pool = pw.Pool({"S": pw.StreamSchema(SCHEMA, "t", 0)})
    pool.register("q", QUERY)
    engine, log = pw.Engine(pool), PaneLog(folder / "panes")
    log.claim(Header.of(pool.queries["q"], pool, "the benchmark"))
    tap, coming = PaneCollector(engine, ["q"]), []
    rng = np.random.default_rng(7)
    names = pa.array([f"card-{n:06d}" for n in range(settings.keys)])
    later = int(2 * settings.seconds * settings.repeats) + 2
    for number in range(2 * RANGE // PANE + later):
        times = np.sort(rng.integers(number * PANE, (number + 1) * PANE, settings.rows)) + 1
        keys = names.take(pa.array(rng.integers(0, settings.keys, settings.rows)))
        engine.feed("S", pa.table({"t": times, "k": keys, "v": rng.integers(0, 1000, settings.rows)}, schema=SCHEMA))
        tap.open()
        engine.advance()
        panes = tap.collect()["q"]
        if number < 2 * RANGE // PANE:
            log.write(panes, number)
        else:
            coming.append(panes)
    return log, coming


@contextmanager
def served(folder: Path) -> Iterator[int]:
    """The server, in a process of its own."""
    code = "from panewise.cli import main; main()"
    command = [sys.executable, "-c", code, "serve", str(folder), "--port", "0"]
    environment = {**os.environ, "COLUMNS": "300"}
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)
    assert process.stdout is not None
    try:
        yield int(process.stdout.readline().rpartition(":")[2])
    finally:
        process.terminate()
        process.communicate(timeout=30)


class Client(asyncio.Protocol):
    """One connection: as little work as can be, since load and server share two cores."""

    def __init__(self, load: Load) -> None:
        self.load, self.due, self.found = load, 0.0, b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        self.load.free.append(self)

    def ask(self, due: float, request: bytes) -> None:
        self.due, self.found = due, b""
        self.transport.write(request)

    def data_received(self, data: bytes) -> None:
        self.found += data
        head, end, body = self.found.partition(b"\r\n\r\n")
        if end and len(body) == int(head.partition(b"content-length: ")[2].partition(b"\r")[0]):
            if not head.startswith(b"HTTP/1.1 200"):
                self.load.refused = self.found[:400]
            self.load.waits.append(1e3 * (perf_counter() - self.due))
            self.load.free.append(self)

    def connection_lost(self, _: Exception | None) -> None:
        """The server may cut off whoever asks for nothing, and nobody else."""
        if self in self.load.free:
            self.load.free.remove(self)
        elif self.load.refused is None:
            self.load.refused = b"cut off while waiting for an answer"


@dataclass(eq=False)
class Load:
    """Requests when they are due, each to a connection that is free, and how long each took."""

    settings: Settings
    case: str
    waits: list[float] = field(default_factory=list)
    #: The one that has been free for longest is asked next, so that none is idle.
    free: deque[Client] = field(default_factory=deque)
    #: What came instead of an answer.
    refused: bytes | None = None

    async def run(self, port: int, seconds: float) -> list[float]:
        """Milliseconds from the moment each request was due to its answer: who is late in asking waits all the same."""
        loop, count, sent = asyncio.get_running_loop(), int(self.settings.rate * seconds), 0
        for _ in range(self.settings.connections):
            await loop.create_connection(lambda: Client(self), "127.0.0.1", port)
        everyone = list(self.free)
        requests = [self._request(chance) for chance in [random.Random(1)] for _ in range(count)]
        start = perf_counter() + 0.05
        while len(self.waits) < count:
            if self.refused is not None or perf_counter() > start + seconds + PATIENCE:
                raise RuntimeError(f"{len(self.waits)} of {count} requests were answered; {self.refused!r}")
            due = start + sent / self.settings.rate
            if sent < count and self.free and due <= perf_counter():
                self.free.popleft().ask(due, requests[sent])
                sent += 1
            else:
                await asyncio.sleep(min(max(due - perf_counter(), 0), 0.001))
        for client in everyone:
            client.transport.close()
        return self.waits

    def _request(self, chance: random.Random) -> bytes:
        at = f"at={chance.randrange(RANGE, 2 * RANGE - PANE, PANE)}&" if self.case == ANY else ""
        path = f"/queries/q/lookup?{at}key=card-{chance.randrange(self.settings.keys):06d}"
        return f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode()


async def loaded(
    port: int, settings: Settings, case: str, seconds: float, coming: list[pa.Table], log: PaneLog
) -> list[float]:
    """How long requests take, while the log grows or not."""
    growing = asyncio.create_task(grown(log, coming)) if coming else None
    gc.disable()
    try:
        return await Load(settings, case).run(port, seconds)
    finally:
        gc.enable()
        if growing is not None:
            growing.cancel()


async def grown(log: PaneLog, coming: list[pa.Table]) -> None:
    """One more pane of all groups every second."""
    while coming:
        await asyncio.to_thread(log.write, coming.pop(0), max(log.batches()) + 1)
        await asyncio.sleep(1)


def findings(points: Points) -> Iterator[Finding]:
    for case in (NEWEST, ANY, GROWING):
        half, most = points.get(HALF, case) or 0.0, points.get(MOST, case) or 0.0
        yield Finding(f"{case}: p99 under {BOUND:.0f} ms", f"p99 {most:.1f} ms, p50 {half:.1f} ms", most < BOUND)


FIGURE = Figure(
    title="The lookup server: what Panewise promises",
    claim="a thousand lookups a second of single groups are answered within ten milliseconds",
    paper="no paper: the bound is our own. Windows of 60 panes with SUM, MAX and COUNT, 120 panes kept; one group of "
    "one instant a request, over 32 connections on loopback. Requests are sent when they are due, whatever became of "
    "those before, and waiting is counted from then. Load and server are two processes on 2 cores; "
    "where the log grows, it does by a pane of all groups every second",
    x="what is asked for",
    y="milliseconds",
    baseline=PROMISED,
    sizes={
        "smoke": Settings(keys=50, rate=50, seconds=0.5, repeats=1, rows=200),
        "seconds": Settings(keys=10_000, rate=1000, seconds=4.0, repeats=3),
        "full": Settings(keys=10_000, rate=1000, seconds=20.0, repeats=5),
    },
    measure=measure,
    findings=findings,
)
