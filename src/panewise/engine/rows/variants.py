"""In which manner a query has its operators: equal ones are shared only by queries that have them alike."""

from __future__ import annotations

from dataclasses import dataclass

from panewise.algebra import Node


@dataclass(frozen=True)
class OperatorVariant:
    """How the windows of a query are kept: for it alone, or with their kin since it joined these."""

    #: Every session has an instant of its own.
    apart: bool = False
    kin: int | None = None


#: An operator, which other queries may have in another manner.
OperatorKey = tuple[Node, OperatorVariant]
