"""RECURRING in arrays: a bit for each value that a granule holds.

Paper: "Multi-granular windows" section IV.C.
"""

from __future__ import annotations

from functools import reduce
from operator import and_
from typing import Any

import numpy as np
import pyarrow as pa

from panewise.aggregate.columns.base import Longs, Words
from panewise.aggregate.columns.occurrences import SPARSE, Occurrences


class Bitmaps(Occurrences):
    """Which values occur: an integer with a bit for each, or a set of codes where they are few."""

    def _made(self, codes: Longs, counts: Longs) -> int | frozenset[int]:
        if len(codes) * SPARSE < (codes[-1] if len(codes) else 0):
            return frozenset(codes.tolist())
        return _bits(codes)

    def _listed(self, what: int | frozenset[int]) -> tuple[Longs, Longs]:
        codes = _codes(what)
        return codes, np.ones(len(codes), np.int64)

    def _united(self, left: Any, right: Any) -> Any:
        if type(left) is not type(right):
            return _dense(left) | _dense(right)
        whole = left | right
        if isinstance(whole, frozenset) and len(whole) * SPARSE > len(self.lexicon):
            return _dense(whole)
        return whole

    def _common(self, tiers: list[Any]) -> Any:
        sparse = [each for each in tiers if isinstance(each, frozenset)]
        dense = [each for each in tiers if not isinstance(each, frozenset)]
        if not sparse:
            return reduce(and_, dense)
        few = reduce(and_, sparse)
        return frozenset(code for code in few if all(bits >> code & 1 for bits in dense)) if dense else few

    def lower(self, words: Words) -> pa.Array:
        parts = [pa.array([], self.kind)]
        parts += [s.lexicon.ascending(_codes(s.what))[1] for s in words[0] if s is not None]
        sizes = iter([len(part) for part in parts[1:]])
        offsets = np.cumsum([0, *(0 if state is None else next(sizes) for state in words[0])]).astype(np.int32)
        return pa.ListArray.from_arrays(pa.array(offsets), pa.concat_arrays(parts))


def _bits(codes: Longs) -> int:
    marks = np.zeros(int(codes[-1]) + 1 if len(codes) else 0, bool)
    marks[codes] = True
    return int.from_bytes(np.packbits(marks, bitorder="little").tobytes(), "little")


def _codes(what: int | frozenset[int]) -> Longs:
    if isinstance(what, frozenset):
        return np.sort(np.fromiter(what, np.int64, len(what)))
    data = np.frombuffer(what.to_bytes((what.bit_length() + 7) // 8, "little"), np.uint8)
    return np.flatnonzero(np.unpackbits(data, bitorder="little")).astype(np.int64, copy=False)


def _dense(what: int | frozenset[int]) -> int:
    return _bits(_codes(what)) if isinstance(what, frozenset) else what
