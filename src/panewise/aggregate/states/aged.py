"""AGED_SUM, AGED_AVG and AGED_COUNT in arrays: sums of doubles that are weighed when they are looked at."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from panewise import kernels
from panewise.aggregate.states.base import Int64Array, Items, StateWords, put, states_at
from panewise.aggregate.states.positional import PositionalStates, TierStates

if TYPE_CHECKING:
    from panewise.aggregate.aged import Weighting
    from panewise.aggregate.view import LevelView


class AgedSumStates(PositionalStates):
    """How many values, a compensated pair, marks of NaN and infinities, and the sum of weights: one each until weighed.

    Never subtracted, as sums of floats never are.
    """

    def __init__(self, weighing: Weighting) -> None:
        self.weighting, self.apart = weighing, weighing.by_age

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

    def lower(self, words: StateWords) -> pa.Array:
        count, high, low, odd, weights = words
        totals = high + low + 0.0
        if odd.any():
            totals[odd == 2] = np.inf
            totals[odd == 4] = -np.inf
            totals[(odd & 1 > 0) | (odd == 6)] = np.nan
        return self._answers(totals, count, weights)

    def _answers(self, totals: Any, count: Int64Array, weights: Any) -> pa.Array:
        return pa.array(totals, mask=count == 0)


class AgedAvgStates(AgedSumStates):
    """AGED_AVG."""

    def _answers(self, totals: Any, count: Int64Array, weights: Any) -> pa.Array:
        nothing = weights == 0
        return pa.array(totals / np.where(nothing, 1.0, weights), mask=nothing)


class AgedCountStates(AgedSumStates):
    """AGED_COUNT, of values of any type."""

    def _gather(self, slots: Int64Array, items: Items, into: StateWords) -> None:
        kernels.count(slots, into[0])
        into[4][:] = into[0]

    def _answers(self, totals: Any, count: Int64Array, weights: Any) -> pa.Array:
        return pa.array(weights)


def _apply_weight(words: StateWords, weight: float) -> StateWords:
    """States as they count with a weight; what weighs nothing leaves no mark, not even as an infinity."""
    count, high, low, odd, weights = words
    return count, high * weight, low * weight, odd if weight else np.zeros_like(odd), weights * weight
