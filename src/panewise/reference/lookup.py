"""What a lookup means: the state of a query at an instant, from everything that has arrived, in whichever order.

The report of a query at an instant leaves out items that came too late for it. A lookup is made afterwards and includes
them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa

from panewise.algebra import Emit, Host, Query, Windowed, default_host
from panewise.algebra.result_columns import has_levels, instant_type, lookup_types
from panewise.core.schema import Stream
from panewise.core.time import Boundary, Ticks
from panewise.reference.emit import Result, to_table
from panewise.reference.evaluate import Bag, Evaluation, view_function
from panewise.reference.history import History, read_arrivals
from panewise.reference.moments import Moment, split_levels


class StretchEvaluation(Evaluation):
    """Windows hold what lies between the start and the end of a moment: times, or row numbers where windows count."""

    def _members(self, part: History, node: Windowed, moment: Moment) -> tuple[Ticks, Bag]:
        times = part.contents.times
        positions = times + self.boundary.shift if node.window.logical else np.arange(1, len(times) + 1)
        assert moment.start is not None, "a stretch begins somewhere"
        places = np.flatnonzero((positions > moment.start) & (positions <= moment.at))
        return places, [part.rows[place] for place in places]


def lookup_table(
    query: Query, streams: Mapping[str, Stream], at: Sequence[int], boundary: Boundary, host: Host | None = None
) -> pa.Table:
    """The rows of a bound query at some instants, with the bounds of their window, and its level where it has some."""
    histories = _histories(streams)
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


def stretch_table(
    query: Query, streams: Mapping[str, Stream], between: tuple[Ticks, Ticks], boundary: Boundary, host: Host
) -> pa.Table:
    """The rows of a bound query over stretches `(start, end]` of time, or of row numbers where its window counts."""
    query = replace(query, emit=Emit.RSTREAM, revise=None)
    evaluation = StretchEvaluation(_histories(streams), boundary, host, query.empty)
    moments = [Moment(end, start, end) for start, end in zip(*(side.tolist() for side in between), strict=True)]
    bags = evaluation.bags(query.root, moments)
    results = [Result(row, moment) for moment, bag in zip(moments, bags, strict=True) for row in bag]
    (node,) = query.windows
    instants = instant_type(query, {name: stream.schema for name, stream in streams.items()})
    return to_table(query, results, lookup_types(instants if node.window.logical else pa.int64(), False))


def _histories(streams: Mapping[str, Stream]) -> dict[object, History]:
    """All that has arrived; nothing is late."""
    return {name: read_arrivals(replace(stream, delay=None)).history for name, stream in streams.items()}
