"""What of a stream crosses from Spark's JVM into Python, and how: decided once for each run of a pipeline.

Filters and computed columns are Spark SQL and stay in the JVM. Every value that crosses costs about a tenth of a
microsecond, so that each expression crosses once however many queries want it, and a small integer key shares one
number with its pane where nothing else asks for the time.
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
from panewise.window import Landmark, Varying

#: The time of each row, in ticks.
TIME_COLUMN = "t"
#: Key and pane in one number.
PACKED_COLUMN = "k"
PANE_BITS, KEY_BITS = 31, 32


@dataclass(frozen=True, eq=False)
class FamilyTransfer:
    """One family of queries: where its columns are among those that cross, and who gets its rows or panes.

    Relational queries have a lane for every place at which they read a stream; their rows travel as they are.
    """

    #: The same for the same family in every run.
    signature: str
    home: FamilyKey | RowInputKey
    #: What is asked of the family; None where relational queries read the stream.
    plan: PanePlan | None
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
    def route(self) -> tuple[str, ...] | int:
        """Equal where lanes send a row to the same shard."""
        return self.routed or self.shard

    @property
    def needs_newest(self) -> bool:
        """Whether it matters how far the items reach: nothing leaves the windows by itself."""
        if self.plan is None:
            # Where all rows meet in one shard, it sees for itself.
            return bool(self.routed)
        return isinstance(self.plan.window, Landmark | Varying)


@dataclass(frozen=True)
class KeyPanePacking:
    """A key and a pane in one number: the pane counts from `first`, the key stands above it, NULL is the sign."""

    key: str
    sql: str
    type: pa.DataType
    first: int


@dataclass(frozen=True, eq=False)
class StreamTransfer:
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
    lanes: tuple[FamilyTransfer, ...]
    packing: KeyPanePacking | None
    #: The panes by which late rows are counted: no edge of any sliced lane falls inside.
    tally: Cuts | None

    @property
    def counted_by_panes(self) -> bool:
        """Whether the panes of the only family tell how many rows there were."""
        return len(self.lanes) == 1 and self.lanes[0].cuts is not None and self.lanes[0].flag == self.lanes[0].entering

    @property
    def by_filter(self) -> dict[tuple[str | None, tuple[int, int]], list[FamilyTransfer]]:
        """Sliced lanes by filter and span, by which late rows are counted."""
        found: dict[tuple[str | None, tuple[int, int]], list[FamilyTransfer]] = {}
        for lane in self.lanes:
            if lane.cuts is not None:
                found.setdefault((lane.entering, lane.span), []).append(lane)
        return found


@dataclass(frozen=True, eq=False)
class Layout:
    """Everything that slicers and shards of one run must agree on."""

    boundary: Boundary
    shards: int
    crossings: tuple[StreamTransfer, ...]

    @property
    def family_transfers(self) -> list[FamilyTransfer]:
        return [lane for crossing in self.crossings for lane in crossing.lanes]

    def family_transfer(self, signature: str) -> FamilyTransfer | None:
        """The lane of a family; None once its last query has gone."""
        return next((lane for lane in self.family_transfers if lane.signature == signature), None)

    def explain(self) -> list[str]:
        """A line for each lane: whether its rows are sliced before they meet."""
        reasons = [
            f"rows travel as they are: {lane.reason}" if lane.reason else "rows are sliced"
            for lane in self.family_transfers
        ]
        return [f"lane {number}: {reason}" for number, reason in enumerate(reasons, start=1)]

    def covers(self, plan: PanePlan | RowPlan | FramePlan) -> bool:
        """Whether a query can join without changing what crosses."""
        if not isinstance(plan, PanePlan):
            lanes = {lane.home: lane for lane in self.family_transfers}
            inflows = {RowInputKey(plan.shard_key, source.alias): names for source, names in plan.read_columns.items()}
            return all(home in lanes and set(names) <= set(lanes[home].columns) for home, names in inflows.items())
        lane = next((lane for lane in self.family_transfers if lane.home == family_key(plan)), None)
        if lane is None:
            return False
        if lane.cuts is None:
            return True
        return slicing_refusal([plan]) is None and lane.cuts.cover(plan_edges(plan))
