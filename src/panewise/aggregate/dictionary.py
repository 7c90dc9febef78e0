"""Dictionaries of values: every different value gets a code, a small number, in the order of appearance."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from panewise import kernels
from panewise.aggregate.ordering import fits_int64, from_longs, to_longs
from panewise.aggregate.states import Int64Array
from panewise.core.values import to_arrow, to_python

#: Integers this close together are numbered by a table instead of a hash.
TABLE_RANGE = 1 << 22
#: A dictionary with fewer values is never replaced by a smaller one.
SMALL_DICTIONARY = 1 << 16


class IntegerCodes:
    """The codes of int64 values, from `first` on: in a table for a small range of values, in a hash for the rest."""

    def __init__(self, first: int = 0) -> None:
        # Small at first: there may be thousands of families, most of them with few groups.
        self._table = (np.zeros(64, np.int64), np.full(64, -1, np.int64))
        self._uniques = np.zeros(32, np.int64)
        self._first = self._known = first
        self._direct: Int64Array | None = None
        self._base = 0

    def __len__(self) -> int:
        return self._known

    def take(self, codes: Int64Array) -> Int64Array:
        return self._uniques[codes]

    def encode(self, values: Int64Array) -> Int64Array:
        if self._direct is not None:
            known: Int64Array
            known, complete = kernels.table_codes(values, self._base, self._direct)
            if complete:
                return known
        if not len(values):
            return np.zeros(0, np.int64)
        low, high = int(values.min()), int(values.max())
        if high - low < TABLE_RANGE:
            codes = self._table_codes(values, low, high)
            if codes is not None:
                return codes
        return self._hash_codes(values)

    def find(self, values: Int64Array) -> Int64Array:
        """The codes of known values, -1 for the others."""
        codes, place = np.full(len(values), -1, np.int64), 0
        full = len(self._table[0]) // 2
        while place < len(values):
            # A table that counts as full accepts no value: the kernel stops at the first value it does not know.
            place = kernels.hash_codes(values, self._table, self._uniques, full, codes, place)[1] + 1
        return codes

    def _table_codes(self, values: Int64Array, low: int, high: int) -> Int64Array | None:
        """Codes from the table, where all values lie in its range and are known."""
        if self._direct is None or low < self._base or high >= self._base + len(self._direct):
            if self._direct is not None:
                low, high = min(low, self._base), max(high, self._base + len(self._direct) - 1)
            if high - low >= TABLE_RANGE:
                return None
            known = self._uniques[: self._known]
            near = (known >= low) & (known <= high)
            near[: self._first] = False
            self._base, self._direct = low, np.full(high - low + 1, -1, np.int64)
            self._direct[known[near] - low] = np.flatnonzero(near)
        codes = self._direct[values - self._base]
        fresh = codes < 0
        if fresh.any():
            codes[fresh] = self._hash_codes(values[fresh])
            self._direct[values[fresh] - self._base] = codes[fresh]
        return codes

    def _hash_codes(self, values: Int64Array) -> Int64Array:
        codes = np.empty(len(values), np.int64)
        done = 0
        while done < len(values):
            self._known, done = kernels.hash_codes(values, self._table, self._uniques, self._known, codes, done)
            if done < len(values):
                self._widen()
        return codes

    def _widen(self) -> None:
        """A table of four times the size, with the same codes."""
        size = 4 * len(self._table[0])
        known = self._uniques[self._first : self._known].copy()
        self._table = (np.zeros(size, np.int64), np.full(size, -1, np.int64))
        self._uniques = np.zeros(size // 2, np.int64)
        kernels.hash_codes(known, self._table, self._uniques, self._first, np.empty(len(known), np.int64), 0)


class ValueCodes:
    """The codes of the values of one column; NULL has code 0."""

    def __init__(self, kind: pa.DataType) -> None:
        self.kind = kind
        self._numbers = IntegerCodes(first=1) if fits_int64(kind) else None
        self._known: dict[Any, int] = {}
        self._objects: list[Any] = []
        #: All values, NULL first, as they were when most of them were last asked for.
        self._all = pa.array([], kind)

    def __len__(self) -> int:
        return len(self._numbers) if self._numbers is not None else 1 + len(self._objects)

    def encode(self, values: pa.Array) -> Int64Array:
        if values.null_count:
            codes = np.zeros(len(values), np.int64)
            valid = pc.is_valid(values).to_numpy(zero_copy_only=False)
            codes[valid] = self.encode(values.drop_null())
            return codes
        if self._numbers is not None:
            return self._numbers.encode(to_longs(values))
        if pa.types.is_nested(self.kind):
            return np.array([self._code(v) for v in to_python(values)], np.int64)
        parts = values.dictionary_encode()
        mapped = np.array([self._code(v) for v in to_python(parts.dictionary)], np.int64)
        return mapped[parts.indices.to_numpy()] if len(mapped) else np.zeros(0, np.int64)

    def find(self, values: pa.Array) -> Int64Array:
        """The codes of known values, -1 for the others."""
        codes = np.zeros(len(values), np.int64)
        valid = pc.is_valid(values).to_numpy(zero_copy_only=False)
        present = values.drop_null()
        if self._numbers is not None:
            codes[valid] = self._numbers.find(to_longs(present))
        else:
            codes[valid] = [self._known.get(value, -1) for value in to_python(present)]
        return codes

    def take(self, codes: Int64Array) -> pa.Array:
        if self._numbers is not None:
            return from_longs(self._numbers.take(codes), codes == 0, self.kind)
        if len(self._all) == len(self):
            return self._all.take(pa.array(codes))
        uniques, where = np.unique(codes, return_inverse=True)
        if 4 * len(uniques) > len(self):
            self._all = to_arrow([None, *self._objects], self.kind)
            return self._all.take(pa.array(codes))
        few = to_arrow([None if c == 0 else self._objects[c - 1] for c in uniques], self.kind)
        return few.take(pa.array(where.astype(np.int64)))

    def _code(self, value: Any) -> int:
        code = self._known.get(value)
        if code is None:
            self._objects.append(value)
            code = self._known[value] = len(self._objects)
        return code


class ValueDictionary:
    """The values of states by code, and their order. States refer to it, so that it exists as long as one of them.

    When most of its values occur in no state, another one begins with a higher `generation`. Where states of two
    dictionaries are combined, those of the older one are recoded.
    """

    def __init__(self, kind: pa.DataType, generation: int = 0) -> None:
        self.kind, self.generation = kind, generation
        self._room = SMALL_DICTIONARY
        self._values = ValueCodes(kind)
        #: The place of each code among the sorted values, and these values; for those codes that existed at some time.
        self._order: tuple[Int64Array, pa.Array] = (np.zeros(0, np.int64), pa.array([], kind))
        #: How many codes have been sorted for single answers since all were.
        self._sorted_few = 0

    def __len__(self) -> int:
        """One more than the largest code."""
        return len(self._values)

    @property
    def oversized(self) -> bool:
        """Whether it has so many values that it may be worth to look for those that no state has."""
        return len(self) > self._room

    def forget(self, live: Iterable[Int64Array]) -> ValueDictionary:
        """The dictionary for coming states: another one if most values of this one are not among the live codes."""
        marks = np.zeros(len(self), bool)
        for codes in live:
            marks[codes] = True
        alive = int(marks.sum())
        after = ValueDictionary(self.kind, self.generation + 1) if 2 * alive <= len(self) else self
        after._room = max(SMALL_DICTIONARY, 4 * alive)
        return after

    def encode(self, values: pa.Array) -> Int64Array:
        """The codes of values without NULLs."""
        return self._values.encode(values)

    def take(self, codes: Int64Array) -> pa.Array:
        return self._values.take(codes)

    def places(self, codes: Int64Array) -> tuple[Int64Array, pa.Array]:
        """The place of each code among sorted values, and these values."""
        if len(self._order[0]) == len(self):
            places, values = self._order
        elif self._sorted_few + len(codes) < len(self):
            self._sorted_few += len(codes)
            few, where = np.unique(codes, return_inverse=True)
            places, values = self._sort_codes(few)
            return places[where], values
        else:
            # As many have been sorted for single answers: all values are sorted, once for this and later answers.
            self._sorted_few = 0
            places, values = self._sort_codes(np.arange(1, len(self)))
            places = np.concatenate([np.zeros(1, np.int64), places])
            self._order = places, values
        return places[codes], values

    def _sort_codes(self, codes: Int64Array) -> tuple[Int64Array, pa.Array]:
        """The place of each code among the sorted values of these codes, and these values."""
        values = self.take(codes)
        order: Any = np.argsort(to_longs(values)) if fits_int64(self.kind) else pc.sort_indices(values).to_numpy()
        places = np.empty(len(codes), np.int64)
        places[order] = np.arange(len(codes))
        return places, values.take(pa.array(order))
