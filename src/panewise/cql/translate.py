"""Translates scalar expressions to DuckDB SQL, with the type that each has in Spark: from the leaves of the tree
upwards.

Entries of the list in `functions` are translated; anything else in a tree is refused by name.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import pyarrow as pa
from sqlglot import exp
from sqlglot.errors import SqlglotError

from panewise.aggregate import AGGREGATES
from panewise.core.errors import BindProblem, did_you_mean
from panewise.core.schema import type_name
from panewise.cql.coercion import common_type
from panewise.cql.data_types import (
    BOOLEAN,
    NULL,
    STRING,
    arrow_type,
    duckdb_name,
    duckdb_text,
    duckdb_type,
    result_type,
    spark_type,
)
from panewise.cql.dialect import canonical, parse_scalar, with_scalar
from panewise.cql.functions import FUNCTIONS, INSTEAD, NODES, ScalarFunction, TypedSql, unit_of, without_units
from panewise.cql.functions.casts import cast, convert
from panewise.cql.literals import literal

#: Arguments occur more than once in some translations; a text that becomes longer than this is refused.
_MAX_LENGTH = 200_000


@lru_cache(maxsize=4096)
def translate_scalar(sql: str, columns: tuple[tuple[str, pa.DataType], ...]) -> TypedSql:
    """A CQL scalar as DuckDB SQL, with its columns called `_0`, `_1` and so on, and its type.

    Numbers instead of names, because DuckDB does not distinguish `K` and `k`.

    >>> found = translate_scalar("`S.a` div 2", (("S.b", pa.string()), ("S.a", pa.int32())))
    >>> found.sql, found.type
    ('CAST((CAST(_1 AS BIGINT) // CAST(2 AS BIGINT)) AS BIGINT)', DataType(int64))
    """
    translator = _Translator({name: (number, kind) for number, (name, kind) in enumerate(columns)})
    try:
        found = with_scalar(sql, translator.translate)
    except SqlglotError:
        raise BindProblem("it is not an expression", fix="check its syntax") from None
    return TypedSql(found.sql, result_type(found.type), found.literal, found.text)


def scalar_type(sql: str, columns: Mapping[str, pa.DataType]) -> pa.DataType:
    """The type that an expression over these columns has in Spark."""
    return translate_scalar(sql, tuple(columns.items())).type


def no_function(name: str) -> BindProblem:
    """The refusal of a function that is neither on the list nor an aggregate."""
    fix = INSTEAD.get(name) or did_you_mean(name, (*FUNCTIONS, *AGGREGATES), _FUNCTION_LIST)
    return BindProblem(f"there is no function {name}", fix=fix)


@dataclass(frozen=True)
class _Translator:
    """Translates trees over some columns, of which each has a number and a type."""

    columns: Mapping[str, tuple[int, pa.DataType]]

    def translate(self, node: exp.Expr) -> TypedSql:
        """The node translated, with its type."""
        found = self._translate(node)
        if len(found.sql) > _MAX_LENGTH:
            raise BindProblem("the expression is too large", fix="compute a part of it in a view")
        return found

    def _translate(self, node: exp.Expr) -> TypedSql:
        if (value := literal(node)) is not None:
            return value
        if type(node) in NODES:
            name, parts = NODES[type(node)](node)
            found = self.call(name, [self.translate(part) for part in parts], node)
        else:
            found = self._special(node)
        return self.call("NOT", [found], node) if node.args.get("negate") else found

    def _special(self, node: exp.Expr) -> TypedSql:
        """Translate a node that is more than a call of an entry with its parts."""
        match node:
            case exp.Anonymous():
                return self._function(node)
            case exp.Paren():
                inner = self.translate(node.this)
                return replace(inner, text=f"({inner.text})")
            case exp.Column():
                return self._column(node)
            case exp.Cast():
                return self._cast(node)
            case exp.Case():
                return self._case(node)
            case exp.Dot():
                return self._field(node)
        raise BindProblem(f"{canonical(node)} is not supported", fix="write it in another way")

    def _function(self, node: exp.Anonymous) -> TypedSql:
        if node.name.upper() not in FUNCTIONS:
            raise no_function(node.name.upper())
        unit = unit_of(node)
        arguments = [_word(a) if unit is not None and a is unit else self.translate(a) for a in node.expressions]
        return self.call(node.name.upper(), arguments, node)

    def call(self, name: str, arguments: Sequence[TypedSql], node: exp.Expr) -> TypedSql:
        """An entry of the list, applied to arguments."""
        entries = FUNCTIONS.get(name)
        if not entries:
            raise no_function(name)
        for entry in entries:
            if (fitted := _fit_arguments(entry, arguments)) is not None:
                kind = entry.result(fitted)
                sql = entry.translate(fitted, kind)
                exact = sql if kind == BOOLEAN else f"CAST({sql} AS {duckdb_type(kind)})"
                risky = not entry.safe or any(argument.risky for argument in fitted)
                return TypedSql(exact, kind, text=canonical(node).replace("`", ""), risky=risky)
        raise _argument_problem(name, entries, arguments)

    def _column(self, node: exp.Column) -> TypedSql:
        if node.name not in self.columns:
            raise BindProblem(f"there is no column {node.name!r}", fix=did_you_mean(node.name, self.columns))
        number, kind = self.columns[node.name]
        if duckdb_type(spark_type(kind)) is None:
            raise BindProblem(f"{node.name} is {type_name(kind)}", fix="cast it to another type before it comes here")
        return TypedSql(f"_{number}", spark_type(kind), text=node.name)

    def _cast(self, node: exp.Cast) -> TypedSql:
        value, to = self.translate(node.this), arrow_type(node.to)
        lenient = isinstance(node, exp.TryCast) and bool(node.args.get("safe"))
        return TypedSql(cast(value, to, lenient), to, text=canonical(node).replace("`", ""), risky=True)

    def _case(self, node: exp.Case) -> TypedSql:
        conditions, values = [], []
        for branch in node.args["ifs"]:
            test = exp.EQ(this=node.this, expression=branch.this) if node.this else branch.this
            conditions.append(self.call("IS TRUE", [self.translate(test)], test).sql)
            values.append(self.translate(branch.args["true"]))
        default = node.args.get("default")
        values.append(self.translate(default) if default else TypedSql("NULL", NULL))
        kind = common_type([value.type for value in values])
        if kind is None:
            raise _type_problem("CASE", values)
        *chosen, otherwise = (convert(value, kind).sql for value in values)
        branches = (f"WHEN {test} THEN {value}" for test, value in zip(conditions, chosen, strict=True))
        return TypedSql(
            f"CASE {' '.join(branches)} ELSE {otherwise} END", kind, text=canonical(node).replace("`", ""), risky=True
        )

    def _field(self, node: exp.Dot) -> TypedSql:
        """A field of a struct, found without regard to case."""
        value, name = self.translate(node.this), node.expression.name
        if not pa.types.is_struct(value.type):
            raise BindProblem(f"{value.text} is {type_name(value.type)} and has no field {name!r}", fix="name a struct")
        matching = [field for field in value.type if field.name.lower() == name.lower()]
        if len(matching) != 1:
            known = [field.name for field in value.type]
            raise BindProblem(f"{value.text} has no field {name!r}", fix=did_you_mean(name, known))
        (field,) = matching
        return TypedSql(
            f"({value.sql}).{duckdb_name(field.name)}", field.type, text=f"{value.text}.{field.name}", risky=value.risky
        )


_FUNCTION_LIST = "docs/functions.md lists those there are"


def _word(node: exp.Expr) -> TypedSql:
    """A bare word as text."""
    return TypedSql(duckdb_text(node.name), STRING, node.name, node.name)


def _fit_arguments(entry: ScalarFunction, arguments: Sequence[TypedSql]) -> list[TypedSql] | None:
    """Arguments converted to the types of an entry, or None if they do not fit."""
    if not entry.accepts(len(arguments)):
        return None
    kinds = entry.kinds(len(arguments))
    types = [kind.fit(given.type) for kind, given in zip(kinds, arguments, strict=True)]
    if any(kind.constant and given.literal is None for kind, given in zip(kinds, arguments, strict=True)):
        return None
    meeting = common_type([found for kind, found in zip(kinds, types, strict=True) if kind.alike and found is not None])
    if meeting is None or any(found is None for found in types):
        return None
    wanted = [meeting if kind.alike and not kind.kept else found for kind, found in zip(kinds, types, strict=True)]
    return [convert(given, kind) for given, kind in zip(arguments, wanted, strict=True)]


def _argument_problem(name: str, entries: Sequence[ScalarFunction], arguments: Sequence[TypedSql]) -> BindProblem:
    """Why no entry of a name takes the arguments: their number, an argument that must be a literal, or their types."""
    fitting = [entry for entry in entries if entry.accepts(len(arguments))]
    if not fitting:
        counts = sorted({n for entry in entries for n in {entry.least, len(entry.takes)}})
        wanted = " or ".join(map(str, counts)) + (" or more" if any(entry.rest for entry in entries) else "")
        message = f"{name} takes {wanted} argument{'s' * (counts != [1])}, not {len(arguments)}"
        return BindProblem(message, fix="check what the function takes")
    for kind, given in zip(fitting[0].kinds(len(arguments)), arguments, strict=True):
        if kind.constant and given.literal is None:
            return BindProblem(f"{name} needs {kind.name}, not {given.text}", fix="write a literal")
    return _type_problem(name, arguments)


def _type_problem(name: str, arguments: Sequence[TypedSql]) -> BindProblem:
    types = ", ".join(type_name(a.type) for a in arguments)
    return BindProblem(f"{name} does not take ({types})", fix="check its arguments, or cast one")


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
        raise BindProblem("it is not an expression", fix="check its syntax") from None
