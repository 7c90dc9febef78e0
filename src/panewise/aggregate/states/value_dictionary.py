"""The values that states speak of by code, and their order. Values that are gone are forgotten with their lexicon."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from panewise.aggregate.states.base import Int64Array
from panewise.aggregate.states.integers import fits_int64, to_longs
from panewise.aggregate.states.numbering import ValueCodes


class ValueDictionary:
    """Values by code. States refer to it, so that it lives as long as one of them does.

    When most of its values are gone another one begins, with a higher `generation`; where states of two meet, the older
    ones are written anew in terms of the younger.
    """

    def __init__(self, kind: pa.DataType, generation: int = 0) -> None:
        self.kind, self.generation = kind, generation
        self._values = ValueCodes(kind)
        #: The place of each code among the values in their order, and the values; as many as there were at some time.
        self._order: tuple[Int64Array, pa.Array] = (np.zeros(0, np.int64), pa.array([], kind))

    def __len__(self) -> int:
        """One more than the largest code."""
        return len(self._values)

    def encode(self, values: pa.Array) -> Int64Array:
        """The codes of values without NULLs."""
        return self._values.encode(values)

    def take(self, codes: Int64Array) -> pa.Array:
        return self._values.take(codes)

    def places(self, codes: Int64Array) -> tuple[Int64Array, pa.Array]:
        """Where the values of codes stand in some values that are in order; and these."""
        if len(self._order[0]) == len(self):
            places, values = self._order
        elif 4 * len(codes) < len(self):
            few, where = np.unique(codes, return_inverse=True)
            places, values = self._sort_codes(few)
            return places[where], values
        else:
            # So many that all may as well be put in order, once for this and later answers.
            places, values = self._sort_codes(np.arange(1, len(self)))
            places = np.concatenate([np.zeros(1, np.int64), places])
            self._order = places, values
        return places[codes], values

    def codes_in_order(self) -> tuple[Int64Array, pa.Array]:
        """All codes in the order of their values, and the values."""
        places, values = self.places(np.arange(1, len(self)))
        codes = np.empty(len(places), np.int64)
        codes[places] = np.arange(1, len(self))
        return codes, values

    def _sort_codes(self, codes: Int64Array) -> tuple[Int64Array, pa.Array]:
        """The place of each code among their values in order, and these."""
        values = self.take(codes)
        order: Any = np.argsort(to_longs(values)) if fits_int64(self.kind) else pc.sort_indices(values).to_numpy()
        places = np.empty(len(codes), np.int64)
        places[order] = np.arange(len(codes))
        return places, values.take(pa.array(order))
