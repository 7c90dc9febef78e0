"""Queries Q4, Q5 and Q6 of "Consistent results", over traces that are replayed at a set rate.

All say what is new (ISTREAM): when a result leaves is known or follows from what comes, and need not be said again.
Costs are of everything: taking rows in, windows, operators and results as tables. The paper leaves windows out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from statistics import median
from time import perf_counter

import numpy as np
import pyarrow as pa

import panewise as pw
from benchmarks.data.connections import CONNECTION, GENERATED, dealt, traces
from benchmarks.harness.draw import number
from benchmarks.harness.figure import Finding, Points

_SUMMARY = "SELECT ISTREAM localIP, {aggregate}(duration) AS answer FROM NetTrace {{window}} GROUP BY localIP"
#: Q6, Q4 and twice Q5.
QUERIES = {
    "join": "SELECT ISTREAM * FROM TraceA {window} AS A, TraceB {window} AS B WHERE A.localIP = B.remoteIP",
    "distinct": "SELECT ISTREAM DISTINCT protocol, localIP, remoteIP FROM NetTrace {window}",
    "SUM": _SUMMARY.format(aggregate="SUM"),
    "MAX": _SUMMARY.format(aggregate="MAX"),
}
#: Operators that the engine answers from rows, and must be told that they may remember all of them.
FROM_ROWS = ("join", "distinct")
BASELINE = f"SUM, {GENERATED}"


def facts(paper: str, ours: str = "", points: str = "medians") -> str:
    """What the paper says of a figure, in our words, with what all its figures have in common."""
    return (
        f"{paper}; connections of the trace LBL-CONN-7, in two halves for joins; averages over full windows, without "
        "the upkeep of windows; Core 2 Duo, 3 GHz, C++; curves without numbers in the text. Ours: "
        f"{ours}a generated trace, and KDD99 with stand-ins for addresses (data/connections.py); {points}, "
        "upkeep included"
    )


def streams(operation: str, trace: pa.Table) -> dict[str, pa.Table]:
    """What a query reads; the two streams of a join are halves of the trace."""
    if operation != "join":
        return {"NetTrace": dealt(trace)}
    half = len(trace) // 2
    return {"TraceA": dealt(trace.slice(0, half)), "TraceB": dealt(trace.slice(half))}


class Replay:
    """One query in an engine that eats its streams wave by wave, over and over."""

    def __init__(self, operation: str, window: str, trace: pa.Table) -> None:
        self.streams = streams(operation, trace)
        declared = pw.StreamSchema(CONNECTION.insert(0, pa.field("t", pa.int64())), time="t")
        pool = pw.Pool(dict.fromkeys(self.streams, declared))
        grows = window.startswith("[PARTITION BY") or (window == "[UNBOUNDED]" and operation in FROM_ROWS)
        endless = " ALLOW UNBOUNDED" if grows else ""
        pool.register("q", QUERIES[operation].format(window=window) + endless)
        self.engine = pw.Engine(pool)
        #: The last timestamp, and the rows of each stream so far.
        self.at, self.rows = 0, 0

    def wave(self, rows: int, ordered: bool = False) -> float:
        """The seconds to take in so many more rows of each stream, and to answer.

        They all have the next timestamp or, `ordered`, one each: a count-based window changes with every tuple.
        """
        waves = self._waves(rows, ordered)
        start = perf_counter()
        for name, batch in waves.items():
            self.engine.feed(name, batch)
        self._answer()
        return perf_counter() - start

    def fill(self, waves: Sequence[int]) -> None:
        """Let waves of so many rows come, a timestamp each, and answer once."""
        for rows in waves:
            for name, batch in self._waves(rows, ordered=False).items():
                self.engine.feed(name, batch)
        self._answer()

    def _answer(self) -> None:
        self.engine.advance(self.at)["q"].num_rows  # noqa: B018

    def _waves(self, rows: int, ordered: bool) -> dict[str, pa.Table]:
        times = self.at + 1 + (np.arange(rows) if ordered else np.zeros(rows, np.int64))
        places = self.rows + np.arange(rows)
        self.at, self.rows = int(times[-1]), self.rows + rows
        waves = {name: stream.take(pa.array(places % len(stream))) for name, stream in self.streams.items()}
        return {name: wave.add_column(0, "t", pa.array(times)) for name, wave in waves.items()}


@dataclass(frozen=True)
class Counting:
    """Settings of figures over count-based windows, which change with every tuple."""

    #: Rows of each trace that are replayed.
    rows: int
    rate: int
    #: Tuples in a window.
    sizes: tuple[int, ...]
    timestamps: int

    def cost(self, operation: str, window: str, trace: pa.Table, fill: int) -> float:
        """Milliseconds a timestamp, median of some, after so many tuples have filled the window."""
        replay = Replay(operation, window, trace)
        replay.fill([fill])
        replay.wave(min(self.rate, 100), ordered=True)
        return 1000 * median(replay.wave(self.rate, ordered=True) for _ in range(self.timestamps))


@dataclass(frozen=True)
class Growing:
    """Settings of figures over landmark windows, which are looked at when they hold so many tuples."""

    #: Rows of each trace that are replayed.
    rows: int
    rate: int
    #: Multiples of the rate.
    snapshots: tuple[int, ...]


def landmark(operation: str, trace: pa.Table, rate: int) -> Replay:
    """A query over a landmark window; another one before it has had the kernels compiled."""
    warm = Replay(operation, "[UNBOUNDED]", trace)
    for _ in range(2):
        warm.wave(rate)
    return Replay(operation, "[UNBOUNDED]", trace)


def every_operation(rows: int) -> Iterator[tuple[str, str, pa.Table]]:
    """Every operation over every trace: the name of the series, the operation and at most so many rows of the trace."""
    for name, trace in traces(rows).items():
        for operation in QUERIES:
            yield f"{operation}, {name}", operation, trace


# ---- findings over all traces ----------------------------------------------------------------------------------------


def measured(points: Points) -> list[str]:
    """The traces that were there; every series ends in the name of one."""
    return list(dict.fromkeys(series.rpartition(", ")[2] for series in points.series))


def judged(
    points: Points, paper: str, value: Callable[[str], float], told: str, holds: Callable[[float], bool]
) -> Finding:
    """A fact that is to hold on every trace; `value` takes the name of one."""
    found = {trace: value(trace) for trace in measured(points)}
    ours = "; ".join(f"{trace}: {told.format(number(each))}" for trace, each in found.items())
    return Finding(paper, ours, all(map(holds, found.values())))


def linear(points: Points, operation: str, x: str) -> Finding:
    """Whether a cost grows no faster than x. It may grow slower, where some is spent once a timestamp."""
    wider = float(points.xs[-1]) / float(points.xs[0])
    return judged(
        points,
        f"The cost of {operation} grows linearly with the {x}, no faster",
        lambda trace: points.growth(f"{operation}, {trace}"),
        f"{{}} times, where the {x} grows {number(wider)} times",
        lambda growth: growth < 1.5 * wider,
    )


def dearer(points: Points, operation: str, other: str, paper: str, times: float = 1) -> Finding:
    """Whether one operation costs at least so many times as much as another, at every x."""
    return judged(
        points,
        paper,
        lambda trace: points.lead(f"{operation}, {trace}", f"{other}, {trace}"),
        f"{operation} costs at least {{}} times as much as {other}",
        lambda lead: lead >= times,
    )
