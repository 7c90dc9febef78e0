"""Helpers of several binders: names without regard to case, and conditions split into parts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

import pyarrow as pa
from sqlglot import exp

from panewise.algebra import Column, Source
from panewise.core.schema import StreamSchema
from panewise.cql.dialect import canonical
from panewise.cql.scope import Scope
from panewise.cql.syntax import Expr, place_of

T = TypeVar("T")


def find_ignoring_case(named: Mapping[str, T], name: str) -> tuple[str, T] | None:
    if name in named:
        return name, named[name]
    return next(((n, v) for n, v in named.items() if n.lower() == name.lower()), None)


def source_node(name: str, schema: StreamSchema, alias: str) -> Source:
    columns = tuple(Column(f"{alias}.{f.name}", f.type) for f in schema.schema)
    return Source(name, alias, columns, f"{alias}.{schema.time}")


def conjuncts(where: Expr | None) -> list[Expr]:
    if where is None:
        return []
    parts = list(where.node.flatten()) if isinstance(where.node, exp.And) else [where.node]
    return [Expr(canonical(part), part, place_of(part, where.place)) for part in parts]


def join_key(conjunct: Expr, scope: Scope, left: set[str], right: set[str]) -> tuple[str, str] | None:
    """The pair of columns, left and right, that an equality compares; None for any other condition."""
    node = conjunct.node
    while isinstance(node, exp.Paren):
        node = node.this
    if not (isinstance(node, exp.EQ) and isinstance(node.left, exp.Column) and isinstance(node.right, exp.Column)):
        return None
    a, b = (scope.find(side.name, side.table or None, conjunct.place) for side in (node.left, node.right))
    if are_comparable(a.type, b.type):
        if a.name in left and b.name in right:
            return a.name, b.name
        if b.name in left and a.name in right:
            return b.name, a.name
    return None


def are_comparable(a: pa.DataType, b: pa.DataType) -> bool:
    """Whether equal values of both types are equal in any host, so that hashing them finds the same pairs."""
    return bool(a == b or (pa.types.is_integer(a) and pa.types.is_integer(b)))
