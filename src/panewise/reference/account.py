"""The account of a stream: which rows were used, which came too late, which had no usable time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from panewise.algebra import Query, Source, Windowed
from panewise.core.accounting import Accounting
from panewise.core.time import Boundary
from panewise.reference.evaluate import Evaluation
from panewise.reference.history import Arrival, History
from panewise.reference.moments import Moment
from panewise.window import FOREVER, Contents, Session


@dataclass(frozen=True, eq=False)
class AnsweredQuery:
    """A query with all moments at which it would be answered if the run went on; derived streams are queries too.

    Whether an item is late is decided when it arrives, so a run that stops before has the same account.
    """

    query: Query
    evaluation: Evaluation
    moments: list[Moment]


def account_stream(
    name: str,
    arrival: Arrival,
    answered: list[AnsweredQuery],
    boundary: Boundary,
    late_for_frames: set[int] | None = None,
) -> tuple[Accounting, pa.Table]:
    """The account of one stream over all queries that read it, and its late rows in arrival order."""
    table = arrival.stream.arrow
    used: set[int] = set()
    wanted: set[int] = set(late_for_frames or ())
    missed: set[int] = set()
    for each in answered if arrival.history.disordered else ():
        for part, window in _windowed_partitions(name, arrival, each):
            for seen, full in _seen_and_wanted(part, window, each.moments, boundary):
                used.update(seen)
                wanted.update(full)
                missed.update(set(full) - set(seen))
    late = sorted(wanted - used)
    rejected = len(arrival.rejected)
    counts = Accounting(table.num_rows, table.num_rows - len(late) - rejected, len(late), rejected, len(missed & used))
    return counts, table.take(pa.array(late, pa.int64()))


def _windowed_partitions(name: str, arrival: Arrival, answered: AnsweredQuery) -> Iterator[tuple[History, Windowed]]:
    """Every partition of the stream under every window over it."""
    for windowed in answered.query.windows:
        sources = [node for node in windowed.walk() if isinstance(node, Source)]
        if [s.stream for s in sources] == [name]:
            yield from ((part, windowed) for part in answered.evaluation.parts(windowed).values())
        elif any(s.stream == name for s in sources):
            # Below a union there are arrivals of several streams; each stream has an account of its own.
            yield arrival.history, windowed


def _seen_and_wanted(
    part: History, node: Windowed, moments: list[Moment], boundary: Boundary
) -> Iterator[tuple[list[int], list[int]]]:
    """At each moment the arrivals in the window, and those that would be there had nothing been late."""
    c = part.contents
    if isinstance(node.window, Session):
        _, _, joined = part.sessions(node.window, boundary)
        yield c.arrivals[joined].tolist(), c.arrivals.tolist()
        return
    # Instants without a report count too. A late item was unknown at the instants that it missed, and at the first
    # instant that was not final when it came no other window of the query may have reported.
    opened = node.window.instants_from(np.array([opened for _, opened in part.late_items(boundary)], np.int64))
    punctual = Contents.of(c.times)
    own = [node.window.instants(contents, boundary) for contents in (c, punctual)]
    instants = np.unique(np.concatenate([*own, opened[opened < FOREVER]]))
    known = {moment.at for moment in moments}
    for moment in (*moments, *(Moment(t) for t in instants.tolist() if t not in known)):
        upto = int(np.searchsorted(c.times, moment.at - boundary.shift, side="right"))
        visible = part.visible(node.window, moment.at, boundary, moment.admitted)
        seen = visible[node.window.members(part.view(visible), moment.at, boundary)]
        full = node.window.members(Contents.of(c.times[:upto]), moment.at, boundary)
        yield c.arrivals[seen].tolist(), c.arrivals[full].tolist()
