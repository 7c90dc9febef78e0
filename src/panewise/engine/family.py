"""A family: queries that are equal in stream, filters, grouping and aggregates, and differ in their windows."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from panewise.aggregate import Columns, CountAll, Items, Longs, Min
from panewise.aggregate.columns.counts import Counts
from panewise.algebra import Host, announced
from panewise.engine.feeds import Chunk, Feed
from panewise.engine.intake import Arrivals
from panewise.engine.keys import Keys
from panewise.engine.lateness import Ledger
from panewise.engine.rowwise import passed
from panewise.engine.snapshot import Tree
from panewise.plan import Aggregation, span
from panewise.stores.stairs import NEVER
from panewise.time import FIRST_TICK, LAST_TICK, Boundary
from panewise.window import Landmark, Window

SMALLEST_BLOCK, LARGEST_BLOCK = 1 << 17, 1 << 22
#: So few groups are not worth forgetting.
FEW = 1024


@dataclass(frozen=True)
class Member:
    """One query of a family: its plan, and which feed serves each of its levels."""

    name: str
    plan: Aggregation
    feeds: tuple[tuple[int, int | None], ...]


class Family(ABC):
    """What all families have in common: keys, columns of states, feeds and the queries that listen to them."""

    def __init__(self, plan: Aggregation, boundary: Boundary, host: Host) -> None:
        self.plan, self.boundary, self.host = plan, boundary, host
        types = {c.name: c.type for c in plan.group.child.columns}
        self.keys = Keys([types[key] for key in plan.group.keys])
        #: Presence first, then one for each aggregate, then the oldest item where results say when they expire.
        self.columns: list[Columns] = [Counts()]
        self.expiry = expiry(plan)
        #: The calls that have a column of their own; COUNT(*) is the presence.
        self.kept = [call for call in plan.group.calls if not isinstance(call.aggregate, CountAll)]
        self.columns += [call.aggregate.columns() for call in self.kept]
        if self.expiry:
            self.columns.append(Min(pa.int64()).columns())
        self.members: dict[str, Member] = {}
        self.feeds: dict[int, Feed] = {}
        self._numbers: dict[object, int] = {}
        self._listeners: dict[int, int] = {}
        self._next_feed = 0
        #: Every instant up to this one has been answered.
        self.passed = NEVER
        self.said: list[Chunk] = []
        self._live = FEW
        #: Whoever remembers groups by code and must hear when codes change.
        self.recoded: Callable[[Longs], None] = lambda codes: None

    # ---- queries -----------------------------------------------------------------------------------------------

    def join(self, name: str, plan: Aggregation) -> None:
        """One more query; windows that are there already serve it too."""
        feeds = tuple((self._feed(window, plan), level) for level, window in plan.levels)
        self.members[name] = Member(name, plan, feeds)

    def leave(self, name: str) -> None:
        """One query less; windows nobody listens to any more are given up."""
        for number, _ in self.members.pop(name).feeds:
            self._listeners[number] -= 1
            if not self._listeners[number]:
                feed = self.feeds.pop(number)
                del self._listeners[number], self._numbers[feed.window, feed.changes, feed.empty, feed.revise]
                self._left(feed)

    def _feed(self, window: Window, plan: Aggregation) -> int:
        wanted = (window, plan.changes, plan.empty, plan.query.revise)
        if wanted in self._numbers:
            self._listeners[self._numbers[wanted]] += 1
            return self._numbers[wanted]
        feed = Feed(self._next_feed, *wanted)
        self._next_feed += 1
        self._listen(feed)
        self._joined(feed)
        return feed.number

    def _listen(self, feed: Feed) -> None:
        self.feeds[feed.number] = feed
        self._numbers[feed.window, feed.changes, feed.empty, feed.revise] = feed.number
        self._listeners[feed.number] = 1

    @abstractmethod
    def _joined(self, feed: Feed) -> None:
        """A window nobody asked for before."""

    @abstractmethod
    def _left(self, feed: Feed) -> None:
        """A window nobody asks for any more."""

    # ---- rows and time -----------------------------------------------------------------------------------------

    @abstractmethod
    def take(self, arrivals: Arrivals, ledger: Ledger) -> None:
        """Take rows in, and note in the ledger what became of late ones."""

    @abstractmethod
    def advance(self, limit: int) -> None:
        """Say everything about instants up to `limit`, which have become final."""

    @abstractmethod
    def finish(self, until: int | None) -> None:
        """No more rows will come: speak until no window holds anything, or until an instant."""

    def tidy(self) -> None:
        """Everything has been said: forget groups that no window can see any more, once they are the greater part."""
        if len(self.keys) <= 2 * self._live:
            return
        kept = self.keys.kept(self.live())
        self._live = max(len(kept.keys), FEW)
        if 2 * len(kept.keys) <= len(self.keys):
            self.keys = kept.keys
            self.recode(kept.codes)
            self.recoded(kept.codes)

    @abstractmethod
    def live(self) -> Iterable[Longs]:
        """The codes of groups that some window holds."""

    @abstractmethod
    def recode(self, codes: Longs) -> None:
        """Groups have new codes."""

    def state(self) -> Tree:
        """What must survive a restart, keys first: everything else speaks in their codes."""
        codes = np.arange(len(self.keys))
        members = [[member.name, [number for number, _ in member.feeds]] for member in self.members.values()]
        return {
            "members": members,
            "next_feed": self._next_feed,
            "passed": self.passed,
            "keys": pa.table(self.keys.take(codes), names=[str(n) for n in range(len(self.keys.types))]),
        }

    def restore(self, state: Tree) -> None:
        """Take over what `state` gave; the members have been there again already."""
        self._next_feed, self.passed = state["next_feed"], state["passed"]
        columns = [_whole(column) for column in state["keys"].columns]
        self.keys.encode(columns, state["keys"].num_rows)

    def rejoin(self, name: str, plan: Aggregation, numbers: Sequence[int]) -> None:
        """A query is back after a restart, with the feeds it had."""
        feeds = []
        for number, (level, window) in zip(numbers, plan.levels, strict=True):
            if number in self.feeds:
                self._listeners[number] += 1
            else:
                self._listen(Feed(number, window, plan.changes, plan.empty, plan.query.revise))
            feeds.append((number, level))
        self.members[name] = Member(name, plan, tuple(feeds))

    @property
    @abstractmethod
    def nbytes(self) -> int:
        """How much memory the states take."""

    def _entering(self, arrivals: Arrivals) -> tuple[pa.Table, Arrivals]:
        """The rows that enter windows: those of the right time that pass the filters below."""
        source = self.plan.source
        table = arrivals.table.rename_columns([column.name for column in source.columns])
        first, last = span(self.plan.window)
        if isinstance(self.plan.window, Landmark) and self.plan.window.upper:
            last -= self.boundary.shift
        if (first, last) != (FIRST_TICK, LAST_TICK):
            places = np.flatnonzero((arrivals.times >= first) & (arrivals.times <= last))
            arrivals, table = arrivals.chosen(places), table.take(pa.array(places))
        table, kept = passed(self.plan.before, table, self.host)
        return table, arrivals if kept is None else arrivals.chosen(kept)

    def _blocks(self, table: pa.Table, rows: Arrivals) -> Iterator[tuple[slice, Longs, list[Items]]]:
        """Rows in blocks: the slice they are, their codes, and what each column of states is made from.

        Blocks are small enough to stay in the cache, and not smaller than the number of groups.
        """
        arrays = _arrays(table)
        where = slice(0, 0)
        while where.stop < len(rows):
            start = where.stop
            size = min(max(4 * len(self.keys), SMALLEST_BLOCK), LARGEST_BLOCK)
            where = slice(start, min(start + size, len(rows)))
            part = {name: array.slice(start, where.stop - start) for name, array in arrays.items()}
            codes = self.keys.encode([part[key] for key in self.plan.group.keys], where.stop - start)
            yield where, codes, self._items(part, rows.times[where], rows.ordered(where))

    def _coded(self, table: pa.Table, rows: Arrivals) -> tuple[Longs, list[Items]]:
        """The same in one piece."""
        arrays = _arrays(table)
        codes = self.keys.encode([arrays[key] for key in self.plan.group.keys], len(rows))
        return codes, self._items(arrays, rows.times, rows.order)

    def _items(self, part: dict[str, pa.Array], times: Longs, order: Longs) -> list[Items]:
        items = [Items((), times, order)]
        items += [Items(tuple(part[a] for a in call.arguments), times, order) for call in self.kept]
        if self.expiry:
            items.append(Items((pa.array(times),), times, order))
        return items


def _arrays(table: pa.Table) -> dict[str, pa.Array]:
    return {name: _whole(table.column(name)) for name in table.column_names}


def _whole(column: pa.ChunkedArray) -> pa.Array:
    """A column in one piece, which it often is already."""
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()


def expiry(plan: Aggregation) -> str | None:
    """The column in which results of a query say when they leave, if they do."""
    by_time, orders = announced(plan.query.root) if plan.changes else (False, 0)
    return "expires_at" if by_time else "expires_order" if orders else None


def chosen(items: Sequence[Items], keep: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> list[Items]:
    """Some of the rows of every column."""
    return [each.take(keep) for each in items]
