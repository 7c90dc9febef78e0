"""Lines over series, which have one value for each instant: REGR_SLOPE(v, 'FILLED') and its like.

Paper: "Multi-granular windows" section IV.B: several items of an instant are one value, their mean, and an instant
without items has the value of the instant before it, or none.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import reduce
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from panewise import kernels
from panewise.aggregate.base import Laws, numeric_type
from panewise.aggregate.lines import Line, LineProperty, LineRequest, as_fraction, fit_line, is_finite
from panewise.aggregate.positional import LevelView, Positional, PositionalStates, TierStates
from panewise.aggregate.ragged import RaggedArray, consecutive_runs, ragged_word
from panewise.aggregate.states import Int64Array, Items, StateWords, TotalStates
from panewise.aggregate.sum import nearest_double
from panewise.core.errors import AggregateProblem, TimeProblem
from panewise.core.time import UNITS, Domain, Duration

#: How many items of one instant, the sum of the finite ones, and how many are not finite.
State = tuple[int, Fraction, int]

FORMS = ("SKIPPED", "FILLED")


@dataclass(frozen=True)
class DurationLiteral:
    """A length of time in the call of an aggregate: a number of ticks, or on timestamps a duration with a unit."""

    duration: Duration

    @classmethod
    def parse(cls, name: str, what: str, text: str) -> DurationLiteral:
        try:
            return cls(Duration.parse(text))
        except TimeProblem as problem:
            raise AggregateProblem(f"{what} of {name}: {problem.message}", fix=problem.fix) from None

    @property
    def domain(self) -> Domain:
        return Domain.TIMESTAMP if self.duration.unit else Domain.INTEGER

    @property
    def ticks(self) -> int:
        return self.duration.ticks(self.domain)

    def check(self, name: str, what: str, domain: Domain) -> None:
        """Refuse a stream to whose time it does not fit."""
        try:
            self.duration.ticks(domain)
        except TimeProblem as problem:
            raise AggregateProblem(f"{what} of {name}: {problem.message}", fix=problem.fix) from None


class SeriesLine(Positional[State]):
    """Base of the lines over series. Time is divided into steps; each step with items is an instant.

    x of an instant is the last tick of its step. Before its first item a window has no instant; FILLED repeats the
    newest value up to the window's end, SKIPPED leaves gaps out.
    """

    parameters: ClassVar[tuple[str, ...]] = ("series",)
    options: ClassVar[tuple[str, ...]] = ("step",)
    laws: ClassVar[Laws] = Laws()
    asked: ClassVar[LineProperty]

    def __init__(self, *types: pa.DataType, series: str, step: str = "1") -> None:
        super().__init__(*types)
        name = self.names[0]
        if series.upper() not in FORMS:
            raise AggregateProblem(
                f"{name} knows no series {series!r}",
                fix="write 'SKIPPED' to leave instants without items out, or 'FILLED' to repeat the value before them",
            )
        self.filled = series.upper() == "FILLED"
        self.step = DurationLiteral.parse(name, "step", step)
        if self.step.duration.count <= 0:
            raise AggregateProblem(f"step {step} of {name} is not positive", fix="use a longer one")

    def result_type(self) -> pa.DataType:
        numeric_type(self)
        return pa.float64()

    def check(self, levels: int, domain: Domain) -> None:
        if domain is Domain.TIMESTAMP and self.step.domain is Domain.INTEGER:
            raise AggregateProblem(
                f"{self.names[0]} of a series needs to know how long an instant is",
                fix=f"write {self.names[0]}(column, '{FORMS[self.filled]}', '1 SECOND')",
            )
        self.step.check(self.names[0], "step", domain)

    @property
    def unit(self) -> int:
        """Ticks to the unit of x: seconds on timestamps."""
        return UNITS["SECOND"] if self.step.domain is Domain.TIMESTAMP else 1

    def meaning_in_view(self, items: Sequence[tuple[int, Any]], view: LevelView) -> float | None:
        step = self.step.ticks
        instants: dict[int, list[Any]] = {}
        for position, value in items:
            instants.setdefault(-(-position // step), []).append(value)
        values: dict[int, Fraction] = {}
        for instant, some in instants.items():
            if (mean := _mean(some)) is None:
                return math.nan
            values[instant] = mean
        if self.filled and values:
            for instant in range(min(values), max(max(values), view.front // step) + 1):
                values[instant] = values.get(instant, values.get(instant - 1, Fraction(0)))
        points = [(value, Fraction(instant * step - view.shift, self.unit)) for instant, value in values.items()]
        found = fit_line(points)
        return None if found is None else nearest_double(self._answer(found, view))

    def _answer(self, found: Line, view: LevelView) -> Fraction:
        match self.asked:
            case LineProperty.SLOPE:
                return found.slope
            case LineProperty.FIT:
                return found.fit
            case LineProperty.VALUE:
                return found.value(Fraction(0))

    def identity(self) -> State:
        return 0, Fraction(0), 0

    def lift(self, value: Any) -> State:
        return (1, Fraction(value), 0) if math.isfinite(value) else (1, Fraction(0), 1)

    def combine(self, left: State, right: State) -> State:
        return left[0] + right[0], left[1] + right[1], left[2] + right[2]

    def lower(self, state: State) -> float | None:
        """NULL, since a line needs two instants; NaN if a value is not finite."""
        return math.nan if state[2] else None

    def state_arrays(self) -> SeriesStates:
        return SeriesStates(self._line_request(), self.filled, None)

    def _line_request(self) -> LineRequest:
        return LineRequest(self.asked, self.unit, Fraction(self.step.ticks))

    def text(self, arguments: Sequence[str]) -> str:
        return f"{self.names[0]}({', '.join([*arguments, *self._literals()])})"

    def _literals(self) -> list[str]:
        return [f"'{FORMS[self.filled]}'", f"'{self.step.duration}'"]

    def _key(self) -> tuple[Any, ...]:
        return (*super()._key(), self.filled, self.step)


# The same names are registered again by `regression`, for the lines through items. These choose a line over a series if
# a call has literals (`variant`).


class SeriesSlope(SeriesLine):
    """How much the value grows with time."""

    names = ("REGR_SLOPE",)
    asked = LineProperty.SLOPE


class SeriesIntercept(SeriesLine):
    """Where the line of REGR_SLOPE meets time 0."""

    names = ("REGR_INTERCEPT",)
    asked = LineProperty.VALUE


class SeriesR2(SeriesLine):
    """How well the line fits, from 0 to 1."""

    names = ("REGR_R2",)
    asked = LineProperty.FIT


class SeriesForecast(SeriesLine):
    """The value of the line some time after the window's end."""

    names = ("REGR_FORECAST",)
    parameters = ("ahead", "series")
    asked = LineProperty.VALUE

    def __init__(self, *types: pa.DataType, ahead: str, series: str, step: str = "1") -> None:
        super().__init__(*types, series=series, step=step)
        self.ahead = DurationLiteral.parse(self.names[0], "horizon", ahead)

    def check(self, levels: int, domain: Domain) -> None:
        super().check(levels, domain)
        self.ahead.check(self.names[0], "horizon", domain)

    def state_arrays(self) -> SeriesStates:
        return SeriesStates(self._line_request(), self.filled, self.ahead.ticks)

    def _answer(self, found: Line, view: LevelView) -> Fraction:
        return found.value(Fraction(view.front + self.ahead.ticks, self.unit))

    def _literals(self) -> list[str]:
        return [f"'{self.ahead.duration}'", *super()._literals()]

    def _key(self) -> tuple[Any, ...]:
        return (*super()._key(), self.ahead)


