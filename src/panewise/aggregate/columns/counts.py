"""COUNT in arrays."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from panewise import kernels
from panewise.aggregate.columns.base import Columns, Fused, Items, Longs, Words


class Counts(Columns):
    """One word: how many."""

    exact = True
    fused = Fused.ADDED

    def identity(self, size: int) -> Words:
        return (np.zeros(size, np.int64),)

    def _gather(self, slots: Longs, items: Items, into: Words) -> None:
        kernels.count(slots, into[0])

    def combine(self, left: Words, right: Words) -> Words:
        return (left[0] + right[0],)

    def invert(self, whole: Words, part: Words) -> Words:
        return (whole[0] - part[0],)

    def lower(self, words: Words) -> pa.Array:
        return pa.array(words[0])
