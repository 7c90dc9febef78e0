""" "Subsuming windows" figure 12: the time to answer all SUMs, against the stream's rate."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from statistics import median

from benchmarks.data.streams import Longs, durations
from benchmarks.data.windows import CLASSES, LONGEST, random_frames
from benchmarks.harness.figure import Figure, Finding, Points, Row
from benchmarks.harness.ticking import Run


@dataclass(frozen=True)
class Settings:
    windows: int
    rates: tuple[int, ...]
    timestamps: int
    repeats: int


ONE, UNSHARED, TAKING = "one window", "one window times their number", "taking rows in, abrupt"


def measure(settings: Settings) -> Iterator[Row]:
    workloads = {ONE: ["[RANGE 60 SLIDE 1]"]}
    for name, slide in CLASSES.items():
        frames = random_frames(settings.windows, slide)
        workloads[name] = [f"[RANGE {frame.range} SLIDE {frame.slide}]" for frame in frames]
    for name, windows in workloads.items():
        run = Run(windows)
        run.fill(2 * LONGEST)
        for rate in settings.rates:
            values = durations(rate)
            run.tick(values)
            taken, total = spent(run, values, settings)
            yield Row(name, rate, total)
            if name == ONE:
                yield Row(UNSHARED, rate, total * settings.windows)
            if name == "abrupt":
                yield Row(TAKING, rate, taken)


def spent(run: Run, values: Longs, settings: Settings) -> tuple[float, float]:
    """Milliseconds a timestamp, to take rows in and altogether: medians of averages."""
    taking, total = [], []
    for _ in range(settings.repeats):
        ticks = [run.tick(values) for _ in range(settings.timestamps)]
        taking.append(1000 * sum(fed for fed, _ in ticks) / len(ticks))
        total.append(1000 * sum(map(sum, ticks)) / len(ticks))
    return median(taking), median(total)


def findings(points: Points) -> Iterator[Finding]:
    worst = max(max(points.of(name)) for name in CLASSES)
    yield Finding(
        "All answers take less than 2 s a timestamp in most cases", f"at most {worst / 1000:.3g} s", worst < 2000
    )
    rates = float(points.xs[-1]) / float(points.xs[0])
    growths = {name: points.growth(name) for name in CLASSES}
    yield Finding(
        "The time grows almost linearly with the rate, and no faster",
        f"the rate grows {rates:.0f} times, the time "
        + ", ".join(f"{growth:.2f} times ({name})" for name, growth in growths.items())
        + f"; taking rows in grows {points.growth(TAKING):.1f} times",
        max(growths.values()) < 1.5 * rates,
    )
    smooth, medium, abrupt = (points.of(name)[-1] for name in CLASSES)
    yield Finding(
        "The longer slides may be, the more it costs",
        f"at the highest rate smooth {smooth:.3g}, medium {medium:.3g}, abrupt {abrupt:.3g} ms; more windows "
        "differ, too",
        smooth <= medium <= abrupt,
    )
    shares = [a / b for a, b in zip(points.of("abrupt"), points.of(UNSHARED), strict=True)]
    yield Finding(
        "Much time is saved by sharing (no number given)",
        f"abrupt windows cost {100 * shares[-1]:.2g}% of what as many single windows would, at the highest rate",
        shares[-1] < 0.4,
    )


FIGURE = Figure(
    title="Subsuming windows, figure 12: time to answer all SUMs",
    claim="all answers of 10,000 windows come within a fraction of a second a timestamp, at every rate",
    paper="10,000 windows of each class of figure 10; SUM; up to 100,000 tuples a timestamp; averages over complete "
    "windows; Xeon, 2.13 GHz, C++; below 2 s in most cases, the curves have no other numbers in the text. Ours: a "
    "query for each window, grouped by cost, all answers of a timestamp in one Arrow table; at the size `seconds` "
    "there are only 1000 windows, since reading 10,000 queries takes some ten seconds a class",
    x="tuples a timestamp",
    y="ms a timestamp",
    baseline=UNSHARED,
    sizes={
        "smoke": Settings(windows=30, rates=(100, 1000), timestamps=4, repeats=1),
        "seconds": Settings(windows=1000, rates=(10_000, 50_000, 100_000), timestamps=6, repeats=3),
        "full": Settings(windows=10_000, rates=(10_000, 20_000, 50_000, 100_000), timestamps=60, repeats=3),
    },
    measure=measure,
    findings=findings,
    log=frozenset("y"),
)
