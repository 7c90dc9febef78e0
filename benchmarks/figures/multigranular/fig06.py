""" "Multi-granular windows" figure 6: cost against the number of levels."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from benchmarks.data.streams import durations
from benchmarks.data.windows import OPERATIONS, clause, nested
from benchmarks.harness.figure import Figure, Finding, Points, Row
from benchmarks.harness.ticking import Run


@dataclass(frozen=True)
class Settings:
    #: Tuples a timestamp. Regression costs microseconds a tuple, so only the full size gives it the paper's rate.
    rates: Mapping[str, int]
    levels: tuple[int, ...]
    timestamps: int
    repeats: int


def rates(most: int, regression: int) -> dict[str, int]:
    return {"aggregation": most, "regression": regression, "recurrence": most}


def measure(settings: Settings) -> Iterator[Row]:
    for name, answer in OPERATIONS.items():
        values = durations(settings.rates[name])
        for count in settings.levels:
            levels = nested(count)
            run = Run([clause(levels)], answer)
            run.fill(sum(levels[-1]))
            run.tick(values)
            yield Row(name, count, run.cost(values, settings.timestamps, settings.repeats))


def findings(points: Points) -> Iterator[Finding]:
    for name in OPERATIONS:
        yield Finding(
            f"{name.capitalize()} costs almost the same, however many levels there are",
            f"from {points.xs[0]} to {points.xs[-1]} levels the cost changes by a factor of {points.growth(name):.2f}",
            0.4 < points.growth(name) < 2.5,
        )
    costs, xs = points.of("aggregation"), [float(x) for x in points.xs]
    added = (costs[-1] - costs[0]) / (xs[-1] - xs[0]) / costs[0]
    yield Finding(
        "A further level adds little",
        f"each adds {100 * added:.0f}% of the cost of {points.xs[0]} levels, on average",
        added < 0.5,
    )


FIGURE = Figure(
    title="Multi-granular windows, figure 6: cost against the levels",
    claim="the cost hardly depends on the number of nested windows, since each uses what those below it have computed",
    paper="2 to 5 levels, of which the widest always spans 40 timestamps; 100,000 tuples a timestamp, otherwise as in "
    "figure 5. The curves have no numbers in the text. Ours: SUM, REGR_SLOPE and RECURRING of generated durations",
    x="levels",
    y="ms a timestamp",
    baseline="aggregation",
    sizes={
        "smoke": Settings(rates(1000, 100), levels=(2, 5), timestamps=8, repeats=1),
        "seconds": Settings(rates(100_000, 2000), (2, 3, 4, 5), timestamps=8, repeats=3),
        "full": Settings(rates(100_000, 100_000), (2, 3, 4, 5), timestamps=16, repeats=5),
    },
    measure=measure,
    findings=findings,
    log=frozenset("y"),
)
