"""Values as bytes that sort in the order of SQL."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from panewise.aggregate.ragged import RaggedArray, consecutive_runs
from panewise.aggregate.states import Int64Array

Bytes: TypeAlias = npt.NDArray[np.uint8]


def fits_bytes(kind: pa.DataType) -> bool:
    """Whether bytes can hold the values of a type in their order."""
    types = pa.types
    return bool(_is_variable(kind) or types.is_fixed_size_binary(kind) or types.is_decimal(kind))


def to_bytes(values: pa.Array) -> tuple[Int64Array, Bytes]:
    """Values without NULLs as runs of bytes, and these bytes. Those of decimals begin with the sign, turned."""
    if not _is_variable(values.type):
        width, data = _width(values.type), np.frombuffer(values.buffers()[1] or b"", np.uint8)
        body = data[values.offset * width : (values.offset + len(values)) * width]
        if pa.types.is_decimal(values.type):
            body = _turn_sign(body.reshape(-1, width)[:, ::-1]).ravel()
        return consecutive_runs(np.full(len(values), width, np.int64)), body
    large = values.cast(pa.large_binary())
    _, offsets, content = large.buffers()
    ends = np.frombuffer(offsets or bytes(8), np.int64)[large.offset : large.offset + len(large) + 1]
    return np.stack([ends[:-1], np.diff(ends)], axis=1), np.frombuffer(content or b"", np.uint8)


def from_bytes(runs: RaggedArray, present: npt.NDArray[np.bool_], kind: pa.DataType) -> pa.Array:
    """The values of a type that `to_bytes` made bytes of; NULL where they are missing."""
    missing = pa.array(~present)
    if _is_variable(kind):
        offsets = np.concatenate([[0], np.cumsum(runs.sizes)]).astype(np.int64)
        buffers = [None, pa.py_buffer(offsets), pa.py_buffer(np.ascontiguousarray(runs.own_entries()[0]))]
        found = pa.Array.from_buffers(pa.large_binary(), len(runs), buffers)
        return pc.if_else(missing, None, found.cast(pa.large_string() if _is_text(kind) else found.type)).cast(kind)
    width = _width(kind)
    body = np.zeros((len(runs), width), np.uint8)
    body[present] = runs[present].own_entries()[0].reshape(-1, width)
    if pa.types.is_decimal(kind):
        body = np.ascontiguousarray(_turn_sign(body)[:, ::-1])
    found = pa.Array.from_buffers(kind, len(runs), [None, pa.py_buffer(body)])
    return pc.if_else(missing, None, found)


def sorted_places(values: pa.Array) -> tuple[Int64Array, pa.Array]:
    """The place of each value among the different ones, sorted, and these; no value is NULL."""
    if _is_variable(values.type):
        found, plain = _sorted_places(values.cast(pa.large_binary()))
        return found, (plain.cast(pa.large_string()) if _is_text(values.type) else plain).cast(values.type)
    return _sorted_places(values)


def _sorted_places(values: pa.Array) -> tuple[Int64Array, pa.Array]:
    parts = values.dictionary_encode()
    order = pc.sort_indices(parts.dictionary)
    places = np.empty(len(order), np.int64)
    places[order.to_numpy()] = np.arange(len(order))
    return places[parts.indices.to_numpy()], parts.dictionary.take(order)


def _turn_sign(body: Any) -> Any:
    """Bytes, the highest first, with the other sign."""
    return np.concatenate([body[:, :1] ^ 0x80, body[:, 1:]], axis=1)


def _width(kind: pa.DataType) -> int:
    return int(kind.bit_width) // 8


def _is_text(kind: pa.DataType) -> bool:
    types = pa.types
    return bool(types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind))


def _is_variable(kind: pa.DataType) -> bool:
    types = pa.types
    bare = types.is_binary(kind) or types.is_large_binary(kind) or types.is_binary_view(kind)
    return bool(_is_text(kind) or bare)
