"""APPROX_DISTINCT: how many different values there are, from a sketch of bounded size, with a stated error."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from panewise import kernels
from panewise.aggregate.base import Aggregate, Laws, orderable_type, whole_literal
from panewise.aggregate.byte_order import fits_bytes, to_bytes
from panewise.aggregate.count import CountStates
from panewise.aggregate.dictionary import IntegerCodes
from panewise.aggregate.moving import MovingRanges
from panewise.aggregate.ordering import fits_int64, to_longs
from panewise.aggregate.ragged import RaggedArray, consecutive_runs, ragged_word
from panewise.aggregate.states import Int64Array, Items, StateArrays, StateWords
from panewise.core.values import to_arrow, to_python


class ApproxDistinct(Aggregate[bytes]):
    """How many different values there are, by HyperLogLog with 2**lg_k registers. O(1) space.

    The relative standard error is 1.04 / sqrt(2**lg_k), by default 1.6 %; up to 2**lg_k / 8 values are counted
    exactly, but for equal hashes of 64 bits, which numbers never have. The answer does not depend on how values are
    split and in which order parts are combined, because it is computed from the registers alone.
    """

    names: ClassVar[tuple[str, ...]] = ("APPROX_DISTINCT", "APPROX_COUNT_DISTINCT")
    options = ("lg_k",)
    laws = Laws(idempotent=True, approximate=True)

    def __init__(self, *types: pa.DataType, lg_k: str | int = 12) -> None:
        self.lg_k = whole_literal(self.names[0], "lg_k", lg_k, 4, 21)
        super().__init__(*types)
        self._columns = HyperLogLogStates(self.lg_k)

    def result_type(self) -> pa.DataType:
        orderable_type(self)
        return pa.int64()

    def meaning(self, values: Sequence[Any]) -> int:
        return len(set(values))

    def identity(self) -> bytes:
        return b""

    def lift(self, value: Any) -> bytes:
        return self.gather([value])

    def gather(self, values: Sequence[Any]) -> bytes:
        none = np.zeros(len(values), np.int64)
        items = Items((to_arrow(values, self.types[0]),), none, none)
        return _to_state(self._columns.gather(none, items, 1))

    def combine(self, left: bytes, right: bytes) -> bytes:
        return (
            _to_state(self._columns.combine(_from_state(left), _from_state(right))) if left and right else left or right
        )

    def lower(self, state: bytes) -> int:
        return int(self._columns.lower(_from_state(state))[0].as_py()) if state else 0

    def state_arrays(self) -> StateArrays:
        return HyperLogLogStates(self.lg_k)

    def text(self, arguments: Sequence[str]) -> str:
        return f"{self.names[0]}({', '.join([*arguments, *([str(self.lg_k)] if self.lg_k != 12 else [])])})"

    def _key(self) -> tuple[Any, ...]:
        return (*super()._key(), self.lg_k)


class HyperLogLogStates(StateArrays):
    """Hashes or registers of each group, and whether they are registers. A settled state is its estimate."""

    needs_time = False

    def __init__(self, lg_k: int) -> None:
        self.lg_k, self.few = lg_k, max(2**lg_k // 8, 8)

    def identity(self, size: int) -> StateWords:
        return RaggedArray.empty(size, np.int64), np.zeros(size, bool)

    def _gather(self, slots: Int64Array, items: Items, into: StateWords) -> None:
        runs, hashes, _ = kernels.runs_gather(slots, _hashes(items.arguments[0]), len(into[1]))
        # Together with nothing, runs of too many hashes are folded.
        into[0][:], into[1][:] = self._unite((RaggedArray.of(runs, (hashes,)), into[1]), into)

    def combine(self, left: StateWords, right: StateWords) -> StateWords:
        for one, other in ((left, right), (right, left)):
            if not ragged_word(other).sizes.any():
                return one[0][:], one[1].copy()
        return self._unite(left, right)

    def _unite(self, left: StateWords, right: StateWords) -> StateWords:
        runs, entries, folded = kernels.sketch_union(*_parts(left), *_parts(right), self.lg_k, self.few)
        return RaggedArray.of(runs, (entries,)), folded

    def moving_answers(self, items: Items, ranges: MovingRanges) -> tuple[StateArrays, StateWords] | None:
        return self._estimates(items, ranges, self.identity(len(ranges.starts) - 1))

    def running_answers(
        self, items: Items, ranges: MovingRanges, before: StateWords
    ) -> tuple[StateArrays, StateWords] | None:
        moved, order = ranges.after(ragged_word(before).sizes)
        return self._estimates(items, moved, before, order)

    def _estimates(
        self, items: Items, ranges: MovingRanges, before: StateWords, order: Int64Array | None = None
    ) -> tuple[StateArrays, StateWords]:
        """The answers of ranges, together with what groups had; `order` is that of its entries and of items."""
        held, (known, values) = ragged_word(before), items.present_values()
        had = held.own_entries()[0]
        registers = np.flatnonzero(np.repeat(before[1], held.sizes))
        hashes = np.concatenate((had, _hashes(values)))
        codes = IntegerCodes()
        mine = codes.encode(hashes)
        # Registers have no hash: each gets a number of its own, and its entry is known.
        entries = kernels.sketch_entries(hashes, self.lg_k)
        mine[registers], entries[registers] = len(codes) + np.arange(len(registers)), had[registers]
        kinds = IntegerCodes()
        rows = np.full((2, len(had) + len(items)), -1, np.int64)
        places = np.append(np.arange(len(had)), len(had) + known)
        rows[0, places], rows[1, places] = mine, kinds.encode(entries)
        if order is not None:
            rows = rows[:, order]
        found = kernels.sketch_ranges(
            (rows[0], rows[1]),
            kinds.take(np.arange(len(kinds))),
            (ranges.low, ranges.high, ranges.groups),
            before[1],
            self.lg_k,
            self.few,
        )
        return CountStates(), (np.rint(found).astype(np.int64),)

    def settle(self, words: StateWords) -> StateWords:
        return (np.rint(kernels.sketch_estimate(*_parts(words), self.lg_k)).astype(np.int64),)

    def lower(self, words: StateWords) -> pa.Array:
        (settled,) = self.settle(words) if isinstance(words[0], RaggedArray) else words
        return pa.array(settled)

    def write(self, words: StateWords) -> list[pa.Array]:
        runs = ragged_word(words)
        offsets = pa.array(np.concatenate([[0], np.cumsum(runs.sizes)]).astype(np.int64))
        return [pa.LargeListArray.from_arrays(offsets, pa.array(runs.own_entries()[0])), pa.array(words[1])]

    def read(self, arrays: Sequence[pa.Array]) -> StateWords:
        entries, folded = arrays
        runs = consecutive_runs(entries.value_lengths().to_numpy(zero_copy_only=False).astype(np.int64))
        held = RaggedArray.of(runs, (np.array(entries.flatten().to_numpy()),))
        return held, np.array(folded.to_numpy(zero_copy_only=False), bool)


def _parts(words: StateWords) -> tuple[Any, ...]:
    runs = ragged_word(words)
    return runs.runs, *runs.entries, words[1]


def _hashes(values: pa.Array) -> Int64Array:
    """A hash of each value, the same in every process."""
    if not fits_int64(values.type) and not fits_bytes(values.type):
        values = pa.array([str(value) for value in to_python(values)], pa.string())
    found: Int64Array = (
        kernels.sketch_hash_longs(to_longs(values))
        if fits_int64(values.type)
        else kernels.sketch_hash_bytes(*to_bytes(values))
    )
    return found


def _to_state(words: StateWords) -> bytes:
    """The state of one group."""
    return words[1].tobytes() + ragged_word(words).own_entries()[0].tobytes()


def _from_state(state: bytes) -> StateWords:
    entries = np.frombuffer(state[1:], np.int64).copy()
    return RaggedArray.of(np.array([[0, len(entries)]]), (entries,)), np.frombuffer(state[:1], bool).copy()
