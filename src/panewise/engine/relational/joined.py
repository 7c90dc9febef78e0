"""The windowed join: symmetric, each new row meets the rows of the other side that are there at the same instants.

A pair is there while both its parts are. Where both know when they leave, so does the pair, and nothing has to be said
when it goes; pairs with a part whose end is not known are found again by its number.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from panewise import kernels
from panewise.aggregate import Longs
from panewise.algebra import Host, Join, Select
from panewise.engine.keys import Keys
from panewise.engine.relational.leaves import columns_of
from panewise.engine.relational.operators import Operator, counted, crowded, schema_of
from panewise.engine.relational.spans import NONE, OPEN, Spans, Turn, ended, ends, no_spans
from panewise.engine.rowwise import passed
from panewise.engine.snapshot import Tree


class Side:
    """The rows of one side that may still meet others, linked by key, the youngest first."""

    def __init__(self, names: Sequence[str]) -> None:
        self.names = names
        self.rows: Spans | None = None
        self.codes = NONE
        #: The newest row of each key, and for every row the one before it.
        self.heads, self.links = NONE, NONE

    def add(self, rows: Spans, codes: Longs, keys: int) -> None:
        """Take rows in that have been coded."""
        start = 0 if self.rows is None else len(self.rows)
        self.rows = rows if self.rows is None else Spans.together([self.rows, rows])
        self.codes = np.concatenate((self.codes, codes))
        if keys > len(self.heads):
            self.heads = np.concatenate((self.heads, np.full(max(keys, 2 * len(self.heads)) - len(self.heads), -1)))
        self.links = np.concatenate((self.links, np.full(len(codes), -1)))
        kernels.link(codes, start, self.heads, self.links)

    def forget(self, limit: int) -> None:
        """Drop rows that no later one can meet, once they are more than the others."""
        if self.rows is None:
            return
        alive = self.rows.leave > limit + 1
        if 2 * np.count_nonzero(alive) > len(alive):
            return
        self._relink(self.rows.where(alive), self.codes[alive], len(self.heads))

    def recode(self, codes: Longs, keys: int) -> None:
        """Keys have new codes."""
        if self.rows is not None:
            self._relink(self.rows, codes[self.codes], keys)

    def _relink(self, rows: Spans, codes: Longs, keys: int) -> None:
        self.rows, self.codes, self.links = None, NONE, NONE
        self.heads = np.full(keys, -1)
        self.add(rows, codes, keys)


@dataclass(eq=False)
class Pairs:
    """Pairs with a part whose end is not known: their own numbers, those of their parts, and when they end at last."""

    ids: Longs
    left: Longs
    right: Longs
    last: Longs

    def where(self, keep: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> Pairs:
        return Pairs(*(word[keep] for word in self.words))

    @property
    def words(self) -> tuple[Longs, Longs, Longs, Longs]:
        return self.ids, self.left, self.right, self.last

    def with_(self, *words: Longs) -> Pairs:
        return Pairs(*(np.concatenate(both) for both in zip(self.words, words, strict=True)))

    def ended(self, left: Turn, right: Turn, limit: int) -> Longs:
        """When pairs end up to an instant; OPEN where they do not."""
        at = np.minimum(ends(self.left, left), ends(self.right, right))
        return np.minimum(at, np.where(self.last <= limit, self.last, OPEN))


class Joined(Operator):
    """Pairs that agree on their keys and satisfy the residual condition."""

    def __init__(self, node: Join, host: Host) -> None:
        self.node, self.host = node, host
        types = {column.name: column.type for column in node.left.columns}
        self.keys = Keys([types[name] for name, _ in node.on])
        self.sides = (Side([name for name, _ in node.on]), Side([name for _, name in node.on]))
        self.pairs = Pairs(NONE, NONE, NONE, NONE)
        self.serial = 0

    def turn(self, limit: int, inputs: Sequence[Turn]) -> Turn:
        left, right = inputs
        at = self.pairs.ended(left, right, limit)
        closed, closed_at = self.pairs.ids[at < OPEN], at[at < OPEN]
        self.pairs = self.pairs.where(at >= OPEN)
        for side, given in zip(self.sides, inputs, strict=True):
            if side.rows is not None:
                side.rows = ended(side.rows, given)
        found = [self._met(1, right.opened), self._met(0, left.opened)]
        for side in self.sides:
            side.forget(limit)
        self._tidy()
        return Turn(self._numbered(Spans.together(found), limit), closed, closed_at)

    def _tidy(self) -> None:
        """Forget keys that no row has any more."""
        if crowded(len(self.keys), sum(len(side.codes) for side in self.sides)):
            kept = self.keys.kept([side.codes for side in self.sides])
            self.keys = kept.keys
            for side in self.sides:
                side.recode(kept.codes, len(kept.keys))

    def _met(self, number: int, fresh: Spans) -> Spans:
        """Pairs of new rows of one side with the rows of the other; then the new rows are there to be met, too."""
        mine, other = self.sides[number], self.sides[1 - number]
        columns = columns_of(fresh.table, mine.names)
        codes = self.keys.encode(columns, len(fresh))
        known = np.ones(len(fresh), bool)
        for column in columns:
            if column.null_count:
                known &= column.is_valid().to_numpy(zero_copy_only=False)
        if not known.all():
            # NULL agrees with nothing.
            fresh, codes = fresh.where(known), codes[known]
        mine.add(fresh, codes, len(self.keys))
        if other.rows is None:
            return self._nothing()
        new, old = kernels.meet(
            codes, fresh.enter, fresh.leave, other.heads, other.links, other.rows.enter, other.rows.leave
        )
        sides = (fresh.at(new), other.rows.at(old)) if number == 0 else (other.rows.at(old), fresh.at(new))
        return self._paired(*sides)

    def _paired(self, left: Spans, right: Spans) -> Spans:
        table = pa.table(
            [*left.table.columns, *right.table.columns], names=[*left.table.column_names, *right.table.column_names]
        )
        orders = (*left.orders, *right.orders)
        # The first three orders are the numbers of the parts, and whether the end of one is not known.
        pairs = Spans(
            table,
            np.maximum(left.enter, right.enter),
            np.minimum(left.leave, right.leave),
            np.arange(len(left)),
            np.maximum(left.time, right.time),
            np.maximum(left.order, right.order),
            np.minimum(left.expires, right.expires),
            (left.ids, right.ids, ((left.leave == OPEN) | (right.leave == OPEN)).astype(np.int64), *orders),
        )
        if self.node.residual is None or not len(pairs):
            return pairs
        _, kept = passed([Select(self.node, self.node.residual)], table, self.host)
        return pairs if kept is None else pairs.at(kept)

    def _nothing(self) -> Spans:
        return no_spans(schema_of(self.node), 3 + counted(self.node))

    def _numbered(self, pairs: Spans, limit: int) -> Spans:
        """Pairs under their own numbers; those that may end before they have to are remembered."""
        first, self.serial = self.serial, self.serial + len(pairs)
        ids = np.arange(first, self.serial, dtype=np.int64)
        left, right, unsure, *orders = pairs.orders
        unknown = (unsure > 0) & (pairs.leave > limit)
        if unknown.any():
            self.pairs = self.pairs.with_(*(word[unknown] for word in (ids, left, right, pairs.leave)))
        leave = np.where(unknown, OPEN, pairs.leave)
        words = (pairs.enter, leave, ids, pairs.time, pairs.order, pairs.expires)
        return Spans(pairs.table, *words, tuple(orders))

    def state(self) -> Tree:
        return {
            "sides": [None if side.rows is None else side.rows.state() for side in self.sides],
            "pairs": pa.table(dict(zip(("ids", "left", "right", "last"), self.pairs.words, strict=True))),
            "serial": self.serial,
        }

    def restore(self, state: Tree) -> None:
        for side, saved in zip(self.sides, state["sides"], strict=True):
            if saved is not None:
                rows = Spans.restored(saved)
                side.add(rows, self.keys.encode(columns_of(rows.table, side.names), len(rows)), len(self.keys))
        self.pairs = Pairs(*(np.array(column.to_numpy(), np.int64) for column in state["pairs"].columns))
        self.serial = state["serial"]
