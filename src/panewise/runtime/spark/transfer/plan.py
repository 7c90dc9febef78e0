"""Plans the transfer: each expression once, under one name, and a small key with its pane in one number."""

from __future__ import annotations

import zlib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from panewise.core.schema import StreamSchema
from panewise.core.time import MAX_TICK, MIN_TICK, Boundary, Domain
from panewise.engine import Pool
from panewise.engine.panes.grouping import FamilyKey, GroupEncoder, family_key
from panewise.engine.rows import RowInputKey
from panewise.engine.state.snapshot import fingerprint
from panewise.plan import PanePlan, plan_edges, slicing_refusal
from panewise.plan.cuts import Cuts, coarsest_cuts
from panewise.runtime.spark.transfer.expressions import (
    EARLIEST,
    LATEST,
    apply_projections,
    columns_needed,
    columns_used,
    family_signature,
    filter_sql,
    source_columns,
    time_sql,
    usable_time_sql,
)
from panewise.runtime.spark.transfer.layout import (
    KEY_BITS,
    PACKED_COLUMN,
    PANE_BITS,
    TIME_COLUMN,
    FamilyTransfer,
    KeyPanePacking,
    Layout,
    StreamTransfer,
)
from panewise.runtime.spark.types import quote_name
from panewise.window import ALL_TIME


def plan_transfer(pool: Pool, shards: int, always: Collection[str] = (), columnar: Collection[str] = ()) -> Layout:
    """The layout for all queries of a pool. Streams in `always` are read also if no query reads them: Spark does not
    continue a checkpoint that has other sources. The rows of streams in `columnar` are read by workers."""
    families: dict[str, dict[FamilyKey, list[PanePlan]]] = {}
    read: dict[str, dict[RowInputKey, ReadColumns]] = {}
    for registered in pool.queries.values():
        plan = registered.plan
        if isinstance(plan, PanePlan):
            families.setdefault(plan.source.stream, {}).setdefault(family_key(plan), []).append(plan)
        else:
            for source, names in plan.read_columns.items():
                inputs = read.setdefault(source.stream, {})
                reading = inputs.setdefault(
                    RowInputKey(plan.shard_key, source.alias), ReadColumns({}, plan.routes[source])
                )
                reading.names.update(dict.fromkeys(names))
    streams = [name for name in pool.streams if name in families or name in read or name in always]
    transfers = [
        _TransferBuilder(n, pool, shards, n in columnar).build(families.get(n, {}), read.get(n, {})) for n in streams
    ]
    return Layout(pool.boundary, shards, tuple(transfers))


@dataclass(frozen=True)
class ReadColumns:
    """What the relational queries of one shard key read of a stream, and the column by which its rows are divided."""

    names: dict[str, None]
    route: str | None


