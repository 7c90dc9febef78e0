"""AGED_SUM, AGED_AVG and AGED_COUNT: what lies further back counts less.

Paper: "Multi-granular windows" section IV.A, a weight for each level; and decay with age across granules.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import pyarrow as pa

from panewise.aggregate.base import Invertible, Laws, numeric_type
from panewise.aggregate.positional import Positional
from panewise.aggregate.states.aged import AgedAvgStates, AgedCountStates, AgedSumStates
from panewise.aggregate.sum import nearest_double
from panewise.aggregate.view import LevelView
from panewise.core.errors import AggregateProblem, TimeProblem
from panewise.core.time import Domain, Duration

#: How many values, the sum of the finite ones, and how many NaN, infinities and minus infinities.
State = tuple[int, Fraction, int, int, int]


@dataclass(frozen=True)
class Weighting:
    """How much items count, by tier or by age: halved with each tier unless said otherwise.

    weights: one for each level, finest first. half_life: the age that halves a weight, as written; it is known in
    ticks once the time of the stream is. power: of 1 + age, counted in slides of the finest level.
    """

    weights: tuple[float, ...] = ()
    half_life: Duration | None = None
    power: float | None = None

    @property
    def by_age(self) -> bool:
        """Whether granules of one tier weigh differently."""
        return self.half_life is not None or self.power is not None

    def weight(self, view: LevelView, tier: int, age: int) -> float:
        """What an item weighs in a tier, in a granule of some age."""
        if self.half_life is not None:
            return math.exp2(-age / self.half_life.ticks(view.domain))
        if self.power is not None:
            return float((1 + age / view.slides[0]) ** -self.power)
        return self.weights[tier] if self.weights else 2.0**-tier

    def check(self, name: str, levels: int, domain: Domain) -> None:
        """Refuse a window that these weights do not fit."""
        if self.weights and len(self.weights) != levels:
            count = f"{len(self.weights)} weight{'s' * (len(self.weights) > 1)}"
            raise AggregateProblem(
                f"{name} has {count}, but the window has {levels} level{'s' * (levels > 1)}",
                fix="give one weight for each level, finest first, or leave them out",
            )
        if self.half_life is not None:
            try:
                ticks = self.half_life.ticks(domain)
            except TimeProblem as problem:
                raise AggregateProblem(f"{name}: {problem.message}", fix=problem.fix) from None
            if ticks <= 0:
                raise AggregateProblem(f"half-life {self.half_life} of {name} is not positive", fix="use a longer one")


def parse_weights(name: str, given: Sequence[str]) -> Weighting:
    """Weights as written: none, one a level, or the name of a decay and its parameter."""
    kind = given[0].upper() if given else ""
    if kind not in ("EXPONENTIAL", "POLYNOMIAL"):
        return Weighting(tuple(_number(name, "weight", text) for text in given))
    if len(given) != 2:
        wanted = "'EXPONENTIAL', half-life" if kind == "EXPONENTIAL" else "'POLYNOMIAL', power"
        raise AggregateProblem(
            f"{kind} decay of {name} has {len(given) - 1} parameters", fix=f"write {name}(column, {wanted})"
        )
    if kind == "POLYNOMIAL":
        return Weighting(power=_number(name, "power", given[1]))
    try:
        return Weighting(half_life=Duration.parse(given[1]))
    except TimeProblem as problem:
        raise AggregateProblem(f"half-life of {name}: {problem.message}", fix=problem.fix) from None


def _number(name: str, what: str, text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        fix = "use numbers, or 'EXPONENTIAL' or 'POLYNOMIAL'" if what == "weight" else "use a number such as 2"
        raise AggregateProblem(f"{what} {text!r} of {name} is not a number", fix=fix) from None
    if not math.isfinite(value) or value < 0:
        raise AggregateProblem(f"{what} {text} of {name} is not a number of zero or more", fix="use one such as 0.5")
    return value


class Aged(Positional[State], Invertible[State]):
    """Base of the three. O(1) a pane with weights by level; with decay every pane is weighed at every instant.

    An item that weighs nothing leaves no trace, also if it is infinite. Answers are doubles, within a few units in the
    last place of the sum of all magnitudes.
    """

    rest: ClassVar[str | None] = "weights"
    laws: ClassVar[Laws] = Laws(invertible=True)

    def __init__(self, *types: pa.DataType, weights: Sequence[str] = ()) -> None:
        super().__init__(*types)
        self.given = tuple(weights)
        self.weighting = parse_weights(self.names[0], self.given)

    def result_type(self) -> pa.DataType:
        numeric_type(self)
        return pa.float64()

    def check(self, levels: int, domain: Domain) -> None:
        self.weighting.check(self.names[0], levels, domain)

    def meaning_in_view(self, items: Sequence[tuple[int, Any]], view: LevelView) -> float | None:
        total, weights, odd = Fraction(0), Fraction(0), 0.0
        for position, value in items:
            tier = view.tier(position)
            weight = Fraction(self.weighting.weight(view, tier, view.age(position, tier)))
            if weight and isinstance(value, float) and not math.isfinite(value):
                odd += value
            elif weight:
                total += weight * Fraction(value)
            weights += weight
        return self._answer(len(items), odd if odd else nearest_double(total), nearest_double(weights))

    def identity(self) -> State:
        return 0, Fraction(0), 0, 0, 0

    def lift(self, value: Any) -> State:
        if isinstance(value, float) and not math.isfinite(value):
            return 1, Fraction(0), int(value != value), int(value > 0), int(value < 0)
        return 1, Fraction(value), 0, 0, 0

    def combine(self, left: State, right: State) -> State:
        (n, total, *odd), (m, other, *more) = left, right
        return n + m, total + other, odd[0] + more[0], odd[1] + more[1], odd[2] + more[2]

    def invert(self, whole: State, part: State) -> State:
        (n, total, *odd), (m, other, *fewer) = whole, part
        return n - m, total - other, odd[0] - fewer[0], odd[1] - fewer[1], odd[2] - fewer[2]

    def lower(self, state: State) -> float | None:
        count, total, nans, ups, downs = state
        odd = math.nan if nans or (ups and downs) else math.inf * (bool(ups) - bool(downs)) if ups or downs else 0.0
        return self._answer(count, odd if odd else nearest_double(total), float(count))

    @abstractmethod
    def _answer(self, count: int, total: float, weights: float) -> float | None: ...

    def text(self, arguments: Sequence[str]) -> str:
        return f"{self.names[0]}({', '.join([*arguments, *self.given])})"

    def _key(self) -> tuple[Any, ...]:
        return (*super()._key(), self.given)


class AgedSum(Aged):
    """The sum of all values, each times its weight."""

    names = ("AGED_SUM",)

    def _answer(self, count: int, total: float, weights: float) -> float | None:
        return total if count else None

    def state_arrays(self) -> AgedSumStates:
        return AgedSumStates(self.weighting)


class AgedAvg(Aged):
    """The mean of all values by weight; NULL where all weigh nothing."""

    names = ("AGED_AVG",)

    def _answer(self, count: int, total: float, weights: float) -> float | None:
        return total / weights if weights else None

    def state_arrays(self) -> AgedSumStates:
        return AgedAvgStates(self.weighting)


class AgedCount(Aged):
    """The sum of the weights."""

    names = ("AGED_COUNT",)

    def result_type(self) -> pa.DataType:
        return pa.float64()

    def meaning_in_view(self, items: Sequence[tuple[int, Any]], view: LevelView) -> float | None:
        return super().meaning_in_view([(position, 0) for position, _ in items], view)

    def lift(self, value: Any) -> State:
        return super().lift(0)

    def _answer(self, count: int, total: float, weights: float) -> float | None:
        return weights

    def state_arrays(self) -> AgedSumStates:
        return AgedCountStates(self.weighting)
