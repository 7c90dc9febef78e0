"""What part of a stream is transferred from Spark's JVM to Python, and how: decided once for each run of a pipeline.

Filters and computed columns are Spark SQL and stay in the JVM. Every transferred value costs about a tenth of a
microsecond, so that each expression is transferred once however many queries need it, and a small integer key shares
one number with its pane where nothing else needs the time.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa

from panewise.core.schema import StreamSchema
from panewise.core.time import Boundary
from panewise.engine.panes.grouping import FamilyKey, family_key
from panewise.engine.rows import RowInputKey
from panewise.plan import FramePlan, PanePlan, RowPlan, plan_edges, slicing_refusal
from panewise.plan.cuts import Cuts

#: The time of each row, in ticks.
TIME_COLUMN = "t"
#: Key and pane in one number.
PACKED_COLUMN = "k"
PANE_BITS, KEY_BITS = 31, 32


@dataclass(frozen=True, eq=False)
class FamilyTransfer:
    """One family of queries: its columns among the transferred ones, and the shards that get its rows or panes.

    Relational queries have a family transfer for every place at which they read a stream; their rows are sent unsliced.
    """

    #: A text that is the same for the same family in every run.
    signature: str
    #: Names the family, or the input of the row engine.
    key: FamilyKey | RowInputKey
    #: What the family computes; None where relational queries read the stream.
    plan: PanePlan | None
    #: How rows are cut into panes; None where they are sent unsliced, for the reason given.
    cuts: Cuts | None
    reason: str | None
    #: Columns of the group, or of the source for unsliced rows, and the names under which they are transferred.
    columns: Mapping[str, str]
    #: The column that is true for rows that pass the filters; None where all do. Other rows are sent too: they advance
    #: time.
    flag: str | None
    #: The same for the filters below the window only: late rows are counted before the other filters.
    entering: str | None
    #: The first and last time of rows that can be in a window.
    span: tuple[int, int]
    #: The columns whose values decide the shard, and the shard if there are none.
    routed: tuple[str, ...]
    shard: int

    @property
    def route(self) -> tuple[str, ...] | int:
        """Equal for family transfers that send a row to the same shard."""
        return self.routed or self.shard

    @property
    def needs_newest(self) -> bool:
        """Whether the newest item matters: nothing leaves the windows by itself."""
        if self.plan is None:
            # If all rows go to one shard, that shard finds it itself.
            return bool(self.routed)
        return self.plan.window.needs_newest


@dataclass(frozen=True)
class KeyPanePacking:
    """A key and a pane in one number: the pane counts from `first`, the key is in the higher bits, NULL is the sign."""

    key: str
    sql: str
    type: pa.DataType
    first: int


@dataclass(frozen=True, eq=False)
class StreamTransfer:
    """The part of one stream that is transferred."""

    stream: str
    schema: StreamSchema
    #: Columns of the source that any expression needs.
    needed: tuple[str, ...]
    #: The time of a row in ticks, and whether it can be used, as Spark SQL.
    time: str
    usable: str
    #: Names and expressions of the transferred columns.
    select: tuple[tuple[str, str], ...]
    family_transfers: tuple[FamilyTransfer, ...]
    packing: KeyPanePacking | None
    #: The panes by which late rows are counted: no edge of any sliced family lies inside one.
    tally: Cuts | None
    #: Whether workers read the rows themselves, as Arrow columns, so that only messages enter the JVM.
    columnar: bool = False

    @property
    def counted_by_panes(self) -> bool:
        """Whether the panes of the only family give the number of rows."""
        if len(self.family_transfers) != 1:
            return False
        (family,) = self.family_transfers
        return family.cuts is not None and family.flag == family.entering

    @property
    def by_filter(self) -> dict[tuple[str | None, tuple[int, int]], list[FamilyTransfer]]:
        """Sliced families by filter and span, by which late rows are counted."""
        found: dict[tuple[str | None, tuple[int, int]], list[FamilyTransfer]] = {}
        for family in self.family_transfers:
            if family.cuts is not None:
                found.setdefault((family.entering, family.span), []).append(family)
        return found


@dataclass(frozen=True, eq=False)
class Layout:
    """Everything that slicers and shards of one run must agree on."""

    boundary: Boundary
    shards: int
    transfers: tuple[StreamTransfer, ...]

    @property
    def family_transfers(self) -> list[FamilyTransfer]:
        return [family for transfer in self.transfers for family in transfer.family_transfers]

    def family_transfer(self, signature: str) -> FamilyTransfer | None:
        """The transfer of a family; None once its last query was revoked."""
        return next((family for family in self.family_transfers if family.signature == signature), None)

    def explain(self) -> list[str]:
        """How the rows of each stream reach Python, and whether those of each family are sliced there."""
        reasons = [
            f"rows are sent unsliced: {family.reason}" if family.reason else "rows are sliced"
            for family in self.family_transfers
        ]
        ways = [
            f"stream {transfer.stream}: "
            + (
                "workers read its files, rows do not enter the JVM"
                if transfer.columnar
                else "rows leave the JVM as Arrow"
            )
            for transfer in self.transfers
        ]
        return [*ways, *(f"transfer {number}: {reason}" for number, reason in enumerate(reasons, start=1))]

    def covers(self, plan: PanePlan | RowPlan | FramePlan) -> bool:
        """Whether a query can join without a change of the transferred columns."""
        if not isinstance(plan, PanePlan):
            families = {family.key: family for family in self.family_transfers}
            inputs = {RowInputKey(plan.shard_key, source.alias): names for source, names in plan.read_columns.items()}
            return all(key in families and set(names) <= set(families[key].columns) for key, names in inputs.items())
        family = next((family for family in self.family_transfers if family.key == family_key(plan)), None)
        if family is None:
            return False
        if family.cuts is None:
            return True
        return slicing_refusal([plan]) is None and family.cuts.cover(plan_edges(plan))
