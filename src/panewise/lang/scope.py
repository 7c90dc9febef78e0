"""Names in a SELECT: which column a word means, and what type an expression has."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

import pyarrow as pa
from sqlglot import exp

from panewise.algebra import Column
from panewise.errors import BindProblem, PanewiseError, Place
from panewise.lang.dialect import canonical
from panewise.lang.syntax import Expr
from panewise.scalar import Scalar, column


class Describe(Protocol):
    """The host's judgement of an expression: its type, or an error in one sentence."""

    def __call__(self, sql: str, columns: Mapping[str, pa.DataType]) -> pa.DataType: ...


@dataclass
class Scope:
    """Columns in sight. Names are found whatever their case; `alias.column` is what the algebra calls them."""

    describe: Describe
    columns: list[Column]
    types: dict[str, pa.DataType] = field(init=False)

    def __post_init__(self) -> None:
        self.types = {c.name: c.type for c in self.columns}

    def find(self, name: str, table: str | None, place: Place | None) -> Column:
        """The one column that a name means."""
        wanted = name.lower()
        found = [c for c in self.columns if _matches(c.name, wanted, table)]
        exact = [c for c in found if plain_name(c.name) == name]
        if len(exact or found) == 1:
            return (exact or found)[0]
        shown = f"{table}.{name}" if table else name
        if found:
            names = " or ".join(c.name for c in found)
            raise BindProblem(f"column {shown!r} is ambiguous", fix=f"write {names}", place=place)
        raise BindProblem(f"there is no column {shown!r}", fix=self._suggestion(shown), place=place)

    def star(self, table: str | None, place: Place | None) -> list[Column]:
        """All columns, or those of one stream."""
        found = [c for c in self.columns if table is None or _matches(c.name, None, table)]
        if not found:
            raise BindProblem(f"there is no stream {table!r} in FROM", fix="use a name or alias from FROM", place=place)
        return found

    def bind(self, expr: Expr, clause: str, replaced: Mapping[str, Column] | None = None) -> Scalar:
        """The expression over the columns in sight, typed by the host."""
        node = self.resolved(expr.node, clause, expr.place, replaced or {})
        return self.scalar(node, expr, clause)

    def scalar(self, node: exp.Expression, expr: Expr, clause: str) -> Scalar:
        """A resolved expression as a typed scalar."""
        inputs = tuple(dict.fromkeys(c.name for c in node.find_all(exp.Column)))
        if isinstance(node, exp.Column):
            return column(node.name, self.types[node.name])
        sql = canonical(node)
        try:
            kind = self.describe(sql, {name: self.types[name] for name in inputs})
        except PanewiseError as problem:
            raise BindProblem(
                f"{expr.sql} cannot be computed: {problem.message}", fix=problem.fix, place=expr.place
            ) from None
        return Scalar(sql, inputs, kind)

    def predicate(self, expr: Expr, clause: str) -> Scalar:
        """An expression that must be true or false."""
        return self.truth(self.bind(expr, clause), expr, clause)

    def truth(self, bound: Scalar, expr: Expr, clause: str) -> Scalar:
        if not pa.types.is_boolean(bound.type):
            raise BindProblem(
                f"{clause} needs a condition, but {expr.sql} has type {bound.type}",
                fix="compare it with something",
                place=expr.place,
            )
        return bound

    def resolved(
        self, node: exp.Expression, clause: str, place: Place | None, replaced: Mapping[str, Column]
    ) -> exp.Expression:
        """A copy whose column references carry the algebra's names; `replaced` expressions become columns."""

        def step(part: exp.Expression) -> exp.Expression:
            if replaced and (known := replaced.get(canonical(part))) is not None:
                return _reference(known.name)
            if isinstance(part, exp.Column) and not part.meta.get("resolved"):
                table = part.table or None
                return _reference(self.find(part.name, table, place).name)
            return part

        return node.copy().transform(step)

    def _suggestion(self, name: str) -> str:
        plain = {plain_name(c.name): c.name for c in self.columns}
        close = difflib.get_close_matches(plain_name(name), plain, n=1)
        if close:
            return f"did you mean {close[0]!r}?"
        return f"choose one of {', '.join(plain)}"


def plain_name(qualified: str) -> str:
    """The column's own name: what stands after the alias, or all of it."""
    return qualified.partition(".")[2] or qualified


def _reference(name: str) -> exp.Column:
    reference = exp.Column(this=exp.to_identifier(name, quoted=True))
    reference.meta["resolved"] = True
    return reference


def _matches(qualified: str, name: str | None, table: str | None) -> bool:
    alias = qualified.partition(".")[0]
    if table is not None and alias.lower() != table.lower():
        return False
    return name is None or plain_name(qualified).lower() == name
