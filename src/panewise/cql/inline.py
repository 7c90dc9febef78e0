"""Scalar expressions over columns that are expressions themselves, as one Spark SQL text."""

from __future__ import annotations

from collections.abc import Mapping

from sqlglot import exp
from sqlglot.errors import SqlglotError

from panewise.core.errors import BindProblem, did_you_mean
from panewise.cql.dialect import parse_scalar
from panewise.cql.functions import without_units


def inline_columns(sql: str, columns: Mapping[str, str]) -> str:
    """An expression with the definitions of its columns inserted, for Spark.

    >>> inline_columns("`total` div 2", {"total": "`sent` + `received`"})
    '(`sent` + `received`) DIV 2'
    """

    def step(node: exp.Expr) -> exp.Expr:
        if not isinstance(node, exp.Column):
            return node
        if node.name not in columns:
            raise BindProblem(f"there is no column {node.name!r}", fix=did_you_mean(node.name, columns))
        definition = parse_scalar(columns[node.name])
        return definition if isinstance(definition, exp.Column) else exp.paren(definition, copy=False)

    try:
        return without_units(parse_scalar(sql)).transform(step).sql(dialect="spark")
    except SqlglotError:
        raise BindProblem("it is not an expression", fix="check what stands in it") from None
