"""Late rows in a shard. Every row is counted in one place, for all families that read it.

Rows that only sliced families read are counted by pane in one shard. Rows that are sent unsliced are counted where they
arrive, also for the sliced families: their windows are the same in every shard. A row that is sent by several routes
counts as used, since each shard sees only its own share; the late rows of each query are counted nevertheless.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pyarrow as pa

from panewise.aggregate import Int64Array
from panewise.engine import Engine
from panewise.engine.intake import Arrivals
from panewise.engine.lateness import Ledger
from panewise.engine.panes.grouping import FamilyKey
from panewise.engine.panes.time_family import TimeFamily
from panewise.engine.state.snapshot import Tree

#: Columns of unsliced rows: the number of the row in the stream, and which sliced families read it.
ROW_COLUMN, WANTED_COLUMN = "#row", "#wanted"
#: Another shard counts the row for the sliced families.
COUNTED_ELSEWHERE = -1


def mark_shared(wanted: Int64Array) -> Int64Array:
    """Mark rows that are sent by other routes too; marking twice gives the original number."""
    return -2 - wanted


class LateRowCounter:
    """The late rows of one message."""

    def __init__(self, engine: Engine, message: Tree, keys: Mapping[str, FamilyKey]) -> None:
        self.engine, self.message = engine, message
        self.intake = engine.intake(message["stream"])
        self.visible = self.intake.mark + engine.pool.boundary.shift
        #: The families of each filter, and the filters of each number.
        self.families = [[keys[name] for name in names if name in keys] for names in message["filters"]]
        self.wants = message["wants"]
        self.ledger = Ledger()
        #: Unsliced rows that are late in this shard, and sent to no other.
        self.alone: list[Int64Array] = [np.zeros(0, np.int64)]

    def count_panes(self) -> None:
        """Count the late rows of panes: all positions of a pane belong to the same instants."""
        tally: pa.Table | None = self.message["tally"]
        if tally is None:
            return
        ends, wanted, rows = (np.array(column.to_numpy(), np.int64) for column in tally.columns)
        late = np.flatnonzero(ends < self.visible)
        ledger = Ledger()
        self._judge(late, wanted[late], ends[late], ledger)
        by_query = {name: int(rows[some].sum()) for name, some in ledger.late_by_query().items()}
        self.intake.count(0, 0, int(rows[ledger.late].sum()), int(rows[ledger.partly_late].sum()), by_query)

    def judge_rows(self, table: pa.Table, arrivals: Arrivals, ledger: Ledger) -> None:
        """Note which of the rows sent to this shard are late."""
        late = arrivals.late_flags()
        if late is None:
            return
        numbers, wanted = (np.array(table.column(name).to_numpy(), np.int64) for name in (ROW_COLUMN, WANTED_COLUMN))
        for queries, verdict in ledger.entries:
            self.ledger.add(replace(verdict, order=numbers[verdict.order - arrivals.first]), queries)
        self.alone.append(numbers[late & (wanted >= 0)])
        here = np.flatnonzero(late & (wanted != COUNTED_ELSEWHERE))
        who = np.where(wanted >= 0, wanted, mark_shared(wanted))[here]
        self._judge(numbers[here], who, arrivals.times[here] + self.engine.pool.boundary.shift, self.ledger)

    def commit(self) -> None:
        """Add what was noted to the account."""
        alone = np.concatenate(self.alone)
        late, partly = (np.intersect1d(rows, alone) for rows in (self.ledger.late, self.ledger.partly_late))
        by_query = {name: len(some) for name, some in self.ledger.late_by_query().items()}
        self.intake.count(0, 0, len(late), len(partly), by_query)

    def _judge(self, order: Int64Array, wanted: Int64Array, positions: Int64Array, ledger: Ledger) -> None:
        """Note which windows of sliced families late rows miss."""
        if not len(order):
            return
        wanting = np.zeros((len(self.wants), len(self.families)), bool)
        for number, filters in enumerate(self.wants):
            wanting[number, filters] = True
        for number, keys in enumerate(self.families):
            mine = wanting[wanted, number]
            for family in (family for key in keys for family in self.engine.families_at(key)):
                assert isinstance(family, TimeFamily)
                family.record_late(order[mine], positions[mine], np.full(mine.sum(), self.visible), ledger)
