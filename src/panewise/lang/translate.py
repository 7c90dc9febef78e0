"""Scalar expressions in the words of another engine."""

from __future__ import annotations

from functools import lru_cache

import sqlglot
from sqlglot.errors import SqlglotError

from panewise.errors import BindProblem
from panewise.lang.dialect import CQL


@lru_cache(maxsize=4096)
def translate(sql: str, dialect: str) -> str:
    """A CQL scalar as that dialect writes it.

    >>> translate("`S.a` div 2", "duckdb")
    '"S.a" // 2'
    """
    try:
        return sqlglot.transpile(sql, read=CQL, write=dialect)[0]
    except SqlglotError:
        raise BindProblem("it is not an expression", fix="check what stands in it") from None
