"""`pw.Engine`: eats Arrow batches, emits Arrow tables. Knows nothing of Spark, files or threads."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

import numpy as np
import pyarrow as pa

from panewise.accounting import Accounting
from panewise.algebra import Host
from panewise.engine.emission import Emission, Seat
from panewise.engine.engine_lookups import EngineLookups
from panewise.engine.family import Family
from panewise.engine.founding import founded
from panewise.engine.grouping import Home, home_of
from panewise.engine.intake import NO_MARK, Arrivals, Intake
from panewise.engine.lateness import Ledger
from panewise.engine.lookups import When, tick_at
from panewise.engine.pool import Pool, Standing
from panewise.engine.relational import Circuit, Inflow
from panewise.engine.report import Reporter, Said
from panewise.engine.retention import Lengths, Retention, retained
from panewise.engine.shelf import Chosen
from panewise.engine.slicer import opened
from panewise.engine.snapshot import Tree, packed, unpacked
from panewise.engine.time_family import TimeFamily
from panewise.errors import Failure, QueryProblem, SchemaProblem, StateProblem, did_you_mean
from panewise.plan import Aggregation, Framing, Relation
from panewise.plan.kinship import Kin
from panewise.slicing import WindowManager
from panewise.stores.stairs import NEVER
from panewise.time import Ticks


class Engine:
    """Runs a pool in this process, incrementally.

    `feed` takes rows in any split and, within the declared delay, in any order. `advance` returns what has become
    final. Queries may be registered with the pool, and revoked, at any moment. A `shard` is one of several engines that
    run the same pool, and hears of each query the rows that are meant for it. `stored` streams fill frames with what is
    there; unless named, these are the ones without a delay. Panes are kept for `keep` after their time, cut to `grain`
    at least, so that `lookup` can answer any window over them.
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
        self.retention = retained(pool, keep, grain) if state is None else Retention(*state["retention"])
        self._intakes = {name: Intake(name, schema) for name, schema in pool.streams.items()}
        self._families: dict[Home, Family] = {}
        self._reporters: dict[Home, Reporter] = {}
        self._homes: dict[str, Home] = {}
        self._seats: dict[str, Seat] = {}
        if stored is None:
            stored = {name for name, schema in pool.streams.items() if schema.delay is None}
        self._circuit = Circuit(pool.boundary, pool.host, pool.purge, shard, stored)
        #: Queries whose times of day wait for the first item to tell the day.
        self._waiting: dict[str, Standing] = {}
        self._anchors: dict[str, int] = {}
        #: What was said while another family could not speak.
        self._unheard: dict[int, list[Said]] = {}
        self._late: dict[str, list[pa.Table]] = {}
        self._lookups = EngineLookups(self)
        if state is not None:
            self._load(state)
        else:
            for standing in pool.queries.values():
                self.joined(standing)
        pool.listeners.append(self)

    # ---- rows and time -----------------------------------------------------------------------------------------

    def feed(self, stream: str, batch: Any) -> None:
        """Take rows in: a record batch or table with the declared columns. All of it, or nothing on an error."""
        arrivals, rejected, ledger = self.bring(stream, batch)
        lost = ledger.late
        if len(lost):
            places = np.searchsorted(arrivals.order, lost)
            self._late.setdefault(stream, []).append(arrivals.table.take(pa.array(places)))
        by_query = {name: len(late) for name, late in ledger.late_by_query().items()}
        self.intake(stream).count(len(arrivals) + rejected, rejected, len(lost), len(ledger.partly_late), by_query)

    def bring(self, stream: str, batch: Any, only: Home | Inflow | None = None) -> tuple[Arrivals, int, Ledger]:
        """Take rows in without counting them: how they arrived, how many were rejected, and what became of late ones.

        With `only`, the rows are for one family or one home alone.
        """
        intake = self.intake(stream)
        arrivals, rejected = intake.admit(batch)
        ledger = Ledger()
        if len(arrivals):
            late = arrivals.late()
            on_time = arrivals.times if late is None else arrivals.times[~late]
            if len(on_time):
                self._anchor(stream, int(on_time.min()))
            inflow = only if isinstance(only, Inflow) else None
            readings = self._circuit.read(stream, arrivals, inflow) if inflow or only is None else []
            families = [] if isinstance(only, Inflow) else self._families_of(stream) if only is None else self.at(only)
            # Whatever can fail comes first, so that nobody takes rows in that another query fails on.
            entering = [(family, found) for family in families if (found := family.read(arrivals))]
            for family, found in entering:
                family.take(found, ledger)
            for reading in readings:
                reading.enter(ledger)
        intake.passed(arrivals, len(arrivals) + rejected)
        return arrivals, rejected, ledger

    def take(self, home: Home, parcel: Tree) -> None:
        """Take panes in that a slicer cut for a family; nobody needs them once its last query has gone."""
        for family in self.at(home):
            assert isinstance(family, TimeFamily)
            family.take_panes(*opened(family, parcel), self.intake(family.plan.source.stream).mark)

    def see(self, stream: str, first: int, newest: int) -> None:
        """Items of these times have come, here or elsewhere: the first one says which day times of day are on."""
        intake = self.intake(stream)
        intake.newest = max(intake.newest, newest)
        self._anchor(stream, first)

    def reach(self, home: Home | Inflow, newest: int) -> None:
        """An item of this time has entered the windows of a family, here or elsewhere."""
        if isinstance(home, Inflow):
            self._circuit.reach(home, newest)
            return
        for family in self.at(home):
            family.entered.note(at := newest + self.pool.boundary.shift, at)

    def promise(self, stream: str, mark: int) -> None:
        """Nothing older than a watermark is expected in a stream any more."""
        intake = self.intake(stream)
        intake.promised = max(intake.promised, mark)

    def reject_after(self, stream: str, tick: int | None) -> None:
        """Rows with a time after this tick are poison: rejected, counted, and never moving the watermark."""
        self.intake(stream).horizon = tick

    def advance(self, to: int | str | datetime | None = None) -> Emission:
        """Everything that has become final. With an instant: all instants up to it are declared final first."""
        if to is not None:
            self._promise(to)
        for intake in self._intakes.values():
            if intake.mark > NO_MARK:
                for family in self._families_of(intake.name):
                    family.advance(intake.mark - 1 + self.pool.boundary.shift)
        shift = self.pool.boundary.shift
        limits = {i.name: i.mark - 1 + shift for i in self._intakes.values() if i.mark > NO_MARK}
        return self._emitted(self._circuit.advance(limits))

    def finish(self, until: int | str | datetime | None = None) -> Emission:
        """The input is complete: everything until each item has been in all its windows, or until an instant."""
        for family in self._families.values():
            domain = family.plan.query.domain
            family.finish(None if until is None else tick_at(until, domain))
        domains = {schema.domain for schema in self.pool.streams.values()}
        last = None if until is None else max(tick_at(until, domain) for domain in domains)
        return self._emitted(self._circuit.finish(last))

    # ---- what can be asked -------------------------------------------------------------------------------------

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
        return self._families.get(self._homes.get(name, (None, None)))

    def lookup(
        self,
        query: str,
        at: When | Sequence[When] | Ticks | None = None,
        keys: Chosen | None = None,
        between: tuple[When | Sequence[When] | Ticks, When | Sequence[When] | Ticks] | None = None,
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
        return sum(family.nbytes for family in self._families.values())

    def late(self, stream: str) -> pa.Table:
        """The rows that came too late since the last call, in arrival order."""
        intake = self.intake(stream)
        return pa.concat_tables([intake.schema.schema.empty_table(), *self._late.pop(stream, [])])

    # ---- restarts ----------------------------------------------------------------------------------------------

    def snapshot(self) -> bytes:
        """All state as bytes: queries, panes, watermarks and accounts."""
        return packed(self.state(), self.pool.declared())

    def state(self) -> Tree:
        """The same as a tree, without the queries."""
        if self._unheard or any(family.said for family in self._families.values()):
            raise StateProblem("results are waiting that could not be said", fix="revoke the query that overflows")
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
            "relations": self._circuit.state(),
            "retention": self.retention.plain(),
        }

    @classmethod
    def restore(cls, data: bytes, host: Host | None = None) -> Engine:
        """The engine that a snapshot was taken of, with a pool of its own."""
        tree, plan = unpacked(data)
        return cls(Pool.from_declared(plan, host), tree)

    def _load(self, tree: Tree) -> None:
        for name, saved in tree["intakes"].items():
            self._intakes[name].restore(saved)
        self._late = {name: [table] for name, table in tree["late"].items()}
        waiting = {name: s for name, s in self.pool.queries.items() if isinstance(s.plan, Aggregation)}
        relations = {name: s.plan for name, s in self.pool.queries.items() if isinstance(s.plan, Relation | Framing)}
        self._circuit.restore(
            tree["relations"], {name: (plan, self._instants(plan)) for name, plan in relations.items()}
        )
        for saved in tree["families"]:
            self._anchors |= dict(saved["anchors"])
            since = dict(saved["family"]["since"])
            for name, numbers in saved["family"]["members"]:
                del waiting[name]
                home = self._home(self._plan_of(name), name)
                self._families[home].rejoin(name, self._plan_of(name), numbers, since)
                self._seat(name, home)
            self._families[home].restore(saved["family"])
            self._reporters[home].restore(saved["said"])
        self._waiting = waiting

    def _instants(self, plan: Relation | Framing) -> pa.DataType:
        """The type of instants in the results of a query."""
        return next(self._intakes[name].schema.instants for name in sorted(plan.streams))

    def _plan_of(self, name: str) -> Aggregation:
        plan = self.pool.queries[name].plan
        assert isinstance(plan, Aggregation)
        return plan.anchored(self._anchors[name]) if name in self._anchors else plan

    # ---- queries come and go -----------------------------------------------------------------------------------

    def joined(self, query: Standing) -> None:
        """Called by the pool."""
        if isinstance(query.plan, Relation | Framing):
            self._circuit.join(query.name, query.plan, self._instants(query.plan))
        elif _of_day(query.plan):
            self._waiting[query.name] = query
        else:
            self._settle(query, query.plan)

    def left(self, query: Standing) -> None:
        """Called by the pool."""
        if isinstance(query.plan, Relation | Framing):
            self._circuit.leave(query.name)
            return
        if self._waiting.pop(query.name, None):
            return
        home = self._homes.pop(query.name)
        del self._seats[query.name]
        self._anchors.pop(query.name, None)
        family, reporter = self._families[home], self._reporters[home]
        reporter.leave(family.members[query.name])
        family.leave(query.name)
        if not family.members:
            del self._families[home], self._reporters[home]

    def managers(self, family: object) -> dict[int, WindowManager] | None:
        """Called by the pool: how the windows of a family are grouped, once rows have come."""
        found = [f for (key, _), f in self._families.items() if key == family and isinstance(f, TimeFamily)]
        return found[0].managers if found and found[0].begun else None

    def families(self) -> list[Family]:
        """The families whose panes and rows lookups are answered from."""
        return list(self._families.values())

    def kin(self) -> list[tuple[Mapping[str, Relation], Kin]]:
        """Called by the pool: which relational operators share their work."""
        return self._circuit.kin()

    def _settle(self, query: Standing, plan: Aggregation) -> None:
        home = self._home(plan, query.name)
        since = NEVER if query.since is None else query.since + self.pool.boundary.shift
        self._families[home].join(query.name, plan, since)
        self._seat(query.name, home)

    def _seat(self, name: str, home: Home) -> None:
        """Let the results of a query be reported."""
        member = self._families[home].members[name]
        manner = self._reporters[home].join(member)
        self._seats[name] = Seat(manner, member, self._intakes[member.plan.source.stream].schema.instants)

    def _home(self, plan: Aggregation, name: str) -> Home:
        """The family a query belongs to, which may have to be founded."""
        home = self._homes[name] = home_of(plan)
        if home not in self._families:
            self._families[home] = founded(plan, self.pool.boundary, self.pool.host, self.pool.policy)
            self._keep(self._families[home])
            self._reporters[home] = Reporter(self._families[home])
            self._families[home].recoded = self._reporters[home].recode
        return home

    def _keep(self, family: Family) -> None:
        """Let a new family remember what it has missed, and keep its panes for lookups where that is wanted."""
        if not isinstance(family, TimeFamily):
            return
        stream = family.plan.source.stream
        newest = self._intakes[stream].newest
        family.founded = NEVER if newest == NO_MARK else newest + self.pool.boundary.shift
        if stream in self.retention.keep:
            family.keep(self.retention.keep[stream], self.retention.grain.get(stream))

    def _anchor(self, stream: str, first: int) -> None:
        """The first item says which day times of day are on."""
        self._circuit.anchor(stream, first)
        for name, standing in list(self._waiting.items()):
            plan = standing.plan
            if isinstance(plan, Aggregation) and plan.source.stream == stream:
                del self._waiting[name]
                self._anchors[name] = first
                self._settle(standing, plan.anchored(first))

    def at(self, home: Home) -> Iterable[Family]:
        """The family of a home; none once its last query has gone."""
        return [self._families[home]] if home in self._families else []

    def _families_of(self, stream: str) -> Iterable[Family]:
        return [family for family in self._families.values() if family.plan.source.stream == stream]

    # ---- results -----------------------------------------------------------------------------------------------

    def _emitted(self, tables: dict[str, pa.Table]) -> Emission:
        failures: list[Failure] = []
        for home, family in self._families.items():
            # Chunks are given up when they have become results, so that an overflow loses nothing of any query.
            try:
                found = self._reporters[home].report(family.said)
            except QueryProblem as problem:
                failures += problem.failures
                continue
            for manner, said in found.items():
                self._unheard.setdefault(manner, []).append(said)
            family.said = []
            family.tidy()
        if failures:
            raise QueryProblem(failures)
        heard, self._unheard = self._unheard, {}
        return Emission(dict(self._seats), heard, self._circuit.complete(tables))

    def _promise(self, to: int | str | datetime) -> None:
        for intake in self._intakes.values():
            tick = tick_at(to, intake.schema.domain)
            intake.promised = max(intake.promised, tick + 1 - self.pool.boundary.shift)

    def intake(self, stream: str) -> Intake:
        """The watermark and the account of a stream."""
        if stream not in self._intakes:
            raise SchemaProblem(f"there is no stream {stream!r}", fix=did_you_mean(stream, self._intakes))
        return self._intakes[stream]


def _of_day(plan: Aggregation) -> bool:
    return plan.anchored(0) != plan.anchored(86_400_000_000)
