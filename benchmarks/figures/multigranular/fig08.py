""" "Multi-granular windows" figure 8: memory against the number of levels."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from benchmarks.data.streams import Longs
from benchmarks.data.windows import OPERATIONS, Levels, clause, nested
from benchmarks.harness.figure import Figure, Finding, Points, Row
from benchmarks.harness.ticking import Run, all_memory


@dataclass(frozen=True)
class Settings:
    levels: tuple[int, ...]
    repeats: int


STATES, WIDEST = "aggregation, states alone", "aggregation, widest level alone"
#: The widest window of the paper as tuples: 40 timestamps of 100,000 times and values.
RAW = 40 * 100_000 * 16 / 1024
SUMS = ("aggregation", "regression")
#: How many different values recur; the last is no number of the paper.
ITEMS = (5, 10, 10_000)


def measure(settings: Settings) -> Iterator[Row]:
    for answer in OPERATIONS.values():
        Run([clause(nested(5))], answer).fill(48)  # kernels and caches are no part of the windows
    for count in settings.levels:
        levels = nested(count)
        for name in SUMS:
            yield Row(name, count, kept(levels, OPERATIONS[name], settings.repeats))
        for items in ITEMS:
            values = np.arange(items, dtype=np.int64)
            yield Row(recurrent(items), count, kept(levels, OPERATIONS["recurrence"], settings.repeats, values))
        yield Row(WIDEST, count, kept(levels[-1:], OPERATIONS["aggregation"], settings.repeats))
        run = Run([clause(levels)], OPERATIONS["aggregation"])
        run.fill(sum(levels[-1]))
        yield Row(STATES, count, run.states(levels[-1][1]) / 1024)


def kept(levels: Levels, answer: str, repeats: int, values: Longs | None = None) -> float:
    """KiB that complete windows take in all; the least of some runs, since others may hold garbage."""
    return min(all_memory(Run([clause(levels)], answer), sum(levels[-1]), values) for _ in range(repeats)) / 1024


def recurrent(items: int) -> str:
    return f"recurrent, {items} items"


def findings(points: Points) -> Iterator[Finding]:
    more = float(points.xs[-1]) / float(points.xs[0])
    for name in SUMS:
        yield Finding(
            f"The memory of {name} grows less than the number of levels",
            f"levels grow {more:.1f} times, all that is kept {points.growth(name):.2f} times",
            points.growth(name) < more,
        )
    most = max(max(points.of(name)) for name in SUMS)
    yield Finding(
        "Memory is almost negligible, below 1.5 KB where the axis ends: no tuples are kept",
        f"states alone take up to {max(points.of(STATES)):.2g} KiB, with Python's objects and bookkeeping up to "
        f"{most:.0f} KiB; the tuples of the widest window would take {RAW:,.0f} KiB",
        max(points.of(STATES)) < 1.5,
    )
    few, many = (points.of(recurrent(items))[-1] for items in (ITEMS[0], ITEMS[-1]))
    yield Finding(
        "Recurring items take memory in proportion to how many there are: a bitmap each",
        f"{few:.0f} KiB for {ITEMS[0]} of them, {many:,.0f} KiB for {ITEMS[-1]:,}: a bit each in every granule, and "
        f"the values themselves, {1024 * many / ITEMS[-1]:.0f} bytes an item in all",
        many / few < ITEMS[-1] / ITEMS[0],
    )
    extra = max(a / b for a, b in zip(points.of("aggregation"), points.of(WIDEST), strict=True))
    yield Finding(
        "A nested window keeps about as much as its widest level on its own (said of tuples)",
        f"in panes, up to {extra:.1f} times as much in all: fine levels have more panes than the coarse one",
        extra < 2.5,
    )


FIGURE = Figure(
    title="Multi-granular windows, figure 8: memory against the levels",
    claim="nested windows keep partial aggregates and no tuples, and memory grows less than the number of levels",
    paper="windows as in figure 6, 100,000 tuples a timestamp; SUM and linear fit of durations, 5 and 10 recurring "
    "items. The curves have no numbers in the text; their axis ends at 1.5 KB. Rows "
    "a timestamp do not matter for sums, so there are few. "
    "'States alone' is `engine.nbytes`, which counts panes and the totals beside them, but not what objects hold; all "
    "else is what Python allocates from the first row on and keeps",
    x="levels",
    y="KiB",
    baseline=WIDEST,
    sizes={
        "smoke": Settings(levels=(2, 5), repeats=1),
        "seconds": Settings(levels=(2, 3, 4, 5), repeats=1),
        "full": Settings(levels=(2, 3, 4, 5), repeats=5),
    },
    measure=measure,
    findings=findings,
    log=frozenset("y"),
)
