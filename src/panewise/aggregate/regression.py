"""REGR_SLOPE, REGR_INTERCEPT, REGR_R2 and REGR_FORECAST: the least-squares line through (x, y), by default over time.

Paper: "Multi-granular windows" section IV.B. Here every item is a point; in `series` every instant is one.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Sequence
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from panewise.aggregate.base import Aggregate, Invertible, Laws, numeric_type
from panewise.aggregate.lines import (
    AnchoredLineStates,
    FloatLineStates,
    IntegerLineStates,
    Line,
    LineProperty,
    LineRequest,
    LineStates,
    as_fraction,
    fit_line,
    is_finite,
    is_whole,
    parts_of,
)
from panewise.aggregate.positional import LevelView, Positional, PositionalStates, TierStates
from panewise.aggregate.series import (
    DurationLiteral,
    SeriesForecast,
    SeriesIntercept,
    SeriesLine,
    SeriesR2,
    SeriesSlope,
)
from panewise.aggregate.states import Int64Array, Items, SolvedStates, StateArrays, StateWords
from panewise.aggregate.sum import nearest_double
from panewise.core.schema import tick_size
from panewise.core.time import UNITS, Domain

#: Count, sums of x, y, x*x, x*y and y*y over finite points, and how many points were not finite.
State = tuple[int, Fraction, Fraction, Fraction, Fraction, Fraction, int]
_NOTHING: State = (0, Fraction(0), Fraction(0), Fraction(0), Fraction(0), Fraction(0), 0)


class Regression(Invertible[State]):
    """Algebraic: the line is computed from sums, which are distributive, so that all levels of a hierarchy share them.

    Values are (y, x). With one argument x is the item's time: seconds on timestamps, ticks on integers.
    """

    arity = 2
    laws = Laws(invertible=True)
    #: The aggregate that a call with the name of a series means.
    series: ClassVar[type[SeriesLine]]

    def result_type(self) -> pa.DataType:
        numeric_type(self, 0)
        if not pa.types.is_timestamp(self.types[1]):
            numeric_type(self, 1)
        return pa.float64()

    @property
    def unit(self) -> int:
        """Ticks to the unit of the answer: to a second on timestamps."""
        return UNITS["SECOND"] if pa.types.is_timestamp(self.types[1]) else 1

    def _line_request(self) -> LineRequest:
        y, x = self.types
        return LineRequest(self.series.asked, self.unit, tick_size(x) / parts_of(x), parts_of(y))

    def _abscissa(self, x: Any) -> Fraction:
        """A finite x in the unit of the answer; a timestamp is a number of ticks of its type."""
        return as_fraction(x) * tick_size(self.types[1]) / self.unit

    def meaning(self, values: Sequence[tuple[Any, Any]]) -> float | None:
        found = self._line(values)
        return found if found is None or isinstance(found, float) else nearest_double(self._answer_from(found))

    def _line(self, values: Sequence[tuple[Any, Any]]) -> Line | float | None:
        """The line through points; NaN where some are not finite."""
        if not all(is_finite(y) and is_finite(x) for y, x in values):
            return math.nan
        return fit_line([(as_fraction(y), self._abscissa(x)) for y, x in values])

    def identity(self) -> State:
        return _NOTHING

    def lift(self, value: tuple[Any, Any]) -> State:
        y, x = value
        if not (is_finite(y) and is_finite(x)):
            return (1, *_NOTHING[1:6], 1)
        fy, fx = as_fraction(y), self._abscissa(x)
        return 1, fx, fy, fx * fx, fx * fy, fy * fy, 0

    def combine(self, left: State, right: State) -> State:
        (n, x, y, xx, xy, yy, odd), (m, u, v, uu, uv, vv, more) = left, right
        return n + m, x + u, y + v, xx + uu, xy + uv, yy + vv, odd + more

    def invert(self, whole: State, part: State) -> State:
        (n, x, y, xx, xy, yy, odd), (m, u, v, uu, uv, vv, fewer) = whole, part
        return n - m, x - u, y - v, xx - uu, xy - uv, yy - vv, odd - fewer

    def lower(self, state: State) -> float | None:
        count, x, y, xx, xy, yy, odd = state
        if odd:
            return math.nan
        if count < 2 or count * xx == x * x:
            return None
        found = Line(x / count, y / count, xx - x * x / count, xy - x * y / count, yy - y * y / count)
        return nearest_double(self._answer_from(found))

    def state_arrays(self) -> StateArrays:
        request = self._line_request()
        y, x = self.types
        if request.asked is not LineProperty.FIT and is_whole(x):
            if is_whole(y):
                return IntegerLineStates(request)
            if pa.types.is_floating(y):
                return FloatLineStates(request)
        # REGR_R2 needs these too, since it must know whether y varies at all.
        if all(is_whole(kind) or pa.types.is_floating(kind) for kind in self.types):
            return AnchoredLineStates(y, x, request)
        return super().state_arrays()

    @abstractmethod
    def _answer_from(self, found: Line) -> Fraction:
        """The answer from a line."""


class RegrSlope(Regression):
    """How much y grows with x."""

    names = ("REGR_SLOPE",)
    options = ("series", "step")
    series: ClassVar[type[SeriesLine]] = SeriesSlope

    @classmethod
    def variant(cls, literals: Sequence[str]) -> type[Aggregate[Any]]:
        return cls.series if literals else cls

    def _answer_from(self, found: Line) -> Fraction:
        return found.slope


class RegrIntercept(RegrSlope):
    """Where the line of REGR_SLOPE meets x = 0."""

    names = ("REGR_INTERCEPT",)
    series = SeriesIntercept

    def _answer_from(self, found: Line) -> Fraction:
        return found.value(Fraction(0))


class RegrR2(RegrSlope):
    """How well the line fits, from 0 to 1: the square of the correlation. 1 where y does not vary, as in SQL."""

    names = ("REGR_R2",)
    series = SeriesR2

    def _answer_from(self, found: Line) -> Fraction:
        return found.fit


class RegrForecast(Positional[State], Regression):
    """The value of the line over time, some time after the window's end."""

    names = ("REGR_FORECAST",)
    parameters = ("ahead",)
    options = ("series", "step")
    timed = True
    series = SeriesForecast

    def __init__(self, *types: pa.DataType, ahead: str) -> None:
        super().__init__(*types)
        self.ahead = DurationLiteral.parse(self.names[0], "horizon", ahead)

    @classmethod
    def variant(cls, literals: Sequence[str]) -> type[Aggregate[Any]]:
        return cls.series if len(literals) > 1 else cls

    def check(self, levels: int, domain: Domain) -> None:
        self.ahead.check(self.names[0], "horizon", domain)

    def meaning_in_view(self, items: Sequence[tuple[int, Any]], view: LevelView) -> float | None:
        found = self._line([value for _, value in items])
        at = Fraction(view.front + self.ahead.ticks, self.unit)
        return found if found is None or isinstance(found, float) else nearest_double(found.value(at))

    def state_arrays(self) -> ForecastStates:
        request = self._line_request()
        lines = IntegerLineStates(request) if is_whole(self.types[0]) else FloatLineStates(request)
        return ForecastStates(lines, self.ahead.ticks)

    def _answer_from(self, found: Line) -> Fraction:
        return found.value(Fraction(self.ahead.ticks, self.unit))

    def text(self, arguments: Sequence[str]) -> str:
        return f"REGR_FORECAST({arguments[0]}, '{self.ahead.duration}')"

    def _key(self) -> tuple[Any, ...]:
        return (*super()._key(), self.ahead)


class ForecastStates(SolvedStates, PositionalStates):
    """The states of a line; combined tiers have the answers, and whether there is none."""

    def __init__(self, lines: LineStates, ahead: int) -> None:
        self.lines, self.ahead, self.exact = lines, ahead, lines.exact

    def identity(self, size: int) -> StateWords:
        return self.lines.identity(size)

    def _gather(self, slots: Int64Array, items: Items, into: StateWords) -> None:
        self.lines._gather(slots, items, into)

    def combine(self, left: StateWords, right: StateWords) -> StateWords:
        return self.lines.combine(left, right)

    def invert(self, whole: StateWords, part: StateWords) -> StateWords:
        return self.lines.invert(whole, part)

    def combine_tiers(self, view: LevelView, tiers: Sequence[TierStates], size: int) -> StateWords:
        words = self.identity(size)
        for tier in tiers:
            words = self.combine(words, tier.total())
        return self._values_at(view.front + self.ahead, words)

    def solve(self, words: StateWords) -> StateWords:
        return self._values_at(self.ahead, words)

    def _values_at(self, time: int, words: StateWords) -> StateWords:
        return self.lines.request.solve(self.lines.moments(words), np.full(len(words[0]), time))
