"""Which shard a group belongs to: the same on every machine, in every run."""

from __future__ import annotations

import zlib
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from panewise.aggregate import Int64Array
from panewise.aggregate.ordering import fits_int64, to_longs
from panewise.core.values import to_python
from panewise.engine.state.codec import to_text

_HashArray = npt.NDArray[np.uint64]


def shards_of(columns: Sequence[pa.Array], rows: int, shards: int) -> Int64Array:
    """The shard of each row, by its key columns; without key columns all rows are in the first shard."""
    mixed = np.zeros(rows, np.uint64)
    for column in columns:
        mixed = _scramble(mixed ^ _hashes(column))
    return (mixed % np.uint64(shards)).astype(np.int64)


def _hashes(column: pa.Array) -> _HashArray:
    """A hash of each value: equal values have equal hashes; NULL is a value like any other."""
    found = np.full(len(column), 0x9E3779B97F4A7C15, np.uint64)
    valid = pc.is_valid(column).to_numpy(zero_copy_only=False)
    values = column.drop_null()
    if fits_int64(column.type):
        found[valid] = _scramble(to_longs(values).view(np.uint64))
    elif pa.types.is_nested(column.type):
        found[valid] = [zlib.crc32(to_text(value).encode()) for value in to_python(values)]
    else:
        parts = values.dictionary_encode()
        known = np.array([zlib.crc32(_text(value)) for value in to_python(parts.dictionary)], np.uint64)
        found[valid] = known[parts.indices.to_numpy(zero_copy_only=False)] if len(known) else known
    return found


def _text(value: object) -> bytes:
    return value.encode() if isinstance(value, str) else value if isinstance(value, bytes) else to_text(value).encode()


def _scramble(words: _HashArray) -> _HashArray:
    """Spread numbers that are close to each other (the finaliser of SplitMix64)."""
    with np.errstate(over="ignore"):
        words = (words ^ (words >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        words = (words ^ (words >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return words ^ (words >> np.uint64(31))
