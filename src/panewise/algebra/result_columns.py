"""The columns of results: the selected ones, and after them those that date a result or describe its frame.

This module has the names, the order and the types of added columns; the engine or the reference fills in their values.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from panewise.algebra.patterns import known_expiry
from panewise.algebra.tree import Emit, Query
from panewise.core.schema import StreamSchema

T = TypeVar("T")

#: The values of an added column: ticks, numbers or flags. NULL is possible in an Arrow array only.
AddedValues: TypeAlias = "pa.Array | npt.NDArray[np.generic[Any]]"

#: What each added column means.
COLUMN_MEANINGS = {
    "ts": "the instant of a result",
    "w_start": "the start of its window",
    "w_end": "the end of its window",
    "w_level": "the level of its window",
    "sign": "whether a row came or went",
    "expires_at": "when a row leaves",
    "expires_order": "which later row pushes a row out",
    "revision": "how often a result was revised",
    "frame_id": "the number of a frame",
    "duration": "the length of a frame",
    "count": "the number of items in a frame",
    "missing": "the number of reports that a frame lacks",
    "final": "whether a frame has ended",
}


def instant_type(query: Query, streams: Mapping[str, StreamSchema]) -> pa.DataType:
    """The type of instants in the results of a query: that of its first stream, by name."""
    return streams[min(query.root.streams)].instants


def result_schema(query: Query, instants: pa.DataType) -> pa.Schema:
    """The names and types of all columns of a query's results."""
    selected = {column.name: column.type for column in query.root.columns}
    return pa.schema(list(combine_columns(selected, added_types(query, instants)).items()))


def added_columns(query: Query) -> list[str]:
    """The names of the added columns of a query's results."""
    return list(added_types(query, pa.int64()))


def added_types(query: Query, instants: pa.DataType) -> dict[str, pa.DataType]:
    """The added columns of a query's results, in their order, with their types."""
    if query.framed_node is not None:
        return _frame_types(instants, bool(query.framed_node.frame.schedule))
    bounded = query.emit is Emit.RSTREAM and query.periodic
    found = lookup_types(instants, False) if bounded else {"ts": instants}
    if has_levels(query):
        found["w_level"] = pa.int32()
    if query.emit is Emit.CHANGES:
        found["sign"] = pa.int8()
    if query.emit in (Emit.CHANGES, Emit.ISTREAM):
        by_time, orders = known_expiry(query.root)
        if by_time:
            found["expires_at"] = instants
        if orders:
            # A join of counted windows has one order for each of them.
            found["expires_order"] = pa.int64() if orders == 1 else pa.list_(pa.int64())
    return found | ({"revision": pa.int32()} if query.revise is not None else {})


def lookup_types(instants: pa.DataType, levels: bool) -> dict[str, pa.DataType]:
    """The added columns of a lookup: the bounds of the window, and its level where windows have levels."""
    return {"w_start": instants, "w_end": instants} | ({"w_level": pa.int32()} if levels else {})


def has_levels(query: Query) -> bool:
    """Whether some window of a query has levels."""
    return any(node.window.levels for node in query.windows)


def _frame_types(instants: pa.DataType, scheduled: bool) -> dict[str, pa.DataType]:
    """The added columns of frames; those with a schedule have one more."""
    found = {"frame_id": pa.int64(), **lookup_types(instants, False), "duration": pa.int64(), "count": pa.int64()}
    return found | ({"missing": pa.int64()} if scheduled else {}) | {"final": pa.bool_()}


def free_name(name: str, taken: Collection[str]) -> str:
    """The name, with as many underscores as it needs to differ from those that are taken."""
    known = {other.lower() for other in taken}
    while name.lower() in known:
        name += "_"
    return name


def combine_columns(selected: Mapping[str, T], added: Mapping[str, T]) -> dict[str, T]:
    """Selected columns first, then the added ones; an added name that is taken gets an underscore."""
    found = dict(selected)
    for name, values in added.items():
        found[free_name(name, found)] = values
    return found


def dated_table(
    selected: Mapping[str, pa.Array], added: Mapping[str, AddedValues], types: Mapping[str, pa.DataType]
) -> pa.Table:
    """The selected columns, and after them the added columns that `types` names, in its order and of its types."""
    columns = combine_columns(selected, dict(zip(types, typed_values(added, types), strict=True)))
    return pa.Table.from_arrays(list(columns.values()), list(columns))


def typed_values(added: Mapping[str, AddedValues], types: Mapping[str, pa.DataType]) -> list[pa.Array]:
    """The added columns that `types` names, in its order and of its types."""
    arrays = [each if isinstance(each := added[name], pa.Array) else pa.array(each) for name in types]
    return [each if each.type == kind else each.cast(kind) for each, kind in zip(arrays, types.values(), strict=True)]


def renamed_columns_hint(query: Query) -> str | None:
    """Which added columns are called otherwise, since a selected one has their name; None where none is."""
    selected = [column.name for column in query.root.columns]
    if COLUMN_MEANINGS.keys().isdisjoint(name.lower() for name in selected):
        return None
    added = added_columns(query)
    names = list(combine_columns(dict.fromkeys(selected), dict.fromkeys(added)))
    pairs = zip(added, names[-len(added) :], strict=True)
    moved = [f"{COLUMN_MEANINGS[name]} is called {shown!r}" for name, shown in pairs if name != shown]
    if not moved:
        return None
    return f"selected columns have the names of added ones, so that {', '.join(moved)}; give such columns an alias"
