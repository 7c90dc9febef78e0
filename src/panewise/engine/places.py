"""Rows and values at places that are known to exist, so that these are not checked, which takes as long as copying."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from panewise.aggregate import Int64Array


def take_rows(table: pa.Table, places: Int64Array) -> pa.Table:
    """The rows of a table at some places."""
    return pc.take(table, pa.array(places, pa.int64()), boundscheck=False)


def take_values(column: pa.ChunkedArray, places: pa.Array) -> pa.Array:
    """The values of a column at some places, as one array."""
    values = column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()
    return pc.take(values, places, boundscheck=False)
