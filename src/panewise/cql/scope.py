"""Names in a SELECT: the column of each name, and the type of each expression."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

import pyarrow as pa
from sqlglot import exp

from panewise.algebra import Column, Source
from panewise.core.errors import BindProblem, PanewiseError, Place, did_you_mean
from panewise.core.scalar import Scalar, column
from panewise.core.schema import StreamSchema, is_number, type_name
from panewise.cql.dialect import canonical, string_text
from panewise.cql.functions import without_units
from panewise.cql.habits import added_column_hint
from panewise.cql.syntax import Expr, place_of
from panewise.cql.translate import scalar_type

T = TypeVar("T")


@dataclass
class Scope:
    """The visible columns. Names are found without regard to case; the algebra calls them `alias.column`."""

    columns: list[Column]
    types: dict[str, pa.DataType] = field(init=False)

    def __post_init__(self) -> None:
        self.types = {c.name: c.type for c in self.columns}

    def find(self, name: str, table: str | None, place: Place | None, doubly_quoted: bool = False) -> Column:
        """The one column of a name."""
        wanted = name.lower()
        found = [c for c in self.columns if _matches(c.name, wanted, table)]
        exact = [c for c in found if plain_name(c.name) == name]
        if len(exact or found) == 1:
            return (exact or found)[0]
        shown = f"{table}.{name}" if table else name
        if found:
            names = " or ".join(c.name for c in found)
            raise BindProblem(f"column {shown!r} is ambiguous", fix=f"write {names}", place=place)
        if table and self.has(shown):
            raise BindProblem(f"{shown} is one name with a dot", fix=f'write "{shown}", in double quotes', place=place)
        if table and not any(_matches(c.name, None, table) for c in self.columns):
            raise self._no_stream(table, place)
        known = dict.fromkeys(plain_name(c.name) for c in self.columns if _matches(c.name, None, table))
        if doubly_quoted and not table:
            fix = did_you_mean(name, known, f"write {string_text(name)} if it is text: double quotes are for names")
            raise BindProblem(f'there is no column "{name}"', fix=fix, place=place)
        fix = added_column_hint(name) or did_you_mean(name, known)
        raise BindProblem(f"there is no column {shown!r}", fix=fix, place=place)

    def has(self, name: str) -> bool:
        """Whether any visible column has that name."""
        return any(_matches(c.name, name.lower(), None) for c in self.columns)

    def expand_star(self, table: str | None, place: Place | None) -> list[Column]:
        """All columns, or those of one stream."""
        found = [c for c in self.columns if table is None or _matches(c.name, None, table)]
        if not found:
            raise self._no_stream(str(table), place)
        return found

    def _no_stream(self, name: str, place: Place | None) -> BindProblem:
        known = dict.fromkeys(c.name.partition(".")[0] for c in self.columns if "." in c.name)
        return BindProblem(f"there is no {name!r} in FROM", fix=did_you_mean(name, known), place=place)

    def bind(self, expr: Expr) -> Scalar:
        """The expression over the visible columns, with its type."""
        return self.scalar(self.resolve(expr.node, expr.place), expr)

    def scalar(self, node: exp.Expr, expr: Expr) -> Scalar:
        """A resolved expression as a typed scalar."""
        if unstable := next((n for n in node.find_all(exp.Func) if _is_nondeterministic(n)), None):
            raise BindProblem(
                f"{canonical(unstable)} gives another value in every run",
                fix="use the stream's own time",
                place=place_of(unstable, expr.place),
            )
        if star := node.find(exp.Star):
            raise BindProblem("* cannot be used here", fix="name a column", place=place_of(star, expr.place))
        inputs = tuple(dict.fromkeys(c.name for c in node.find_all(exp.Column)))
        if isinstance(node, exp.Column):
            return column(node.name, self.types[node.name])
        sql = canonical(node)
        try:
            self._check(node, expr)
            kind = self._type(node)
        except PanewiseError as problem:
            raise (
                problem
                if problem.place
                else BindProblem(f"{expr.sql} cannot be computed: {problem.message}", fix=problem.fix, place=expr.place)
            ) from None
        return Scalar(sql, inputs, kind)

    def _type(self, node: exp.Expr) -> pa.DataType:
        columns = dict.fromkeys(c.name for c in node.find_all(exp.Column))
        return scalar_type(canonical(node), {name: self.types[name] for name in columns})

    def _check(self, node: exp.Expr, expr: Expr) -> None:
        """Refuse implicit conversions in which hosts differ: text as a number, any value as a truth value."""
        for part in node.find_all(exp.Predicate, exp.Connector, exp.Not):
            sides = [v for v in part.args.values() if isinstance(v, exp.Expr)] + list(part.expressions)
            types = [self._type(side) for side in sides if not isinstance(side, exp.Null)]
            if isinstance(part, exp.Connector | exp.Not):
                for kind in types:
                    if not pa.types.is_boolean(kind):
                        raise BindProblem(
                            f"{expr.sql} uses {type_name(kind)} as a condition",
                            fix="compare it with something",
                            place=place_of(part, expr.place),
                        )
            elif pair := _incomparable_pair(types):
                raise BindProblem(
                    f"{expr.sql} compares {type_name(pair[0])} with {type_name(pair[1])}",
                    fix="cast one of them",
                    place=place_of(part, expr.place),
                )

    def predicate(self, expr: Expr, clause: str) -> Scalar:
        """An expression that must be true or false."""
        return self.require_boolean(self.bind(expr), expr, clause)

    def require_boolean(self, bound: Scalar, expr: Expr, clause: str) -> Scalar:
        if not pa.types.is_boolean(bound.type):
            raise BindProblem(
                f"{clause} needs a condition, but {expr.sql} is {type_name(bound.type)}",
                fix="compare it with something",
                place=expr.place,
            )
        return bound

    def resolve(self, node: exp.Expr, place: Place | None) -> exp.Expr:
        """A copy whose column references have the algebra's names."""

        def step(part: exp.Expr) -> exp.Expr:
            if isinstance(part, exp.Column) and not part.meta.get("resolved"):
                return self._resolve_column(part, place_of(part, place))
            return part

        return without_units(node.copy()).transform(step, copy=False)

    def _resolve_column(self, part: exp.Column, where: Place | None) -> exp.Expr:
        """The column of a name with dots, or the field of a struct column."""
        names = [identifier.name for identifier in part.parts]
        streams = {c.name.partition(".")[0].lower() for c in self.columns if "." in c.name}
        qualified = len(names) > 1 and (alias_name(names[0]).lower() in streams or not self.has(names[0]))
        if len(names) > 2 and qualified and alias_name(names[0]).lower() not in streams:
            raise BindProblem(f"{canonical(part)} has too many dots", fix="write alias.column", place=where)
        name, *fields = names[1:] if qualified else names
        doubly_quoted = part.parts[qualified].meta.get("doubly_quoted", False)
        column = self.find(name, names[0] if qualified else None, where, doubly_quoted)
        found: exp.Expr = _reference(column.name, where)
        for field_name in fields:
            found = exp.Dot(this=exp.Paren(this=found), expression=exp.to_identifier(field_name, quoted=True))
        return found


