"""`pw.Engine`: takes Arrow batches and emits Arrow tables. It does not depend on Spark, files or threads."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from datetime import datetime
from typing import Any

import numpy as np
import pyarrow as pa

from panewise.algebra import Host
from panewise.algebra.result_columns import instant_type
from panewise.core.accounting import Accounting
from panewise.core.errors import Failure, QueryProblem, SchemaProblem, StateProblem, did_you_mean
from panewise.engine.intake import NO_MARK, Arrivals, Intake
from panewise.engine.lateness import Ledger
from panewise.engine.lookups.engine_lookups import EngineLookups
from panewise.engine.lookups.lookups import InstantsLike, parse_instant
from panewise.engine.lookups.pane_source import KeyValues
from panewise.engine.lookups.retention import Lengths, Retention, parse_retention
from panewise.engine.outputs import Emission, EmittedOutputs, QueryOutput
from panewise.engine.panes.choose_family import create_family
from panewise.engine.panes.family import Family
from panewise.engine.panes.grouping import FamilyKey, family_key
from panewise.engine.panes.read_families import read_families
from panewise.engine.panes.slicer import read_parcel
from panewise.engine.panes.time_family import TimeFamily
from panewise.engine.pool import Pool, RegisteredQuery
from panewise.engine.report import ReportedRows, Reporter
from panewise.engine.rows import RowEngine, RowInputKey
from panewise.engine.state.snapshot import Tree, pack_state, unpack_state
from panewise.plan import FramePlan, PanePlan, RowPlan
from panewise.plan.rules.group_windows import WindowManager
from panewise.plan.rules.share_operators import SharedOperators
from panewise.stores.chain import MIN_POSITION


class Engine:
    """Runs a pool in this process, incrementally.

    `feed` takes rows in any split and, within the declared delay, in any order. `advance` returns what has become
    final. Queries may be registered with the pool, and revoked, at any moment. A `shard` is one of several engines that
    run the same pool, and gets the rows of each query that are routed to it. `stored` streams are complete when frames
    are filled from them; unless named, these are the ones without a delay. Panes, or rows where windows count them, are
    kept for `keep` after their time, panes cut to `grain` at least, so that `lookup` can answer any window over them.
    """

    def __init__(
        self,
        pool: Pool,
        state: Tree | None = None,
        *,
        shard: bool = False,
        stored: Collection[str] | None = None,
        keep: Lengths | None = None,
        grain: Lengths | None = None,
    ) -> None:
        self.pool = pool
        self.retention = parse_retention(pool, keep, grain) if state is None else Retention(*state["retention"])
        self._intakes = {name: Intake(name, schema) for name, schema in pool.streams.items()}
        self._families: dict[FamilyKey, Family] = {}
        self._reporters: dict[FamilyKey, Reporter] = {}
        self._family_keys: dict[str, FamilyKey] = {}
        self._outputs: dict[str, QueryOutput] = {}
        #: The same as emissions keep them; None after queries have come or gone.
        self._emitted: EmittedOutputs | None = None
        if stored is None:
            stored = {name for name, schema in pool.streams.items() if schema.delay is None}
        self._row_engine = RowEngine(pool.boundary, pool.host, pool.purge, shard, stored)
        #: Queries with times of day, which wait for the first item because it decides the day.
        self._unanchored: dict[str, RegisteredQuery] = {}
        self._anchors: dict[str, int] = {}
        #: Results of some families that wait because another family failed.
        self._undelivered: dict[int, list[ReportedRows]] = {}
        self._late: dict[str, list[pa.Table]] = {}
        self._lookups = EngineLookups(self)
        if state is not None:
            self._load(state)
        else:
            for registered in pool.queries.values():
                self.on_register(registered)
        pool.listeners.append(self)

    # ---- rows and time -----------------------------------------------------------------------------------------

    def feed(self, stream: str, batch: Any) -> None:
        """Take rows in: a record batch or table with the declared columns. All of it, or nothing on an error."""
        arrivals, rejected, ledger = self.ingest(stream, batch)
        if len(lost := ledger.late):
            places = np.searchsorted(arrivals.order, lost)
            self._late.setdefault(stream, []).append(arrivals.table.take(pa.array(places)))
        by_query = {name: len(late) for name, late in ledger.late_by_query().items()}
        self.intake(stream).count(len(arrivals) + rejected, rejected, len(lost), len(ledger.partly_late), by_query)

    def ingest(
        self, stream: str, batch: Any, only: FamilyKey | RowInputKey | None = None
    ) -> tuple[Arrivals, int, Ledger]:
        """Take rows in without counting them; returns the arrivals, the number of rejected rows, and the ledger.

        With `only`, the rows are for one family or one input of the row engine.
        """
        intake = self.intake(stream)
        arrivals, rejected = intake.admit(batch)
        ledger = Ledger()
        if len(arrivals):
            late = arrivals.late_flags()
            on_time = arrivals.times if late is None else arrivals.times[~late]
            if len(on_time):
                self._anchor(stream, int(on_time.min()))
            inflow = only if isinstance(only, RowInputKey) else None
            readings = self._row_engine.read(stream, arrivals, inflow) if inflow or only is None else []
            # All that can fail comes first, so that no query takes in rows on which another query fails.
            for family, found in read_families(self._families_of(stream, only), arrivals, self.pool.host):
                family.enter(found, ledger)
            for reading in readings:
                reading.enter(ledger)
        intake.commit(arrivals, len(arrivals) + rejected)
        return arrivals, rejected, ledger

    def take_panes(self, home: FamilyKey, parcel: Tree) -> None:
        """Take in panes that a slicer cut for a family; they are dropped if its last query has been revoked."""
        for family in self.families_at(home):
            assert isinstance(family, TimeFamily)
            family.take_panes(*read_parcel(family, parcel), self.intake(family.plan.source.stream).mark)

    def observe_times(self, stream: str, first: int, newest: int) -> None:
        """Note the first and the newest time of a stream, here or in another shard; the first fixes the day."""
        intake = self.intake(stream)
        intake.newest = max(intake.newest, newest)
        self._anchor(stream, first)

    def note_newest(self, home: FamilyKey | RowInputKey, newest: int) -> None:
        """Note that an item of this time has entered the windows of a family, here or in another shard."""
        if isinstance(home, RowInputKey):
            self._row_engine.note_newest(home, newest)
            return
        for family in self.families_at(home):
            family.entry_bounds.note(at := newest + self.pool.boundary.shift, at)

    def promise(self, stream: str, mark: int) -> None:
        """Raise the watermark of a stream: no older items are expected from now on."""
        intake = self.intake(stream)
        intake.promised = max(intake.promised, mark)

    def reject_after(self, stream: str, tick: int | None) -> None:
        """Reject rows with a time after this tick: they are counted and do not move the watermark."""
        self.intake(stream).horizon = tick

    def advance(self, to: int | str | datetime | None = None) -> Emission:
        """All results that have become final. With an instant: all instants up to it are declared final first."""
        if to is not None:
            self._promise(to)
        shift = self.pool.boundary.shift
        limits = {i.name: i.mark - 1 + shift for i in self._intakes.values() if i.mark > NO_MARK}
        for stream, limit in limits.items():
            for family in self._families_of(stream):
                family.move_to(limit)
        return self._emit(self._row_engine.advance(limits))

    def finish(self, until: int | str | datetime | None = None) -> Emission:
        """The input is complete: all results until each item has been in all its windows, or until an instant."""
        for family in self.families():
            domain = family.plan.query.domain
            family.finish(None if until is None else parse_instant(until, domain))
        domains = {schema.domain for schema in self.pool.streams.values()}
        last = None if until is None else max(parse_instant(until, domain) for domain in domains)
        return self._emit(self._row_engine.finish(last))

    # ---- accounts and lookups ----------------------------------------------------------------------------------

    @property
    def accounting(self) -> dict[str, Accounting]:
        """Where the rows of every stream went."""
        return {name: intake.account for name, intake in self._intakes.items()}

    @property
    def marks(self) -> dict[str, int | None]:
        """The watermark of every stream; None before there is any."""
        return {name: None if i.mark == NO_MARK else i.mark for name, i in self._intakes.items()}

    def newest(self, stream: str) -> int | None:
        """The newest time seen in a stream; None before there is any."""
        intake = self.intake(stream)
        return None if intake.newest == NO_MARK else intake.newest

    def family(self, name: str) -> Family | None:
        """The family of a query; None where it has none, or none yet."""
        return next(iter(self.families_at(self._family_keys.get(name, (None, False)))), None)

    def lookup(
        self,
        query: str,
        at: InstantsLike | None = None,
        keys: KeyValues | None = None,
        between: tuple[InstantsLike, InstantsLike] | None = None,
    ) -> pa.Table:
        """The state of a query at an instant, or at many, from all rows so far: a registered query or ad-hoc text.

        See `Lookups.lookup`, and `Engine(keep=..., grain=...)` for what is kept.
        """
        return self._lookups.lookup(query, at, keys, between)

    def explain_lookups(self) -> str:
        """What is kept for lookups, and which structure answers each aggregate, with the reason."""
        return self._lookups.explain()

    @property
    def nbytes(self) -> int:
        """The memory that panes and totals of grouped aggregates take; joins, distincts and frames are not in it."""
        return sum(family.nbytes for family in self.families())

    def late(self, stream: str) -> pa.Table:
        """The rows that came too late since the last call, in arrival order."""
        intake = self.intake(stream)
        return pa.concat_tables([intake.schema.schema.empty_table(), *self._late.pop(stream, [])])

    # ---- restarts ----------------------------------------------------------------------------------------------

    def snapshot(self) -> bytes:
        """All state as bytes: queries, panes, watermarks and accounts."""
        return pack_state(self.state(), self.pool.declaration())

    def state(self) -> Tree:
        """The same as a tree, without the queries."""
        if self._undelivered or any(any(family.pending) for family in self.families()):
            raise StateProblem("results are waiting that could not be reported", fix="revoke the query that overflows")
        families = []
        for home, family in self._families.items():
            anchors = [[name, self._anchors[name]] for name in family.members if name in self._anchors]
            families.append({"family": family.state(), "said": self._reporters[home].state(), "anchors": anchors})
        late = {name: pa.concat_tables(tables) for name, tables in self._late.items()}
        intakes = {name: intake.state() for name, intake in self._intakes.items()}
        return {
            "intakes": intakes,
            "families": families,
            "late": late,
            "relations": self._row_engine.state(),
            "retention": self.retention.plain(),
        }

    @classmethod
    def restore(cls, data: bytes, host: Host | None = None) -> Engine:
        """The engine that a snapshot was taken of, with a pool of its own."""
        tree, plan = unpack_state(data)
        return cls(Pool.from_declaration(plan, host), tree)

    def _load(self, tree: Tree) -> None:
        for name, saved in tree["intakes"].items():
            self._intakes[name].restore(saved)
        self._late = {name: [table] for name, table in tree["late"].items()}
        waiting = {name: s for name, s in self.pool.queries.items() if isinstance(s.plan, PanePlan)}
        relations = {name: s.plan for name, s in self.pool.queries.items() if isinstance(s.plan, RowPlan | FramePlan)}
        typed = {name: (plan, instant_type(plan.query, self.pool.streams)) for name, plan in relations.items()}
        self._row_engine.restore(tree["relations"], typed)
        for saved in tree["families"]:
            self._anchors |= dict(saved["anchors"])
            since = dict(saved["family"]["since"])
            for name, numbers in saved["family"]["members"]:
                del waiting[name]
                reporter = self._ensure_family(self._plan_of(name), name)
                reporter.family.rejoin(name, self._plan_of(name), numbers, since)
                self._add_output(name, reporter)
            reporter.family.restore(saved["family"])
            reporter.restore(saved["said"])
        self._unanchored = waiting

    def _plan_of(self, name: str) -> PanePlan:
        plan = self.pool.queries[name].plan
        assert isinstance(plan, PanePlan)
        return plan.anchor_to(self._anchors[name]) if name in self._anchors else plan

    # ---- queries come and go -----------------------------------------------------------------------------------

    def on_register(self, query: RegisteredQuery) -> None:
        """Called by the pool."""
        if isinstance(query.plan, RowPlan | FramePlan):
            self._row_engine.join(query.name, query.plan, instant_type(query.plan.query, self.pool.streams))
        elif query.plan.window.has_time_of_day:
            self._unanchored[query.name] = query
        else:
            self._join_family(query, query.plan)

    def on_revoke(self, query: RegisteredQuery) -> None:
        """Called by the pool."""
        if isinstance(query.plan, RowPlan | FramePlan):
            self._row_engine.leave(query.name)
            return
        if self._unanchored.pop(query.name, None):
            return
        home, self._emitted = self._family_keys.pop(query.name), None
        del self._outputs[query.name]
        self._anchors.pop(query.name, None)
        family, reporter = self._families[home], self._reporters[home]
        reporter.leave(family.members[query.name])
        family.leave(query.name)
        if not family.members:
            del self._families[home], self._reporters[home]

    def managers(self, family: object) -> dict[int, WindowManager] | None:
        """Called by the pool: the window managers of a family; None before its first rows."""
        found = [f for (key, _), f in self._families.items() if key == family and isinstance(f, TimeFamily)]
        return found[0].running_managers if found else None

    def families(self) -> list[Family]:
        """All families, each with all rows so far."""
        for family in self._families.values():
            family.catch_up()
        return list(self._families.values())

    def shared_operators(self) -> list[tuple[Mapping[str, RowPlan], SharedOperators]]:
        """Called by the pool: the shared operators, with the queries that they serve."""
        return self._row_engine.shared_operators()

    def _join_family(self, query: RegisteredQuery, plan: PanePlan) -> None:
        reporter = self._ensure_family(plan, query.name)
        since = MIN_POSITION if query.since is None else query.since + self.pool.boundary.shift
        reporter.family.join(query.name, plan, since)
        self._add_output(query.name, reporter)

    def _add_output(self, name: str, reporter: Reporter) -> None:
        """Add the output through which the results of a query are reported."""
        member = reporter.family.members[name]
        report_format, self._emitted = reporter.join(member), None
        self._outputs[name] = QueryOutput(report_format, member, instant_type(member.plan.query, self.pool.streams))

    def _ensure_family(self, plan: PanePlan, name: str) -> Reporter:
        """The reporter of the family to which a query belongs; the family is created if it does not exist."""
        home = self._family_keys[name] = family_key(plan)
        reporter = self._reporters.get(home)
        if reporter is None:
            family = create_family(plan, self.pool.boundary, self.pool.host, self.pool.policy)
            self._prepare_retention(family)
            reporter = Reporter(family)
            family.on_recode = reporter.recode
            self._families[home], self._reporters[home] = family, reporter
        return reporter

    def _prepare_retention(self, family: Family) -> None:
        """Note from where on a new family has rows, and keep its panes for lookups if its stream is kept."""
        stream = family.plan.source.stream
        newest = self._intakes[stream].newest
        family.created_at = MIN_POSITION if newest == NO_MARK else newest + self.pool.boundary.shift
        if stream in self.retention.keep:
            family.start_archive(self.retention.keep[stream], self.retention.grain.get(stream))

    def _anchor(self, stream: str, first: int) -> None:
        """Resolve times of day against the day of the first item of a stream."""
        self._row_engine.anchor(stream, first)
        for name, registered in list(self._unanchored.items()):
            plan = registered.plan
            if isinstance(plan, PanePlan) and plan.source.stream == stream:
                del self._unanchored[name]
                self._anchors[name] = first
                self._join_family(registered, plan.anchor_to(first))

    def families_at(self, home: FamilyKey) -> Iterable[Family]:
        """The family with a key, with all rows so far; none once its last query has been revoked."""
        found = [self._families[home]] if home in self._families else []
        for family in found:
            family.catch_up()
        return found

    def _families_of(self, stream: str, only: FamilyKey | RowInputKey | None = None) -> Iterable[Family]:
        if only is not None:
            return [] if isinstance(only, RowInputKey) else self.families_at(only)
        return [family for family in self._families.values() if family.plan.source.stream == stream]

    # ---- results -----------------------------------------------------------------------------------------------

    def _emit(self, tables: dict[str, pa.Table]) -> Emission:
        failures: list[Failure] = []
        for reporter in self._reporters.values():
            family = reporter.family
            if not (family.untidy or family.pending):
                continue
            try:
                for report_format, reported in reporter.take_reports():
                    self._undelivered.setdefault(report_format, []).append(reported)
            except QueryProblem as problem:
                failures += problem.failures
                continue
            family.untidy = False
            family.tidy()
        if failures:
            raise QueryProblem(failures)
        reports, self._undelivered = self._undelivered, {}
        self._emitted = self._emitted or EmittedOutputs(self._outputs)
        return Emission(self._emitted, reports, self._row_engine.with_empty_results(tables))

    def _promise(self, to: int | str | datetime) -> None:
        for intake in self._intakes.values():
            tick = parse_instant(to, intake.schema.domain)
            intake.promised = max(intake.promised, tick + 1 - self.pool.boundary.shift)

    def intake(self, stream: str) -> Intake:
        """The watermark and the account of a stream."""
        if stream not in self._intakes:
            raise SchemaProblem(f"there is no stream {stream!r}", fix=did_you_mean(stream, self._intakes))
        return self._intakes[stream]
