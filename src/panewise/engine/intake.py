"""How rows of one stream arrive: they are checked, get a time, and the watermark at their arrival."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from panewise.aggregate import Int64Array
from panewise.core.accounting import Accounting
from panewise.core.errors import SchemaProblem
from panewise.core.schema import StreamSchema, as_table, ticks_of, type_name
from panewise.core.time import Boundary
from panewise.window import Contents, Window

#: The watermark before anything has been seen.
NO_MARK = int(np.iinfo(np.int64).min)


@dataclass(frozen=True, eq=False)
class Arrivals:
    """Rows with usable times, in arrival order, with their arrival numbers. If these are consecutive, only `first`, the
    number of the first row, is stored.

    A row is late when `marks` is beyond its time.
    """

    table: pa.Table
    times: Int64Array
    first: int
    numbers: Int64Array | None
    marks: Int64Array | None

    def __len__(self) -> int:
        return len(self.times)

    @cached_property
    def earliest(self) -> int:
        """The earliest time of a row; there must be one."""
        return int(self.times.min())

    @cached_property
    def order(self) -> Int64Array:
        """The arrival number of each row."""
        return self.order_of(slice(0, len(self)))

    def order_of(self, where: slice) -> Int64Array:
        if self.numbers is not None:
            return self.numbers[where]
        return np.arange(self.first + where.start, self.first + where.stop, dtype=np.int64)

    def late_flags(self) -> npt.NDArray[np.bool_] | None:
        """Which rows are late for some instants; None where none is."""
        if self.marks is None:
            return None
        flags: npt.NDArray[np.bool_] = self.marks > self.times
        return flags if flags.any() else None

    def instants_in(self, window: Window, boundary: Boundary) -> Int64Array:
        """The instants of a window that hold some of these rows; late ones count from the first open instant on."""
        late = self.late_flags()
        if late is None or self.marks is None:
            return window.instants(Contents.of(np.unique(self.times)), boundary)
        found = [window.instants(Contents.of(np.unique(self.times[~late])), boundary)]
        for time, mark in zip(self.times[late], self.marks[late], strict=True):
            instants = window.instants(Contents.of(np.array([time])), boundary)
            found.append(instants[instants >= mark + boundary.shift])
        return np.unique(np.concatenate(found))

    @classmethod
    def concat(cls, parts: Sequence[Arrivals]) -> Arrivals:
        """Several batches as one, in the order in which they came; no row of them is late."""
        if len(parts) == 1:
            return parts[0]
        table = pa.concat_tables([part.table for part in parts]).combine_chunks()
        times, numbers = (np.concatenate([getattr(part, name) for part in parts]) for name in ("times", "order"))
        return cls(table, times, int(numbers[0]), numbers, None)

    def take(self, places: Int64Array) -> Arrivals:
        marks = None if self.marks is None else self.marks[places]
        numbers = self.first + places if self.numbers is None else self.numbers[places]
        return Arrivals(self.table.take(pa.array(places)), self.times[places], self.first, numbers, marks)


class Intake:
    """The watermark, the arrival counter and the account of one stream."""

    def __init__(self, name: str, schema: StreamSchema, horizon: int | None = None) -> None:
        self.name, self.schema = name, schema
        self.newest = NO_MARK
        #: The watermark that `advance` or `promise` set; rows older than it are late, whatever the delay is.
        self.promised = NO_MARK
        self.arrived = 0
        self.account = Accounting()
        #: For each query the rows that all its windows missed.
        self.late_by_query: dict[str, int] = {}
        #: Rows with later times are rejected.
        self.horizon = horizon

    @property
    def mark(self) -> int:
        """The watermark now: nothing older than it is still expected."""
        delay = self.schema.delay_ticks
        seen = NO_MARK if delay is None or self.newest == NO_MARK else self.newest - delay
        return max(seen, self.promised)

    def admit(self, batch: object) -> tuple[Arrivals, int]:
        """The rows of a batch that can be placed in time, and how many cannot; nothing has changed yet."""
        table = self._check_columns(batch)
        ticks, usable = ticks_of(table.column(self.schema.time))
        if self.horizon is not None:
            usable = (ticks <= self.horizon) & (True if usable is None else usable)
        if usable is None or usable.all():
            return self._with_watermarks(table, ticks, None), 0
        places = np.flatnonzero(usable)
        numbers = places + self.arrived
        return self._with_watermarks(table.take(pa.array(places)), ticks[places], numbers), len(ticks) - len(places)

    def commit(self, arrivals: Arrivals, rows: int) -> None:
        """Move the watermark, after the rows have been taken in."""
        self.arrived += rows
        if len(arrivals):
            self.newest = max(self.newest, int(arrivals.times.max()))

    def count(self, rows: int, rejected: int, late: int, partly_late: int, by_query: Mapping[str, int]) -> None:
        """Enter rows into the account."""
        self.account = self.account.with_rows(rows, late, rejected, partly_late)
        for name, missed in by_query.items():
            self.late_by_query[name] = self.late_by_query.get(name, 0) + missed

    def state(self) -> dict[str, Any]:
        return {
            "newest": self.newest,
            "promised": self.promised,
            "arrived": self.arrived,
            "horizon": self.horizon,
            "account": asdict(self.account),
            "late_by_query": dict(self.late_by_query),
        }

    def restore(self, state: dict[str, Any]) -> None:
        self.newest, self.promised, self.arrived = state["newest"], state["promised"], state["arrived"]
        self.horizon, self.account = state["horizon"], Accounting(**state["account"])
        self.late_by_query = dict(state["late_by_query"])

    def _with_watermarks(self, table: pa.Table, times: Int64Array, numbers: Int64Array | None) -> Arrivals:
        """Rows with the watermark at the arrival of each, which follows from all rows before it."""
        in_order = not len(times) or (times[0] >= self.mark and bool((times[1:] >= times[:-1]).all()))
        if in_order or (self.schema.delay_ticks is None and self.promised == NO_MARK):
            return Arrivals(table, times, self.arrived, numbers, None)
        marks = np.full(len(times), self.mark)
        if self.schema.delay_ticks is not None:
            seen = np.maximum.accumulate(times)[:-1] - self.schema.delay_ticks
            marks[1:] = np.maximum(seen, self.mark)
        return Arrivals(table, times, self.arrived, numbers, marks)

    def _check_columns(self, batch: object) -> pa.Table:
        wanted = self.schema.schema
        if isinstance(batch, pa.Table) and batch.schema.equals(wanted):
            return batch
        table = as_table(batch)
        missing = [name for name in wanted.names if name not in table.column_names]
        if missing:
            raise SchemaProblem(
                f"stream {self.name!r}: the batch has no column {missing[0]!r}", fix="feed the declared columns"
            )
        table = table.select(wanted.names)
        for field, found in zip(wanted, table.schema, strict=True):
            if field.type != found.type:
                raise SchemaProblem(
                    f"stream {self.name!r}: column {field.name!r} is {type_name(found.type)} in this batch, "
                    f"but was declared {type_name(field.type)}",
                    fix="cast it before feeding",
                )
        return table
