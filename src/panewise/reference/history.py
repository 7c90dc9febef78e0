"""What has arrived: rows in time order, each with the watermark it met, and the account of them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa

from panewise.core.schema import Stream, ticks_of
from panewise.core.time import Boundary, Ticks
from panewise.core.values import to_python
from panewise.window import Contents, Flags, Session, Window

NO_MARK = int(np.iinfo(np.int64).min)


@dataclass(frozen=True, eq=False, slots=True)
class Row:
    """A tuple of a relation: its values, its time, and when it leaves, as far as that is known.

    Rows are compared by identity: two equal tuples are two rows. `orders` holds one expiration order for each
    counted window the tuple came through.
    """

    values: tuple[Any, ...]
    time: int
    expires: int | None = None
    orders: tuple[int, ...] = ()


@dataclass(eq=False)
class History:
    """All rows of a stream expression, ordered by time, then by arrival."""

    rows: list[Row]
    contents: Contents
    _sessions: dict[tuple[Session, Boundary], tuple[Ticks, Ticks, Flags]] = field(default_factory=dict)

    @cached_property
    def disordered(self) -> bool:
        """Whether any item arrived after something newer, so that it may be late for an instant."""
        return bool((self.contents.marks > NO_MARK).any())

    @property
    def first(self) -> int | None:
        """The time of the oldest item that came in order; late ones do not show when a stream began."""
        times = self.contents.times[self.contents.marks == NO_MARK]
        return int(times[0]) if len(times) else None

    def visible(self, window: Window, at: int, boundary: Boundary, admitted: tuple[int, int] | None = None) -> Ticks:
        """Positions that count for a window at an instant: not after it, and arrived before it was final.

        Between two instants of the window what is late for the earlier one is not in its state. Late items up to the
        `admitted` watermark and arrival are let in as well: that is a revision.
        """
        upto = int(np.searchsorted(self.contents.times, at - boundary.shift, side="right"))
        places = np.arange(upto, dtype=np.int64)
        if not self.disordered:
            return places
        refreshed = window.state_instant(at)
        then = self.contents.times[:upto] <= refreshed - boundary.shift
        late = np.where(then, self.late_for(refreshed, boundary, upto), self.late_for(at, boundary, upto))
        if admitted:
            mark, arrival = admitted
            marks, arrivals = self.contents.marks[:upto], self.contents.arrivals[:upto]
            late &= (marks > mark) | ((marks == mark) & (arrivals > arrival))
        kept: Ticks = places[~late]
        return kept

    def late_for(self, at: int, boundary: Boundary, upto: int) -> np.ndarray[Any, np.dtype[np.bool_]]:
        """Which of the first `upto` items found the instant already final when they arrived."""
        late: Flags = boundary.is_final(at, self.contents.marks[:upto])
        return late

    def on_time(self) -> Contents:
        """The items that arrived before any of their instants was final."""
        return self.view(np.flatnonzero(self.contents.marks == NO_MARK)) if self.disordered else self.contents

    def late_items(self, boundary: Boundary) -> list[tuple[int, int]]:
        """The time of each item that arrived late for some instants, and the first one it was not late for."""
        c = self.contents
        late = c.marks > NO_MARK
        return list(zip(c.times[late].tolist(), (c.marks[late] + boundary.shift).tolist(), strict=True))

    def view(self, places: Ticks) -> Contents:
        """The contents at these ascending positions; a prefix is not copied."""
        prefix = len(places) == 0 or int(places[-1]) == len(places) - 1
        chosen = slice(0, len(places)) if prefix else places
        c = self.contents
        return Contents(c.times[chosen], c.arrivals[chosen], c.marks[chosen])

    def part(self, places: Ticks) -> History:
        return History([self.rows[i] for i in places], self.view(places))

    def split(self, positions: tuple[int, ...]) -> dict[tuple[Any, ...], History]:
        """One history for each combination of values at these column positions."""
        if not positions:
            return {(): self}
        groups: dict[tuple[Any, ...], list[int]] = {}
        for place, row in enumerate(self.rows):
            groups.setdefault(tuple(row.values[p] for p in positions), []).append(place)
        return {key: self.part(np.array(places, np.int64)) for key, places in groups.items()}

    def sessions(self, window: Session, boundary: Boundary) -> tuple[Ticks, Ticks, Flags]:
        """`Session.assign` of all items, replayed once."""
        if (window, boundary) not in self._sessions:
            self._sessions[window, boundary] = window.assign(self.contents, boundary)
        return self._sessions[window, boundary]

    def with_expiry(self, window: Window, boundary: Boundary) -> History:
        """The same rows, each with the time at which it leaves this window."""
        times = window.expires_at(self.contents.times, boundary)
        orders = window.expires_order(np.arange(1, len(self.rows) + 1))
        if isinstance(window, Session):
            times = self.sessions(window, boundary)[1] + 1
        rows = self.rows
        if times is not None:
            rows = [replace(row, expires=int(t)) for row, t in zip(rows, times, strict=True)]
        if orders is not None:
            rows = [replace(row, orders=(int(o),)) for row, o in zip(rows, orders, strict=True)]
        return History(rows, self.contents)


def merge_histories(parts: Iterable[History]) -> History:
    """Several histories as one, in time order; ties by arrival, then by the order of the parts."""
    parts = list(parts)
    rows = [row for part in parts for row in part.rows]
    columns = [np.concatenate([getattr(p.contents, n) for p in parts]) for n in ("times", "arrivals", "marks")]
    order = np.lexsort((columns[1], columns[0]))
    return History([rows[i] for i in order], Contents(*(c[order] for c in columns)))


@dataclass(eq=False)
class Arrival:
    """A stream as it arrived: its history, and the rows that were rejected."""

    stream: Stream
    history: History
    rejected: Ticks


def read_arrivals(stream: Stream) -> Arrival:
    """Read a stream row by row: reject unusable times, note the watermark that each row meets, then order by time."""
    ticks, usable = ticks_of(stream.arrow.column(stream.time))
    usable = np.ones(len(ticks), bool) if usable is None else usable
    if stream.horizon is not None:
        usable &= ticks <= stream.horizon
    places = np.flatnonzero(usable)
    times = ticks[places]
    delay = stream.schema.delay_ticks
    marks = np.full(len(times), NO_MARK)
    if delay is not None and len(times) > 1:
        marks[1:] = np.maximum.accumulate(times)[:-1] - delay
    order = np.argsort(times, kind="stable")
    columns = [to_python(c.take(pa.array(places[order]))) for c in stream.arrow.columns]
    rows = [Row(values, int(t)) for values, t in zip(zip(*columns, strict=True), times[order], strict=True)]
    # If the watermark had passed none of the item's own instants, the item is on time, as if there were no watermark.
    contents = Contents(times[order], places[order], np.where(marks > times, marks, NO_MARK)[order])
    return Arrival(stream, History(rows, contents), np.flatnonzero(~usable))
