""" "Multi-granular windows" figure 5: cost against the stream's rate."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from benchmarks.data.streams import durations
from benchmarks.data.windows import OPERATIONS, Levels, clause, nested
from benchmarks.harness.figure import Figure, Finding, Points, Row
from benchmarks.harness.ticking import Run


@dataclass(frozen=True)
class Settings:
    rates: tuple[int, ...]
    #: Regression costs microseconds a tuple, so only the full size gives it the rates of the paper.
    regression_rates: tuple[int, ...]
    timestamps: int
    repeats: int


ALONE = "aggregation, one level"


def measure(settings: Settings) -> Iterator[Row]:
    for series, operation, levels, rates in (
        (ALONE, "aggregation", 1, settings.rates),
        ("aggregation", "aggregation", 5, settings.rates),
        ("regression", "regression", 5, settings.regression_rates),
        ("recurrence", "recurrence", 5, settings.rates),
    ):
        yield from costs(series, OPERATIONS[operation], nested(levels), rates, settings)


def costs(series: str, answer: str, levels: Levels, rates: tuple[int, ...], settings: Settings) -> Iterator[Row]:
    run = Run([clause(levels)], answer)
    run.fill(sum(levels[-1]))
    for rate in rates:
        values = durations(rate)
        run.tick(values)
        yield Row(series, rate, run.cost(values, settings.timestamps, settings.repeats))


def findings(points: Points) -> Iterator[Finding]:
    for name in OPERATIONS:
        held = [row for row in points.rows if row.series == name]
        rates, costs = float(held[-1].x) / float(held[0].x), points.growth(name)
        each = 1000 * held[-1].y / float(held[-1].x)
        yield Finding(
            f"The cost of {name} grows linearly with the rate",
            f"the rate grows {rates:,.0f} times, the cost {costs:.2g} times, to {each:.2g} us a tuple; "
            "some is spent once a timestamp",
            costs < 1.5 * rates,
        )
    shared = [x for x in points.xs if points.get("aggregation", x) and points.get("regression", x)]
    ratios = [(points.get("regression", x) or 0) / (points.get("aggregation", x) or 1) for x in shared]
    yield Finding(
        "Regression costs about as much as aggregation",
        f"up to {max(ratios):,.0f} times as much",
        max(ratios) < 2.5,
    )
    extra = [a / b for a, b in zip(points.of("recurrence"), points.of("aggregation"), strict=True)]
    yield Finding(
        "Recurrence costs slightly more than aggregation: it keeps more",
        f"up to {max(extra):.1f} times as much: there a handful of protocols, here thousands of different durations",
        max(extra) < 2.5,
    )
    worst = max(row.y for row in points.rows if row.series in OPERATIONS)
    yield Finding("A timestamp stays below 600 ms, where the axis ends", f"at most {worst:,.3g} ms", worst < 600)
    beside = [a / b for a, b in zip(points.of("aggregation"), points.of(ALONE), strict=True)]
    yield Finding(
        "Levels share their work (no number given)",
        f"five levels cost {beside[-1]:.2f} times the widest of them alone at the highest rate, {beside[0]:.2f} times "
        "at the lowest",
        beside[-1] < 2.5,
    )


FIGURE = Figure(
    title="Multi-granular windows, figure 5: cost against the rate",
    claim="the cost of five nested windows grows no faster than the rate, and is little more than that of the widest",
    paper="5 levels, widest range 40 timestamps, slides not given; SUM and linear fit of connection durations, and "
    "recurring protocols; 10, 20, 50 and 100 thousand tuples a timestamp of the trace LBL-CONN-7; Core 2 Duo, 3 GHz, "
    "C++; averages a timestamp over complete windows. The curves have no numbers in the text; their axis ends at "
    "600 ms. Ours: generated durations, also for recurring items, ranges 40, 32, 16, 8, 4 with slides 8, 4, 2, 2, 1",
    x="tuples a timestamp",
    y="ms a timestamp",
    baseline=ALONE,
    sizes={
        "smoke": Settings(rates=(200, 1000), regression_rates=(200, 1000), timestamps=8, repeats=1),
        "seconds": Settings(
            rates=(1000, 2000, 10_000, 20_000, 50_000, 100_000),
            regression_rates=(1000, 2000, 10_000),
            timestamps=8,
            repeats=3,
        ),
        "full": Settings(
            rates=(10_000, 20_000, 50_000, 100_000),
            regression_rates=(10_000, 20_000, 50_000, 100_000),
            timestamps=16,
            repeats=5,
        ),
    },
    measure=measure,
    findings=findings,
    log=frozenset("xy"),
)
