""" "Multi-granular windows", the comparison that the paper leaves out: the same levels as separate windows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from statistics import mean, median

from benchmarks.data.streams import Longs, durations
from benchmarks.data.windows import OPERATIONS, Levels, clause, nested
from benchmarks.harness.figure import Figure, Finding, Points, Row
from benchmarks.harness.ticking import Run, all_memory


@dataclass(frozen=True)
class Settings:
    #: Tuples a timestamp. Regression costs microseconds a tuple, so only the full size gives it the paper's rate.
    rates: Mapping[str, int]
    levels: tuple[int, ...]
    timestamps: int
    repeats: int


SEPARATE = "separate windows"
#: What windows of one level answer too; what recurs, only nested ones know.
SHARED = ("aggregation", "regression")


def measure(settings: Settings) -> Iterator[Row]:
    for count in settings.levels:
        levels = nested(count)
        yield Row(SEPARATE, count, 1.0)
        for name in SHARED:
            values = durations(settings.rates[name])
            yield Row(f"time, {name}", count, time_ratio(levels, OPERATIONS[name], values, settings))
        yield Row("states, aggregation", count, states(together(levels)) / states(apart(levels)))
        yield Row("all memory, aggregation", count, memory(together(levels)) / memory(apart(levels)))


def together(levels: Levels, answer: str = OPERATIONS["aggregation"]) -> list[Run]:
    return [Run([clause(levels)], answer)]


def apart(levels: Levels, answer: str = OPERATIONS["aggregation"]) -> list[Run]:
    """Each level in an engine of its own, so that nothing can be shared."""
    return [Run([clause([level])], answer) for level in levels]


def time_ratio(levels: Levels, answer: str, values: Longs, settings: Settings) -> float:
    """Both ways take turns, so that a busy machine slows both."""
    ways = (together(levels, answer), apart(levels, answer))
    for way in ways:
        for run in way:
            run.fill(sum(levels[-1]))
            run.tick(values)
    ratios = []
    for _ in range(settings.repeats):
        shared, separate = (
            mean(sum(sum(run.tick(values)) for run in way) for _ in range(settings.timestamps)) for way in ways
        )
        ratios.append(shared / separate)
    return median(ratios)


def states(way: list[Run]) -> int:
    for run in way:
        run.fill(48)
    return sum(run.states(8) for run in way)


def memory(way: list[Run]) -> int:
    return sum(all_memory(run, 48) for run in way)


def findings(points: Points) -> Iterator[Finding]:
    most = points.xs[-1]
    for name in SHARED:
        ratios = points.of(f"time, {name}")
        yield Finding(
            f"{name.capitalize()} saves much time by sharing (no number given)",
            f"{ratios[0]:.2f} of the time of separate windows with {points.xs[0]} levels, {ratios[-1]:.2f} with {most}",
            ratios[-1] < 0.6,
        )
    held, kept = points.of("states, aggregation")[-1], points.of("all memory, aggregation")[-1]
    yield Finding(
        "Sharing takes about the space of the widest level, a clear advantage (no number given)",
        f"with {most} levels {held:.2f} of the states of separate windows, and {kept:.2f} of all memory",
        max(held, kept) < 0.8,
    )


FIGURE = Figure(
    title="Multi-granular windows: nested against separate windows",
    claim="nested windows take a fraction of the time and memory of the same levels as separate sliding windows",
    paper="the comparison with separate windows is left out there as straightforward: time savings are called "
    "significant, and space comparable to that of the widest window. Ours: the levels of figure 6, once as one window "
    "and once each in an engine of its own; SUM and REGR_SLOPE of generated durations",
    x="levels",
    y="nested over separate",
    baseline=SEPARATE,
    sizes={
        "smoke": Settings({"aggregation": 1000, "regression": 50}, levels=(2, 3), timestamps=8, repeats=1),
        "seconds": Settings({"aggregation": 100_000, "regression": 500}, (2, 3, 4, 5), timestamps=8, repeats=3),
        "full": Settings({"aggregation": 100_000, "regression": 100_000}, (2, 3, 4, 5), timestamps=16, repeats=5),
    },
    measure=measure,
    findings=findings,
)
