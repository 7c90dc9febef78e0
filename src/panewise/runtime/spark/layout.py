"""What of a stream crosses from Spark's JVM into Python, and how: decided once for each run of a pipeline.

Filters and computed columns are Spark SQL and stay in the JVM. Every value that crosses costs about a tenth of a
microsecond, so that each expression crosses once however many queries want it, and a small integer key shares one
number with its pane where nothing else asks for the time.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa

from panewise.engine.grouping import Home, home_of
from panewise.engine.relational import Inflow
from panewise.plan import Aggregation, Framing, Relation, edges_in, unsliceable
from panewise.schema import StreamSchema
from panewise.slicing.cuts import Cuts
from panewise.time import Boundary
from panewise.window import Landmark, Varying

#: The time of each row, in ticks.
TIME = "t"
#: Key and pane in one number.
PACKED = "k"
PANE_BITS, KEY_BITS = 31, 32


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
    def route(self) -> tuple[str, ...] | int:
        """Equal where lanes send a row to the same shard."""
        return self.routed or self.shard

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
        return len(self.lanes) == 1 and self.lanes[0].cuts is not None and self.lanes[0].flag == self.lanes[0].entering

    @property
    def filters(self) -> dict[tuple[str | None, tuple[int, int]], list[Lane]]:
        """Sliced lanes by filter and span, by which late rows are counted."""
        found: dict[tuple[str | None, tuple[int, int]], list[Lane]] = {}
        for lane in self.lanes:
            if lane.cuts is not None:
                found.setdefault((lane.entering, lane.span), []).append(lane)
        return found


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

    def explained(self) -> list[str]:
        """A line for each lane: whether its rows are sliced before they meet."""
        reasons = [
            f"rows travel as they are: {lane.reason}" if lane.reason else "rows are sliced" for lane in self.lanes
        ]
        return [f"lane {number}: {reason}" for number, reason in enumerate(reasons, start=1)]

    def covers(self, plan: Aggregation | Relation | Framing) -> bool:
        """Whether a query can join without changing what crosses."""
        if not isinstance(plan, Aggregation):
            lanes = {lane.home: lane for lane in self.lanes}
            inflows = {Inflow(plan.home, source.alias): names for source, names in plan.read.items()}
            return all(home in lanes and set(names) <= set(lanes[home].columns) for home, names in inflows.items())
        lane = next((lane for lane in self.lanes if lane.home == home_of(plan)), None)
        if lane is None:
            return False
        if lane.cuts is None:
            return True
        return unsliceable([plan]) is None and lane.cuts.agree(edges_in(plan))
