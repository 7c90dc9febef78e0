"""RECURRING and RECURRING_COUNTS: the values that occur in every tier of the window.

Paper: "Multi-granular windows" section IV.C, and its variant with counts for ranking.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import reduce
from operator import and_
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from panewise.aggregate.base import Laws, Multiset, orderable_type
from panewise.aggregate.dictionary import ValueDictionary
from panewise.aggregate.occurrences import Occurrence, OccurrenceStates, map_states
from panewise.aggregate.ordering import order_key, sort_values
from panewise.aggregate.positional import LevelView, Positional
from panewise.aggregate.states import Int64Array, StateWords
from panewise.core.errors import AggregateProblem

#: If lists have at least this many values on average, the values are marked instead of sorted.
MARKING_THRESHOLD = 512


class Recurring(Positional["frozenset[Any]"]):
    """The values that occur in every tier, ascending; at the finest level all of the window.

    Space O(distinct values).
    """

    names = ("RECURRING",)
    laws = Laws(idempotent=True, bounded=False)

    def result_type(self) -> pa.DataType:
        return pa.list_(orderable_type(self))

    def meaning_in_view(self, items: Sequence[tuple[int, Any]], view: LevelView) -> tuple[Any, ...]:
        return tuple(sort_values(list(values_in_every_tier(items, view))))

    def identity(self) -> frozenset[Any]:
        return frozenset()

    def lift(self, value: Any) -> frozenset[Any]:
        return frozenset([value])

    def gather(self, values: Sequence[Any]) -> frozenset[Any]:
        return frozenset(values)

    def combine(self, left: frozenset[Any], right: frozenset[Any]) -> frozenset[Any]:
        return left | right

    def lower(self, state: frozenset[Any]) -> tuple[Any, ...]:
        return tuple(sort_values(list(state)))

    def state_arrays(self) -> ValueBitmaps:
        return ValueBitmaps(self.types[0])


class RecurringCounts(Positional["Counter[Any]"], Multiset):
    """The same values with how often each occurs in the window, most frequent first, ties by value.

    `most` limits their number.
    """

    names = ("RECURRING_COUNTS",)
    options: ClassVar[tuple[str, ...]] = ("most",)

    def __init__(self, *types: pa.DataType, most: str | int | None = None) -> None:
        super().__init__(*types)
        if most is not None and not (str(most).isdigit() and int(most) > 0):
            raise AggregateProblem(
                f"{most!r} of RECURRING_COUNTS is not a number of entries", fix="use a whole number such as 10"
            )
        self.most = None if most is None else int(most)

    def result_type(self) -> pa.DataType:
        return pa.list_(pa.struct([("item", orderable_type(self)), ("count", pa.int64())]))

    def meaning_in_view(self, items: Sequence[tuple[int, Any]], view: LevelView) -> tuple[Any, ...]:
        counts, common = Counter(value for _, value in items), values_in_every_tier(items, view)
        return self._rank_entries({value: count for value, count in counts.items() if value in common})

    def lower(self, state: Counter[Any]) -> tuple[Any, ...]:
        return self._rank_entries(state)

    def state_arrays(self) -> ValueCounts:
        return ValueCounts(self.types[0], self.most)

    def text(self, arguments: Sequence[str]) -> str:
        given = [] if self.most is None else [str(self.most)]
        return f"{self.names[0]}({', '.join([*arguments, *given])})"

    def _rank_entries(self, counts: dict[Any, int]) -> tuple[Any, ...]:
        ranked = sorted(counts.items(), key=lambda entry: (-entry[1], order_key(entry[0])))
        return tuple((("item", value), ("count", count)) for value, count in ranked[: self.most])

    def _key(self) -> tuple[Any, ...]:
        return (*super()._key(), self.most)


def values_in_every_tier(items: Sequence[tuple[int, Any]], view: LevelView) -> set[Any]:
    """The values that occur at least once in every tier."""
    tiers: list[set[Any]] = [set() for _ in view.edges]
    for position, value in items:
        tiers[view.tier(position)].add(value)
    return set.intersection(*tiers)


class ValueBitmaps(OccurrenceStates):
    """Which values occur: an integer with a bit for each, or a set of codes where they are few."""

    def _from_codes(self, codes: Int64Array, counts: Int64Array) -> int | frozenset[int]:
        return frozenset(codes.tolist()) if self._is_sparse(len(codes)) else _bits(codes)

    def _to_codes(self, content: int | frozenset[int]) -> tuple[Int64Array, Int64Array]:
        codes = _codes(content)
        return codes, np.ones(len(codes), np.int64)

    def _unite(self, left: Any, right: Any) -> Any:
        if type(left) is type(right):
            whole = left | right
            return _dense(whole) if isinstance(whole, frozenset) and not self._is_sparse(len(whole)) else whole
        if self._is_sparse(_size(left) + _size(right)):
            # One of them was marked when the dictionary was small; for the present dictionary these values are few.
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
        contents, dictionary = self._values_by_group(words)
        sizes = [_size(content) for content in contents]
        offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        many = bool(contents) and offsets[-1] >= MARKING_THRESHOLD * len(contents)
        places, values = _by_marks(contents, dictionary) if many else _by_sorting(contents, dictionary, offsets)
        return pa.ListArray.from_arrays(pa.array(offsets.astype(np.int32)), values.take(pa.array(places)))


def _by_sorting(contents: list[Any], dictionary: ValueDictionary, offsets: Int64Array) -> tuple[Int64Array, pa.Array]:
    """The places of the values of each group among sorted values, ascending in each group; and the sorted values."""
    codes = [_codes(content) for content in contents if content is not None]
    places, values = dictionary.places(np.concatenate([np.zeros(0, np.int64), *codes]))
    owners = np.repeat(np.arange(len(contents)), np.diff(offsets))
    return np.sort(owners * len(values) + places) - owners * len(values), values


def _by_marks(contents: list[Any], dictionary: ValueDictionary) -> tuple[Int64Array, pa.Array]:
    """The same for groups with so many values that a pass over all codes is faster."""
    codes, values = dictionary.codes_in_order()
    marks = np.zeros(len(dictionary) + 8, np.uint8)
    places = []
    for content in contents:
        if content is not None:
            mine = _marks(_dense(content))
            marks[: len(mine)], marks[len(mine) :] = mine[: len(marks)], 0
            places.append(np.flatnonzero(marks[codes]))
    return np.concatenate(places), values


def _size(content: int | frozenset[int] | None) -> int:
    return 0 if content is None else len(content) if isinstance(content, frozenset) else content.bit_count()


def _bits(codes: Int64Array) -> int:
    marks = np.zeros(int(codes[-1]) + 1 if len(codes) else 0, bool)
    marks[codes] = True
    return int.from_bytes(np.packbits(marks, bitorder="little").tobytes(), "little")


def _codes(content: int | frozenset[int]) -> Int64Array:
    if isinstance(content, frozenset):
        return np.sort(np.fromiter(content, np.int64, len(content)))
    return np.flatnonzero(_marks(content)).astype(np.int64, copy=False)


def _marks(bits: int) -> npt.NDArray[np.uint8]:
    """A byte for each bit."""
    data = np.frombuffer(bits.to_bytes((bits.bit_length() + 7) // 8, "little"), np.uint8)
    return np.unpackbits(data, bitorder="little")


def _set(content: int | frozenset[int]) -> frozenset[int]:
    return content if isinstance(content, frozenset) else frozenset(_codes(content).tolist())


def _dense(content: int | frozenset[int]) -> int:
    return _bits(_codes(content)) if isinstance(content, frozenset) else content


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

    def _to_codes(self, content: Any) -> tuple[Int64Array, Int64Array]:
        if isinstance(content, dict):
            codes = np.fromiter(content, np.int64, len(content))
            order = np.argsort(codes)
            return codes[order], np.fromiter(content.values(), np.int64, len(content))[order]
        codes = np.flatnonzero(content)
        return codes, content[codes]

    def _unite(self, left: Any, right: Any) -> Any:
        return self._plus(left, right, 1)

    def invert(self, whole: StateWords, part: StateWords) -> StateWords:
        return (map_states(self._subtract, whole[0], part[0]),)

    def _subtract(self, whole: Occurrence | None, part: Occurrence | None) -> Occurrence | None:
        if whole is None or part is None:
            return whole
        a, b = self._in_one_dictionary((whole, part))
        rest = self._plus(a.content, b.content, -1)
        # A group without items is the identity again, so that it costs nothing and does not keep its dictionary alive.
        return Occurrence(a.dictionary, rest) if (bool(rest) if isinstance(rest, dict) else rest.any()) else None

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
        contents, dictionary = self._values_by_group(words)
        nothing = np.zeros(0, np.int64)
        listed = [
            (nothing, nothing) if content is None else self._most_frequent(*self._to_codes(content))
            for content in contents
        ]
        sizes = np.array([len(codes) for codes, _ in listed], np.int64)
        places, values = dictionary.places(np.concatenate([nothing, *(codes for codes, _ in listed)]))
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
        """The codes that may be among the most frequent, and their counts."""
        if self.most is None or len(codes) <= self.most:
            return codes, counts
        enough = counts >= np.partition(counts, -self.most)[-self.most]
        return codes[enough], counts[enough]


def _array(content: Any) -> Int64Array:
    if not isinstance(content, dict):
        found: Int64Array = content
        return found
    out = np.zeros(max(content, default=-1) + 1, np.int64)
    out[list(content)] = list(content.values())
    return out
