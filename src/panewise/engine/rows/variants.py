"""Variants of operators: equal operators are shared only by queries that use the same variant."""

from __future__ import annotations

from dataclasses import dataclass

from panewise.algebra import Node


@dataclass(frozen=True)
class OperatorVariant:
    """How the windows of a query are kept: for it alone, or in shared operators since it joined these."""

    #: Every session has an instant of its own.
    apart: bool = False
    kin: int | None = None


#: A node and its variant; other queries may use another variant of the same node.
OperatorKey = tuple[Node, OperatorVariant]
