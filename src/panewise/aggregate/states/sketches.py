"""Sketches in arrays: bytes for each group, made of its different values."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from panewise.aggregate.states.base import Int64Array, Items, StateWords, runs
from panewise.aggregate.states.objects import ObjectStates
from panewise.core.values import to_python

if TYPE_CHECKING:
    from panewise.aggregate.sketches import SketchAggregate


class SketchStates(ObjectStates):
    """One word of sketches as bytes; None is the identity. Each value of a group is hashed once a batch."""

    def __init__(self, aggregate: SketchAggregate) -> None:
        super().__init__(aggregate)
        self.sketched = aggregate

    def _gather(self, slots: Int64Array, items: Items, into: StateWords) -> None:
        encoded = items.arguments[0].dictionary_encode()
        values: list[Any] = to_python(encoded.dictionary)
        codes = encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
        pairs, counts = np.unique(slots * max(len(values), 1) + codes, return_counts=True)
        groups, codes = np.divmod(pairs, max(len(values), 1))
        for start, stop in zip(*runs(groups), strict=True):
            some: Counter[Any] = Counter()
            for code, count in zip(codes[start:stop].tolist(), counts[start:stop].tolist(), strict=True):
                some[values[code]] += count  # codes of both zeros are one value
            into[0][groups[start]] = self.sketched.sketch_of(some)

    def write(self, words: StateWords) -> list[pa.Array]:
        return [pa.array(words[0], pa.large_binary())]

    def read(self, arrays: Sequence[pa.Array]) -> StateWords:
        out = np.full(len(arrays[0]), None, object)
        out[:] = arrays[0].to_pylist()
        return (out,)