@dataclass
class _TransferBuilder:
    """Builds one stream transfer: expressions by text, each under one name."""

    stream: str
    pool: Pool
    shards: int
    columnar: bool
    names: dict[str, str] = field(default_factory=dict)

    def build(
        self, plans: Mapping[FamilyKey, list[PanePlan]], read: Mapping[RowInputKey, ReadColumns]
    ) -> StreamTransfer:
        schema = self.pool.streams[self.stream]
        families = (
            *(self._family_transfer(key, some) for key, some in plans.items()),
            *(self._row_transfer(key, reading) for key, reading in read.items()),
        )
        packing = self._choose_packing(families, schema) if len(families) == 1 and not self.columnar else None
        time = time_sql(schema)
        select = [(TIME_COLUMN, time), *((name, sql) for sql, name in self.names.items())]
        if packing:
            packed = _packed_sql(time, families[0], packing, self.pool.boundary)
            select = [(PACKED_COLUMN, packed), *((name, sql) for sql, name in self.names.items() if sql != packing.sql)]
        sliced = [plan for family, some in zip(families, plans.values(), strict=False) if family.cuts for plan in some]
        edges = [e for plan in sliced for e in plan_edges(plan)]
        needed = columns_needed([*(columns_used(p) for p in plans.values()), *(r.names for r in read.values())], schema)
        usable = usable_time_sql(time, schema.domain)
        tally = coarsest_cuts(edges) if edges else None
        return StreamTransfer(
            self.stream, schema, needed, time, usable, tuple(select), families, packing, tally, self.columnar
        )

    def _family_transfer(self, key: FamilyKey, plans: Sequence[PanePlan]) -> FamilyTransfer:
        plan, reason = plans[0], slicing_refusal(plans)
        flag, entering = (self._filter_column(plan, sliced) for sliced in (reason is None, False))
        before = apply_projections(plan.before, source_columns(plan))
        grouped = apply_projections(plan.between, before)
        keys = [grouped[key] for key in plan.group.keys]
        signature = fingerprint({"family": family_signature(plan)})
        shard = zlib.crc32(signature.encode()) % self.shards
        span = plan.window.admitted_times(self.pool.boundary)
        passes = filter_sql(plan, True)
        if reason is not None:
            columns = {name: self._column_name(name) for name in columns_used(plans)}
            # A window that counts rows needs all those of a partition in one place, also beside others over time.
            counted = next((some.window for some in plans if not some.window.logical), None)
            by = keys if counted is None else [before[name] for name in counted.partition_by]
            where = passes if counted is None else filter_sql(plan, False)
            divided = set(by) <= set(keys) and not plan.repeats_on_change
            routed = tuple(self._guarded_name(sql, where) for sql in by) if divided else ()
            return FamilyTransfer(signature, key, plan, None, reason, columns, flag, entering, span, routed, shard)
        asked = dict.fromkeys([*plan.group.keys, *(a for call in plan.group.calls for a in call.arguments)])
        columns = {name: self._guarded_name(grouped[name], passes) for name in asked}
        edges = [e for p in plans for e in plan_edges(p)]
        routed = tuple(self._guarded_name(sql, passes) for sql in keys)
        return FamilyTransfer(
            signature, key, plan, coarsest_cuts(edges), None, columns, flag, entering, span, routed, shard
        )

    def _row_transfer(self, key: RowInputKey, reading: ReadColumns) -> FamilyTransfer:
        """A place at which relational queries read the stream."""
        sources = sorted(f"{stream} {alias} {column}" for stream, alias, column in key.home)
        signature = fingerprint({"home": sources, "alias": key.alias})
        # All streams of a shard key go to one shard if they cannot be divided.
        shard = zlib.crc32(fingerprint({"home": sources}).encode()) % self.shards
        columns = {name: self._column_name(name) for name in reading.names}
        routed = (self._expression_name(quote_name(reading.route)),) if reading.route is not None else ()
        reason = "relations compare rows with each other"
        span = (MIN_TICK, MAX_TICK)
        return FamilyTransfer(signature, key, None, None, reason, columns, None, None, span, routed, shard)

    def _guarded_name(self, sql: str, condition: str | None) -> str:
        """The name of an expression that is evaluated only where a condition holds: it may fail on rows that filters
        leave out. Columns cannot fail."""
        plain = condition is None or sql in map(quote_name, self.pool.streams[self.stream].schema.names)
        return self._expression_name(sql if plain else f"IF({condition}, {sql}, NULL)")

    def _filter_column(self, plan: PanePlan, sliced: bool) -> str | None:
        flag = filter_sql(plan, sliced)
        return self._expression_name(flag) if flag else None

    def _choose_packing(self, families: Sequence[FamilyTransfer], schema: StreamSchema) -> KeyPanePacking | None:
        """How key and pane share a number; None if they cannot."""
        family = families[0]
        plan = family.plan
        if plan is None or family.cuts is None or not family.cuts.uniform or len(plan.group.keys) != 1:
            return None
        (key,) = plan.group.keys
        grouping = GroupEncoder(plan)
        small = grouping.keys.types[0] in (pa.int8(), pa.int16(), pa.int32())
        timeless = not (grouping.expiry_column or any(column.needs_time for column in grouping.columns))
        sql = next(sql for sql, name in self.names.items() if name == family.columns[key])
        read_twice = any(family.columns[a] == family.columns[key] for call in plan.group.calls for a in call.arguments)
        few = schema.domain is Domain.TIMESTAMP and (LATEST - EARLIEST) // family.cuts.period + 2 < 1 << PANE_BITS
        whole = plan.window.time_span == ALL_TIME
        if not (small and timeless and whole and few) or read_twice or family.flag:
            return None
        first = (EARLIEST + self.pool.boundary.shift - family.cuts.origin) // family.cuts.period
        return KeyPanePacking(key, sql, grouping.keys.types[0], first)

    def _column_name(self, column: str) -> str:
        """The name under which a column of the stream is transferred; its time is transferred anyway, in ticks."""
        return (
            TIME_COLUMN if column == self.pool.streams[self.stream].time else self._expression_name(quote_name(column))
        )

    def _expression_name(self, sql: str) -> str:
        return self.names.setdefault(sql, f"c{len(self.names)}")


# ---- key and pane in one number --------------------------------------------------------------------------------


def pane_number_sql(time: str, cuts: Cuts, boundary: Boundary) -> str:
    """The number of a row's pane as Spark SQL, for uniform cuts."""
    before = f"({time} + {boundary.shift - cuts.origin - 1})"
    return f"({before} - PMOD({before}, {cuts.period})) DIV {cuts.period} + 1"


def _packed_sql(time: str, family: FamilyTransfer, packing: KeyPanePacking, boundary: Boundary) -> str:
    assert family.cuts is not None
    key, pane = packing.sql, f"{pane_number_sql(time, family.cuts, boundary)} - {packing.first}"
    sign = f"CASE WHEN {key} IS NULL THEN {-(1 << 63) + 1} - 1 ELSE 0 END"
    low = (1 << KEY_BITS) - 1
    return f"({sign}) | SHIFTLEFT(CAST(COALESCE({key}, 0) AS BIGINT) & {low}, {PANE_BITS}) | ({pane})"
