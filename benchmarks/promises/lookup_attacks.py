"""How long clients of the lookup server wait while somebody attacks it."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from benchmarks.harness.figure import Figure, Finding, Points, Row
from benchmarks.promises.attackers import KINDS
from benchmarks.promises.lookup_server import HALF, MOST, NEWEST, PROMISED, Settings, loaded, logged, served

#: Milliseconds.
BOUND = 50.0
NOBODY = "nobody"
#: Seconds in which an attack gets going, and the time that it may take to start.
WARM, START = 2.0, 3.0


def measure(settings: Settings) -> Iterator[Row]:
    with tempfile.TemporaryDirectory(prefix="panewise-") as name:
        log, _ = logged(Path(name), settings)
        # A smoke test is no attack.
        for kind in (NOBODY, *KINDS) if settings.seconds > 1 else (NOBODY, KINDS[0]):
            with served(log.folder) as port:
                asyncio.run(loaded(port, settings, NEWEST, min(WARM, settings.seconds), [], log))
                with attacked(port, kind, settings.seconds):
                    found = asyncio.run(loaded(port, settings, NEWEST, settings.seconds, [], log))
            yield Row(HALF, kind, float(np.percentile(found, 50)))
            yield Row(MOST, kind, float(np.percentile(found, 99)))
            yield Row(PROMISED, kind, BOUND)


@contextmanager
def attacked(port: int, kind: str, seconds: float) -> Iterator[None]:
    """Somebody attacks the server, from a process of his own, for a little longer than is measured."""
    if kind == NOBODY:
        yield
        return
    length = WARM + seconds + START
    process = subprocess.Popen([sys.executable, "-m", "benchmarks.promises.attackers", str(port), kind, str(length)])
    try:
        time.sleep(min(WARM, seconds))
        yield
    finally:
        process.kill()
        process.wait()


def findings(points: Points) -> Iterator[Finding]:
    for kind in points.xs:
        half, most = points.get(HALF, kind) or 0.0, points.get(MOST, kind) or 0.0
        yield Finding(f"{kind}: p99 under {BOUND:.0f} ms", f"p99 {most:.1f} ms, p50 {half:.1f} ms", most < BOUND)


FIGURE = Figure(
    title="The lookup server under attack: what Panewise promises",
    claim="whatever one client asks for, a hundred lookups a second of others are answered within fifty milliseconds",
    paper="no paper: the bound is our own. Lookups as in lookup_server, a hundred a second over 32 connections; each "
    "attack comes from a process of its own, eight clients that ask without a pause or up to 2,100 connections that "
    "ask for nothing. Load, attack and server share 2 cores",
    x="who attacks",
    y="milliseconds",
    baseline=PROMISED,
    sizes={
        "smoke": Settings(keys=50, rate=50, seconds=0.5, repeats=1, rows=200),
        "seconds": Settings(keys=2000, rate=100, seconds=5.0, repeats=1, rows=8000),
        "full": Settings(keys=10_000, rate=100, seconds=20.0, repeats=1),
    },
    measure=measure,
    findings=findings,
)
