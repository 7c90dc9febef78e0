""" "Consistent results" figure 8: joins over count-based windows, with negative tuples and without."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import cycle, islice
from statistics import median

import pyarrow as pa

from benchmarks.data.connections import GENERATED, traces
from benchmarks.figures.consistent.joins import CountedJoin, NegativeJoin, OrderedJoin
from benchmarks.figures.consistent.replay import Counting, facts, measured, streams
from benchmarks.harness.draw import number
from benchmarks.harness.figure import Figure, Finding, Points, Row
from benchmarks.harness.timing import timed

NEGATIVE, ORDERED, OURS, ENTRIES = "negative tuples", "by order", "Panewise", "entries of a list"


@dataclass(frozen=True)
class Settings(Counting):
    #: Tuples of a timestamp for which the joins in Python are measured, and scaled: they take up to milliseconds each.
    slow: int


def measure(settings: Settings) -> Iterator[Row]:
    for name, trace in traces(settings.rows).items():
        for size in settings.sizes:
            negative = NegativeJoin(size)
            yield Row(f"{NEGATIVE}, {name}", size, one_by_one(negative, trace, settings))
            yield Row(f"{ENTRIES}, {name}", size, negative.entries())
            yield Row(f"{ORDERED}, {name}", size, one_by_one(OrderedJoin(size), trace, settings))
            yield Row(f"{OURS}, {name}", size, settings.cost("join", f"[ROWS {size}]", trace, fill=size))


def one_by_one(join: CountedJoin, trace: pa.Table, settings: Settings) -> float:
    """Milliseconds a timestamp over full windows, where a tuple of one stream follows one of the other; a median."""
    halves = streams("join", trace)
    local, remote = halves["TraceA"]["localIP"].to_pylist(), halves["TraceB"]["remoteIP"].to_pylist()
    arrivals = zip(cycle(local), cycle(remote), strict=False)

    def arrive(count: int) -> None:
        for one, other in islice(arrivals, count):
            join.arrive(0, one)
            join.arrive(1, other)

    arrive(join.limit)
    scale = settings.rate / settings.slow
    return 1000 * scale * median(timed(arrive, settings.slow) for _ in range(settings.timestamps))


def findings(points: Points) -> Iterator[Finding]:
    wider = float(points.xs[-1]) / float(points.xs[0])
    for trace in measured(points):
        series = (NEGATIVE, ORDERED, OURS, ENTRIES)
        negative, ordered, ours, entries = (points.of(f"{each}, {trace}") for each in series)
        lists = f"{trace}, lists of {number(entries[-1])} entries"
        for name, costs in ((ORDERED, ordered), (OURS, ours)):
            yield Finding(
                f"Expiration orders are faster by more than two orders of magnitude ({lists})",
                f"{name}: {number(negative[-1] / costs[-1])} times over the largest window",
                negative[-1] > 100 * costs[-1],
            )
        yield Finding(
            f"With negative tuples, the cost of larger windows escalates ({lists})",
            f"{number(negative[-1] / negative[0])} times, where windows grow {wider:.0f} times",
            negative[-1] / negative[0] > wider,
        )


FIGURE = Figure(
    title="Consistent results, figure 8: joins over count-based windows",
    claim="where keys have many results, those that leave by the order of their parts cost a fraction of those that "
    "negative tuples take back",
    paper=facts(
        "with negative tuples, a tuple that leaves is joined again, and each of its results is searched for in the "
        "list of its key; with expiration orders, what ends together lies together and goes at once, more than two "
        "orders of magnitude faster",
        "both, in Python for one tuple after another, with the numbers of the parts for a result, and Panewise, with "
        "whole rows; 10,000 tuples a timestamp; ",
    ),
    x="tuples in each window",
    y="ms a timestamp; how many entries a list of results has",
    baseline=f"{NEGATIVE}, {GENERATED}",
    sizes={
        "smoke": Settings(rows=2000, rate=100, sizes=(50, 200), slow=50, timestamps=1),
        "seconds": Settings(rows=100_000, rate=10_000, sizes=(1000, 2000, 5000), slow=500, timestamps=3),
        "full": Settings(
            rows=500_000, rate=10_000, sizes=(1000, 2000, 5000, 10_000, 20_000, 50_000), slow=500, timestamps=3
        ),
    },
    measure=measure,
    findings=findings,
    log=frozenset("xy"),
)
