"""RECURRING_COUNTS in arrays: a count for each value that a granule holds."""

from __future__ import annotations

from functools import reduce
from typing import Any

import numpy as np
import pyarrow as pa

from panewise.aggregate.states.base import Int64Array, StateWords
from panewise.aggregate.states.occurrences import Occurrence, OccurrenceStates, map_states


class ValueCounts(OccurrenceStates):
    """How often each value occurs: an array of counts by code, or a dictionary where values are few."""

    exact = True

    def __init__(self, kind: pa.DataType, most: int | None) -> None:
        super().__init__(kind)
        self.most = most

    def _from_codes(self, codes: Int64Array, counts: Int64Array) -> Any:
        if self._is_sparse(len(codes)):
            return dict(zip(codes.tolist(), counts.tolist(), strict=True))
        out = np.zeros(int(codes[-1]) + 1 if len(codes) else 0, np.int64)
        out[codes] = counts
        return out

    def _to_codes(self, what: Any) -> tuple[Int64Array, Int64Array]:
        if isinstance(what, dict):
            codes = np.fromiter(what, np.int64, len(what))
            order = np.argsort(codes)
            return codes[order], np.fromiter(what.values(), np.int64, len(what))[order]
        codes = np.flatnonzero(what)
        return codes, what[codes]

    def _unite(self, left: Any, right: Any) -> Any:
        return self._plus(left, right, 1)

    def invert(self, whole: StateWords, part: StateWords) -> StateWords:
        return (map_states(self._subtract, whole[0], part[0]),)

    def _subtract(self, whole: Occurrence | None, part: Occurrence | None) -> Occurrence | None:
        if whole is None or part is None:
            return whole
        a, b = self._in_one_dictionary((whole, part))
        rest = self._plus(a.what, b.what, -1)
        # A group without items is the identity again, so that it costs nothing and its lexicon may go.
        return Occurrence(a.lexicon, rest) if (bool(rest) if isinstance(rest, dict) else rest.any()) else None

    def _plus(self, left: Any, right: Any, sign: int) -> Any:
        if isinstance(left, dict) and isinstance(right, dict):
            both = left.copy()
            for code, count in right.items():
                both[code] = both.get(code, 0) + sign * count
            whole = {code: count for code, count in both.items() if count}
            return whole if self._is_sparse(len(whole)) else _array(whole)
        a, b = _array(left), _array(right)
        out = np.zeros(max(len(a), len(b)), np.int64)
        out[: len(a)] = a
        out[: len(b)] += sign * b
        return out

    def _intersect(self, tiers: list[Any]) -> Any:
        if not any(isinstance(each, dict) for each in tiers):
            parts = [each[: min(map(len, tiers))] for each in tiers]
            return np.where(reduce(np.minimum, parts) > 0, sum(parts), 0)
        common = reduce(lambda a, b: np.intersect1d(a, b, True), [self._to_codes(each)[0] for each in tiers])
        counts = np.zeros(len(common), np.int64)
        for each in tiers:
            codes, found = self._to_codes(each)
            counts += found[np.searchsorted(codes, common)]
        return self._from_codes(common, counts)

    def lower(self, words: StateWords) -> pa.Array:
        told, lexicon = self._values_by_group(words)
        nothing = np.zeros(0, np.int64)
        listed = [(nothing, nothing) if what is None else self._most_frequent(*self._to_codes(what)) for what in told]
        sizes = np.array([len(codes) for codes, _ in listed], np.int64)
        places, values = lexicon.places(np.concatenate([nothing, *(codes for codes, _ in listed)]))
        counts = np.concatenate([nothing, *(counts for _, counts in listed)])
        owners = np.repeat(np.arange(len(sizes)), sizes)
        ranked = np.lexsort((places, -counts, owners))
        if self.most is not None:
            firsts = np.cumsum(sizes) - sizes
            ranked = ranked[np.arange(len(ranked)) - firsts[owners] < self.most]
            sizes = np.minimum(sizes, self.most)
        fields = [values.take(pa.array(places[ranked])), pa.array(counts[ranked])]
        entries = pa.StructArray.from_arrays(fields, ["item", "count"])
        offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int32)
        return pa.ListArray.from_arrays(pa.array(offsets), entries)

    def _most_frequent(self, codes: Int64Array, counts: Int64Array) -> tuple[Int64Array, Int64Array]:
        """Those that may be among the most frequent."""
        if self.most is None or len(codes) <= self.most:
            return codes, counts
        enough = counts >= np.partition(counts, -self.most)[-self.most]
        return codes[enough], counts[enough]


def _array(what: Any) -> Int64Array:
    if not isinstance(what, dict):
        found: Int64Array = what
        return found
    out = np.zeros(max(what, default=-1) + 1, np.int64)
    out[list(what)] = list(what.values())
    return out