#: Functions whose result depends on when or how often they are called.
_NONDETERMINISTIC = (
    "CURDATE",
    "CURRENT_DATE",
    "CURRENT_TIME",
    "CURRENT_TIMESTAMP",
    "LOCALTIMESTAMP",
    "MONOTONICALLY_INCREASING_ID",
    "NOW",
    "RAND",
    "RANDN",
    "RANDOM",
    "RANDSTR",
    "SHUFFLE",
    "UNIFORM",
    "UUID",
)


def _is_nondeterministic(node: exp.Func) -> bool:
    return (node.name or node.sql_name()).upper() in _NONDETERMINISTIC


def alias_name(name: str) -> str:
    """A stream's name as the first part of a column's: without dots, which end that part."""
    return name.replace(".", "_")


def plain_name(qualified: str) -> str:
    """The column's own name: the part after the alias, or all of it."""
    return qualified.partition(".")[2] or qualified


def _reference(name: str, place: Place | None = None) -> exp.Column:
    reference = exp.Column(this=exp.to_identifier(name, quoted=True))
    reference.meta["resolved"] = True
    if place:
        reference.meta["place"] = place
    return reference


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def _incomparable_pair(types: Sequence[pa.DataType]) -> tuple[pa.DataType, pa.DataType] | None:
    """Two types whose values hosts compare differently or not at all; some hosts fail only when rows arrive."""
    apart = ((_is_text, is_number), (pa.types.is_temporal, is_number), (pa.types.is_nested, _is_text))
    for one, other in apart:
        found = next(filter(one, types), None), next(filter(other, types), None)
        if found[0] is not None and found[1] is not None:
            return found
    return None


def _matches(qualified: str, name: str | None, table: str | None) -> bool:
    alias = qualified.partition(".")[0]
    if table is not None and alias.lower() != alias_name(table).lower():
        return False
    return name is None or plain_name(qualified).lower() == name


# ---- streams by name, and conditions in parts ----------------------------------------------------------------------


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
