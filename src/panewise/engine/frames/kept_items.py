"""The items that frames may still hold, by group and in the order of time, with their rows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from panewise.aggregate import Int64Array, runs
from panewise.engine.frames.order import OrderedItems, concat_rows, restore_rows, rows_state
from panewise.engine.sorting import order_by_code
from panewise.engine.state.snapshot import Tree

Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class GroupPlaces:
    """The places of the kept items of some groups, from `begins` to before `stops`; those from `fresh` on are new."""

    codes: Int64Array
    begins: Int64Array
    fresh: Int64Array
    stops: Int64Array

    def at(self, places: Int64Array) -> GroupPlaces:
        """Some of these groups."""
        return GroupPlaces(self.codes[places], self.begins[places], self.fresh[places], self.stops[places])


class KeptItems:
    """Items in the order of their groups, then of time; `sizes` is how many rows each has."""

    def __init__(self, schema: pa.Schema, values: int) -> None:
        self._schema = schema
        self.codes: Int64Array = np.zeros(0, np.int64)
        self.times: Int64Array = np.zeros(0, np.int64)
        self.sizes: Int64Array = np.zeros(0, np.int64)
        self.values: list[pa.Array] = [pa.nulls(0)] * values
        self.rows = concat_rows([], schema)

    def __len__(self) -> int:
        return len(self.codes)

    def add(self, items: OrderedItems) -> None:
        """Add new items after those of their groups."""
        count, before = len(items.codes), len(self)
        owner = np.arange(count) if items.owner is None else items.owner
        sizes = np.concatenate((self.sizes, np.bincount(owner, minlength=count)))
        codes = np.concatenate((self.codes, items.codes))
        order = order_by_code(codes)
        ranks = np.empty(len(order), np.int64)
        ranks[order] = np.arange(len(order))
        whose = np.concatenate((np.repeat(np.arange(before), self.sizes), before + owner))
        self.rows = concat_rows([self.rows, items.rows], self._schema).at(order_by_code(ranks[whose]))
        self.codes, self.sizes = codes[order], sizes[order]
        self.times = np.concatenate((self.times, items.times))[order]
        pairs = zip(self.values, items.values, strict=True)
        self.values = [_concat_column(old, new).take(pa.array(order)) for old, new in pairs]

    def places(self, fresh: Int64Array) -> GroupPlaces:
        """The places of all groups; `fresh` is how many of the items of each code are new."""
        begins, stops = runs(self.codes)
        codes = self.codes[begins]
        return GroupPlaces(codes, begins, stops - fresh[codes], stops)

    def keep(self, flags: Flags) -> None:
        """Drop all other items."""
        if flags.all():
            return
        chosen = pa.array(flags)
        self.rows = self.rows.at(np.flatnonzero(np.repeat(flags, self.sizes)))
        self.codes, self.times, self.sizes = self.codes[flags], self.times[flags], self.sizes[flags]
        self.values = [each.filter(chosen) for each in self.values]

    def recode(self, codes: Int64Array) -> None:
        """Replace the codes of groups, which keep their order; those of all items are kept."""
        self.codes = codes[self.codes]

    def state(self) -> Tree:
        items = {"code": self.codes, "time": self.times, "size": self.sizes}
        values = {str(number): each for number, each in enumerate(self.values)}
        return {"items": pa.table(items | values), "rows": rows_state(self.rows)}

    def restore(self, state: Tree) -> None:
        items = state["items"]
        self.codes, self.times, self.sizes = (
            np.array(items.column(name).to_numpy(), np.int64) for name in ("code", "time", "size")
        )
        self.values = [items.column(str(number)).combine_chunks() for number in range(len(self.values))]
        self.rows = restore_rows(state["rows"])


def _concat_column(old: pa.Array, new: pa.ChunkedArray) -> pa.Array:
    """Two parts of a column as one; the first part may be empty and of no type."""
    return pa.chunked_array([*([old] if len(old) else []), *new.chunks], new.type).combine_chunks()
