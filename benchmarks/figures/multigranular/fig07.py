""" "Multi-granular windows" figure 7: cost against the granules in each level."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from benchmarks.data.streams import durations
from benchmarks.data.windows import OPERATIONS, Levels, clause
from benchmarks.harness.figure import Figure, Finding, Points, Row
from benchmarks.harness.ticking import Run


@dataclass(frozen=True)
class Settings:
    #: Tuples a timestamp. Regression costs microseconds a tuple, so only the full size gives it the paper's rate.
    rates: Mapping[str, int]
    granules: tuple[int, ...]
    timestamps: int
    repeats: int


def even(granules: int) -> Levels:
    """Five levels, each with so many granules, whose slides double from level to level.

    >>> even(3)[:2]
    [(3, 1), (6, 2)]
    """
    return [(granules * slide, slide) for slide in (1, 2, 4, 8, 16)]


def rates(most: int, regression: int) -> dict[str, int]:
    return {"aggregation": most, "regression": regression, "recurrence": most}


def measure(settings: Settings) -> Iterator[Row]:
    for name, answer in OPERATIONS.items():
        values = durations(settings.rates[name])
        for granules in settings.granules:
            levels = even(granules)
            run = Run([clause(levels)], answer)
            run.fill(sum(levels[-1]))
            run.tick(values)
            yield Row(name, granules, run.cost(values, settings.timestamps, settings.repeats))


def findings(points: Points) -> Iterator[Finding]:
    wider = float(points.xs[-1]) / float(points.xs[0])
    for name in OPERATIONS:
        yield Finding(
            f"Wider ranges cost {name} nothing that matters: only the edges of windows change at a slide",
            f"ranges grow {wider:.0f} times, the cost by a factor of {points.growth(name):.2f}",
            0.4 < points.growth(name) < 2.5,
        )


FIGURE = Figure(
    title="Multi-granular windows, figure 7: cost against the granules in a level",
    claim="the cost does not depend on how far the windows reach, only on how many there are",
    paper="5 levels, each with the same number of granules (range over slide): 2, 5, 10 or 20; slides not given; "
    "100,000 tuples a timestamp, otherwise as in figure 5. The curves have no numbers in the text. Ours: slides 1, 2, "
    "4, 8, 16, so that the widest range grows from 32 to 320; SUM, REGR_SLOPE and RECURRING of generated durations",
    x="granules in a level",
    y="ms a timestamp",
    baseline="aggregation",
    sizes={
        "smoke": Settings(rates(1000, 100), granules=(2, 5), timestamps=16, repeats=1),
        "seconds": Settings(rates(100_000, 1000), (2, 5, 10, 20), timestamps=16, repeats=3),
        "full": Settings(rates(100_000, 100_000), (2, 5, 10, 20), timestamps=16, repeats=5),
    },
    measure=measure,
    findings=findings,
    log=frozenset("y"),
)
