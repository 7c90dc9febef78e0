"""AGED_SUM, AGED_AVG and AGED_COUNT: older items count less.

Paper: "Multi-granular windows" section IV.A, a weight for each level; and decay with age across granules.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from panewise import kernels
from panewise.aggregate.base import Invertible, Laws, numeric_type
from panewise.aggregate.positional import LevelView, Positional, PositionalStates, TierStates
from panewise.aggregate.states import Int64Array, Items, SolvedStates, StateWords, put, states_at
from panewise.aggregate.sum import float_totals, nearest_double
from panewise.core.errors import AggregateProblem, TimeProblem
from panewise.core.time import Domain, Duration

#: How many values, the sum of the finite ones, and how many NaN, infinities and minus infinities.
State = tuple[int, Fraction, int, int, int]


@dataclass(frozen=True)
class Weighting:
    """How much items count, by tier or by age; by default the weight is halved with each tier.

    weights: one for each level, finest first. half_life: the age that halves a weight, as written; its ticks
    depend on the time of the stream. power: of 1 + age, where age is counted in slides of the finest level.
    """

    weights: tuple[float, ...] = ()
    half_life: Duration | None = None
    power: float | None = None

    @property
    def by_age(self) -> bool:
        """Whether granules of one tier have different weights."""
        return self.half_life is not None or self.power is not None

    def weight(self, view: LevelView, tier: int, age: int) -> float:
        """The weight of an item in a tier, in a granule of some age."""
        if self.half_life is not None:
            return math.exp2(-age / self.half_life.ticks(view.domain))
        if self.power is not None:
            return float((1 + age / view.slides[0]) ** -self.power)
        return self.weights[tier] if self.weights else 2.0**-tier

    def check(self, name: str, levels: int, domain: Domain) -> None:
        """Refuse a window to which these weights do not fit."""
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
    """The weights of a call: none, one for each level, or the name of a decay and its parameter."""
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
    """Base of the three. With weights by level O(1) for each pane; with decay every pane is weighed at every instant.

    An item of weight zero has no effect, also if it is infinite. Answers are doubles, within a few units in the last
    place of the sum of all magnitudes.
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
    def _answer(self, count: int, total: float, weights: float) -> float | None:
        """The answer from the number of values, their weighted sum and the sum of weights."""

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
    """The mean of all values by weight; NULL where all weights are zero."""

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


class AgedSumStates(SolvedStates, PositionalStates):
    """How many values, a compensated pair, marks of NaN and infinities, and the sum of weights.

    Until tiers are combined, every weight is one. Never subtracted, as sums of floats never are.
    """

    def __init__(self, weighting: Weighting) -> None:
        self.weighting, self.apart = weighting, weighting.by_age

    def identity(self, size: int) -> StateWords:
        return np.zeros(size, np.int64), np.zeros(size), np.zeros(size), np.zeros(size, np.uint8), np.zeros(size)

    def _gather(self, slots: Int64Array, items: Items, into: StateWords) -> None:
        values = items.arguments[0].cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
        kernels.count(slots, into[0])
        kernels.add_floats(slots, values, *into[1:4])
        into[4][:] = into[0]

    def combine(self, left: StateWords, right: StateWords) -> StateWords:
        high, low = kernels.add_pairs(left[1], left[2], right[1], right[2])
        return left[0] + right[0], high, low, left[3] | right[3], left[4] + right[4]

    def combine_tiers(self, view: LevelView, tiers: Sequence[TierStates], size: int) -> StateWords:
        found = self.identity(size)
        for number, tier in enumerate(tiers):
            if not self.apart:
                found = self.combine(found, _apply_weight(tier.total(), self.weighting.weight(view, number, 0)))
                continue
            for end, where, words in tier.panes():
                weight = self.weighting.weight(view, number, view.age(end, number))
                put(found, where, self.combine(states_at(found, where), _apply_weight(words, weight)))
        return found

    def solve(self, words: StateWords) -> StateWords:
        return float_totals(*words[1:4]), words[0] == 0


class AgedAvgStates(AgedSumStates):
    """AGED_AVG."""

    def solve(self, words: StateWords) -> StateWords:
        nothing = words[4] == 0
        return float_totals(*words[1:4]) / np.where(nothing, 1.0, words[4]), nothing


class AgedCountStates(AgedSumStates):
    """AGED_COUNT, of values of any type."""

    def _gather(self, slots: Int64Array, items: Items, into: StateWords) -> None:
        kernels.count(slots, into[0])
        into[4][:] = into[0]

    def solve(self, words: StateWords) -> StateWords:
        return words[4], np.zeros(len(words[4]), bool)


def _apply_weight(words: StateWords, weight: float) -> StateWords:
    """States times a weight; with weight zero there are no marks either."""
    count, high, low, odd, weights = words
    return count, high * weight, low * weight, odd if weight else np.zeros_like(odd), weights * weight
