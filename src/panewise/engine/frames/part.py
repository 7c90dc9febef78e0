"""A query that reports frames: rows wait until their place in time is certain, then become frames."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from panewise.aggregate import Longs, Words, joined
from panewise.algebra import Host
from panewise.algebra.framing import Duplicates
from panewise.engine.frames.contents import Contents
from panewise.engine.frames.framer import Bounds, Framer, Step
from panewise.engine.frames.ordering import Ordering, Rows, merged_values, only_one, refuse_twins, twins
from panewise.engine.intake import Arrivals
from panewise.engine.keys import Keys
from panewise.engine.lateness import Ledger, Verdict
from panewise.engine.rowwise import evaluated, passed
from panewise.engine.snapshot import Tree
from panewise.errors import PanewiseError
from panewise.plan.framing import Framing
from panewise.plan.relation import Quarter
from panewise.time import LAST_TICK, Boundary

#: Rows that become frames together: few enough to stay in the cache.
BLOCK = 1 << 18

NOTHING_TOLD = np.zeros((0, 5), np.int64)

Cells = tuple[Longs, Longs, tuple[Words, ...]]


@dataclass(frozen=True, eq=False)
class FrameReading:
    """Rows that are about to be taken in, and which of them come too late."""

    part: FramePart
    rows: Rows
    late: Longs

    def enter(self, ledger: Ledger) -> None:
        """From here on nothing can fail."""
        flags = np.ones(len(self.late), bool)
        ledger.add(Verdict(self.late, flags, ~flags, flags))
        self.part.ordering.add(self.rows)


class FramePart:
    """One framing query of an engine."""

    def __init__(self, name: str, plan: Framing, home: Quarter, boundary: Boundary, host: Host) -> None:
        self.name, self.plan, self.boundary, self.host = name, plan, boundary, host
        self.plans = {name: plan}
        self.home = home
        self.passed = -LAST_TICK
        self.founded = True
        self.broken: dict[str, PanewiseError] = {}
        columns = plan.framed.columns
        types = {c.name: c.type for c in columns}
        self.groups = Keys([types[name] for name in plan.frame.partition_by])
        self.ordering = Ordering(plan.frame, pa.schema([(c.name, c.type) for c in columns]))
        self.framer = Framer(plan.frame)
        self.contents = Contents(plan, host)
        #: What was reported since the last time.
        self._said: list[tuple[Bounds, Cells]] = []

    @property
    def streams(self) -> frozenset[str]:
        return self.plan.streams

    def found(self) -> None:
        """It is there from the beginning."""

    def leave(self, name: str) -> None:
        """Nobody else listens."""

    def reach(self, alias: str, newest: int) -> None:
        """Frames follow the rows they are made of."""

    def anchor(self, stream: str, first: int) -> None:
        """Frames know no time of day."""

    # ---- rows --------------------------------------------------------------------------------------------------

    def read(self, stream: str, arrivals: Arrivals, alias: str | None = None) -> Iterator[FrameReading]:
        """What frames are about to take in; an expression that fails does so here."""
        if stream != self.plan.source.stream or alias not in (None, self.plan.source.alias):
            return
        table = arrivals.table.rename_columns([column.name for column in self.plan.source.columns])
        table, kept = passed(self.plan.before, table, self.host)
        rows = arrivals if kept is None else arrivals.chosen(kept)
        late = rows.late()
        if late is None:
            yield FrameReading(self, Rows(table, rows.times, rows.order), np.zeros(0, np.int64))
            return
        on_time = np.flatnonzero(~late)
        timely = Rows(table.take(pa.array(on_time)), rows.times[on_time], rows.order[on_time])
        yield FrameReading(self, timely, rows.order[late])

    # ---- time --------------------------------------------------------------------------------------------------

    def advance(self, limit: int, instants: pa.DataType, finishing: bool = False) -> dict[str, pa.Table]:
        """The frames that have become certain up to an instant; the others go on, unless they are finishing."""
        if self.name in self.broken:
            return {}
        try:
            self._settle(limit, finishing)
        except PanewiseError as problem:
            self.broken[self.name] = problem
            return {}
        self.passed = max(self.passed, limit)
        return {self.name: self._told(instants)}

    def _settle(self, limit: int, finishing: bool) -> None:
        for rows in self.ordering.settled(limit - self.boundary.shift, BLOCK):
            self._frame(rows)
        if not finishing:
            for rows in self.ordering.ahead(self.groups, self.framer.at):
                self._frame(rows)
        if finishing:
            self._report(NOTHING_TOLD, finishing)

    def _frame(self, rows: Rows) -> None:
        rows, step = self._stepped(rows)
        self.contents.take(step, rows.table, rows.times, rows.order)
        self._report(step.told, finishing=False)

    def _stepped(self, rows: Rows) -> tuple[Rows, Step]:
        """Let rows into frames; those of one group at one time as the query wants them."""
        how, frame = self.plan.frame.duplicates, self.plan.frame
        codes = self.groups.encode(self._partition(rows.table), len(rows))
        self.framer.at.fit(len(self.groups))
        if how is Duplicates.ERROR:
            refuse_twins(codes, rows.times, self.framer.at["seen"])
        if how in (Duplicates.FIRST, Duplicates.LAST):
            chosen = only_one(codes, rows.times, self.framer.at["seen"], last=how is Duplicates.LAST)
            rows, codes = rows.at(chosen), codes[chosen]
        values = evaluated(frame.scalars, rows.table, self.host)
        if how in (Duplicates.KEEP, Duplicates.ERROR, Duplicates.FIRST, Duplicates.LAST):
            return rows, self.framer.take(codes, rows.times, values, len(self.groups))
        firsts, owner = twins(codes, rows.times)
        merged = merged_values(values, owner, len(firsts), how)
        step = self.framer.take(codes[firsts], rows.times[firsts], merged, len(self.groups))
        return rows, step.spread(owner)

    def _partition(self, table: pa.Table) -> list[pa.Array]:
        return [table.column(name).combine_chunks() for name in self.plan.frame.partition_by]

    def _report(self, told: Longs, finishing: bool) -> None:
        """Report fragments, and frames that have ended and are good; forget all that have ended."""
        closed = self.framer.closed(finishing)
        ended = np.flatnonzero(closed & self.framer.qualified())
        if self.framer.waits:
            ended = self.framer.longest(ended)
            closed[ended] = finishing
            ended = ended[closed[ended]]
        # Together, since a frame may be known to be one only after the next has been told of.
        self.framer.number(np.union1d(told[:, 0], ended))
        if len(told):
            self._said.append((self.framer.fragments(told), _all_cells(self.contents.told)))
        if len(ended):
            self._said.append((self.framer.bounds(ended), self.contents.of(ended)))
        if closed.any():
            self.contents.forget(self.framer.forget(~closed))

    # ---- results -----------------------------------------------------------------------------------------------

    def _told(self, instants: pa.DataType) -> pa.Table:
        """Everything that was reported since the last time."""
        said, self._said = self._said, []
        tables = [self._table(bounds, cells, instants) for bounds, cells in said if len(cells[0])]
        return pa.concat_tables(tables) if tables else self.silence(self.name, instants)

    def silence(self, name: str, instants: pa.DataType) -> pa.Table:
        """What the query says that has nothing to say."""
        nothing = np.zeros(0, np.int64)
        return self._table(Bounds(*(nothing,) * 6, np.zeros(0, bool)), self.contents.of(nothing), instants)

    def _table(self, bounds: Bounds, cells: Cells, instants: pa.DataType) -> pa.Table:
        """Selected columns first, then those that say which frame it is; a name that is taken gets an underscore."""
        frames = cells[0]
        keys = dict(zip(self.plan.frame.partition_by, self.groups.take(bounds.groups[frames]), strict=True))
        held = keys | self.contents.lowered(cells)
        names = [*self.plan.group.keys, *(call.name for call in self.plan.group.calls)]
        grouped = pa.table([pa.array(frames), *(held[name] for name in names)], names=["#frame", *names])
        table, kept = passed(self.plan.after, grouped, self.host)
        frames = frames if kept is None else frames[kept]
        columns = {column.name: table.column(column.name) for column in self.plan.query.root.columns}
        for name, array in self._added(bounds, frames, instants).items():
            while name in columns:
                name += "_"
            columns[name] = array
        return pa.table(list(columns.values()), names=list(columns))

    def _added(self, bounds: Bounds, frames: Longs, instants: pa.DataType) -> dict[str, pa.Array]:
        starts, ends = bounds.starts[frames], bounds.ends[frames]
        added = {
            "frame_id": pa.array(bounds.numbers[frames]),
            "w_start": pa.array(starts, pa.int64()).cast(instants),
            "w_end": pa.array(ends, pa.int64()).cast(instants),
            "duration": pa.array(ends - starts),
            "count": pa.array(bounds.counts[frames]),
        }
        if self.plan.frame.schedule:
            added["missing"] = pa.array(bounds.missing[frames])
        return added | {"final": pa.array(bounds.final[frames])}

    # ---- restarts ----------------------------------------------------------------------------------------------

    def state(self) -> Tree:
        return {
            "groups": self.groups.state(),
            "waiting": self.ordering.state(),
            "framer": self.framer.state(),
            "contents": self.contents.state(),
            "passed": self.passed,
            "broken": {name: [problem.message, problem.fix] for name, problem in self.broken.items()},
        }

    def restore(self, state: Tree) -> None:
        self.groups.restore(state["groups"])
        self.ordering.restore(state["waiting"])
        self.framer.restore(state["framer"])
        self.contents.restore(state["contents"])
        self.passed = state["passed"]
        self.broken = {name: PanewiseError(message, fix=fix) for name, (message, fix) in state["broken"].items()}


def _all_cells(told: list[Cells]) -> Cells:
    """The cells of all fragments of a step."""
    frames = np.concatenate([places for places, _, _ in told])
    groups = np.concatenate([groups for _, groups, _ in told])
    states = tuple(joined(parts) for parts in zip(*(states for _, _, states in told), strict=True))
    return frames, groups, states
