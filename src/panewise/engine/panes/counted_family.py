"""A family of queries over count-based windows: the last so many rows, of the stream or of each partition.

Every row is a position of its own, since rows are counted. Each group keeps its rows in the store that is cheapest
for its laws and widths.
"""

from __future__ import annotations

from bisect import bisect_right, insort
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import partial
from operator import attrgetter
from typing import Any

import numpy as np
import pyarrow as pa

from panewise.aggregate import Int64Array, Min, ObjectStates, StateWords
from panewise.algebra import Call, Host
from panewise.core.time import Boundary
from panewise.core.values import to_python
from panewise.engine.keys import Keys
from panewise.engine.lateness import Ledger, Verdict
from panewise.engine.panes.evaluators import Chunk, Subscription
from panewise.engine.panes.family import EnteringRows, Family
from panewise.engine.panes.partitions import (
    ROW_ORDER,
    CountedRow,
    Partition,
    PartitionGroup,
    row_table,
    rows_by_partition,
    rows_from,
)
from panewise.engine.state.snapshot import Tree
from panewise.plan import PanePlan, row_store
from panewise.stores import LandmarkIntervals, Store
from panewise.window import Rows


class CountedFamily(Family):
    """Rows wait until their time is final, then enter their partition, one instant after the other."""

    def __init__(self, plan: PanePlan, boundary: Boundary, host: Host) -> None:
        super().__init__(plan, boundary, host)
        self.columns = [self.columns[0], *(ObjectStates(call.aggregate) for call in self.stored_calls)]
        if self.expiry_column:
            self.columns.append(ObjectStates(Min(pa.int64())))
        window = plan.window
        types = {c.name: c.type for c in (plan.before[-1] if plan.before else plan.source).columns}
        self.partition_keys = Keys([types[name] for name in window.partition_by])
        self.partitions: dict[int, Partition] = {}
        #: The partitions in which each group has rows.
        self.where: dict[int, set[int]] = {}
        self._factories: list[Callable[[], Store[Any]]] | None = None
        self.waiting: list[CountedRow] = []
        self.late: list[tuple[int, CountedRow]] = []
        #: For subscriptions that report whole states: the present state of every group.
        self.current: dict[int, dict[int, tuple[int, int, list[Any]]]] = {}

    @property
    def nbytes(self) -> int:
        """An estimate: rows are Python objects."""
        rows = len(self.waiting) + len(self.late) + sum(len(p.rows) for p in self.partitions.values())
        return rows * 100 * (1 + len(self.stored_calls))

    @property
    def rows_needed(self) -> int:
        return max((w.count + w.lag for w in self._windows.values()), default=1)

    @property
    def _windows(self) -> dict[int, Rows]:
        return {number: Rows.of(subscription.window) for number, subscription in self.subscriptions.items()}

    def _on_subscribe(self, subscription: Subscription) -> None:
        self.current[subscription.number] = {}
        self._rebuild_all()

    def _on_unsubscribe(self, subscription: Subscription) -> None:
        del self.current[subscription.number]
        self._rebuild_all()

    def _rebuild_all(self) -> None:
        """Rebuild all partitions: another set of windows may need other stores, and reach further or less far."""
        self._factories = None
        for partition in self.partitions.values():
            self._rebuild(partition)

    # ---- rows --------------------------------------------------------------------------------------------------

    def take(self, entering: EnteringRows, ledger: Ledger) -> None:
        rows, table, kept = entering.rows, entering.grouped, entering.kept
        columns = [entering.windowed.column(name).combine_chunks() for name in self.plan.window.partition_by]
        partitions = self.partition_keys.encode(columns, len(rows))
        places = np.arange(len(rows)) if kept is None else kept
        codes = np.full(len(rows), -1, np.int64)
        states: list[tuple[Any, ...]] = [()] * len(rows)
        if len(places):
            keys = [table.column(key).combine_chunks() for key in self.plan.group.keys]
            codes[places] = self.keys.encode(keys, len(places))
            lifted = [_lift_states(call, table) for call in self.stored_calls]
            for place, state in zip(places, zip(*lifted, strict=True) if lifted else [()] * len(places), strict=True):
                states[place] = state
        positions, order, late = rows.times + self.boundary.shift, rows.order, rows.late_flags()
        for i in range(len(rows)):
            row = CountedRow(int(positions[i]), int(order[i]), int(partitions[i]), int(codes[i]), states[i])
            if late is None or not late[i]:
                self.waiting.append(row)
            elif rows.marks is not None:
                visible = int(rows.marks[i]) + self.boundary.shift
                ledger.add(self._verdict(row, visible), self.members)
                self.late.append((visible, row))

    def _verdict(self, row: CountedRow, visible: int) -> Verdict:
        """The verdict of a late row: it is lost if so many newer rows are there that no window reaches back to it."""
        partition = self.partitions.get(row.partition, Partition(row.partition))
        waiting = [r for r in self.waiting if r.position <= visible] + [r for v, r in self.late if v <= visible]
        mine = (r for r in waiting if r.partition == row.partition)
        newer = sum(r.place > row.place for r in (*partition.rows, *mine))
        seen = np.array([newer < self.rows_needed])
        return Verdict(np.array([row.order]), np.array([True]), seen, np.array([True]))

    # ---- time --------------------------------------------------------------------------------------------------

    def advance(self, limit: int) -> None:
        if limit > self.answered_until:
            self.answered_until = limit
            self._report(limit)

    def finish(self, until: int | None) -> None:
        self._report(until)

    def _report(self, limit: int | None) -> None:
        self.waiting.sort(key=ROW_ORDER)
        upto = len(self.waiting) if limit is None else bisect_right(self.waiting, limit, key=attrgetter("position"))
        due, self.waiting = self.waiting[:upto], self.waiting[upto:]
        known = [pair for pair in self.late if limit is None or pair[0] <= limit]
        self.late = [pair for pair in self.late if not (limit is None or pair[0] <= limit)]
        instants: dict[int, tuple[list[CountedRow], list[CountedRow]]] = {}
        for row in due:
            instants.setdefault(row.position, ([], []))[0].append(row)
        for visible, row in known:
            instants.setdefault(visible, ([], []))[1].append(row)
        for at in sorted(instants):
            fresh, late = instants[at]
            self._step(at, fresh, late)

    def _step(self, at: int, fresh: list[CountedRow], late: list[CountedRow]) -> None:
        touched: dict[int, set[int]] = {number: set() for number in self.subscriptions}
        for partition, mine in rows_by_partition(late).items():
            self._insert(self.partitions.setdefault(partition, Partition(partition)), mine, touched)
        for partition, mine in rows_by_partition(fresh).items():
            self._append(self.partitions.setdefault(partition, Partition(partition)), mine, touched)
        for number, window in self._windows.items():
            answers = {code: self._answer(window, code) for code in touched[number]}
            if self.subscriptions[number].changes:
                self._report_answers(at, number, answers)
            else:
                current = self.current[number] | answers
                self.current[number] = {code: answer for code, answer in current.items() if answer[0]}
                self._report_answers(at, number, self.current[number])

    def _append(self, partition: Partition, rows: list[CountedRow], touched: dict[int, set[int]]) -> None:
        before = partition.length
        reach = self.rows_needed
        for row in rows:
            partition.length += 1
            partition.rows.append(row)
            if row.code >= 0:
                self._group(partition, row.code).append(partition.length, row.states, partition.length - reach + 1)
        for number, window in self._windows.items():
            lag, count = window.lag, window.count
            touched[number] |= partition.codes(before - lag + 1, partition.length - lag)
            touched[number] |= partition.codes(before - lag - count + 1, partition.length - lag - count)
        excess = max(len(partition.rows) - reach, 0)
        # A group ends with its last row, so that only the groups of leaving rows are checked.
        leaving = {row.code for row in partition.rows[:excess]}
        del partition.rows[:excess]
        for code in leaving & partition.groups.keys():
            if partition.groups[code].numbers[-1] <= partition.length - reach:
                self._drop(partition, code)

    def _insert(self, partition: Partition, rows: list[CountedRow], touched: dict[int, set[int]]) -> None:
        """Insert late rows at their places; all rows after them get higher numbers."""
        everyone = {row.code for row in (*partition.rows, *rows) if row.code >= 0}
        for row in rows:
            insort(partition.rows, row, key=ROW_ORDER)
        partition.length += len(rows)
        self._rebuild(partition)
        for codes in touched.values():
            codes |= everyone

    def _rebuild(self, partition: Partition) -> None:
        reach = self.rows_needed
        del partition.rows[: max(len(partition.rows) - reach, 0)]
        for code in list(partition.groups):
            self._drop(partition, code)
        for place, row in enumerate(partition.rows):
            if row.code >= 0:
                self._group(partition, row.code).append(partition.number(place), row.states, 0)

    def _group(self, partition: Partition, code: int) -> PartitionGroup:
        if code not in partition.groups:
            partition.groups[code] = PartitionGroup([make() for make in self._store_factories()])
            self.where.setdefault(code, set()).add(partition.key)
        return partition.groups[code]

    def _drop(self, partition: Partition, code: int) -> None:
        del partition.groups[code]
        self.where[code].discard(partition.key)
        if not self.where[code]:
            del self.where[code]

    def _store_factories(self) -> list[Callable[[], Store[Any]]]:
        """How the stores of a new group are made."""
        if self._factories is None:
            self._factories = [self._store_factory(call) for call in self.stored_calls]
        return self._factories

    def _store_factory(self, call: Call) -> Callable[[], Store[Any]]:
        windows = list(self._windows.values())
        choice = row_store(call, self.plan, windows)
        if choice.store is LandmarkIntervals:
            return partial(LandmarkIntervals, call.aggregate, self.rows_needed, widths=[w.count for w in windows])
        return partial(choice.store, call.aggregate, self.rows_needed)

    def live_groups(self) -> Iterable[Int64Array]:
        yield np.array([row.code for row in self._all_rows() if row.code >= 0], np.int64)

    def recode(self, codes: Int64Array) -> None:
        def fresh(row: CountedRow) -> CountedRow:
            return replace(row, code=int(codes[row.code])) if row.code >= 0 else row

        self.waiting = [fresh(row) for row in self.waiting]
        self.late = [(visible, fresh(row)) for visible, row in self.late]
        for partition in self.partitions.values():
            partition.rows = [fresh(row) for row in partition.rows]
        self._rebuild_all()
        for number, current in self.current.items():
            self.current[number] = {int(codes[code]): answer for code, answer in current.items()}

    def _all_rows(self) -> Iterator[CountedRow]:
        yield from self.waiting
        yield from (row for _, row in self.late)
        for partition in self.partitions.values():
            yield from partition.rows

    # ---- restarts ----------------------------------------------------------------------------------------------

    def state(self) -> Tree:
        return super().state() | {
            "partitions": self.partition_keys.state(),
            "lengths": [[number, partition.length] for number, partition in self.partitions.items()],
            "rows": row_table([row for partition in self.partitions.values() for row in partition.rows]),
            "waiting": row_table(self.waiting),
            "late": [[visible for visible, _ in self.late], row_table([row for _, row in self.late])],
        }

    def restore(self, state: Tree) -> None:
        super().restore(state)
        self.partition_keys.restore(state["partitions"])
        self.current = {number: {} for number in self.subscriptions}
        self.partitions = {number: Partition(number, length) for number, length in state["lengths"]}
        for row in rows_from(state["rows"]):
            self.partitions[row.partition].rows.append(row)
        self.waiting = rows_from(state["waiting"])
        self.late = list(zip(state["late"][0], rows_from(state["late"][1]), strict=True))
        self._rebuild_all()
        codes = {code for partition in self.partitions.values() for code in partition.groups}
        for number, window in self._windows.items():
            answers = {code: self._answer(window, code) for code in codes}
            self.current[number] = {code: answer for code, answer in answers.items() if answer[0]}

    # ---- answers -----------------------------------------------------------------------------------------------

    def _answer(self, window: Rows, code: int) -> tuple[int, int, list[Any]]:
        """How many rows of a group are in the window, the number of the oldest, and their states."""
        found = []
        for partition in (self.partitions[key] for key in self.where.get(code, ())):
            last = partition.length - window.lag
            found.append(partition.groups[code].answer(last - window.count + 1, last))
        found = [answer for answer in found if answer[0]]
        if len(found) == 1:
            return found[0]
        return self._answer_across_partitions(window, code) if found else (0, 0, [])

    def _answer_across_partitions(self, window: Rows, code: int) -> tuple[int, int, list[Any]]:
        """The same for a group with rows in several partitions, which are combined in the order of time."""
        rows: list[tuple[tuple[int, int], int, CountedRow]] = []
        for partition in (self.partitions[key] for key in self.where[code]):
            last = partition.length - window.lag
            for place, row in enumerate(partition.rows):
                if row.code == code and last - window.count < partition.number(place) <= last:
                    rows.append((row.place, partition.number(place), row))
        rows.sort(key=lambda entry: entry[0])
        states = []
        for number, call in enumerate(self.stored_calls):
            state = call.aggregate.identity()
            for _, _, row in rows:
                state = call.aggregate.combine(state, row.states[number])
            states.append(state)
        return len(rows), min(number for _, number, _ in rows), states

    def _report_answers(self, at: int, subscription: int, answers: dict[int, tuple[int, int, list[Any]]]) -> None:
        if not answers:
            return
        codes = np.array(sorted(answers), np.int64)
        found = [answers[int(code)] for code in codes]
        states: list[StateWords] = [(np.array([count for count, _, _ in found], np.int64),)]
        states += [(_objects([s[n] if s else None for _, _, s in found]),) for n in range(len(self.stored_calls))]
        if self.expiry_column:
            states.append((_objects([oldest if count else None for count, oldest, _ in found]),))
        self.pending_chunks.append(Chunk(at, (subscription,), codes, states))


def _lift_states(call: Call, table: pa.Table) -> list[Any]:
    """The state of each row's value; a NULL gives the identity."""
    columns = [to_python(table.column(a)) for a in call.arguments]
    lift, empty = call.aggregate.lift, call.aggregate.identity()
    if len(columns) == 1:
        return [empty if v is None else lift(v) for v in columns[0]]
    return [empty if None in values else lift(values) for values in zip(*columns, strict=True)]


def _objects(values: list[Any]) -> Any:
    out = np.empty(len(values), object)
    out[:] = values
    return out
