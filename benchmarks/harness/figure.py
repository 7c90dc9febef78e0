"""What a figure is: a claim, the paper's facts, the settings of its sizes, points and findings."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Generic, TypeVar

#: `smoke` proves that a program runs, `seconds` is for CI and daily work, `full` for figures that are shown.
SIZES = ("smoke", "seconds", "full")

P = TypeVar("P")


@dataclass(frozen=True)
class Row:
    """One measured point. `x` may also be a category."""

    series: str
    x: float | str
    y: float


@dataclass(frozen=True)
class Finding:
    """A fact of the paper, in our words, beside what was measured here."""

    paper: str
    ours: str
    holds: bool


class Points:
    """The rows of one run, by series and x."""

    def __init__(self, rows: Iterable[Row]) -> None:
        self.rows = list(rows)
        self._y = {(row.series, row.x): row.y for row in self.rows}

    @property
    def series(self) -> list[str]:
        return list(dict.fromkeys(row.series for row in self.rows))

    @property
    def xs(self) -> list[float | str]:
        return list(dict.fromkeys(row.x for row in self.rows))

    def get(self, series: str, x: float | str) -> float | None:
        return self._y.get((series, x))

    def of(self, series: str) -> list[float]:
        """The values of a series, in the order of x."""
        return [row.y for row in self.rows if row.series == series]

    def growth(self, series: str) -> float:
        """By which factor a series changes from its first x to its last."""
        values = self.of(series)
        return values[-1] / values[0]

    def swing(self, series: str) -> float:
        """The largest value of a series over its smallest."""
        return max(self.of(series)) / min(self.of(series))

    def lead(self, series: str, other: str) -> float:
        """The least ratio of one series to another, over every x."""
        return min(a / b for a, b in zip(self.of(series), self.of(other), strict=True))


@dataclass(frozen=True)
class Figure(Generic[P]):
    """A figure of a paper, as a program.

    `measure` takes the settings of a size and yields rows, medians of its own repeats. Ratios to the series `baseline`
    at the same x are added by the frame, since only they compare from one machine to another.
    """

    title: str
    #: What this program is to show, in one sentence.
    claim: str
    #: The facts and numbers of the paper, in our words.
    paper: str
    x: str
    y: str
    baseline: str
    #: The settings of each of SIZES; a dataclass, so that they are recorded.
    sizes: Mapping[str, P]
    measure: Callable[[P], Iterator[Row]]
    findings: Callable[[Points], Iterable[Finding]]
    log: frozenset[str] = field(default=frozenset())  # of "x" and "y"
    #: How it is drawn: one of `draw.PLOTS`.
    plot: str = "lines"

    def __post_init__(self) -> None:
        missing = [size for size in SIZES if size not in self.sizes]
        if missing:
            raise ValueError(f"{self.title!r} has no size {', '.join(missing)}")
