"""What a lookup means: the state of a query at an instant, from everything that has arrived, in whichever order.

An answer that a query reports at an instant leaves out what came too late for it; a lookup is asked afterwards, and
knows of it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa

from panewise.algebra import Emit, Host, Query, Windowed, default_host
from panewise.algebra.result_columns import combine_columns
from panewise.core.schema import Stream
from panewise.core.time import Boundary
from panewise.core.values import to_arrow
from panewise.reference.emit import Result, time_type
from panewise.reference.evaluate import Evaluation, view_function
from panewise.reference.history import History, read_arrivals
from panewise.reference.moments import Moment, split_levels
from panewise.window import MultiGranular


def lookup_table(
    query: Query, streams: Mapping[str, Stream], at: Sequence[int], boundary: Boundary, host: Host | None = None
) -> pa.Table:
    """The rows of a bound query at some instants, with the bounds of their window, and its level where it has some."""
    histories: dict[object, History] = {
        name: read_arrivals(replace(stream, delay=None)).history for name, stream in streams.items()
    }
    query = replace(query, emit=Emit.RSTREAM, revise=None)
    results: list[Result] = []
    for instant in at:
        for level, single in split_levels(query):
            (node,) = single.windows
            # Between two instants of a window the state is that of the earlier one.
            origin, step = node.window.grid or (0, 1)
            moment = Moment(instant - (instant - origin) % step, *node.window.bounds(instant))
            look = view_function(query, level or 0, boundary)
            evaluation = Evaluation(histories, boundary, host or default_host(), query.empty, look)
            (bag,) = evaluation.bags(single.root, [moment])
            results += [Result(row, moment, level=level) for row in bag]
    stream = next(iter(streams.values())).schema
    return _table(query, results, time_type(query.domain, stream.schema.field(stream.time).type))


def _table(query: Query, results: list[Result], instants: pa.DataType) -> pa.Table:
    columns: dict[str, Any] = {}
    for place, column in enumerate(query.root.columns):
        columns[column.name] = to_arrow([r.row.values[place] for r in results], column.type)
    added = {
        "w_start": to_arrow([r.moment.start for r in results], instants),
        "w_end": to_arrow([r.moment.end for r in results], instants),
    }
    if any(isinstance(node.window, MultiGranular) for node in query.root.walk() if isinstance(node, Windowed)):
        added["w_level"] = pa.array([r.level for r in results], pa.int32())
    return pa.table(combine_columns(columns, added))
