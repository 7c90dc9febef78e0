"""A query that reports frames: rows wait until their place in time is certain, then become frames."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from panewise.aggregate import Int64Array
from panewise.algebra import Host, Source
from panewise.algebra.result_columns import added_types, dated_table
from panewise.core.errors import PanewiseError
from panewise.core.time import MAX_TICK, Boundary
from panewise.engine.blame import blame_queries
from panewise.engine.frames.contents import FrameContents
from panewise.engine.frames.fill import Fillers
from panewise.engine.frames.item_followers import FOLLOWERS
from panewise.engine.frames.kernel_frames import KernelFrames
from panewise.engine.frames.kernel_runs import RUN_FINDERS
from panewise.engine.frames.order import (
    OrderedItems,
    ReorderBuffer,
    TimedRows,
    find_duplicates,
    merge_duplicates,
    one_per_time,
    refuse_duplicates,
)
from panewise.engine.frames.report import FrameBounds, FrameCells, FrameReport, ListedRows
from panewise.engine.frames.stretch_finders import STRETCH_FINDERS
from panewise.engine.frames.stretch_frames import StretchFrames
from panewise.engine.intake import Arrivals
from panewise.engine.keys import Keys
from panewise.engine.lateness import Ledger, Verdict
from panewise.engine.row_steps import apply_steps, evaluate_scalars
from panewise.engine.state.snapshot import Tree
from panewise.frame.frame import Duplicates
from panewise.plan import Refusal
from panewise.plan.frame_plan import FramePlan
from panewise.plan.pane_plan import RowStep
from panewise.plan.row_plan import ShardKey

#: Rows that become frames together: few enough to stay in the cache.
BLOCK = 1 << 19


@dataclass(frozen=True, eq=False)
class FrameBatch:
    """Rows that are about to be taken in, and which of them come too late."""

    take: Callable[[TimedRows], None]
    rows: TimedRows
    late: Int64Array
    query: str

    def enter(self, ledger: Ledger) -> None:
        """Take the rows in; this cannot fail."""
        if len(self.late):
            flags = np.ones(len(self.late), bool)
            ledger.add(Verdict(self.late, flags, ~flags, flags), [self.query])
        self.take(self.rows)


def find_frame_refusal(plan: FramePlan) -> Refusal | None:
    """Why the engine cannot find the frames of a plan, or None if it can."""
    kind = type(plan.frame.kind)
    if plan.frame.keeps_items:
        found = kind in STRETCH_FINDERS or kind in FOLLOWERS
        return None if found else Refusal(f"no follower finds {kind.__name__} item by item")
    return None if kind in RUN_FINDERS else Refusal(f"no kernel finds {kind.__name__}")


class FrameQuery:
    """One framing query of an engine."""

    def __init__(
        self, name: str, plan: FramePlan, home: ShardKey, stored: Collection[str], boundary: Boundary, host: Host
    ) -> None:
        self.name, self.plan, self.boundary, self.host = name, plan, boundary, host
        self.plans = {name: plan}
        #: Streams without a delay, which are complete.
        self.stored = stored
        self.home = home
        self.built = True
        self._last: tuple[int, ...] = ()
        self.broken: dict[str, PanewiseError] = {}
        columns = plan.framed.columns
        types = {c.name: c.type for c in columns}
        self.groups = Keys([types[name] for name in plan.frame.partition_by])
        self.ordering = ReorderBuffer(plan.frame, pa.schema([(c.name, c.type) for c in columns]))
        own = None if plan.fillings else FrameContents(plan.asked, plan.frame.partition_by, host)
        self.fillers = Fillers(plan.fillings, self.groups, host)
        self.contents = [own] if own else [filler.contents for filler in self.fillers.each if filler.contents]
        self.method = self._choose_method(own)
        #: The results since the last `advance`.
        self._reports: list[FrameReport] = []

    def _choose_method(self, own: FrameContents | None) -> StretchFrames | KernelFrames:
        """Choose whether frames are found among kept items, or as runs of rows that need not be kept."""
        if self.plan.frame.keeps_items:
            return StretchFrames(self.plan, own, self.ordering.schema)
        return KernelFrames(self.plan, own)

    @property
    def streams(self) -> frozenset[str]:
        return self.plan.streams

    def build(self) -> None:
        """Do nothing: a frame query is built by its constructor."""

    def leave(self, name: str) -> None:
        """Do nothing: a frame query has no other members."""

    def note_newest(self, alias: str, newest: int) -> None:
        """Do nothing: frames depend only on their own rows."""

    def anchor(self, stream: str, first: int) -> None:
        """Do nothing: frames have no times of day."""

    # ---- rows --------------------------------------------------------------------------------------------------

    def read(self, stream: str, arrivals: Arrivals, alias: str | None = None) -> Iterator[FrameBatch]:
        """The rows that are about to enter frames; an expression that fails raises its error here."""
        plan = self.plan
        if stream == plan.source.stream and alias in (None, plan.source.alias):
            yield self._prepare_batch(plan.source, plan.before, arrivals, self.ordering.add)
        for filler in self.fillers.each:
            source = filler.filling.source
            if stream == source.stream and alias in (None, source.alias):
                yield self._prepare_batch(source, (), arrivals, filler.add)

    def _prepare_batch(
        self, source: Source, steps: Sequence[RowStep], arrivals: Arrivals, enter: Callable[[TimedRows], None]
    ) -> FrameBatch:
        table = arrivals.table.rename_columns([column.name for column in source.columns])
        with blame_queries(self.plans):
            table, kept = apply_steps(steps, table, self.host)
        rows = arrivals if kept is None else arrivals.take(kept)
        late = rows.late_flags()
        if late is None:
            return FrameBatch(enter, TimedRows(table, rows.times, rows.order), np.zeros(0, np.int64), self.name)
        on_time = np.flatnonzero(~late)
        timely = TimedRows(table.take(pa.array(on_time)), rows.times[on_time], rows.order[on_time])
        return FrameBatch(enter, timely, rows.order[late], self.name)

    # ---- time --------------------------------------------------------------------------------------------------

    def advance(self, limits: Mapping[str, int], instants: pa.DataType, finishing: bool = False) -> dict[str, pa.Table]:
        """The frames that have become certain, given the instant that each stream has reached, or its end."""
        last = (
            self._complete_until(self.plan.source, limits),
            *(self._fill_complete_until(f.source, limits) for f in self.plan.fillings),
        )
        idle = last == self._last and self.plan.frame.schedule is None
        if self.name in self.broken or (idle and not finishing):
            return {}
        self._last = last
        try:
            self._process_until(last[0], last[1:], finishing)
            tables = self._collect_results(instants)
            self._drop_unused_keys(last[0])
        except PanewiseError as problem:
            self.broken[self.name] = problem
            return {}
        return {self.name: pa.concat_tables(tables)} if tables else {}

    def _drop_unused_keys(self, last: int) -> None:
        """Drop keys that are not needed once all frames up to a time are reported, if these are more than half."""
        self.fillers.drop_unused_keys()
        for contents in self.contents:
            contents.drop_unused_keys()
        if kept := self.groups.shrink_to_live(lambda: [self.method.live_groups(last), *self.fillers.live_groups()]):
            self.groups = kept.keys
            self.method.recode(kept.codes)
            self.fillers.recode(kept.keys, kept.codes)

    def _complete_until(self, source: Source, limits: Mapping[str, int]) -> int:
        """The time up to which no more rows of a stream are expected."""
        return limits.get(source.stream, -MAX_TICK) - self.boundary.shift

    def _fill_complete_until(self, source: Source, limits: Mapping[str, int]) -> int:
        """The same for a stream that fills frames; a stored stream is complete."""
        return MAX_TICK if source.stream in self.stored else self._complete_until(source, limits)

    def _process_until(self, last: int, filled: Sequence[int], finishing: bool) -> None:
        for rows in self.ordering.release_until(last, BLOCK):
            self._frame(rows)
        if not finishing:
            for rows in self.ordering.release_early(self.groups, self.method.last_times):
                self._frame(rows)
        self._report(last, finishing)
        if self.plan.fillings:
            self._reports += self.fillers.fill_ready([MAX_TICK] * len(filled) if finishing else filled)
            self.fillers.forget(min(self.method.earliest_start(), last + 1))

    def _report(self, last: int = -MAX_TICK, finishing: bool = False) -> None:
        for reported in self.method.report(last, finishing):
            if self.plan.fillings:
                self.fillers.waiting.append(reported.bounds)
            else:
                self._reports.append(reported)

    def _frame(self, rows: TimedRows) -> None:
        """Add rows to frames; rows of one group at one time are treated as the query's frame says."""
        how, frame = self.plan.frame.duplicates, self.plan.frame
        codes = self.groups.encode(self._partition(rows.table), len(rows))
        if how is Duplicates.ERROR:
            refuse_duplicates(codes, rows.times, self.method.last_times(len(self.groups)))
        if how in (Duplicates.FIRST, Duplicates.LAST):
            seen = self.method.last_times(len(self.groups))
            chosen = one_per_time(codes, rows.times, seen, last=how is Duplicates.LAST)
            rows, codes = rows.at(chosen), codes[chosen]
        values, owner, times = evaluate_scalars(frame.scalars, rows.table, self.host), None, rows.times
        if how in (Duplicates.AVG, Duplicates.MIN, Duplicates.MAX, Duplicates.SUM):
            firsts, owner = find_duplicates(codes, times)
            values, codes, times = merge_duplicates(values, owner, len(firsts), how), codes[firsts], times[firsts]
        self.method.take(OrderedItems(rows, owner, codes, times, values), len(self.groups))
        self._report()

    def _partition(self, table: pa.Table) -> list[pa.Array]:
        return [table.column(name).combine_chunks() for name in self.plan.frame.partition_by]

    # ---- results -----------------------------------------------------------------------------------------------

    def _collect_results(self, instants: pa.DataType) -> list[pa.Table]:
        """All results since the last `advance`."""
        reports, self._reports = self._reports, []
        return [self._table(each, instants) for each in reports]

    def _table(self, reported: FrameReport, instants: pa.DataType) -> pa.Table:
        bounds, held = reported.bounds, reported.held
        if isinstance(held[0], ListedRows):
            return self._with_frame_columns(held[0].table, bounds, held[0].frames, instants)
        table, frames = self._answer_rows(bounds, [each for each in held if isinstance(each, FrameCells)])
        return self._with_frame_columns(table, bounds, frames, instants)

    def _answer_rows(self, bounds: FrameBounds, held: Sequence[FrameCells]) -> tuple[pa.Table, Int64Array]:
        """The selected columns of frames, and the frame of each row."""
        frames, group = held[0].frames, self.plan.asked.group
        assert group is not None
        found = dict(zip(self.plan.frame.partition_by, self.groups.take(bounds.groups[frames]), strict=True))
        for contents, cells in zip(self.contents, held, strict=True):
            found |= contents.answer_columns(cells)
        names = [*group.keys, *(call.name for call in group.calls)]
        grouped = pa.table([pa.array(frames), *(found[name] for name in names)], names=["#frame", *names])
        table, kept = apply_steps(self.plan.after, grouped, self.host)
        return table, frames if kept is None else frames[kept]

    def _with_frame_columns(
        self, table: pa.Table, bounds: FrameBounds, frames: Int64Array, instants: pa.DataType
    ) -> pa.Table:
        """The selected columns first, then the columns that identify the frame."""
        selected = {column.name: table.column(column.name) for column in self.plan.query.root.columns}
        starts, ends = bounds.starts[frames], bounds.ends[frames]
        added = {
            "frame_id": bounds.numbers[frames],
            "w_start": starts,
            "w_end": ends,
            "duration": ends - starts,
            "count": bounds.counts[frames],
            "missing": bounds.missing[frames],
            "final": bounds.final[frames],
        }
        return dated_table(selected, added, added_types(self.plan.query, instants))

    # ---- restarts ----------------------------------------------------------------------------------------------

    def state(self) -> Tree:
        return {
            "groups": self.groups.state(),
            "waiting": self.ordering.state(),
            "frames": self.method.state(),
            "filling": self.fillers.state(),
            "broken": {name: [problem.message, problem.fix] for name, problem in self.broken.items()},
        }

    def restore(self, state: Tree) -> None:
        self.groups.restore(state["groups"])
        self.ordering.restore(state["waiting"])
        self.method.restore(state["frames"])
        self.fillers.restore(state["filling"])
        self.broken = {name: PanewiseError(message, fix=fix) for name, (message, fix) in state["broken"].items()}
