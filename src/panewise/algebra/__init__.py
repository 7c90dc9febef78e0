"""Queries as trees, their update patterns, and the equivalences between them."""

from panewise.algebra.host import Host, default_host
from panewise.algebra.patterns import known_expiry, pattern
from panewise.algebra.rewrites import REWRITES, Rewrite
from panewise.algebra.tree import (
    Call,
    Column,
    Derived,
    Distinct,
    Emit,
    Except,
    Filled,
    Framed,
    Group,
    Join,
    Node,
    Project,
    Query,
    Select,
    Source,
    Unary,
    Union,
    Windowed,
)

__all__ = [
    "REWRITES",
    "Call",
    "Column",
    "Derived",
    "Distinct",
    "Emit",
    "Except",
    "Filled",
    "Framed",
    "Group",
    "Host",
    "Join",
    "Node",
    "Project",
    "Query",
    "Rewrite",
    "Select",
    "Source",
    "Unary",
    "Union",
    "Windowed",
    "default_host",
    "known_expiry",
    "pattern",
]
