"""What of a stream crosses from Spark's JVM into Python, and how: decided once for each run of a pipeline.

Filters and computed columns are Spark SQL and stay in the JVM. Every value that crosses costs about a tenth of a
microsecond, so that each expression crosses once however many queries want it, and a small integer key shares one
number with its pane where nothing else asks for the time.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from panewise.aggregate.columns.chosen import Extremes
from panewise.aggregate.columns.counts import Counts
from panewise.aggregate.columns.sums import FloatSums, IntegerSums
from panewise.algebra import Project, Select
from panewise.engine import Pool
from panewise.engine.grouping import Grouping, Home, admitted, expiry, home_of
from panewise.engine.relational import Inflow
from panewise.engine.snapshot import fingerprint
from panewise.lang import inlined
from panewise.plan import Aggregation, Relation, Rowwise, edges_of, span, unsliceable
from panewise.runtime.spark.types import quoted, spark_type
from panewise.scalar import Scalar
from panewise.schema import StreamSchema
from panewise.slicing.cuts import Cuts, cuts
from panewise.time import FIRST_TICK, LAST_TICK, Boundary, Domain
from panewise.window import Landmark, Rows, Session, Varying

#: Times outside of these years are absurd: rejected and counted.
EARLIEST, LATEST = -5_364_662_400_000_000, 10_413_792_000_000_000  # 1800-01-01, 2300-01-01
#: The time of each row, in ticks.
TIME = "t"
#: Key and pane in one number.
PACKED = "k"
PANE_BITS, KEY_BITS = 31, 32
#: Late rows are judged by no more different filters than this.
TALLIED = 62


@dataclass(frozen=True, eq=False)
class Lane:
    """One family of queries: where its columns are among those that cross, and who gets its rows or panes.

    Relational queries have a lane for every place at which they read a stream; their rows travel as they are.
    """

    #: The same for the same family in every run.
    signature: str
    home: Home | Inflow
    #: What is asked of the family; None where relational queries read the stream.
    plan: Aggregation | None
    #: How rows are cut; None where they travel as they are, for the reason given.
    cuts: Cuts | None
    reason: str | None
    #: Columns of the group, or of the source where rows travel, and under which names they cross.
    columns: Mapping[str, str]
    #: The column that says which rows pass the filters; None where all do. Others cross too: they move time on.
    flag: str | None
    #: The same for the filters below the window only: late rows are counted before the others.
    entering: str | None
    #: The first and last time of rows that count at all.
    span: tuple[int, int]
    #: The columns whose values decide the shard, and the shard where there is none.
    routed: tuple[str, ...]
    shard: int

    @property
    def endless(self) -> bool:
        """Whether it matters how far the items reach: nothing leaves the windows by itself."""
        if self.plan is None:
            # Where all rows meet in one shard, it sees for itself.
            return bool(self.routed)
        return isinstance(self.plan.window, Landmark | Varying)


@dataclass(frozen=True)
class Packing:
    """A key and a pane in one number: the pane counts from `first`, the key stands above it, NULL is the sign."""

    key: str
    sql: str
    type: pa.DataType
    first: int


@dataclass(frozen=True, eq=False)
class Crossing:
    """The part of one stream that crosses."""

    stream: str
    schema: StreamSchema
    #: Columns of the source that any expression needs.
    needed: tuple[str, ...]
    #: The time of a row in ticks, and whether it can be used, as Spark SQL.
    time: str
    usable: str
    #: Names and expressions of the columns that cross.
    select: tuple[tuple[str, str], ...]
    lanes: tuple[Lane, ...]
    packing: Packing | None
    #: The panes by which late rows are counted: no edge of any sliced lane falls inside.
    tally: Cuts | None

    @property
    def counted_by_panes(self) -> bool:
        """Whether the panes of the only family tell how many rows there were."""
        lane = self.lanes[0]
        return len(self.lanes) == 1 and lane.cuts is not None and lane.flag == lane.entering

    @property
    def tallied(self) -> dict[tuple[str | None, tuple[int, int]], list[Lane]]:
        """Sliced lanes by filter and span, each of these a bit by which late rows are counted; a number has so many."""
        found: dict[tuple[str | None, tuple[int, int]], list[Lane]] = {}
        for lane in self.lanes:
            if lane.cuts is not None:
                found.setdefault((lane.entering, lane.span), []).append(lane)
        return dict(list(found.items())[:TALLIED])


@dataclass(frozen=True, eq=False)
class Layout:
    """Everything that slicers and shards of one run must agree on."""

    boundary: Boundary
    shards: int
    crossings: tuple[Crossing, ...]

    @property
    def lanes(self) -> list[Lane]:
        return [lane for crossing in self.crossings for lane in crossing.lanes]

    def lane(self, signature: str) -> Lane | None:
        """The lane of a family; None once its last query has gone."""
        return next((lane for lane in self.lanes if lane.signature == signature), None)

    def covers(self, plan: Aggregation | Relation) -> bool:
        """Whether a query can join without changing what crosses."""
        if isinstance(plan, Relation):
            lanes = {lane.home: lane for lane in self.lanes}
            inflows = {Inflow(plan.home, source.alias): names for source, names in plan.read.items()}
            return all(home in lanes and set(names) <= set(lanes[home].columns) for home, names in inflows.items())
        lane = next((lane for lane in self.lanes if lane.home == home_of(plan)), None)
        if lane is None:
            return False
        if lane.cuts is None:
            return True
        edges = [edge for _, window in plan.levels for edge in edges_of(window)]
        return unsliceable([plan]) is None and lane.cuts.agree(edges)


def laid_out(pool: Pool, shards: int) -> Layout:
    """The layout for all queries of a pool."""
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
    streams = [name for name in pool.streams if name in families or name in read]
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
        time = _time(schema)
        select = [(TIME, time), *((name, sql) for sql, name in self.names.items())]
        if packing:
            packed = _packed(time, lanes[0], packing, self.pool.boundary)
            select = [(PACKED, packed), *((name, sql) for sql, name in self.names.items() if sql != packing.sql)]
        sliced = [plan for lane, plans in zip(lanes, homes.values(), strict=False) if lane.cuts for plan in plans]
        edges = [e for plan in sliced for _, window in plan.levels for e in edges_of(window)]
        needed = _needed([*(_used(p) for p in homes.values()), *(r.names for r in read.values())], schema)
        usable = _usable(time, schema.domain)
        tally = cuts(edges) if edges else None
        return Crossing(self.stream, schema, needed, time, usable, tuple(select), lanes, packing, tally)

    def _lane(self, home: Home, plans: Sequence[Aggregation]) -> Lane:
        plan, reason = plans[0], unsliceable(plans)
        flag, entering = (self._flagged(plan, sliced) for sliced in (reason is None, False))
        before = _defined(plan.before, _source(plan))
        grouped = _defined(plan.between, before)
        keys = [grouped[key] for key in plan.group.keys]
        signature = fingerprint({"family": _signature(plan)})
        home_shard = zlib.crc32(signature.encode()) % self.shards
        span = admitted(plan, self.pool.boundary)
        if reason is not None:
            columns = {name: self._name(quoted(name)) for name in _used(plans)}
            by = [before[name] for name in plan.window.partition_by] if _counted(plan) else keys
            routed = tuple(map(self._name, by)) if set(by) <= set(keys) else ()
            return Lane(signature, home, plan, None, reason, columns, flag, entering, span, routed, home_shard)
        asked = dict.fromkeys([*plan.group.keys, *(a for call in plan.group.calls for a in call.arguments)])
        columns = {name: self._name(grouped[name]) for name in asked}
        edges = [e for p in plans for _, window in p.levels for e in edges_of(window)]
        routed = tuple(map(self._name, keys))
        return Lane(signature, home, plan, cuts(edges), None, columns, flag, entering, span, routed, home_shard)

    def _inflow(self, home: Inflow, reading: Reading) -> Lane:
        """A place at which relational queries read the stream."""
        told = sorted(f"{stream} {alias} {column}" for stream, alias, column in home.home)
        signature = fingerprint({"home": told, "alias": home.alias})
        # All streams of a home meet in one shard where they cannot be spread.
        shard = zlib.crc32(fingerprint({"home": told}).encode()) % self.shards
        columns = {name: self._name(quoted(name)) for name in reading.names}
        routed = (self._name(quoted(reading.route)),) if reading.route is not None else ()
        reason = "relations compare rows with each other"
        span = (FIRST_TICK, LAST_TICK)
        return Lane(signature, home, None, None, reason, columns, None, None, span, routed, shard)

    def _flagged(self, plan: Aggregation, sliced: bool) -> str | None:
        flag = _flag(plan, sliced)
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

    def _name(self, sql: str) -> str:
        return self.names.setdefault(sql, f"c{len(self.names)}")


def _counted(plan: Aggregation) -> bool:
    return isinstance(plan.window, Rows | Session)


def _source(plan: Aggregation) -> dict[str, str]:
    """The columns of a source as Spark knows them."""
    return {column.name: quoted(column.name.removeprefix(f"{plan.source.alias}.")) for column in plan.source.columns}


def _defined(steps: Sequence[Rowwise], columns: dict[str, str]) -> dict[str, str]:
    """Columns after some steps, as expressions over the source."""
    for step in steps:
        if isinstance(step, Project):
            columns = {name: _expression(scalar, columns) for name, scalar in step.items}
    return columns


def _expression(scalar: Scalar, columns: Mapping[str, str]) -> str:
    sql = inlined(scalar.sql, columns)
    # The types of results were settled when the query was read; Spark may think of others for the same expression.
    return sql if scalar.column is not None else f"CAST({sql} AS {spark_type(scalar.type)})"


def _flag(plan: Aggregation, sliced: bool) -> str | None:
    """What rows must pass: all filters below the group, or only those below the window where rows travel."""
    columns, found = _source(plan), []
    for step in (*plan.before, *plan.between) if sliced else plan.before:
        match step:
            case Select(predicate=predicate):
                found.append(f"COALESCE({inlined(predicate.sql, columns)}, FALSE)")
            case Project():
                columns = _defined([step], columns)
    return " AND ".join(found) or None


def _used(plans: Sequence[Aggregation]) -> list[str]:
    """The columns of the source that queries read, where rows travel as they are."""
    plan = plans[0]
    prefix = f"{plan.source.alias}."
    known = [column.name for column in plan.source.columns]
    texts = " ".join(map(_signature, plans))
    wanted = [name.removeprefix(prefix) for name in known if quoted(name.removeprefix(prefix)) in texts]
    time = plan.source.time.removeprefix(prefix)
    return list(dict.fromkeys([time, *wanted]))


def _needed(read: Iterable[Iterable[str]], schema: StreamSchema) -> tuple[str, ...]:
    wanted = {schema.time, *(name for names in read for name in names)}
    return tuple(name for name in schema.schema.names if name in wanted)


def _signature(plan: Aggregation) -> str:
    """What tells a family from others, the same in every run."""
    before = _defined(plan.before, _source(plan))
    grouped = _defined(plan.between, before)
    calls = [f"{type(c.aggregate).__name__}({', '.join(grouped[a] for a in c.arguments)})" for c in plan.group.calls]
    keys = [grouped[key] for key in plan.group.keys]
    parts = [before[name] for name in plan.window.partition_by]
    kind = type(plan.window).__name__ if _counted(plan) else "time"
    filters = [_flag(plan, sliced) for sliced in (False, True)]
    told = (plan.source.stream, filters, keys, calls, kind, parts, span(plan.window), expiry(plan))
    return " | ".join(map(str, told))


def _time(schema: StreamSchema) -> str:
    kind, name = schema.schema.field(schema.time).type, quoted(schema.time)
    if schema.domain is Domain.INTEGER:
        return f"CAST({name} AS BIGINT)"
    if kind.tz:
        return f"UNIX_MICROS({name})"
    return f"TIMESTAMPDIFF(MICROSECOND, TIMESTAMP_NTZ'1970-01-01 00:00:00', {name})"


def _usable(time: str, domain: Domain) -> str:
    low, high = (EARLIEST, LATEST) if domain is Domain.TIMESTAMP else (FIRST_TICK, LAST_TICK)
    return f"COALESCE({time} > {low} AND {time} < {high}, FALSE)"


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
