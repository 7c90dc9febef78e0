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
#: Lists of fewer entries are searched in less time than the rest of a join takes.
LONG = 1000


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
    for trace in measured(points):
        entries = points.of(f"{ENTRIES}, {trace}")[-1]
        lists = f"lists of {number(entries)} entries"
        yield from (long_lists if entries >= LONG else short_lists)(points, trace, lists)


def long_lists(points: Points, trace: str, lists: str) -> Iterator[Finding]:
    """What the paper says of its trace."""
    for series, times in leads(points, trace).items():
        yield Finding(
            f"Expiration orders are faster by more than two orders of magnitude ({trace}, {lists})",
            f"{series}: {number(times)} times over the largest window",
            times > 100,
        )
    wider = float(points.xs[-1]) / float(points.xs[0])
    growth = points.growth(f"{NEGATIVE}, {trace}")
    yield Finding(
        f"With negative tuples, the cost of larger windows escalates ({trace}, {lists})",
        f"{number(growth)} times, where windows grow {wider:.0f} times",
        growth > wider,
    )


def short_lists(points: Points, trace: str, lists: str) -> Iterator[Finding]:
    """The control: it is the search in lists that makes negative tuples dear."""
    for series, times in leads(points, trace).items():
        yield Finding(
            f"(not in the paper) Where there is little to search, both cost about the same ({trace}, {lists})",
            f"{series}: {number(times)} times as fast over the largest window",
            0.4 < times < 2.5,
        )


def leads(points: Points, trace: str) -> dict[str, float]:
    """How many times as fast as negative tuples the others are, over the largest window."""
    negative, *others = (points.of(f"{series}, {trace}")[-1] for series in (NEGATIVE, ORDERED, OURS))
    return {series: negative / cost for series, cost in zip((ORDERED, OURS), others, strict=True)}


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
