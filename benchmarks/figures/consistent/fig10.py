""" "Consistent results" figure 10: distinct over count-based windows under four rates."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from benchmarks.data.connections import GENERATED, traces
from benchmarks.figures.consistent.replay import Counting, facts, judged
from benchmarks.harness.figure import Figure, Finding, Points, Row


@dataclass(frozen=True)
class Settings:
    #: Rows of each trace that are replayed.
    rows: int
    rates: tuple[int, ...]
    sizes: tuple[int, ...]
    timestamps: int


def measure(settings: Settings) -> Iterator[Row]:
    for name, trace in traces(settings.rows).items():
        for rate in settings.rates:
            for size in settings.sizes:
                counting = Counting(settings.rows, rate, settings.sizes, settings.timestamps)
                yield Row(series(rate, name), size, counting.cost("distinct", f"[ROWS {size}]", trace, fill=size))


def series(rate: int, trace: str) -> str:
    """
    >>> series(10_000, "generated")
    '10,000/s, generated'
    """
    return f"{rate:,}/s, {trace}"


RATES = (10_000, 20_000, 50_000, 100_000)


def findings(points: Points) -> Iterator[Finding]:
    wider = float(points.xs[-1]) / float(points.xs[0])
    rates = list(dict.fromkeys(int(name.split("/")[0].replace(",", "")) for name in points.series))
    yield judged(
        points,
        "The cost grows linearly with the window, no faster, at every rate",
        lambda trace: max(points.growth(series(rate, trace)) for rate in rates),
        f"at most {{}} times, where windows grow {wider:.0f} times",
        lambda growth: growth < 1.5 * wider,
    )
    faster = rates[-1] / rates[0]
    yield judged(
        points,
        "A higher rate costs more, in proportion at most",
        lambda trace: points.of(series(rates[-1], trace))[-1] / points.of(series(rates[0], trace))[-1],
        f"over the largest window {{}} times, where the rate grows {faster:.0f} times",
        lambda growth: 1 < growth < 1.5 * faster,
    )


FIGURE = Figure(
    title="Consistent results, figure 10: distinct under four rates",
    claim="distinct over the last n tuples costs what the new tuples cost",
    paper=facts(
        "10, 20, 50 and 100 thousand tuples a timestamp; the cost grows almost in proportion to the window, and "
        "likewise for other operators"
    ),
    x="tuples in the window",
    y="ms a timestamp",
    baseline=series(RATES[0], GENERATED),
    sizes={
        "smoke": Settings(rows=2000, rates=(10_000, 20_000), sizes=(50, 200), timestamps=1),
        "seconds": Settings(rows=100_000, rates=RATES, sizes=(10_000, 20_000, 50_000), timestamps=1),
        "full": Settings(rows=500_000, rates=RATES, sizes=(10_000, 20_000, 50_000, 100_000), timestamps=5),
    },
    measure=measure,
    findings=findings,
    log=frozenset("xy"),
)
