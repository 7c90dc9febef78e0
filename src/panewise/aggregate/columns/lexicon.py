"""The values that states speak of by code, and their order. Values that are gone are forgotten with their lexicon."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from panewise.aggregate.columns.base import Longs
from panewise.aggregate.columns.longs import fits, to_longs
from panewise.aggregate.columns.numbering import Values


class Lexicon:
    """Values by code. States refer to it, so that it lives as long as one of them does.

    When most of its values are gone another one begins, with a higher `generation`; where states of two meet, the older
    ones are written anew in terms of the younger.
    """

    def __init__(self, kind: pa.DataType, generation: int = 0) -> None:
        self.kind, self.generation = kind, generation
        self._values = Values(kind)
        #: All codes by value, ascending, and the values themselves; as many as there were at some time.
        self._order: tuple[Longs, pa.Array] = (np.zeros(0, np.int64), pa.array([], kind))

    def __len__(self) -> int:
        """One more than the largest code."""
        return len(self._values)

    def encode(self, values: pa.Array) -> Longs:
        """The codes of values without NULLs."""
        return self._values.encode(values)

    def take(self, codes: Longs) -> pa.Array:
        return self._values.take(codes)

    def ascending(self, codes: Longs) -> tuple[Longs, pa.Array]:
        """Different codes in the order of their values, and the values."""
        order, values = self._order
        if len(order) + 1 < len(self) and 4 * len(codes) >= len(self):
            # So many that all may as well be put in order, once for this and later answers.
            order, values = self._order = self._sorted(np.arange(1, len(self)))
        if len(order) + 1 < len(self):
            return self._sorted(codes)
        marks = np.zeros(len(self), bool)
        marks[codes] = True
        chosen = marks[order]
        return order[chosen], values.filter(pa.array(chosen))

    def _sorted(self, codes: Longs) -> tuple[Longs, pa.Array]:
        values = self.take(codes)
        ranks: Any = np.argsort(to_longs(values)) if fits(self.kind) else pc.sort_indices(values).to_numpy()
        return codes[ranks], values.take(pa.array(ranks))
