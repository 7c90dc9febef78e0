"""Laying out what crosses: each expression once, under one name, and a small key with its pane in one number."""

from __future__ import annotations

import zlib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from panewise.aggregate.columns.chosen import Extremes
from panewise.aggregate.columns.counts import Counts
from panewise.aggregate.columns.sums import FloatSums, IntegerSums
from panewise.engine import Pool
from panewise.engine.grouping import Grouping, Home, admitted, home_of
from panewise.engine.relational import Inflow
from panewise.engine.snapshot import fingerprint
from panewise.plan import Aggregation, edges_in, span, unsliceable
from panewise.runtime.spark.expressions import (
    EARLIEST,
    LATEST,
    columns_needed,
    columns_used,
    counts_rows,
    defined,
    filters_of,
    signature_of,
    source_columns,
    time_of,
    usable_time,
)
from panewise.runtime.spark.layout import KEY_BITS, PACKED, PANE_BITS, TIME, Crossing, Lane, Layout, Packing
from panewise.runtime.spark.types import quoted
from panewise.schema import StreamSchema
from panewise.slicing.cuts import Cuts, cuts
from panewise.time import FIRST_TICK, LAST_TICK, Boundary, Domain


def laid_out(pool: Pool, shards: int, always: Collection[str] = ()) -> Layout:
    """The layout for all queries of a pool. Streams in `always` are read also where no query asks for them:
    Spark does not go on with a checkpoint that knows other sources."""
    families: dict[str, dict[Home, list[Aggregation]]] = {}
    read: dict[str, dict[Inflow, Reading]] = {}
    for standing in pool.queries.values():
        plan = standing.plan
        if isinstance(plan, Aggregation):
            families.setdefault(plan.source.stream, {}).setdefault(home_of(plan), []).append(plan)
        else:
            for source, names in plan.read.items():
                homes = read.setdefault(source.stream, {})
                reading = homes.setdefault(Inflow(plan.home, source.alias), Reading({}, plan.routes[source]))
                reading.names.update(dict.fromkeys(names))
    streams = [name for name in pool.streams if name in families or name in read or name in always]
    crossings = [_Draft(n, pool, shards).crossing(families.get(n, {}), read.get(n, {})) for n in streams]
    return Layout(pool.boundary, shards, tuple(crossings))


@dataclass(frozen=True)
class Reading:
    """What relational queries of one home read of a stream, and the column by which its rows are spread."""

    names: dict[str, None]
    route: str | None


