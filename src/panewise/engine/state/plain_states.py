"""States as arrays of types that Parquet and Spark support, and back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from panewise.aggregate import StateArrays, StateWords
from panewise.engine.state.codec import from_text, to_text

#: Types that Spark does not support, and the types that replace them.
_PLAIN = {
    pa.uint8(): pa.int16(),
    pa.uint16(): pa.int32(),
    pa.uint32(): pa.int64(),
    pa.uint64(): pa.int64(),
    pa.large_string(): pa.string(),
    pa.large_binary(): pa.binary(),
}


def to_plain(column: StateArrays, words: StateWords) -> list[pa.Array]:
    """The states of one column, one array a word, or as many as the column writes; objects are text."""
    written = column.write(words)
    arrays = [_array(word) for word in words] if written is None else written
    return [array.cast(_plain_type(array.type)) for array in arrays]


def from_plain(column: StateArrays, arrays: Sequence[pa.Array]) -> StateWords:
    """What `to_plain` wrote."""
    nothing = column.identity(0)
    written = column.write(nothing)
    if written is not None:
        return column.read([array.cast(like.type) for array, like in zip(arrays, written, strict=True)])
    return tuple(_word(array, like) for array, like in zip(arrays, nothing, strict=True))


def _plain_type(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return pa.list_(_plain_type(kind.value_type))
    if pa.types.is_struct(kind):
        return pa.struct([(field.name, _plain_type(field.type)) for field in kind])
    return _PLAIN.get(kind, kind)


def _array(word: Any) -> pa.Array:
    if word.dtype.hasobject:
        return pa.array([to_text(state) for state in word], pa.string())
    if word.ndim > 1:
        offsets = np.arange(len(word) + 1, dtype=np.int32) * word.shape[1]
        return pa.ListArray.from_arrays(pa.array(offsets), pa.array(np.ascontiguousarray(word).ravel()))
    return pa.array(word.view(np.int64) if word.dtype == np.uint64 else word)


def _word(array: pa.Array, like: Any) -> Any:
    if like.dtype.hasobject:
        out = np.empty(len(array), object)
        out[:] = [from_text(text) for text in array.to_pylist()]
        return out
    if like.ndim > 1:
        # Copied, because states are written in place and Arrow's memory is not ours.
        return np.array(array.flatten().to_numpy(zero_copy_only=False), like.dtype).reshape(len(array), *like.shape[1:])
    found = array.to_numpy(zero_copy_only=False)
    return found.view(np.uint64) if like.dtype == np.uint64 else found.astype(like.dtype)
