"""Makes the operator for each node of a query."""

from __future__ import annotations

from collections.abc import Sequence

from panewise.algebra import Distinct, Except, Group, Host, Join, Node, Project, Select, Union
from panewise.core.time import Boundary
from panewise.engine.purge import Purge
from panewise.engine.rows.operators.base import Operator, OperatorKey, RowwiseOperator, UnionOperator
from panewise.engine.rows.operators.distinct import DistinctOperator, ExceptOperator
from panewise.engine.rows.operators.group import GroupOperator
from panewise.engine.rows.operators.join import JoinOperator
from panewise.engine.rows.operators.shared_distinct import SharedDistinct
from panewise.engine.rows.operators.shared_join import SharedJoin


def new_shared_operator(
    keys: Sequence[OperatorKey], boundary: Boundary, host: Host, purge: Purge
) -> SharedJoin | SharedDistinct:
    """One operator for equal nodes of several queries that differ in their windows only."""
    if isinstance(keys[0][0], Join):
        return SharedJoin(keys, boundary, host, purge)
    return SharedDistinct(keys, boundary, host)


def new_operator(node: Node, host: Host, purge: Purge) -> Operator:
    """The operator for a node of a query."""
    match node:
        case Select() | Project():
            return RowwiseOperator(node, host)
        case Union():
            return UnionOperator(node)
        case Except():
            return ExceptOperator(node)
        case Distinct():
            return DistinctOperator(node)
        case Group():
            return GroupOperator(node, purge)
        case Join():
            return JoinOperator(node, host, purge)
    raise TypeError(f"no operator for {type(node).__name__}")
