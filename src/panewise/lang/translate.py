"""Scalar expressions in the words of another engine."""

from __future__ import annotations

from functools import lru_cache

from sqlglot import exp
from sqlglot.errors import SqlglotError

from panewise.errors import BindProblem, did_you_mean
from panewise.lang.dialect import parse_scalar


@lru_cache(maxsize=4096)
def translate(sql: str, dialect: str, columns: tuple[str, ...]) -> str:
    """A CQL scalar as that dialect writes it, with its columns called `_0`, `_1` and so on.

    Numbers instead of names, because not every dialect keeps `K` and `k` apart.

    >>> translate("`S.a` div 2", "duckdb", ("S.b", "S.a"))
    '_1 // 2'
    """
    numbers = {name: number for number, name in enumerate(columns)}

    def step(node: exp.Expr) -> exp.Expr:
        if not isinstance(node, exp.Column):
            return node
        if node.name not in numbers:
            raise BindProblem(f"there is no column {node.name!r}", fix=did_you_mean(node.name, numbers))
        return exp.column(f"_{numbers[node.name]}")

    try:
        return parse_scalar(sql).transform(step).sql(dialect=dialect)
    except SqlglotError:
        raise BindProblem("it is not an expression", fix="check what stands in it") from None
