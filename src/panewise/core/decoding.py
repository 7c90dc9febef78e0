"""Arrow has many encodings of the same values; this module converts columns to the plain one that the other modules
use.

Dictionaries (Categorical of pandas and Polars, Enum of Polars), run ends, views and extensions are encodings: they
become plain columns, also inside lists and structs.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types


def decode_table(table: pa.Table) -> pa.Table:
    """The same rows in plain columns."""
    for i, field in enumerate(table.schema):
        kind = plain_type(field.type)
        if kind != field.type:
            chunks = [_plain_array(chunk) for chunk in table.column(i).chunks]
            table = table.set_column(i, field.with_type(kind), pa.chunked_array(chunks, kind))
    return table


def plain_schema(schema: pa.Schema) -> pa.Schema:
    return pa.schema([field.with_type(plain_type(field.type)) for field in schema], schema.metadata)


def plain_type(kind: pa.DataType) -> pa.DataType:
    """The type of a column's values, however they are encoded.

    >>> plain_type(pa.list_(pa.dictionary(pa.int32(), pa.string_view())))
    ListType(list<item: string>)
    """
    if isinstance(kind, pa.BaseExtensionType):
        return plain_type(kind.storage_type)
    if types.is_dictionary(kind) or types.is_run_end_encoded(kind):
        return plain_type(kind.value_type)
    if types.is_string_view(kind):
        return pa.string()
    if types.is_binary_view(kind):
        return pa.binary()
    if types.is_decimal32(kind) or types.is_decimal64(kind):
        return pa.decimal128(kind.precision, kind.scale)
    if types.is_struct(kind):
        return pa.struct([field.with_type(plain_type(field.type)) for field in kind])
    if types.is_map(kind):
        return pa.map_(plain_type(kind.key_type), plain_type(kind.item_type), kind.keys_sorted)
    if types.is_fixed_size_list(kind):
        return pa.list_(_plain_item_field(kind), kind.list_size)
    if types.is_large_list(kind) or types.is_large_list_view(kind):
        return pa.large_list(_plain_item_field(kind))
    if types.is_list(kind) or types.is_list_view(kind):
        return pa.list_(_plain_item_field(kind))
    return kind


def _plain_item_field(kind: Any) -> pa.Field:
    return kind.value_field.with_type(plain_type(kind.value_type))


def _plain_array(array: Any) -> pa.Array:
    kind, wanted = array.type, plain_type(array.type)
    if kind == wanted:
        return array
    if isinstance(kind, pa.BaseExtensionType):
        return _plain_array(array.storage)
    if types.is_dictionary(kind):
        return _plain_array(array.dictionary).take(array.indices)
    if types.is_run_end_encoded(kind):
        # The values of runs may have an encoding in which Arrow cannot repeat them.
        ends = pa.RunEndEncodedArray.from_arrays(array.run_ends, pa.array(range(len(array.values))))
        places = pc.run_end_decode(ends).slice(array.offset, len(array))
        return _plain_array(array.values).take(places)
    if types.is_struct(kind):
        children = [_plain_array(array.field(i)) for i in range(kind.num_fields)]
        return pa.StructArray.from_arrays(children, fields=list(wanted), mask=array.is_null())
    if types.is_list_view(kind) or types.is_large_list_view(kind):
        return _list_view_as_list(array, wanted)
    if types.is_list(kind) or types.is_large_list(kind):
        return _with_plain_items(array, wanted, 2)
    if types.is_fixed_size_list(kind):
        return _with_plain_items(array, wanted, 1)
    return array.cast(wanted)


def _with_plain_items(array: Any, wanted: pa.DataType, own: int) -> pa.Array:
    """The same lists over plain items; `own` buffers are those of the lists themselves."""
    buffers = array.buffers()[:own]
    return pa.Array.from_buffers(
        wanted, len(array), buffers, offset=array.offset, children=[_plain_array(array.values)]
    )


def _list_view_as_list(array: Any, wanted: pa.DataType) -> pa.Array:
    """Views of lists as lists one after another."""
    lengths = pc.fill_null(pc.list_value_length(array), 0).to_numpy()
    maker, offsets = (pa.ListArray, pa.int32()) if types.is_list(wanted) else (pa.LargeListArray, pa.int64())
    ends = pa.array(np.concatenate([[0], np.cumsum(lengths)]), offsets)
    return maker.from_arrays(ends, _plain_array(array.flatten()), type=wanted, mask=array.is_null())