def _mean(values: Sequence[Any]) -> Fraction | None:
    """The value of an instant; None where it is not finite."""
    if not all(map(math.isfinite, values)):
        return None
    mean = sum(map(Fraction, values), Fraction(0)) / len(values)
    return as_fraction(mean) if is_finite(mean) else None


class SeriesStates(PositionalStates):
    """The series of each pane, as runs, and marks of NaN and infinities. Totals of tiers keep segments.

    Combined tiers have the answers, and whether there is none.
    """

    def __init__(self, request: LineRequest, filled: bool, ahead: int | None) -> None:
        self.request, self.filled, self.ahead = request, filled, ahead

    def identity(self, size: int) -> StateWords:
        return _no_items(size)

    def _gather(self, slots: Int64Array, items: Items, into: StateWords) -> None:
        values = items.arguments[0].cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
        steps, left = np.divmod(items.times, self.request.step.numerator)
        into[0][:] = RaggedArray.of(*kernels.series_gather(slots, 2 * steps + (left > 0), values, into[1]))

    def combine(self, left: StateWords, right: StateWords) -> StateWords:
        one, other = ragged_word(left), ragged_word(right)
        merged = kernels.series_merge(one.runs, one.entries, other.runs, other.entries)
        return RaggedArray.of(*merged), left[1] | right[1]

    def tier_totals(self, shift: int) -> SegmentStates:
        return SegmentStates(self.filled, shift)

    def combine_tiers(self, view: LevelView, tiers: Sequence[TierStates], size: int) -> StateWords:
        segments = self.tier_totals(view.shift)
        words = reduce(segments.combine, (tier.total() for tier in tiers))
        end = view.front // self.request.step.numerator + 1
        at = view.shift if self.ahead is None else view.front + self.ahead + view.shift
        return self.request.solve(kernels.series_moments(words, end, self.filled), np.full(size, at))

    def lower(self, words: StateWords) -> pa.Array:
        return pa.array(words[0], mask=words[1])

    def write(self, words: StateWords) -> list[pa.Array]:
        held = ragged_word(words)
        kinds = (pa.int64(), pa.int64(), pa.float64(), pa.float64())
        entries = zip(held.own_entries(), kinds, strict=True)
        return [*(held.to_lists(pa.array(each), pa.list_(kind)) for each, kind in entries), pa.array(words[1])]

    def read(self, arrays: Sequence[pa.Array]) -> StateWords:
        *entries, marks = arrays
        runs = consecutive_runs(entries[0].value_lengths().to_numpy(zero_copy_only=False).astype(np.int64))
        columns = tuple(np.array(each.flatten().to_numpy()) for each in entries)
        return RaggedArray.of(runs, columns), np.array(marks.to_numpy())


class SegmentStates(TotalStates):
    """What lines need of all instants between two positions, in constant size: see `kernels.series`.

    Segments that are combined follow each other, but may share the instant in which one ends and the other begins.
    """

    def __init__(self, filled: bool, shift: int) -> None:
        self.filled, self.shift = filled, shift

    def identity(self, size: int) -> StateWords:
        return self.of_pane(_no_items(size))

    def of_pane(self, words: StateWords) -> StateWords:
        held = ragged_word(words)
        found: StateWords = kernels.series_segments(held.runs, held.entries, words[1], self.shift, self.filled)
        return found

    def combine(self, left: StateWords, right: StateWords) -> StateWords:
        found: StateWords = kernels.series_combine(left, right, self.filled)
        return found


def _no_items(size: int) -> StateWords:
    return RaggedArray.empty(size, np.int64, np.int64, np.float64, np.float64), np.zeros(size, np.uint8)
