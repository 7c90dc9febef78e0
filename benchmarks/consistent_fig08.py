""" "Consistent results" figure 8: joins over count-based windows, with negative tuples and without."""

from __future__ import annotations

from collections.abc import Iterator
from time import perf_counter

import pyarrow as pa

from benchmarks.baselines import CountedJoin, NegativeJoin, OrderedJoin
from benchmarks.bench import Figure, Finding, Points, Row
from benchmarks.net_replay import Counting, facts, judged, streams
from benchmarks.net_trace import GENERATED, traces

NEGATIVE, ORDERED, OURS = "negative tuples", "expiration order", "Panewise"


def measure(settings: Counting) -> Iterator[Row]:
    for name, trace in traces(settings.rows).items():
        for size in settings.sizes:
            yield Row(f"{NEGATIVE}, {name}", size, one_by_one(NegativeJoin(size), trace, settings))
            yield Row(f"{ORDERED}, {name}", size, one_by_one(OrderedJoin(size), trace, settings))
            yield Row(f"{OURS}, {name}", size, settings.cost("join", f"[ROWS {size}]", trace, fill=size))


def one_by_one(join: CountedJoin, trace: pa.Table, settings: Counting) -> float:
    """Milliseconds a timestamp over full windows, where a tuple of one stream follows one of the other."""
    halves = streams("join", trace)
    local, remote = halves["TraceA"]["localIP"].to_pylist(), halves["TraceB"]["remoteIP"].to_pylist()
    start = 0.0
    for place in range(join.limit + settings.slow):
        if place == join.limit:
            start = perf_counter()
        join.arrive(0, local[place % len(local)])
        join.arrive(1, remote[place % len(remote)])
    return 1000 * settings.rate / settings.slow * (perf_counter() - start)


def findings(points: Points) -> Iterator[Finding]:
    yield faster(points, ORDERED, "both written for one tuple after another")
    yield faster(points, OURS, "Panewise")
    wider = float(points.xs[-1]) / float(points.xs[0])
    yield judged(
        points,
        "With negative tuples, the cost of larger windows escalates",
        lambda trace: points.growth(f"{NEGATIVE}, {trace}"),
        f"{{:,.0f}} times, where windows grow {wider:.0f} times",
        lambda growth: growth > wider,
    )


def faster(points: Points, series: str, written: str) -> Finding:
    return judged(
        points,
        f"Expiration orders are faster by more than two orders of magnitude ({written})",
        lambda trace: points.of(f"{NEGATIVE}, {trace}")[-1] / points.of(f"{series}, {trace}")[-1],
        "{:,.2g} times over the largest window",
        lambda times: times > 100,
    )


FIGURE = Figure(
    title="Consistent results, figure 8: joins over count-based windows",
    claim="results that leave by the order of their parts cost a fraction of those that negative tuples take back",
    paper=facts(
        "with negative tuples, a tuple that leaves is joined again, and each of its results is searched for in the "
        "list of its key; with expiration orders, what ends together lies together and goes at once, more than two "
        "orders of magnitude faster",
        "both, in Python for one tuple after another, and Panewise; 10,000 tuples a timestamp; ",
    ),
    x="tuples in each window",
    y="ms a timestamp",
    baseline=f"{NEGATIVE}, {GENERATED}",
    sizes={
        "smoke": Counting(rows=2000, rate=100, sizes=(50, 200), slow=50, timestamps=1),
        "seconds": Counting(rows=100_000, rate=10_000, sizes=(1000, 2000, 5000), slow=1000, timestamps=2),
        "full": Counting(rows=500_000, rate=10_000, sizes=(1000, 2000, 5000, 10_000, 20_000), slow=2000, timestamps=5),
    },
    measure=measure,
    findings=findings,
    log=frozenset("xy"),
)
