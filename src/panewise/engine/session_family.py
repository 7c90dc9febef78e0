"""A family of queries over session windows: items that follow each other closely, reported once silence has lasted."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from panewise.aggregate import Columns, Items, Longs, runs
from panewise.algebra import Host
from panewise.engine.family import Entering, Family
from panewise.engine.feeds import Chunk, Feed
from panewise.engine.intake import NO_MARK, Arrivals
from panewise.engine.keys import Keys
from panewise.engine.lateness import Ledger, Verdict
from panewise.engine.open_panes import gathered
from panewise.engine.snapshot import Tree, pane_tree, panes_from
from panewise.plan import Aggregation
from panewise.stores.pane import Pane, merged
from panewise.time import Boundary
from panewise.window import Session


@dataclass(frozen=True, eq=False)
class Open:
    """A session that may still grow: the times of its first and last item, and its groups."""

    first: int
    last: int
    pane: Pane

    def joined(self, columns: Sequence[Columns], other: Open) -> Open:
        first, last = min(self.first, other.first), max(self.last, other.last)
        return Open(first, last, merged(columns, (self.pane, other.pane)))


@dataclass
class Sessions:
    """The open sessions of one feed, by partition, each list by the last item.

    A session that has ended but not been reported yet may overlap one that late items have opened beside it.
    """

    feed: Feed
    gap: int
    open: dict[int, list[Open]] = field(default_factory=dict)
    #: For changes: groups that a session brought to an instant, which the next instant takes away.
    fading: dict[int, Longs] = field(default_factory=dict)

    def add(self, columns: Sequence[Columns], partition: int, fresh: Open, mark: int, boundary: Boundary) -> bool:
        """Let items in that follow each other closely; False when they are too late for every session."""
        near = [s for s in self._close_by(partition, fresh) if not boundary.final(s.last + self.gap, mark)]
        if boundary.final(max([fresh.last, *(s.last for s in near)]) + self.gap, mark):
            return False
        for other in near:
            self.open[partition].remove(other)
            fresh = fresh.joined(columns, other)
        sessions = self.open.setdefault(partition, [])
        sessions.insert(bisect_left(sessions, fresh.last, key=lambda s: s.last), fresh)
        return True

    def _close_by(self, partition: int, fresh: Open) -> list[Open]:
        """The sessions no further away than the gap."""
        sessions = self.open.get(partition, [])
        low = bisect_left(sessions, fresh.first - self.gap, key=lambda s: s.last)
        return [s for s in sessions[low:] if s.first <= fresh.last + self.gap]

    def closed(self, mark: int | None) -> Iterator[tuple[int, Open]]:
        """Give up the sessions that no item on time can join any more, by their end."""
        done: list[tuple[int, Open]] = []
        for partition, sessions in list(self.open.items()):
            over = [s for s in sessions if mark is None or s.last + self.gap < mark]
            done += [(s.last + self.gap, s) for s in over]
            self.open[partition] = [s for s in sessions if s not in over]
            if not self.open[partition]:
                del self.open[partition]
        return iter(sorted(done, key=lambda pair: (pair[0], pair[1].first)))


class SessionFamily(Family):
    """Rows are cut into runs by their gaps; runs join the open sessions they are near to."""

    def __init__(self, plan: Aggregation, boundary: Boundary, host: Host) -> None:
        super().__init__(plan, boundary, host)
        names = plan.window.partition_by
        types = {c.name: c.type for c in (plan.before[-1] if plan.before else plan.source).columns}
        self.partitions = Keys([types[name] for name in names])
        self.sessions: dict[int, Sessions] = {}

    @property
    def nbytes(self) -> int:
        return sum(pane.nbytes for pane in self.panes())

    def panes(self) -> Iterator[Pane]:
        for sessions in self.sessions.values():
            for some in sessions.open.values():
                yield from (session.pane for session in some)

    def _joined(self, feed: Feed) -> None:
        assert isinstance(feed.window, Session)
        self.sessions[feed.number] = Sessions(feed, feed.window.gap)

    def _left(self, feed: Feed) -> None:
        del self.sessions[feed.number]

    def take(self, entering: Entering, ledger: Ledger) -> None:
        rows, table, kept = entering.rows, entering.grouped, entering.kept
        marks = rows.marks if rows.marks is not None else np.full(len(rows), NO_MARK)
        columns = [entering.windowed.column(name) for name in self.plan.window.partition_by]
        places = self.partitions.encode([c.combine_chunks() for c in columns], len(rows))
        grouped = np.arange(len(rows)) if kept is None else kept
        codes = np.full(len(rows), -1, np.int64)
        items: list[Items] = []
        if len(grouped):
            codes[grouped], items = self._coded(table, rows if kept is None else rows.chosen(kept))
        batch = _Batch(rows, np.where(marks > rows.times, marks, NO_MARK), places, codes, grouped, items)
        audience = self.audience()
        for run in batch.runs():
            for number, sessions in self.sessions.items():
                self._add(sessions, batch, run, ledger, audience[number])

    def _add(self, sessions: Sessions, batch: _Batch, run: Longs, ledger: Ledger, queries: Sequence[str]) -> None:
        """Add rows that arrived together, on time all of them or late the only one."""
        times, places = batch.rows.times, batch.partitions
        order = run[np.lexsort((times[run], places[run]))]
        cut = (np.diff(places[order]) != 0) | (np.diff(times[order]) > sessions.gap)
        segments = np.concatenate(([0], np.cumsum(cut)))
        panes = self._panes(batch, order, segments)
        starts, stops = runs(segments)
        mark = int(batch.marks[run[0]])
        for number, (start, stop) in enumerate(zip(order[starts], order[stops - 1], strict=True)):
            first, last = int(times[start]), int(times[stop])
            pane = panes.get(number) or _nothing(self.columns, first, last)
            seen = sessions.add(self.columns, int(places[start]), Open(first, last, pane), mark, self.boundary)
            if mark > NO_MARK:
                flags = np.array([True])
                ledger.add(Verdict(batch.rows.order[run], flags, flags & seen, flags & (not seen)), queries)

    def _panes(self, batch: _Batch, order: Longs, segments: Longs) -> dict[int, Pane]:
        """For each segment of rows, its groups."""
        grouped = batch.codes[order] >= 0
        if not grouped.any():
            return {}
        rank = np.full(len(batch.codes), -1, np.int64)
        rank[batch.grouped] = np.arange(len(batch.grouped))
        wanted = rank[order[grouped]]
        items = [each.at(wanted) for each in batch.items]
        found = gathered(self.columns, segments[grouped], batch.codes[order][grouped], items, len(self.keys))
        return {number: Pane(0, 0, codes, states) for number, codes, states in found}

    def live(self) -> Iterable[Longs]:
        yield from (pane.codes for pane in self.panes())
        for sessions in self.sessions.values():
            yield from sessions.fading.values()

    def recode(self, codes: Longs) -> None:
        kept = self.partitions.kept(np.array(list(sessions.open), np.int64) for sessions in self.sessions.values())
        self.partitions = kept.keys
        for sessions in self.sessions.values():
            sessions.fading = {at: codes[some] for at, some in sessions.fading.items()}
            sessions.open = {
                int(kept.codes[partition]): [replace(s, pane=s.pane.recoded(codes)) for s in some]
                for partition, some in sessions.open.items()
            }

    def state(self) -> Tree:
        saved = []
        for number, sessions in self.sessions.items():
            flat = [(partition, s) for partition, some in sessions.open.items() for s in some]
            saved.append(
                {
                    "feed": number,
                    "open": [[partition, s.first, s.last] for partition, s in flat],
                    "panes": pane_tree(self.columns, [s.pane for _, s in flat]),
                    "fading": [[at, codes.tolist()] for at, codes in sessions.fading.items()],
                }
            )
        return super().state() | {"sessions": saved, "partitions": self.partitions.state()}

    def restore(self, state: Tree) -> None:
        super().restore(state)
        self.partitions.restore(state["partitions"])
        for saved in state["sessions"]:
            feed = self.feeds[saved["feed"]]
            self._joined(feed)
            sessions = self.sessions[feed.number]
            panes = panes_from(self.columns, saved["panes"])
            for (partition, first, last), pane in zip(saved["open"], panes, strict=True):
                sessions.open.setdefault(partition, []).append(Open(first, last, pane))
            sessions.fading = {at: np.array(codes, np.int64) for at, codes in saved["fading"]}

    def advance(self, limit: int) -> None:
        if limit > self.passed:
            self.passed = limit
            self._close(limit + 1 - self.boundary.shift, limit)

    def finish(self, until: int | None) -> None:
        self._close(None, until)

    def _close(self, mark: int | None, limit: int | None) -> None:
        for sessions in self.sessions.values():
            feed = sessions.feed
            ended: dict[int, list[Pane]] = {}
            for end, session in sessions.closed(mark):
                ended.setdefault(end, []).append(session.pane)
                if not feed.changes and len(session.pane.codes) and (limit is None or end <= limit):
                    pane = session.pane
                    self.said.append(Chunk(end, (feed.number,), pane.codes, pane.states, start=session.first))
            if feed.changes:
                self._fade(sessions, ended, limit)

    def _fade(self, sessions: Sessions, ended: dict[int, list[Pane]], limit: int | None) -> None:
        """Report as changes: a session is there at its end, and gone with the next instant."""
        for at, panes in ended.items():
            sessions.fading.setdefault(at, np.zeros(0, np.int64))
            sessions.fading[at + 1] = merged(self.columns, panes).codes
        for at in sorted(sessions.fading):
            if limit is not None and at > limit:
                break
            gone = sessions.fading.pop(at)
            here = merged(self.columns, ended.pop(at)) if at in ended else _nothing(self.columns, at, at)
            absent = np.setdiff1d(gone, here.codes)
            empty = Pane(at, at, absent, tuple(column.identity(len(absent)) for column in self.columns))
            pane = merged(self.columns, (here, empty))
            self.said.append(Chunk(at, (sessions.feed.number,), pane.codes, pane.states))


@dataclass(frozen=True, eq=False)
class _Batch:
    """Rows of one batch: which partition and group each belongs to; rows without a group only bridge sessions."""

    rows: Arrivals
    marks: Longs
    partitions: Longs
    codes: Longs
    grouped: Longs
    items: list[Items]

    def runs(self) -> Iterator[Longs]:
        """Stretches of rows on time; each late row on its own, because it may find sessions that have ended."""
        late = self.marks > NO_MARK
        cuts = np.flatnonzero(late[1:] | late[:-1]) + 1
        return (run for run in np.split(np.arange(len(late)), cuts) if len(run))


def _nothing(columns: Sequence[Columns], first: int, last: int) -> Pane:
    return Pane(first, last, np.zeros(0, np.int64), tuple(column.identity(0) for column in columns))
