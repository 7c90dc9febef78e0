"""Names of result columns: each once, and none that an added column has."""

from __future__ import annotations

from collections.abc import Sequence

from panewise.algebra import Query
from panewise.algebra.result_columns import COLUMN_MEANINGS, added_columns
from panewise.core.errors import BindProblem
from panewise.core.scalar import Scalar
from panewise.cql.scope import plain_name
from panewise.cql.syntax import QuerySyntax, SetSyntax


def unique_names(items: Sequence[tuple[str, Scalar]]) -> tuple[tuple[str, Scalar], ...]:
    """Selected columns under different names.

    Columns of several streams that have the same name are called `S.v` and `T.v`; any other repeated name gets a
    number: `v` and `v_2`.
    """
    columns: dict[str, set[str | None]] = {}
    for name, scalar in items:
        own = scalar.column is not None and plain_name(scalar.column).lower() == name.lower()
        columns.setdefault(name, set()).add(scalar.column if own else None)
    found: dict[str, Scalar] = {}
    for name, scalar in items:
        apart = len(columns[name]) > 1 and None not in columns[name]
        wanted = free = str(scalar.column) if apart else name
        number = 2
        while free in found:
            free, number = f"{wanted}_{number}", number + 1
        found[free] = scalar
    return tuple(found.items())


def check_column_names(query: Query, syntax: QuerySyntax) -> Query:
    """The query; refuses a column that was given the name of an added column."""
    body, added = syntax.body, added_columns(query)
    while isinstance(body, SetSyntax):
        body = body.left
    for item in body.items:
        alias = (item.alias or "").lower()
        if alias in added:
            raise BindProblem(
                f"the alias {item.alias!r} is taken: results get a column {alias} by themselves, "
                f"{COLUMN_MEANINGS[alias]}",
                fix=f"choose another one, such as own_{alias}",
                place=item.expr.place,
            )
    return query
