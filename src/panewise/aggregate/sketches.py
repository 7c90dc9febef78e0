"""APPROX_DISTINCT and TOP_K: answers from sketches of bounded size, with a stated error.

Sketches are those of Apache DataSketches. A state is a sketch as bytes, so that it means the same in every process.
"""

from __future__ import annotations

from abc import abstractmethod
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from heapq import nlargest
from importlib import import_module
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from panewise.aggregate.base import Aggregate, Laws, ObjectStates, orderable_type
from panewise.aggregate.ordering import order_key
from panewise.aggregate.states import Int64Array, Items, StateArrays, StateWords, runs
from panewise.core.errors import AggregateProblem, require_extra
from panewise.core.values import normalize_float, to_python


class SketchAggregate(Aggregate[bytes]):
    """Base of both aggregates. The state of no items is empty."""

    def __init__(self, *types: pa.DataType) -> None:
        super().__init__(*types)
        with require_extra("sketches", self.names[0]):
            _sketches()

    def identity(self) -> bytes:
        return b""

    def lift(self, value: Any) -> bytes:
        return self.sketch_of({value: 1})

    def gather(self, values: Sequence[Any]) -> bytes:
        return self.sketch_of(Counter(values))

    @abstractmethod
    def sketch_of(self, counts: Mapping[Any, int]) -> bytes:
        """The sketch of values, each with how often it occurs."""

    def state_arrays(self) -> StateArrays:
        return SketchStates(self)


class ApproxDistinct(SketchAggregate):
    """How many different values there are, by HyperLogLog with 2**lg_k registers of a byte. O(1) space.

    The relative standard error is 1.04 / sqrt(2**lg_k), by default 1.6 %; up to 2**lg_k / 16 values are counted exactly
    but for one in a million. The answer does not depend on how values are split and in which order parts are combined,
    because it is computed from the registers alone.
    """

    names: ClassVar[tuple[str, ...]] = ("APPROX_DISTINCT", "APPROX_COUNT_DISTINCT")
    options = ("lg_k",)
    laws = Laws(idempotent=True, approximate=True)

    def __init__(self, *types: pa.DataType, lg_k: str | int = 12) -> None:
        self.lg_k = _whole(self.names[0], "lg_k", lg_k, 4, 21)
        super().__init__(*types)

    def result_type(self) -> pa.DataType:
        orderable_type(self)
        return pa.int64()

    def meaning(self, values: Sequence[Any]) -> int:
        return len(set(values))

    def sketch_of(self, counts: Mapping[Any, int]) -> bytes:
        sketch = _sketches().hll_sketch(self.lg_k, _sketches().HLL_8)
        for value in counts:
            sketch.update(_hashable(value))
        return bytes(sketch.serialize_compact())

    def combine(self, left: bytes, right: bytes) -> bytes:
        if not (left and right):
            return left or right
        return bytes(self._union(left, right).get_result(_sketches().HLL_8).serialize_compact())

    def lower(self, state: bytes) -> int:
        # A sketch that was never combined depends on the order of values; combined with itself it does not.
        return round(self._union(state, state).get_estimate()) if state else 0

    def _union(self, left: bytes, right: bytes) -> Any:
        sketches = _sketches()
        union = sketches.hll_union(self.lg_k)
        union.update(sketches.hll_sketch.deserialize(left))
        union.update(sketches.hll_sketch.deserialize(right))
        return union

    def text(self, arguments: Sequence[str]) -> str:
        return f"{self.names[0]}({', '.join([*arguments, *([str(self.lg_k)] if self.lg_k != 12 else [])])})"

    def _key(self) -> tuple[Any, ...]:
        return (*super()._key(), self.lg_k)


