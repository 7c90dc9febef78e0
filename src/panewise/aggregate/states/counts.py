"""COUNT in arrays."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from panewise import kernels
from panewise.aggregate.states.base import FusedOperation, Int64Array, Items, StateArrays, StateWords


class CountStates(StateArrays):
    """One word: how many."""

    exact = True
    fused = FusedOperation.ADDED

    def identity(self, size: int) -> StateWords:
        return (np.zeros(size, np.int64),)

    def _gather(self, slots: Int64Array, items: Items, into: StateWords) -> None:
        kernels.count(slots, into[0])

    def combine(self, left: StateWords, right: StateWords) -> StateWords:
        return (left[0] + right[0],)

    def invert(self, whole: StateWords, part: StateWords) -> StateWords:
        return (whole[0] - part[0],)

    def lower(self, words: StateWords) -> pa.Array:
        return pa.array(words[0])
