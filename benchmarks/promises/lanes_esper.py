"""The lanes that Esper answers, where `make esper` has fetched it: continuous and counted windows.

Esper runs in a process of its own (LanesEsper.java), which is given rows and query before the clock runs. It takes one
row after another, and reports each group that a row enters or makes others leave.
"""

from __future__ import annotations

import atexit
import json
import os
import subprocess
from collections.abc import Callable
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter

import numpy as np
import pyarrow as pa

from benchmarks.promises.lanes_queries import RANGE, Lane

#: What `make esper` writes: the libraries, and our class.
FETCHED = Path(__file__).parents[2] / ".venv" / "esper"
#: One thread beside the compiler's, as the others have; of its collectors this one is also the fastest here.
OPTIONS = ("-XX:+UseSerialGC", "-Xms2g", "-Xmx2g", "-Dorg.slf4j.simpleLogger.defaultLogLevel=error")
#: A query is warm after about a million rows: so many runs of so many rows, or as many as there are in some seconds.
WARM_ROWS, _WARM_RUNS, _WARM_SECONDS = 100_000, 10, 2.0

WINDOWS = {
    "continuous": f"ext_timed(t, {RANGE} milliseconds)",
    "counted": "length(1000)",
    "partitioned": "groupwin(k)#length(100)",
}
CALLS = {
    "SUM": "sum(v)",
    "COUNT": "count(*)",
    "AVG": "avg(v)",
    "MIN": "min(v)",
    "MAX": "max(v)",
    "STDDEV": "stddev(v)",
    "FIRST": "first(v)",
    "LAST": "last(v)",
    "COUNT(DISTINCT)": "count(distinct v)",
    "MEDIAN": "median(v)",
}


def esper_text(lane: Lane) -> str | None:
    """The query, or None where Esper has no such window or aggregate."""
    if lane.window not in WINDOWS or lane.asked not in CALLS:
        return None
    return f"select k, {CALLS[lane.asked]} as a from Row#{WINDOWS[lane.window]} group by k"


class Esper:
    """A process that answers commands, each by a line of JSON."""

    def __init__(self, command: list[str]) -> None:
        self._folder = TemporaryDirectory()
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self._query = ""
        atexit.register(self.close)

    def prepare(self, query: str, rows: pa.Table, warm_up: pa.Table) -> None:
        """Hands over the rows of the next run, and a query, unless it is the one of the run before."""
        if query != self._query:
            self._ask(f"query {query}")
            self._query = query
            self._hand_over(warm_up)
            start, runs = perf_counter(), 0
            while runs < _WARM_RUNS and perf_counter() - start < _WARM_SECONDS:
                self.run()
                runs += 1
        self._hand_over(rows)

    def run(self) -> dict[str, float]:
        """How many results there were, and the sum of the last ones of all keys."""
        return self._ask("run")

    def close(self) -> None:
        if self._process.poll() is None:
            self._process.communicate()  # closes its input, where it ends
        self._folder.cleanup()

    def _hand_over(self, rows: pa.Table) -> None:
        path = Path(self._folder.name) / "rows"
        np.stack([rows[name].to_numpy() for name in "tkv"], axis=1).astype("<i8").tofile(path)
        self._ask(f"rows {len(rows)} {path}")

    def _ask(self, command: str) -> dict[str, float]:
        assert self._process.stdin
        assert self._process.stdout
        print(command, file=self._process.stdin, flush=True)
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"Esper ended at {command!r}")
        answer: dict[str, float] = json.loads(line)
        return answer


def esper_version(folder: Path = FETCHED) -> str | None:
    """The version that was fetched, or None where there is none."""
    if not (folder / "ready").exists():
        return None
    return next(jar.stem.removeprefix("esper-runtime-") for jar in folder.glob("jars/esper-runtime-*.jar"))


@cache
def start_esper() -> Esper | None:
    """The process that all lanes use, or None where Esper was not fetched."""
    if esper_version() is None:
        return None
    home = os.environ.get("JAVA_HOME")
    java = f"{home}/bin/java" if home else "java"
    return Esper([java, *OPTIONS, "-cp", os.pathsep.join((str(FETCHED), str(FETCHED / "jars" / "*"))), "LanesEsper"])


def esper_work(lane: Lane, rows: pa.Table, warm_up: pa.Table) -> Callable[[], dict[str, float]] | None:
    """Answers a lane by Esper, or None where it has no such window or aggregate, or was not fetched."""
    query = esper_text(lane)
    if query is None or (esper := start_esper()) is None:
        return None
    esper.prepare(query, rows, warm_up)
    return esper.run
