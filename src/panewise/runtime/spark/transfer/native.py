"""Panes that Spark itself aggregates: on bounded input the JVM groups rows faster than they could be transferred.

Each kind of states names the aggregates of Spark SQL from which it makes its words (`StateArrays.spark_sql`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from panewise.aggregate import Int64Array, states_at
from panewise.core.time import MAX_TICK, MIN_TICK
from panewise.engine.panes.grouping import GroupEncoder, arrays_of
from panewise.engine.panes.slicer import Slicer
from panewise.engine.state.snapshot import Tree
from panewise.runtime.spark.transfer.layout import TIME_COLUMN, FamilyTransfer, Layout, StreamTransfer
from panewise.runtime.spark.transfer.plan import pane_number_sql
from panewise.runtime.spark.transfer.slice import build_messages, message_batch, tally_table, task_position


def plan_native_panes(layout: Layout, transfer: StreamTransfer, labels: tuple[int, ...]) -> NativePanes | None:
    """How Spark aggregates the panes of a stream; None where it cannot."""
    if len(transfer.family_transfers) != 1:
        return None
    (family,) = transfer.family_transfers
    if family.cuts is None or not family.cuts.uniform:
        return None
    assert family.plan is not None
    grouping = GroupEncoder(family.plan)
    if grouping.expiry_column or family.span != (MIN_TICK, MAX_TICK):
        return None
    parts = [[f"COUNT_IF({_passes_sql(family.flag)})"]]
    for call, column in zip(grouping.stored_calls, grouping.columns[1:], strict=True):
        values = [_filtered_sql(family, family.columns[argument]) for argument in call.arguments]
        sql = column.spark_sql(*values) if len(values) == 1 else None
        if sql is None:
            return None
        parts.append(sql)
    return NativePanes(layout, transfer, labels, tuple(map(tuple, parts)))


def _passes_sql(flag: str | None) -> str:
    """Whether a row has a usable time and passes a filter. Rows that do not are grouped too, since they are counted."""
    return f"{TIME_COLUMN} IS NOT NULL" + (f" AND {flag}" if flag else "")


def _filtered_sql(family: FamilyTransfer, value: str) -> str:
    """A value if a row passes the filters, else NULL."""
    return f"IF({_passes_sql(family.flag)}, {value}, NULL)"


@dataclass(frozen=True, eq=False)
class NativePanes:
    """Panes of the only family of a stream, grouped by Spark; `parts` make the state words of each aggregate."""

    layout: Layout
    transfer: StreamTransfer
    labels: tuple[int, ...]
    parts: tuple[tuple[str, ...], ...]

    def group_rows(self, rows: DataFrame) -> DataFrame:
        """One row for each group and pane; `rows` has the transferred columns, unpacked."""
        (family,) = self.transfer.family_transfers
        assert family.cuts is not None
        assert family.plan is not None
        pane = pane_number_sql(TIME_COLUMN, family.cuts, self.layout.boundary)
        sums = [F.expr(sql).alias(f"s{n}") for n, sql in enumerate(s for part in self.parts for s in part)]
        names = [family.columns[key] for key in family.plan.group.keys]
        keys = [F.expr(_filtered_sql(family, name)).alias(name) for name in names]
        times = [F.min(TIME_COLUMN).alias("first"), F.max(TIME_COLUMN).alias("last"), F.count(F.lit(1)).alias("rows")]
        entered = F.expr(f"COUNT_IF({_passes_sql(family.entering)})").alias("entered")
        return rows.groupBy(*keys, F.expr(pane).alias("pane")).agg(*sums, *times, entered)

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The function of `mapInArrow`: grouped rows in, messages to shards out."""
        filled = [batch for batch in batches if batch.num_rows]
        if not filled:
            return
        groups = pa.Table.from_batches(filled)
        usable = groups.filter(pc.is_valid(groups["pane"]))
        rows, kept = (pc.sum(table["rows"]).as_py() or 0 for table in (groups, usable))
        messages = self._pane_messages(arrays_of(usable)) if usable.num_rows else self._shard_messages({}, None, {})
        messages[0]["counted"] = [rows, rows - kept]
        _, partition = task_position()
        yield message_batch(messages, self.labels, partition << 32)

    def _pane_messages(self, arrays: dict[str, pa.Array]) -> list[Tree]:
        (family,) = self.transfer.family_transfers
        assert family.cuts is not None
        assert family.plan is not None
        slicer = Slicer(family.plan, family.cuts, self.layout.boundary)
        numbers: Int64Array = arrays["pane"].to_numpy()
        sums = iter(arrays[f"s{n}"] for n in range(sum(map(len, self.parts))))
        states = [c.from_spark([next(sums) for _ in p]) for c, p in zip(slicer.columns, self.parts, strict=True)]
        present = np.flatnonzero(states[0][0])
        if len(present):
            keys = [arrays[family.columns[key]].take(pa.array(present)) for key in family.plan.group.keys]
            slicer.take_states(keys, numbers[present], [states_at(words, present) for words in states])
        seen = (pc.min(arrays["first"]).as_py(), pc.max(arrays["last"]).as_py())
        entered: Int64Array = arrays["entered"].to_numpy()
        wanted = numbers[entered > 0]
        newest = {0: family.cuts.end(int(wanted.max())) - self.layout.boundary.shift} if len(wanted) else {}
        messages = self._shard_messages({0: slicer}, seen, newest)
        panes, place = np.unique(numbers, return_inverse=True)
        counts = np.bincount(place, weights=entered).astype(np.int64)
        messages[0]["tally"] = tally_table(
            [(family.cuts.end(int(p)), 0, int(c)) for p, c in zip(panes, counts, strict=True)]
        )
        return messages

    def _shard_messages(
        self, slicers: dict[int, Slicer], seen: tuple[int, int] | None, newest: dict[int, int]
    ) -> list[Tree]:
        return build_messages(self.layout, self.transfer, slicers, {}, seen, newest)
