"""The windowed join: symmetric, each new row is paired with rows of the other side that are present at the same time.

A pair is present while both its parts are. If the ends of both are known, so is the end of the pair, and its leaving
is not reported; pairs with a part whose end is not known are found by the number of that part.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from panewise import kernels
from panewise.aggregate import Int64Array
from panewise.algebra import Host, Join, Select
from panewise.engine.keys import Keys
from panewise.engine.purge import Purge
from panewise.engine.row_steps import apply_steps
from panewise.engine.rows.inputs.timed import columns_of
from panewise.engine.rows.operators.base import Operator, is_crowded, order_count, schema_of
from panewise.engine.rows.spans import EMPTY, RelationDelta, Spans, empty_spans, end_instants, with_ends
from panewise.engine.state.snapshot import Tree
from panewise.kernels.joins import Chain
from panewise.kernels.ranges import OPEN


class JoinSide:
    """The rows of one side that may still be in new pairs, chained by key, the youngest first."""

    def __init__(self, names: Sequence[str], nothing: Spans) -> None:
        self.names = names
        self.rows = nothing
        self.codes = EMPTY
        #: The newest row of each key, and for every row the one before it.
        self.heads, self.links = EMPTY, EMPTY
        #: Whether rows have left in the order in which they came, so far.
        self.in_order = True

    def add(self, rows: Spans, codes: Int64Array, keys: int) -> Chain:
        """Add rows with their codes; they are chained when pairs are searched."""
        order = np.argsort(rows.enter, kind="stable")
        if (np.diff(order) != 1).any():
            rows, codes = rows.at(order), codes[order]
        start = len(self.rows)
        leaves = np.concatenate((self.rows.leave[-1:], rows.leave))
        self.in_order &= bool((np.diff(leaves) >= 0).all())
        self.rows = Spans.concat([self.rows, rows])
        self.codes = np.concatenate((self.codes, codes))
        if keys > len(self.heads):
            self.heads = np.concatenate((self.heads, np.full(max(keys, 2 * len(self.heads)) - len(self.heads), -1)))
        self.links = np.concatenate((self.links, np.full(len(codes), -1)))
        return codes, start, self.rows.enter, self.rows.leave, self.heads, self.links, self.in_order

    def close_rows(self, turn: RelationDelta) -> None:
        """Set the ends that have become known."""
        if len(turn.closed):
            self.rows = with_ends(self.rows, turn)
            self.in_order = bool((np.diff(self.rows.leave) >= 0).all())

    def forget(self, limit: int, purge: Purge) -> None:
        """Drop rows that cannot be in new pairs, when the purge is due."""
        alive = self.rows.leave > limit + 1
        if purge.due(int(np.count_nonzero(alive)), len(alive)):
            self.rows, self.codes = self.rows.where(alive), self.codes[alive]
            self.rebuild_chain(len(self.heads))

    def rebuild_chain(self, keys: int) -> None:
        """Chain all rows anew."""
        self.heads, self.links = np.full(keys, -1), np.full(len(self.codes), -1)
        leave = self.rows.leave
        self.in_order = bool((np.diff(leave) >= 0).all())
        mine = (self.codes, 0, self.rows.enter, leave, self.heads, self.links, self.in_order)
        kernels.overlap_join(mine, (EMPTY, 0, EMPTY, EMPTY, np.full(keys, -1), EMPTY, True))


@dataclass(eq=False)
class OpenPairs:
    """Pairs with a part whose end is not known: their numbers, those of their parts, and their latest end."""

    ids: Int64Array
    left: Int64Array
    right: Int64Array
    last: Int64Array

    def where(self, keep: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> OpenPairs:
        return OpenPairs(*(word[keep] for word in self.words))

    @property
    def words(self) -> tuple[Int64Array, Int64Array, Int64Array, Int64Array]:
        return self.ids, self.left, self.right, self.last

    def append(self, *words: Int64Array) -> OpenPairs:
        return OpenPairs(*(np.concatenate(both) for both in zip(self.words, words, strict=True)))

    def ends_at(self, left: RelationDelta, right: RelationDelta, limit: int) -> Int64Array:
        """When pairs end up to an instant; OPEN where they do not."""
        at = np.minimum(end_instants(self.left, left), end_instants(self.right, right))
        return np.minimum(at, np.where(self.last <= limit, self.last, OPEN))


class JoinOperator(Operator):
    """Pairs that agree on their keys and satisfy the residual condition."""

    def __init__(self, node: Join, host: Host, purge: Purge, words: int = 0) -> None:
        """`words` is the number of further words on each row of either side."""
        self.node, self.host, self.purge = node, host, purge
        types = {column.name: column.type for column in node.left.columns}
        self.keys = Keys([types[name] for name, _ in node.on])
        empty = [empty_spans(schema_of(side), order_count(side) + words) for side in (node.left, node.right)]
        self.sides = [JoinSide([pair[n] for pair in node.on], empty[n]) for n in (0, 1)]
        self.pairs = OpenPairs(EMPTY, EMPTY, EMPTY, EMPTY)
        self.serial = 0

    def advance(self, limit: int, inputs: Sequence[RelationDelta]) -> RelationDelta:
        left, right = inputs
        at = self.pairs.ends_at(left, right, limit)
        closed, closed_at = self.pairs.ids[at < OPEN], at[at < OPEN]
        self.pairs = self.pairs.where(at >= OPEN)
        for side, given in zip(self.sides, inputs, strict=True):
            side.close_rows(given)
        coded = [self._encode_keys(side, given.opened) for side, given in zip(self.sides, inputs, strict=True)]
        chains = [side.add(*rows, len(self.keys)) for side, rows in zip(self.sides, coded, strict=True)]
        one, other = kernels.overlap_join(*self._widen_heads(chains))
        found = self._pair_rows(self.sides[0].rows.at(one), self.sides[1].rows.at(other))
        for side in self.sides:
            side.forget(limit, self.purge)
        self._tidy()
        return RelationDelta(self._with_pair_ids(found, limit), closed, closed_at)

    def _tidy(self) -> None:
        """Drop keys that no row has any more."""
        if is_crowded(len(self.keys), sum(len(side.codes) for side in self.sides)):
            kept = self.keys.keep_codes([side.codes for side in self.sides])
            self.keys = kept.keys
            for side in self.sides:
                side.codes = kept.codes[side.codes]
                side.rebuild_chain(len(kept.keys))

    def _widen_heads(self, chains: Sequence[Chain]) -> Sequence[Chain]:
        """Both sides must have a head for every key: the second may have brought new ones."""
        size = max(len(side.heads) for side in self.sides)
        for side in self.sides:
            side.heads = np.concatenate((side.heads, np.full(size - len(side.heads), -1)))
        return [(*chain[:4], side.heads, *chain[5:]) for chain, side in zip(chains, self.sides, strict=True)]

    def _encode_keys(self, side: JoinSide, rows: Spans) -> tuple[Spans, Int64Array]:
        """Rows with the codes of their keys; NULL agrees with nothing."""
        columns = columns_of(rows.table, side.names)
        codes = self.keys.encode(columns, len(rows))
        known = np.ones(len(rows), bool)
        for column in columns:
            if column.null_count:
                known &= column.is_valid().to_numpy(zero_copy_only=False)
        return rows.where(known), codes[known]

    def _pair_rows(self, left: Spans, right: Spans) -> Spans:
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
        _, kept = apply_steps([Select(self.node, self.node.residual)], table, self.host)
        return pairs if kept is None else pairs.at(kept)

    def _with_pair_ids(self, pairs: Spans, limit: int) -> Spans:
        """Pairs with their own numbers; those that may end before their latest end are stored."""
        first, self.serial = self.serial, self.serial + len(pairs)
        ids = np.arange(first, self.serial, dtype=np.int64)
        left, right, unsure, *orders = pairs.orders
        unknown = (unsure > 0) & (pairs.leave > limit)
        if unknown.any():
            self.pairs = self.pairs.append(*(word[unknown] for word in (ids, left, right, pairs.leave)))
        leave = np.where(unknown, OPEN, pairs.leave)
        words = (pairs.enter, leave, ids, pairs.time, pairs.order, pairs.expires)
        return Spans(pairs.table, *words, tuple(orders))

    def state(self) -> Tree:
        return {
            "sides": [side.rows.state() for side in self.sides],
            "pairs": pa.table(dict(zip(("ids", "left", "right", "last"), self.pairs.words, strict=True))),
            "serial": self.serial,
        }

    def restore(self, state: Tree) -> None:
        for side, saved in zip(self.sides, state["sides"], strict=True):
            rows, names = Spans.from_state(saved), side.rows.table.column_names
            # Queries that have left may have read more columns.
            side.rows = replace(rows, table=rows.table.select(names))
            side.codes = self.keys.encode(columns_of(side.rows.table, side.names), len(side.rows))
        for side in self.sides:
            side.rebuild_chain(len(self.keys))
        self.pairs = OpenPairs(*(np.array(column.to_numpy(), np.int64) for column in state["pairs"].columns))
        self.serial = state["serial"]
