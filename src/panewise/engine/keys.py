"""Group keys as small numbers: every different combination of values gets a code, in the order of appearance."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from panewise.aggregate import Int64Array
from panewise.aggregate.dictionary import IntegerCodes, ValueCodes
from panewise.engine.state.snapshot import StatePart, append_only_parts, remember_name

#: With fewer groups than this, unused keys are not dropped.
FEW_KEYS = 1024


class Keys:
    """The codes of all groups of a family. NULL is a value like any other, NaN is one value, zero has no sign."""

    def __init__(self, types: Sequence[pa.DataType]) -> None:
        self.types = tuple(types)
        self._columns = [ValueCodes(kind) for kind in types]
        # Codes of the first column, paired with those of the second, and so on.
        self._pairs = [IntegerCodes() for _ in types[1:]]
        #: How many codes were in use when they were last counted.
        self._live = FEW_KEYS

    def __len__(self) -> int:
        if not self.types:
            return 1
        return len(self._pairs[-1]) if self._pairs else len(self._columns[0])

    def encode(self, columns: Sequence[pa.Array], rows: int) -> Int64Array:
        """The code of each row; new combinations get new codes."""
        if not self.types:
            return np.zeros(rows, np.int64)
        codes = self._columns[0].encode(columns[0])
        for values, pairs, column in zip(self._columns[1:], self._pairs, columns[1:], strict=True):
            codes = pairs.encode((codes << 32) | values.encode(column))
        return codes

    def find(self, columns: Sequence[pa.Array], rows: int) -> Int64Array:
        """The code of each row, -1 where the combination has none; no new codes are made."""
        if not self.types:
            return np.zeros(rows, np.int64)
        codes = self._columns[0].find(columns[0])
        for values, pairs, column in zip(self._columns[1:], self._pairs, columns[1:], strict=True):
            others = values.find(column)
            known = (codes >= 0) & (others >= 0)
            codes = np.where(known, pairs.find((codes << 32) | others), -1)
        return codes

    def shrink_to_live(self, live: Callable[[], Iterable[Int64Array]]) -> RecodedKeys | None:
        """Only the keys whose codes are in use, if these are at most half; otherwise None."""
        if len(self) <= 2 * self._live:
            return None
        kept = self.keep_codes(live())
        self._live = kept.keys._live = max(len(kept.keys), FEW_KEYS)
        return kept if 2 * len(kept.keys) <= len(self) else None

    def keep_codes(self, live: Iterable[Int64Array]) -> RecodedKeys:
        """Only the keys with some codes."""
        marks = np.zeros(len(self), bool)
        for codes in live:
            marks[codes] = True
        alive = np.flatnonzero(marks)
        fewer, codes = Keys(self.types), np.full(len(self), -1, np.int64)
        codes[alive] = fewer.encode(self.take(alive), len(alive))
        return RecodedKeys(fewer, codes)

    def take(self, codes: Int64Array) -> list[pa.Array]:
        """The key columns of some codes."""
        found = []
        for values, pairs in zip(self._columns[:0:-1], self._pairs[::-1], strict=True):
            both = pairs.take(codes)
            codes = both >> 32
            found.append(values.take(both & 0xFFFFFFFF))
        if self.types:
            found.append(self._columns[0].take(codes))
        return found[::-1]

    def state(self) -> list[StatePart]:
        """All keys in the order of their codes."""
        names = [str(number) for number in range(len(self.types))]
        return (
            append_only_parts(self, len(self), lambda codes: pa.table(self.take(codes), names=names))
            if self.types
            else []
        )

    def restore(self, tables: Sequence[pa.Table]) -> None:
        """Restore what `state` returned."""
        start = 0
        for table in tables:
            self.encode([column.combine_chunks() for column in table.columns], table.num_rows)
            remember_name(self, (start, start + table.num_rows), table)
            start += table.num_rows


@dataclass(frozen=True, eq=False)
class RecodedKeys:
    """Some of the keys with codes of their own: `codes[old]` is the new one."""

    keys: Keys
    codes: Int64Array