@dataclass
class _Draft:
    """A crossing in the making: expressions by text, each under one name."""

    stream: str
    pool: Pool
    shards: int
    names: dict[str, str] = field(default_factory=dict)

    def crossing(self, homes: Mapping[Home, list[Aggregation]], read: Mapping[Inflow, Reading]) -> Crossing:
        schema = self.pool.streams[self.stream]
        lanes = (
            *(self._lane(home, plans) for home, plans in homes.items()),
            *(self._inflow(home, reading) for home, reading in read.items()),
        )
        packing = self._packing(lanes, schema) if len(lanes) == 1 else None
        time = time_of(schema)
        select = [(TIME, time), *((name, sql) for sql, name in self.names.items())]
        if packing:
            packed = _packed(time, lanes[0], packing, self.pool.boundary)
            select = [(PACKED, packed), *((name, sql) for sql, name in self.names.items() if sql != packing.sql)]
        sliced = [plan for lane, plans in zip(lanes, homes.values(), strict=False) if lane.cuts for plan in plans]
        edges = [e for plan in sliced for e in edges_in(plan)]
        needed = columns_needed([*(columns_used(p) for p in homes.values()), *(r.names for r in read.values())], schema)
        usable = usable_time(time, schema.domain)
        tally = cuts(edges) if edges else None
        return Crossing(self.stream, schema, needed, time, usable, tuple(select), lanes, packing, tally)

    def _lane(self, home: Home, plans: Sequence[Aggregation]) -> Lane:
        plan, reason = plans[0], unsliceable(plans)
        flag, entering = (self._flagged(plan, sliced) for sliced in (reason is None, False))
        before = defined(plan.before, source_columns(plan))
        grouped = defined(plan.between, before)
        keys = [grouped[key] for key in plan.group.keys]
        signature = fingerprint({"family": signature_of(plan)})
        home_shard = zlib.crc32(signature.encode()) % self.shards
        span = admitted(plan, self.pool.boundary)
        if reason is not None:
            columns = {name: self._named(name) for name in columns_used(plans)}
            by = [before[name] for name in plan.window.partition_by] if counts_rows(plan) else keys
            routed = tuple(map(self._name, by)) if set(by) <= set(keys) and not plan.restless else ()
            return Lane(signature, home, plan, None, reason, columns, flag, entering, span, routed, home_shard)
        asked = dict.fromkeys([*plan.group.keys, *(a for call in plan.group.calls for a in call.arguments)])
        columns = {name: self._name(grouped[name]) for name in asked}
        edges = [e for p in plans for e in edges_in(p)]
        routed = tuple(map(self._name, keys))
        return Lane(signature, home, plan, cuts(edges), None, columns, flag, entering, span, routed, home_shard)

    def _inflow(self, home: Inflow, reading: Reading) -> Lane:
        """A place at which relational queries read the stream."""
        told = sorted(f"{stream} {alias} {column}" for stream, alias, column in home.home)
        signature = fingerprint({"home": told, "alias": home.alias})
        # All streams of a home meet in one shard where they cannot be spread.
        shard = zlib.crc32(fingerprint({"home": told}).encode()) % self.shards
        columns = {name: self._named(name) for name in reading.names}
        routed = (self._name(quoted(reading.route)),) if reading.route is not None else ()
        reason = "relations compare rows with each other"
        span = (FIRST_TICK, LAST_TICK)
        return Lane(signature, home, None, None, reason, columns, None, None, span, routed, shard)

    def _flagged(self, plan: Aggregation, sliced: bool) -> str | None:
        flag = filters_of(plan, sliced)
        return self._name(flag) if flag else None

    def _packing(self, lanes: Sequence[Lane], schema: StreamSchema) -> Packing | None:
        """How key and pane share a number; None where they cannot."""
        lane = lanes[0]
        plan = lane.plan
        if plan is None or lane.cuts is None or not lane.cuts.uniform or len(plan.group.keys) != 1:
            return None
        (key,) = plan.group.keys
        grouping = Grouping(plan)
        small = grouping.keys.types[0] in (pa.int8(), pa.int16(), pa.int32())
        timeless = not grouping.expiry and all(isinstance(column, _TIMELESS) for column in grouping.columns)
        sql = next(sql for sql, name in self.names.items() if name == lane.columns[key])
        read_twice = any(lane.columns[a] == lane.columns[key] for call in plan.group.calls for a in call.arguments)
        few = schema.domain is Domain.TIMESTAMP and (LATEST - EARLIEST) // lane.cuts.period + 2 < 1 << PANE_BITS
        whole = span(plan.window) == (FIRST_TICK, LAST_TICK)
        if not (small and timeless and whole and few) or read_twice or lane.flag:
            return None
        first = (EARLIEST + self.pool.boundary.shift - lane.cuts.origin) // lane.cuts.period
        return Packing(key, sql, grouping.keys.types[0], first)

    def _named(self, column: str) -> str:
        """The name under which a column of the stream crosses; its time crosses anyway, in ticks."""
        return TIME if column == self.pool.streams[self.stream].time else self._name(quoted(column))

    def _name(self, sql: str) -> str:
        return self.names.setdefault(sql, f"c{len(self.names)}")


# ---- key and pane in one number --------------------------------------------------------------------------------

_TIMELESS = (Counts, IntegerSums, FloatSums, Extremes)


def pane_number(time: str, cuts: Cuts, boundary: Boundary) -> str:
    """The number of a row's pane as Spark SQL, for uniform cuts."""
    before = f"({time} + {boundary.shift - cuts.origin - 1})"
    return f"({before} - PMOD({before}, {cuts.period})) DIV {cuts.period} + 1"


def _packed(time: str, lane: Lane, packing: Packing, boundary: Boundary) -> str:
    assert lane.cuts is not None
    key, pane = packing.sql, f"{pane_number(time, lane.cuts, boundary)} - {packing.first}"
    sign = f"CASE WHEN {key} IS NULL THEN {-(1 << 63) + 1} - 1 ELSE 0 END"
    low = (1 << KEY_BITS) - 1
    return f"({sign}) | SHIFTLEFT(CAST(COALESCE({key}, 0) AS BIGINT) & {low}, {PANE_BITS}) | ({pane})"
