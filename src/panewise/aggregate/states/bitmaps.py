"""RECURRING in arrays: a bit for each value that a granule holds.

Paper: "Multi-granular windows" section IV.C.
"""

from __future__ import annotations

from functools import reduce
from operator import and_
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from panewise.aggregate.states.base import Int64Array, StateWords
from panewise.aggregate.states.occurrences import OccurrenceStates
from panewise.aggregate.states.value_dictionary import ValueDictionary

#: From so many values a list on, its values are marked instead of sorted.
MARKING_THRESHOLD = 512


class ValueBitmaps(OccurrenceStates):
    """Which values occur: an integer with a bit for each, or a set of codes where they are few."""

    def _from_codes(self, codes: Int64Array, counts: Int64Array) -> int | frozenset[int]:
        return frozenset(codes.tolist()) if self._is_sparse(len(codes)) else _bits(codes)

    def _to_codes(self, what: int | frozenset[int]) -> tuple[Int64Array, Int64Array]:
        codes = _codes(what)
        return codes, np.ones(len(codes), np.int64)

    def _unite(self, left: Any, right: Any) -> Any:
        if type(left) is type(right):
            whole = left | right
            return _dense(whole) if isinstance(whole, frozenset) and not self._is_sparse(len(whole)) else whole
        if self._is_sparse(_size(left) + _size(right)):
            # Marked while there were few values, or among few: now there are many.
            return _set(left) | _set(right)
        return _dense(left) | _dense(right)

    def _intersect(self, tiers: list[Any]) -> Any:
        sparse = [each for each in tiers if isinstance(each, frozenset)]
        dense = [each for each in tiers if not isinstance(each, frozenset)]
        if not sparse:
            return reduce(and_, dense)
        few = reduce(and_, sparse)
        if not dense or not few:
            return few
        codes, marks = _codes(few), _marks(reduce(and_, dense))
        codes = codes[codes < len(marks)]
        return frozenset(codes[marks[codes] > 0].tolist())

    def lower(self, words: StateWords) -> pa.Array:
        told, lexicon = self._values_by_group(words)
        sizes = [_size(what) for what in told]
        offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        many = bool(told) and offsets[-1] >= MARKING_THRESHOLD * len(told)
        places, values = _by_marks(told, lexicon) if many else _by_sorting(told, lexicon, offsets)
        return pa.ListArray.from_arrays(pa.array(offsets.astype(np.int32)), values.take(pa.array(places)))


def _by_sorting(told: list[Any], lexicon: ValueDictionary, offsets: Int64Array) -> tuple[Int64Array, pa.Array]:
    """The places, ascending in each group, of all its values in some that are in order; and these."""
    codes = [_codes(what) for what in told if what is not None]
    places, values = lexicon.places(np.concatenate([np.zeros(0, np.int64), *codes]))
    owners = np.repeat(np.arange(len(told)), np.diff(offsets))
    return np.sort(owners * len(values) + places) - owners * len(values), values


def _by_marks(told: list[Any], lexicon: ValueDictionary) -> tuple[Int64Array, pa.Array]:
    """The same, where groups have so many values that all are looked at."""
    codes, values = lexicon.codes_in_order()
    marks = np.zeros(len(lexicon) + 8, np.uint8)
    places = []
    for what in told:
        if what is not None:
            mine = _marks(_dense(what))
            marks[: len(mine)], marks[len(mine) :] = mine[: len(marks)], 0
            places.append(np.flatnonzero(marks[codes]))
    return np.concatenate(places), values


def _size(what: int | frozenset[int] | None) -> int:
    return 0 if what is None else len(what) if isinstance(what, frozenset) else what.bit_count()


def _bits(codes: Int64Array) -> int:
    marks = np.zeros(int(codes[-1]) + 1 if len(codes) else 0, bool)
    marks[codes] = True
    return int.from_bytes(np.packbits(marks, bitorder="little").tobytes(), "little")


def _codes(what: int | frozenset[int]) -> Int64Array:
    if isinstance(what, frozenset):
        return np.sort(np.fromiter(what, np.int64, len(what)))
    return np.flatnonzero(_marks(what)).astype(np.int64, copy=False)


def _marks(bits: int) -> npt.NDArray[np.uint8]:
    """A byte for each bit."""
    data = np.frombuffer(bits.to_bytes((bits.bit_length() + 7) // 8, "little"), np.uint8)
    return np.unpackbits(data, bitorder="little")


def _set(what: int | frozenset[int]) -> frozenset[int]:
    return what if isinstance(what, frozenset) else frozenset(_codes(what).tolist())


def _dense(what: int | frozenset[int]) -> int:
    return _bits(_codes(what)) if isinstance(what, frozenset) else what
