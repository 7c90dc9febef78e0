""" "Data-driven windows" figure 10: frames by the size of the data, beside windows that find the same periods."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from statistics import median
from time import perf_counter

import numpy as np
import pyarrow as pa

from benchmarks.data.traffic import days
from benchmarks.figures.frames.specifications import (
    LEAST,
    SPECIFICATIONS,
    answered,
    coalesced,
    frames_of,
    periods,
    windows_like,
)
from benchmarks.harness.figure import Figure, Finding, Points, Row

READING = "reading"
#: Ends the names of series with as many detectors as the paper had.
MANY = ", many detectors"
#: Miles an hour that nobody drives.
NEVER = "speed > 1000"


@dataclass(frozen=True)
class Settings:
    #: Rows of a day are 4,320 for each detector; a day comes at a time.
    days: tuple[int, ...]
    detectors: int
    repeats: int
    #: So many detectors for the fewest days: windows cost less a row where each instant has many.
    many: int


def measure(settings: Settings) -> Iterator[Row]:
    list(compared(list(days(1, 2)), 1))  # so that no kernel is compiled on the clock
    tables = list(days(settings.days[-1], settings.detectors))
    for count in settings.days:
        for name, taken in compared(tables[:count], settings.repeats):
            yield Row(name, count, taken)
    del tables
    for name, taken in compared(list(days(settings.days[0], settings.many)), settings.repeats):
        yield Row(f"{name}{MANY}", settings.days[0], taken)


def compared(tables: list[pa.Table], repeats: int) -> Iterator[tuple[str, float]]:
    """Seconds of each query over the same tables; frames and windows must find the same."""
    yield READING, middle(repeats, frames_of(NEVER), tables)[0]
    for name, (condition, extreme) in SPECIFICATIONS.items():
        framed, frames = middle(repeats, frames_of(condition), tables)
        windowed, windows = middle(repeats, windows_like(extreme), tables)
        began = perf_counter()
        merged = coalesced(windows)
        windowed += perf_counter() - began
        if not np.array_equal(merged, periods(frames)):
            raise ValueError(f"{name}: {len(merged)} periods of windows are not the {frames.num_rows} frames")
        yield name, framed
        yield like(name), windowed


def like(name: str) -> str:
    return f"{name}, windows"


def middle(repeats: int, query: str, tables: list[pa.Table]) -> tuple[float, pa.Table]:
    """The median of the seconds that a query takes, and what it says each time."""
    found = [answered(query, tables) for _ in range(repeats)]
    return median(taken for taken, _ in found), found[0][1]


def findings(points: Points) -> Iterator[Finding]:
    first, last = float(points.xs[0]), float(points.xs[-1])
    for name in SPECIFICATIONS:
        growth = points.growth(name)
        yield Finding(
            f"{name}: the cost of frames grows with the data",
            f"{last / first:.0f} times the data takes {growth:.1f} times as long",
            1 < growth < 2.5 * last / first,
        )
    for name in SPECIFICATIONS:
        lead = points.lead(like(name), name)
        yield Finding(
            f"(our bound) {name}: frames are at least 5 times as fast as windows and coalescing, for the same periods",
            f"at least {lead:.1f} times, and {points.of(like(name))[-1] / points.of(name)[-1]:.1f} for {last:.0f} days",
            lead >= 5,
        )
        lead = points.lead(f"{like(name)}{MANY}", f"{name}{MANY}")
        yield Finding(f"(our bound) {name}: the same with many detectors", f"{lead:.1f} times", lead >= 5)


FIGURE = Figure(
    title="Data-driven windows, figure 10: frames by the size of the data",
    claim="frames cost little more than reading, and a fraction of the windows that find the same periods",
    paper="three specifications over 1 day to 2 months of reports every 20 s; cost grows with the data. The paper also "
    "draws the base cost of reading and of a frame-like window query, whose numbers we do not have: windows as long as "
    "the least frame that slide by a report, an aggregate and a selection derived from the condition, then coalesced. "
    f"Least length {LEAST} reports, of several detectors at once (600 in the paper; many are that many at size "
    "`full`); a day comes at a time. Reading is a frame query whose condition never holds. Windows are coalesced in "
    "NumPy, and the run stops where they do not give exactly the frames",
    x="days",
    y="seconds",
    baseline=READING,
    sizes={
        "smoke": Settings(days=(1, 2), detectors=2, repeats=1, many=4),
        "seconds": Settings(days=(1, 3, 7), detectors=20, repeats=3, many=100),
        "full": Settings(days=(1, 7, 31, 62), detectors=60, repeats=3, many=600),
    },
    measure=measure,
    findings=findings,
    log=frozenset("xy"),
)
