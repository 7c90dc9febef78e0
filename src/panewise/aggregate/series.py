"""Lines over series: one value an instant, as REGR_SLOPE(v, 'FILLED') and its like ask for.

Paper: "Multi-granular windows" section IV.B: several items of an instant are one value, and an instant without items
has the value of the one before it, or none.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import pyarrow as pa

from panewise.aggregate.base import Laws, numeric_type
from panewise.aggregate.lines import Line, as_fraction, fit_line, is_finite
from panewise.aggregate.positional import Positional
from panewise.aggregate.states.regression import LineProperty, LineRequest
from panewise.aggregate.states.series import SeriesStates
from panewise.aggregate.sum import nearest_double
from panewise.aggregate.view import LevelView
from panewise.core.errors import AggregateProblem, TimeProblem
from panewise.core.time import UNITS, Domain, Duration

#: How many items of one instant, the sum of the finite ones, and how many are not finite.
State = tuple[int, Fraction, int]

FORMS = ("SKIPPED", "FILLED")


@dataclass(frozen=True)
class DurationLiteral:
    """A length of time as written after the column: a number of ticks, or on timestamps a duration with a unit."""

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
        """Refuse a stream whose time it does not fit."""
        try:
            self.duration.ticks(domain)
        except TimeProblem as problem:
            raise AggregateProblem(f"{what} of {name}: {problem.message}", fix=problem.fix) from None


class SeriesLine(Positional[State]):
    """Base of the lines over series. Items lie in steps of time; each step with items is an instant.

    x of an instant is the last tick of its step. Before its first item a window holds no instant; FILLED repeats the
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

    def grain(self, domain: Domain) -> int:
        return self.step.ticks

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
        """No line goes through one instant."""
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


# Their names stand for the lines through items, which `regression` defines next and which choose these by literals.


class SeriesSlope(SeriesLine):
    names = ("REGR_SLOPE",)
    asked = LineProperty.SLOPE


class SeriesIntercept(SeriesLine):
    names = ("REGR_INTERCEPT",)
    asked = LineProperty.VALUE


class SeriesR2(SeriesLine):
    names = ("REGR_R2",)
    asked = LineProperty.FIT


class SeriesForecast(SeriesLine):
    """Where the line is some time after the window's end."""

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
