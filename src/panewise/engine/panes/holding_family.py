"""A family that holds rows until time has passed them."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator

import numpy as np
import pyarrow as pa

from panewise.aggregate import Int64Array, Items
from panewise.algebra import Host
from panewise.core.time import Boundary
from panewise.engine.keys import Keys
from panewise.engine.panes.chunks import ChangeRun
from panewise.engine.panes.family import EnteringRows, Family
from panewise.engine.panes.held_rows import Flags, HeldRows
from panewise.engine.panes.open_panes import gather_panes
from panewise.engine.portions import portion_limit, portion_slices
from panewise.engine.state.snapshot import Tree
from panewise.kernels.ranges import OPEN
from panewise.plan import PanePlan
from panewise.stores.pane import Pane

#: No column of aggregates' arguments: rows are only counted.
NOTHING = np.zeros(0, np.int64)


class HoldingFamily(Family):
    """Rows with their partitions, their groups and the arguments of aggregates."""

    def __init__(self, plan: PanePlan, boundary: Boundary, host: Host) -> None:
        super().__init__(plan, boundary, host)
        types = {c.name: c.type for c in (plan.before[-1] if plan.before else plan.source).columns}
        self.partition_keys = Keys([types[name] for name in plan.window.partition_by])
        read = dict.fromkeys(name for call in self.stored_calls for name in call.arguments)
        columns = {column.name: column.type for column in plan.group.child.columns}
        self.arguments = pa.schema([(name, columns[name]) for name in read])
        self.held = HeldRows(self.arguments.empty_table(), *[NOTHING] * 5)
        self.incoming: list[HeldRows] = []

    @property
    def nbytes(self) -> int:
        return super().nbytes + sum(rows.nbytes for rows in (self.held, *self.incoming))

    def _hold(self, entering: EnteringRows) -> HeldRows:
        """Keep the rows that enter; returns them."""
        rows, late = entering.rows, entering.rows.late_flags()
        visible = rows.times + self.boundary.shift
        if late is not None and rows.marks is not None:
            visible = np.where(late, rows.marks + self.boundary.shift, visible)
        columns = [entering.windowed.column(name).combine_chunks() for name in self.plan.window.partition_by]
        partitions = self.partition_keys.encode(columns, len(rows))
        codes, arguments = self._grouped_columns(entering)
        fresh = HeldRows(arguments, rows.times, rows.order, visible, partitions, codes)
        self.incoming += [fresh.part(each) for each in portion_slices(len(fresh))]
        return fresh

    def _grouped_columns(self, entering: EnteringRows) -> tuple[Int64Array, pa.Table]:
        """The group of each row and the arguments of aggregates, which are NULL for rows without a group."""
        table, kept, count = entering.grouped, entering.kept, len(entering.rows)
        keys = [table.column(key).combine_chunks() for key in self.plan.group.keys]
        found, arguments = self.keys.encode(keys, table.num_rows), table.select(self.arguments.names)
        if kept is None:
            return found, arguments
        codes, places = np.full(count, -1, np.int64), np.zeros(count, np.int64)
        codes[kept], places[kept] = found, np.arange(len(kept))
        return codes, arguments.take(pa.array(places, mask=codes < 0))

    def advance(self, limit: int) -> None:
        if limit > self.answered_until:
            self._take_portions(limit)
            self._take_turn(limit)

    def finish(self, until: int | None) -> None:
        limit = OPEN - 1 if until is None else until
        self._take_portions(limit)
        self._take_turn(limit, finishing=True)

    def _take_portions(self, limit: int) -> None:
        """Take turns until the rows that still come are so few that one turn is enough."""
        while (upto := self._portion_limit(limit)) < limit:
            self._take_turn(upto)

    def _portion_limit(self, limit: int) -> int:
        """The end of the next turn."""
        coming = (rows.visible for rows in self.incoming)
        return portion_limit(coming, self.answered_until, limit, len(self.held))

    def _take_turn(self, limit: int, finishing: bool = False) -> None:
        self._pending_turn().extend(self._turn(limit, finishing))
        self.answered_until = max(self.answered_until, limit)

    @abstractmethod
    def _turn(self, limit: int, finishing: bool) -> Iterable[ChangeRun]:
        """What changes after the instants answered already and up to one; if `finishing`, no more rows come."""

    def _merge_incoming(self, limit: int = OPEN) -> None:
        """Hold the rows of which some are visible up to an instant."""
        due = [rows for rows in self.incoming if rows.visible.min() <= limit]
        if due:
            self.incoming = [rows for rows in self.incoming if rows.visible.min() > limit]
            self.held = HeldRows.concat([self.held, *due])

    def held_items(self, ages: Int64Array, places: Int64Array) -> list[Items]:
        """What each column of states looks at, of the held rows at some places, whose `ages` decide the expiry."""
        items = self.held.items(self.stored_calls, places, any(column.needs_time for column in self.columns))
        if self.expiry_column:
            items.append(Items((pa.array(ages),), items[0].times, items[0].order))
        return items

    # ---- panes for lookups -------------------------------------------------------------------------------------

    def _keep_fresh_panes(self, limit: int) -> None:
        """Give the rows that have become visible to the archive and to the pane log, as panes of one tick."""
        if self.archive is not None or self.finished_panes is not None:
            visible = self.held.visible
            for pane in self._tick_panes((visible > self.answered_until) & (visible <= limit)):
                self._keep_pane(pane)

    def _tick_panes(self, chosen: Flags) -> Iterator[Pane]:
        """Some of the held rows as panes of one tick."""
        places = np.flatnonzero(chosen & (self.held.codes >= 0))
        if not len(places):
            return
        rows = self.held.at(places)
        positions, items = rows.times + self.boundary.shift, self.held_items(self.held.times[places], places)
        for position, codes, states in gather_panes(self.columns, positions, rows.codes, items, len(self.keys)):
            yield Pane(position - 1, position, codes, states)

    @property
    def pending_panes(self) -> list[Pane]:
        self._merge_incoming()
        return list(self._tick_panes(self.held.visible > self.answered_until))

    # ---- forgetting and restarts -------------------------------------------------------------------------------

    def live_groups(self) -> Iterable[Int64Array]:
        yield from super().live_groups()
        for rows in (self.held, *self.incoming):
            yield rows.codes[rows.codes >= 0]

    def recode(self, codes: Int64Array) -> None:
        super().recode(codes)
        self._merge_incoming()
        self.held = self.held.with_codes(codes)

    def state(self) -> Tree:
        self._merge_incoming()
        return super().state() | {"partitions": self.partition_keys.state(), "held": self.held.state()}

    def restore(self, state: Tree) -> None:
        super().restore(state)
        self.partition_keys.restore(state["partitions"])
        self.held = HeldRows.from_state(state["held"])
