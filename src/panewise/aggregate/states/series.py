"""Lines over series in arrays: sums of items by instant, which become one value each when they are looked at."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from panewise import kernels
from panewise.aggregate.states.base import Int64Array, Items, StateWords
from panewise.aggregate.states.positional import PositionalStates, TierStates
from panewise.aggregate.states.regression import LineRequest

if TYPE_CHECKING:
    from panewise.aggregate.view import LevelView


class SeriesStates(PositionalStates):
    """How many items, their sum as a pair, and marks of NaN and infinities. No pane spans several instants.

    Settled, they are the moments of lines over the numbers of instants, and the time at which a value is asked. A pass
    over all panes for each answer: every pane has an instant of its own, which others may yet be filled from.
    """

    apart = True

    def __init__(self, question: LineRequest, filled: bool, ahead: int | None) -> None:
        self.request, self.filled, self.ahead = question, filled, ahead

    def identity(self, size: int) -> StateWords:
        return np.zeros(size, np.int64), np.zeros((size, 2)), np.zeros(size, np.uint8)

    def _gather(self, slots: Int64Array, items: Items, into: StateWords) -> None:
        values = items.arguments[0].cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
        high, low = np.zeros((2, len(into[0])))
        kernels.count(slots, into[0])
        kernels.add_floats(slots, values, high, low, into[2])
        into[1][:, 0], into[1][:, 1] = high, low

    def combine(self, left: StateWords, right: StateWords) -> StateWords:
        return left[0] + right[0], kernels.power_add(left[1], right[1]), left[2] | right[2]

    def combine_tiers(self, view: LevelView, tiers: Sequence[TierStates], size: int) -> StateWords:
        step = self.request.step.numerator
        anchors = np.zeros(size, np.int64), np.zeros(size)
        heads, sums = (np.zeros(size, np.int64), np.zeros(size, np.uint8), *anchors), np.zeros((size, 10))
        newest = np.zeros(size, np.int64), np.zeros(size, np.int64), np.zeros((size, 2))
        groups = np.arange(size)
        for tier in reversed(tiers):
            for end, where, (counts, totals, odd) in tier.panes():
                heads[1][where] |= odd > 0
                kernels.line_series(groups[where], counts, totals, -(-end // step), self.filled, newest, heads, sums)
        kernels.line_series_end(view.front // step + 1, self.filled, newest, heads, sums)
        at = view.shift if self.ahead is None else view.front + self.ahead + view.shift
        return *heads, sums, np.full(size, at)

    def lower(self, words: StateWords) -> pa.Array:
        return self.request.answers((words[:4], words[4]), words[5])
