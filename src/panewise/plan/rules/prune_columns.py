"""Columns that no operator reads are left out below windows, so that windows do not keep them."""

from __future__ import annotations

from dataclasses import replace

from panewise.algebra import Query
from panewise.algebra.rewrites import UNREAD_COLUMNS
from panewise.plan.rules.rule import OnRewrite, RewriteRule


def prune_columns(query: Query, on_rewrite: OnRewrite) -> Query:
    """The query with only those columns in its windows that some operator reads."""
    narrow = UNREAD_COLUMNS.apply(query.root)
    if narrow is None:
        return query
    on_rewrite(UNREAD_COLUMNS.name)
    return replace(query, root=narrow)


RULE = RewriteRule("prune_columns", "windows keep only the columns that are read", prune_columns)
