"""A family of queries over session windows: runs of items, reported once a gap has passed without an item."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from panewise.aggregate import Int64Array, Items, StateArrays, runs
from panewise.algebra import Host
from panewise.core.time import Boundary
from panewise.engine.intake import NO_MARK, Arrivals
from panewise.engine.keys import Keys
from panewise.engine.lateness import Ledger, Verdict
from panewise.engine.panes.chunks import Chunk
from panewise.engine.panes.evaluators import Subscription
from panewise.engine.panes.family import EnteringRows, Family
from panewise.engine.panes.open_panes import gather_panes
from panewise.engine.state.snapshot import Tree, pane_tree, panes_from
from panewise.plan import PanePlan
from panewise.stores.pane import Pane, merge_panes
from panewise.window import Session


@dataclass(frozen=True, eq=False)
class OpenSession:
    """A session that may still grow: the times of its first and last item, and its groups."""

    first: int
    last: int
    pane: Pane

    def merge(self, columns: Sequence[StateArrays], other: OpenSession) -> OpenSession:
        first, last = min(self.first, other.first), max(self.last, other.last)
        return OpenSession(first, last, merge_panes(columns, (self.pane, other.pane)))


@dataclass
class OpenSessions:
    """The open sessions of one subscription, by partition, each list ordered by the last item.

    A session that has ended but not been reported yet may overlap one that late items have opened beside it.
    """

    subscription: Subscription
    gap: int
    open: dict[int, list[OpenSession]] = field(default_factory=dict)
    #: For changes: groups that a session added at an instant, and that are removed at the next instant.
    fading: dict[int, Int64Array] = field(default_factory=dict)

    def add(
        self, columns: Sequence[StateArrays], partition: int, fresh: OpenSession, mark: int, boundary: Boundary
    ) -> bool:
        """Add items that are no more than the gap apart; False if they are too late for every session."""
        near = [s for s in self._nearby(partition, fresh) if not boundary.is_final(s.last + self.gap, mark)]
        if boundary.is_final(max([fresh.last, *(s.last for s in near)]) + self.gap, mark):
            return False
        for other in near:
            self.open[partition].remove(other)
            fresh = fresh.merge(columns, other)
        sessions = self.open.setdefault(partition, [])
        sessions.insert(bisect_left(sessions, fresh.last, key=lambda s: s.last), fresh)
        return True

    def _nearby(self, partition: int, fresh: OpenSession) -> list[OpenSession]:
        """The sessions that are no further away than the gap."""
        sessions = self.open.get(partition, [])
        low = bisect_left(sessions, fresh.first - self.gap, key=lambda s: s.last)
        return [s for s in sessions[low:] if s.first <= fresh.last + self.gap]

    def close(self, mark: int | None) -> Iterator[tuple[int, OpenSession]]:
        """Remove and return the sessions that no item on time can join any more, ordered by their end."""
        done: list[tuple[int, OpenSession]] = []
        for partition, sessions in list(self.open.items()):
            over = [s for s in sessions if mark is None or s.last + self.gap < mark]
            done += [(s.last + self.gap, s) for s in over]
            self.open[partition] = [s for s in sessions if s not in over]
            if not self.open[partition]:
                del self.open[partition]
        return iter(sorted(done, key=lambda pair: (pair[0], pair[1].first)))


class SessionFamily(Family):
    """Rows are cut into runs by their gaps; runs join the open sessions within a gap."""

    def __init__(self, plan: PanePlan, boundary: Boundary, host: Host) -> None:
        super().__init__(plan, boundary, host)
        names = plan.window.partition_by
        types = {c.name: c.type for c in (plan.before[-1] if plan.before else plan.source).columns}
        self.partitions = Keys([types[name] for name in names])
        self.sessions: dict[int, OpenSessions] = {}

    @property
    def nbytes(self) -> int:
        return sum(pane.nbytes for pane in self.panes())

    def panes(self) -> Iterator[Pane]:
        for sessions in self.sessions.values():
            for some in sessions.open.values():
                yield from (session.pane for session in some)

    def _on_subscribe(self, subscription: Subscription) -> None:
        self.sessions[subscription.number] = OpenSessions(subscription, Session.of(subscription.window).gap)

    def _on_unsubscribe(self, subscription: Subscription) -> None:
        del self.sessions[subscription.number]

    def take(self, entering: EnteringRows, ledger: Ledger) -> None:
        rows, table, kept = entering.rows, entering.grouped, entering.kept
        marks = rows.marks if rows.marks is not None else np.full(len(rows), NO_MARK)
        columns = [entering.windowed.column(name) for name in self.plan.window.partition_by]
        places = self.partitions.encode([c.combine_chunks() for c in columns], len(rows))
        grouped = np.arange(len(rows)) if kept is None else kept
        codes = np.full(len(rows), -1, np.int64)
        items: list[Items] = []
        if len(grouped):
            codes[grouped], items = self._encode_rows(table, rows if kept is None else rows.take(kept))
        batch = _CodedBatch(rows, np.where(marks > rows.times, marks, NO_MARK), places, codes, grouped, items)
        audience = self.queries_by_subscription()
        for run in batch.runs():
            for number, sessions in self.sessions.items():
                self._add(sessions, batch, run, ledger, audience[number])

    def _add(
        self, sessions: OpenSessions, batch: _CodedBatch, run: Int64Array, ledger: Ledger, queries: Sequence[str]
    ) -> None:
        """Add rows that are all on time, or one late row."""
        times, places = batch.rows.times, batch.partitions
        order = run[np.lexsort((times[run], places[run]))]
        cut = (np.diff(places[order]) != 0) | (np.diff(times[order]) > sessions.gap)
        segments = np.concatenate(([0], np.cumsum(cut)))
        panes = self._segment_panes(batch, order, segments)
        starts, stops = runs(segments)
        mark = int(batch.marks[run[0]])
        for number, (start, stop) in enumerate(zip(order[starts], order[stops - 1], strict=True)):
            first, last = int(times[start]), int(times[stop])
            pane = panes.get(number) or _empty_pane(self.columns, first, last)
            seen = sessions.add(self.columns, int(places[start]), OpenSession(first, last, pane), mark, self.boundary)
            if mark > NO_MARK:
                flags = np.array([True])
                ledger.add(Verdict(batch.rows.order[run], flags, flags & seen, flags & (not seen)), queries)

    def _segment_panes(self, batch: _CodedBatch, order: Int64Array, segments: Int64Array) -> dict[int, Pane]:
        """For each segment of rows, its groups."""
        grouped = batch.codes[order] >= 0
        if not grouped.any():
            return {}
        rank = np.full(len(batch.codes), -1, np.int64)
        rank[batch.grouped] = np.arange(len(batch.grouped))
        wanted = rank[order[grouped]]
        items = [each.at(wanted) for each in batch.items]
        found = gather_panes(self.columns, segments[grouped], batch.codes[order][grouped], items, len(self.keys))
        return {number: Pane(0, 0, codes, states) for number, codes, states in found}

    def live_groups(self) -> Iterable[Int64Array]:
        yield from (pane.codes for pane in self.panes())
        for sessions in self.sessions.values():
            yield from sessions.fading.values()

    def recode(self, codes: Int64Array) -> None:
        kept = self.partitions.keep_codes(
            np.array(list(sessions.open), np.int64) for sessions in self.sessions.values()
        )
        self.partitions = kept.keys
        for sessions in self.sessions.values():
            sessions.fading = {at: codes[some] for at, some in sessions.fading.items()}
            sessions.open = {
                int(kept.codes[partition]): [replace(s, pane=s.pane.with_codes(codes)) for s in some]
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
            subscription = self.subscriptions[saved["feed"]]
            self._on_subscribe(subscription)
            sessions = self.sessions[subscription.number]
            panes = panes_from(self.columns, saved["panes"])
            for (partition, first, last), pane in zip(saved["open"], panes, strict=True):
                sessions.open.setdefault(partition, []).append(OpenSession(first, last, pane))
            sessions.fading = {at: np.array(codes, np.int64) for at, codes in saved["fading"]}

    def advance(self, limit: int) -> None:
        if limit > self.answered_until:
            self.answered_until = limit
            self._close_sessions(limit + 1 - self.boundary.shift, limit)

    def finish(self, until: int | None) -> None:
        self._close_sessions(None, until)

    def _close_sessions(self, mark: int | None, limit: int | None) -> None:
        for sessions in self.sessions.values():
            subscription = sessions.subscription
            ended: dict[int, list[Pane]] = {}
            for end, session in sessions.close(mark):
                ended.setdefault(end, []).append(session.pane)
                if not subscription.changes and len(session.pane.codes) and (limit is None or end <= limit):
                    pane = session.pane
                    self._add_chunk(Chunk(end, (subscription.number,), pane.codes, pane.states, start=session.first))
            if subscription.changes:
                self._report_changes(sessions, ended, limit)

    def _report_changes(self, sessions: OpenSessions, ended: dict[int, list[Pane]], limit: int | None) -> None:
        """Report as changes: a session is present at its end, and gone at the next instant."""
        for at, panes in ended.items():
            sessions.fading.setdefault(at, np.zeros(0, np.int64))
            sessions.fading[at + 1] = merge_panes(self.columns, panes).codes
        for at in sorted(sessions.fading):
            if limit is not None and at > limit:
                break
            gone = sessions.fading.pop(at)
            here = merge_panes(self.columns, ended.pop(at)) if at in ended else _empty_pane(self.columns, at, at)
            absent = np.setdiff1d(gone, here.codes)
            empty = Pane(at, at, absent, tuple(column.identity(len(absent)) for column in self.columns))
            pane = merge_panes(self.columns, (here, empty))
            self._add_chunk(Chunk(at, (sessions.subscription.number,), pane.codes, pane.states))

    def _add_chunk(self, chunk: Chunk) -> None:
        states = [column.settle(words) for column, words in zip(self.columns, chunk.states, strict=True)]
        self.pending_chunks.append(replace(chunk, states=states))


@dataclass(frozen=True, eq=False)
class _CodedBatch:
    """Rows of one batch with their partitions and groups; rows without a group only connect sessions."""

    rows: Arrivals
    marks: Int64Array
    partitions: Int64Array
    codes: Int64Array
    grouped: Int64Array
    items: list[Items]

    def runs(self) -> Iterator[Int64Array]:
        """Stretches of rows on time, and each late row on its own, because its session may have ended."""
        late = self.marks > NO_MARK
        cuts = np.flatnonzero(late[1:] | late[:-1]) + 1
        return (run for run in np.split(np.arange(len(late)), cuts) if len(run))


def _empty_pane(columns: Sequence[StateArrays], first: int, last: int) -> Pane:
    return Pane(first, last, np.zeros(0, np.int64), tuple(column.identity(0) for column in columns))
