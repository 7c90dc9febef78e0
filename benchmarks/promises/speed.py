"""What Panewise promises about time and memory, measured; each beside its bound and a named baseline."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from benchmarks.harness.draw import number
from benchmarks.harness.figure import Figure, Finding, Points, Row
from benchmarks.promises.speed_rows import BESIDE, OURS, RowSettings, row_cases
from benchmarks.promises.speed_windows import WindowSettings, window_cases

PROMISED = "promised"


@dataclass(frozen=True)
class Promise:
    """What a case measures, in which unit, and its bound; without one it is only reported."""

    words: str
    unit: str
    at_least: float | None = None
    at_most: float | None = None
    #: What the baseline is, where there is one.
    beside: str = ""

    @property
    def bound(self) -> float | None:
        return self.at_most if self.at_least is None else self.at_least

    def holds(self, measured: float) -> bool:
        return (self.at_least is None or measured >= self.at_least) and (
            self.at_most is None or measured <= self.at_most
        )

    def __str__(self) -> str:
        side = "at least" if self.at_least is not None else "at most"
        told = "not promised" if self.bound is None else f"{side} {number(self.bound)} {self.unit}"
        return f"{self.words}: {told}"


DUCKDB, ONE = "DuckDB, one thread, panes only", "one window"
PROMISES = {
    "a1": Promise("SUM, COUNT, MAX of integers by key, 5 levels, all results", "M rows/s", 25, beside=DUCKDB),
    "a2": Promise("the same, over DuckDB making the panes alone", "times", 1.0),
    "a3": Promise("SUM, COUNT, MAX of doubles by key, 5 levels, all results", "M rows/s", 25, beside=DUCKDB),
    "a4": Promise("the same, over DuckDB making the panes alone", "times", 1.0),
    "b1": Promise("taking in the rows of an instant for many windows, over one window", "times", at_most=1.5),
    "b2": Promise("all answers of an instant, many windows, median", "ms", at_most=50, beside=ONE),
    "b3": Promise("all answers of an instant, many windows, worst", "ms", at_most=50, beside=ONE),
    "b4": Promise("an instant in all, many windows, median", "ms", beside=ONE),
    "b5": Promise("cutting the answers of an instant into a table for each query", "ms"),
    "b6": Promise("the first rows, with grouping and arranging many windows", "ms"),
    "c1": Promise("keys that are strings, otherwise as a1", "M rows/s", 8),
    "c2": Promise("very many integer keys, one window of two panes, all results", "M rows/s", 5),
    "c3": Promise("state for one key in one pane: SUM, COUNT, MAX", "bytes"),
    "c4": Promise(
        "the same for 1 to 5 levels, and for twice the keys: the worst over the first", "times", at_most=1.05
    ),
    "d1": Promise("MAX over many panes that slide one by one, over SUM", "times", at_most=3),
    "d2": Promise("the same, an instant", "us", beside="SUM"),
    "e1": Promise("panes of many windows, over the widest alone", "times", at_most=1.2),
    "e2": Promise("the same with totals, objects and bookkeeping", "times"),
    "f1": Promise("grouping many windows by cost", "ms", at_most=100),
    "f2": Promise("grouping many windows by Algorithm 1", "ms", at_most=100),
    "f3": Promise("embedding one more window among many, median", "ms", at_most=1),
    "f4": Promise("embedding one more window among many, worst", "ms", at_most=1),
    "f5": Promise("revoking a window among many, median", "ms", at_most=1),
    "f6": Promise("revoking a window among many, worst", "ms", at_most=1),
    "f7": Promise("registering a query with an engine that runs many, and the next row, median", "ms"),
    "f8": Promise("registering a query with an engine that runs many, and the next row, worst", "ms"),
    "f9": Promise("revoking a query of an engine that runs many, and the next row, median", "ms"),
    "f10": Promise("revoking a query of an engine that runs many, and the next row, worst", "ms"),
    "g1": Promise("a snapshot", "s", at_most=1),
    "g2": Promise("restoring it", "s", at_most=1),
    "g3": Promise("its state", "MB"),
}


@dataclass(frozen=True)
class Settings:
    rows: RowSettings
    windows: WindowSettings


def measure(settings: Settings) -> Iterator[Row]:
    if settings != SMALLEST:  # once at the smallest size first, so that no kernel is compiled on the clock
        list(row_cases(SMALLEST.rows))
        list(window_cases(SMALLEST.windows))
    for row in (*row_cases(settings.rows), *window_cases(settings.windows)):
        yield row
        bound = PROMISES[str(row.x)].bound if row.series == OURS else None
        if bound is not None:
            yield Row(PROMISED, row.x, bound)


def findings(points: Points) -> Iterator[Finding]:
    for case, promise in PROMISES.items():
        measured, beside = points.get(OURS, case), points.get(BESIDE, case)
        if measured is not None:
            told = f"; {promise.beside}: {number(beside)} {promise.unit}" if beside is not None else ""
            yield Finding(f"{case}. {promise}", f"{number(measured)} {promise.unit}{told}", promise.holds(measured))


SMALLEST = Settings(
    RowSettings(rows=20_000, ticks=200, keys=50, many_keys=2000, panes=500, repeats=1),
    WindowSettings(windows=40, rate=1000, instants=4, changes=4, repeats=1),
)

FIGURE = Figure(
    title="Speed: what Panewise promises",
    claim="one core keeps up with tens of millions of rows a second, thousands of windows and a million keys",
    paper="no paper: these bounds are our own, and meant for the size `full`. There a and c1 have 20 M rows, 2,000 "
    "ticks, 1,000 keys, c2 has 1 M keys; many windows are 10,000 random ones with ranges up to 60, slides up to 30, no "
    "keys, with 100,000 rows an instant; d has 100,000 panes; g has about 100 MB of state. One thread, also for "
    "DuckDB, which reads the same Arrow table. L1 to L5 is the state with 1 to 5 levels and 1 M keys. Smaller sizes "
    "have fewer of everything, so that results outnumber rows in a and c1",
    x="case",
    y="in the unit of the case",
    baseline=PROMISED,
    sizes={
        "smoke": SMALLEST,
        "seconds": Settings(
            RowSettings(rows=1_000_000, ticks=2000, keys=1000, many_keys=50_000, panes=5000, repeats=3),
            WindowSettings(windows=1000, rate=100_000, instants=30, changes=20, repeats=3),
        ),
        "full": Settings(
            RowSettings(rows=20_000_000, ticks=2000, keys=1000, many_keys=1_000_000, panes=100_000, repeats=3),
            WindowSettings(windows=10_000, rate=100_000, instants=120, changes=200, repeats=5),
        ),
    },
    measure=measure,
    findings=findings,
    log=frozenset("y"),
)
