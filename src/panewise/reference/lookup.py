"""What a lookup means: the state of a query at an instant, from everything that has arrived, in whichever order.

The report of a query at an instant leaves out items that came too late for it. A lookup is made afterwards and includes
them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import pyarrow as pa

from panewise.algebra import Emit, Host, Query, default_host
from panewise.algebra.result_columns import has_levels, instant_type, lookup_types
from panewise.core.schema import Stream
from panewise.core.time import Boundary
from panewise.reference.emit import Result, to_table
from panewise.reference.evaluate import Evaluation, view_function
from panewise.reference.history import History, read_arrivals
from panewise.reference.moments import Moment, split_levels


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
    instants = instant_type(query, {name: stream.schema for name, stream in streams.items()})
    return to_table(query, results, lookup_types(instants, has_levels(query)))