class TopK(SketchAggregate):
    """The k most frequent values with how often each occurs, most frequent first, equals by value. O(1) space.

    A frequent-items sketch with room for 0.75 * 2**lg_size values; up to so many different ones, counts are exact.
    Otherwise each is at most e too large, where e is 3.5 / 2**lg_size of all items (by default 0.35 %), and no value
    that is missing occurs more often than a listed one by more than e.
    """

    names: ClassVar[tuple[str, ...]] = ("TOP_K",)
    parameters = ("k",)
    options = ("lg_size",)
    laws = Laws(approximate=True)

    def __init__(self, *types: pa.DataType, k: str | int, lg_size: str | int = 10) -> None:
        self.lg_size = _whole("TOP_K", "lg_size", lg_size, 3, 20)
        self.k = _whole("TOP_K", "k", k, 1, 3 * 2**self.lg_size // 4)
        super().__init__(*types)

    def result_type(self) -> pa.DataType:
        return pa.list_(pa.struct([("item", orderable_type(self)), ("count", pa.int64())]))

    def meaning(self, values: Sequence[Any]) -> tuple[Any, ...]:
        return self._rank_entries(Counter(values).items())

    def sketch_of(self, counts: Mapping[Any, int]) -> bytes:
        sketch = _sketches().frequent_strings_sketch(self.lg_size)
        for value, count in counts.items():
            sketch.update(_to_text(value), count)
        return bytes(sketch.serialize())

    def combine(self, left: bytes, right: bytes) -> bytes:
        if not (left and right):
            return left or right
        sketch = _sketches().frequent_strings_sketch
        both = sketch.deserialize(left)
        both.merge(sketch.deserialize(right))
        return bytes(both.serialize())

    def lower(self, state: bytes) -> tuple[Any, ...]:
        if not state:
            return ()
        read = _reader(self.types[0])
        sketch = _sketches().frequent_strings_sketch.deserialize(state)
        entries = sketch.get_frequent_items(_sketches().NO_FALSE_NEGATIVES)
        least = nlargest(self.k, (count for _, count, _, _ in entries))[-1]
        return self._rank_entries((read(text), count) for text, count, _, _ in entries if count >= least)

    def _rank_entries(self, counts: Any) -> tuple[Any, ...]:
        ranked = sorted(counts, key=lambda entry: (-entry[1], order_key(entry[0])))
        return tuple((("item", value), ("count", count)) for value, count in ranked[: self.k])

    def text(self, arguments: Sequence[str]) -> str:
        size = [str(self.lg_size)] if self.lg_size != 10 else []
        return f"TOP_K({', '.join([*arguments, str(self.k), *size])})"

    def _key(self) -> tuple[Any, ...]:
        return (*super()._key(), self.k, self.lg_size)


def _sketches() -> Any:
    """The library, which is imported when a query needs it."""
    return import_module("datasketches")


def _whole(name: str, what: str, given: str | int, least: int, most: int) -> int:
    if not str(given).isdigit() or not least <= int(given) <= most:
        raise AggregateProblem(
            f"{what} {given!r} of {name} is not a whole number from {least} to {most}",
            fix=f"use one such as {least + 6}",
        )
    return int(given)


def _hashable(value: Any) -> int | float | str:
    """A value as a sketch hashes it, the same in every process. An empty text becomes -1, since sketches ignore it."""
    if isinstance(value, int):
        return (value + 2**63) % 2**64 - 2**63
    return value if isinstance(value, float) else _to_text(value) or -1


def _to_text(value: Any) -> str:
    """A value as a text that no other value of its column has."""
    return (
        value.decode("latin-1") if isinstance(value, bytes) else str(int(value) if isinstance(value, bool) else value)
    )


def _reader(kind: pa.DataType) -> Callable[[str], Any]:
    """A function from the text of a value, as `_to_text` writes it, to the value."""
    types = pa.types
    if types.is_boolean(kind):
        return lambda text: text == "1"
    if types.is_floating(kind):
        return lambda text: normalize_float(float(text))
    if types.is_decimal(kind):
        return Decimal
    if types.is_binary(kind) or types.is_large_binary(kind) or types.is_fixed_size_binary(kind):
        return lambda text: text.encode("latin-1")
    return int if types.is_integer(kind) or types.is_temporal(kind) else str


class SketchStates(ObjectStates):
    """One word of sketches as bytes; None is the identity. Each value of a group is hashed once in a batch."""

    def __init__(self, aggregate: SketchAggregate) -> None:
        super().__init__(aggregate)
        self.sketch_of = aggregate.sketch_of

    def _gather(self, slots: Int64Array, items: Items, into: StateWords) -> None:
        encoded = items.arguments[0].dictionary_encode()
        values: list[Any] = to_python(encoded.dictionary)
        codes = encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
        pairs, counts = np.unique(slots * max(len(values), 1) + codes, return_counts=True)
        groups, codes = np.divmod(pairs, max(len(values), 1))
        for start, stop in zip(*runs(groups), strict=True):
            some: Counter[Any] = Counter()
            for code, count in zip(codes[start:stop].tolist(), counts[start:stop].tolist(), strict=True):
                some[values[code]] += count  # 0.0 and -0.0 have two codes but are one value
            into[0][groups[start]] = self.sketch_of(some)

    def write(self, words: StateWords) -> list[pa.Array]:
        return [pa.array(words[0], pa.large_binary())]

    def read(self, arrays: Sequence[pa.Array]) -> StateWords:
        out = np.full(len(arrays[0]), None, object)
        out[:] = arrays[0].to_pylist()
        return (out,)
