"""Scalar expressions in the words of another engine."""

from __future__ import annotations

from functools import lru_cache

import sqlglot

from panewise.lang.dialect import CQL


@lru_cache(maxsize=4096)
def translate(sql: str, dialect: str) -> str:
    """A CQL scalar as that dialect writes it.

    >>> translate("`S.a` div 2", "duckdb")
    '"S.a" // 2'
    """
    return sqlglot.transpile(sql, read=CQL, write=dialect)[0]
