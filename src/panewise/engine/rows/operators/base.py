"""Relational operators over rows with lifetimes, one turn at a time.

A turn reaches up to an instant that is final. An operator receives the rows of its inputs that entered or ended, and
returns the same of its own rows. It keeps only rows that are still present after the turn.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from panewise.algebra import Except, Host, Join, Node, Project, Select, Union, Windowed
from panewise.engine.row_steps import apply_steps
from panewise.engine.rows.spans import NO_EXPIRY, RelationDelta, Spans
from panewise.engine.state.snapshot import Tree
from panewise.window import WindowRetention


@dataclass(frozen=True)
class OperatorVariant:
    """How the windows of a query are kept; queries share equal operators only if these are of the same variant."""

    #: Every session has an instant of its own.
    apart: bool = False
    #: For shared operators: after how many others the query joined them while they ran; None for operators of its own.
    since: int | None = None


#: A node and its variant; other queries may use another variant of the same node.
OperatorKey = tuple[Node, OperatorVariant]


class Operator(ABC):
    """Computes one node of a tree incrementally."""

    @abstractmethod
    def advance(self, limit: int, inputs: Sequence[RelationDelta]) -> RelationDelta:
        """The delta up to an instant, from the deltas of the inputs."""

    def state(self) -> Tree:
        return {}

    def restore(self, state: Tree) -> None:
        """Restore what `state` returned."""
        assert not state


def schema_of(node: Node) -> pa.Schema:
    return pa.schema([(column.name, column.type) for column in node.columns])


#: Unused keys are dropped once there are so many keys, and most of them belong to no row.
FEW_KEYS = 4096


def is_crowded(keys: int, live: int) -> bool:
    return keys > FEW_KEYS and 4 * live < keys


def order_count(node: Node) -> int:
    """The number of counted windows whose order decides the expiry of a node's rows."""
    match node:
        case Windowed(window=window):
            return int(window.retention is WindowRetention.COUNTS_ROWS)
        case Join(left, right):
            return order_count(left) + order_count(right)
        case Except():
            return 0
    return max(map(order_count, node.children), default=0)


class RowwiseOperator(Operator):
    """Selection and projection: a row stays as long as the one it comes from, under the same number."""

    def __init__(self, node: Select | Project, host: Host) -> None:
        self.node, self.host = node, host

    def advance(self, limit: int, inputs: Sequence[RelationDelta]) -> RelationDelta:
        (given,) = inputs
        opened = given.opened
        if not len(opened):
            return replace(given, opened=replace(opened, table=schema_of(self.node).empty_table()))
        table, kept = apply_steps([self.node], opened.table, self.host)
        if kept is not None:
            opened = replace(opened, table=opened.table.select([])).at(kept)
        return replace(given, opened=replace(opened, table=table))


class UnionOperator(Operator):
    """Multiset union: rows of both sides, distinguished by even and odd numbers."""

    def __init__(self, node: Union) -> None:
        self.schema, self.orders = schema_of(node), order_count(node)

    def advance(self, limit: int, inputs: Sequence[RelationDelta]) -> RelationDelta:
        sides = [self._with_side_ids(given.opened, side) for side, given in enumerate(inputs)]
        closed = np.concatenate([2 * given.closed + side for side, given in enumerate(inputs)])
        return RelationDelta(Spans.concat(sides), closed, np.concatenate([given.closed_at for given in inputs]))

    def _with_side_ids(self, opened: Spans, side: int) -> Spans:
        unsaid = [np.full(len(opened), NO_EXPIRY) for _ in range(self.orders - len(opened.orders))]
        table = opened.table.rename_columns(self.schema.names)
        return replace(opened, table=table, ids=2 * opened.ids + side, orders=(*opened.orders, *unsaid))
