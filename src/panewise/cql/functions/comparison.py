"""Comparisons, and AND, OR, NOT over them."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
from sqlglot import exp

from panewise.cql.data_types import BOOLEAN
from panewise.cql.functions.catalogue import NODES, Translation, TypedSql, function, node
from panewise.cql.functions.kinds import ALIKE, ANY, CONDITION


def _register_comparison(symbol: str, spelt: str) -> None:
    function(
        symbol,
        takes=[ALIKE, ALIKE],
        gives=BOOLEAN,
        duckdb=f"({{0}} {spelt} {{1}})",
        form=f"({{0}} {symbol} {{1}})",
        safe=True,
    )


for _symbol in ("=", "<>", "<", "<=", ">", ">="):
    _register_comparison(_symbol, _symbol)
_register_comparison("<=>", "IS NOT DISTINCT FROM")
_register_comparison("IS DISTINCT FROM", "IS DISTINCT FROM")
function("EQUAL_NULL", takes=[ALIKE, ALIKE], gives=BOOLEAN, duckdb="({0} IS NOT DISTINCT FROM {1})", safe=True)

node(exp.EQ, "=")
node(exp.NEQ, "<>")
node(exp.LT, "<")
node(exp.LTE, "<=")
node(exp.GT, ">")
node(exp.GTE, ">=")
node(exp.NullSafeEQ, "<=>")
node(exp.NullSafeNEQ, "IS DISTINCT FROM")


def _in_list(arguments: Sequence[TypedSql], kind: pa.DataType) -> str:
    value, *options = (a.sql for a in arguments)
    return f"({value} IN ({', '.join(options)}))"


function("IN", takes=[ALIKE, ALIKE], rest=True, gives=BOOLEAN, duckdb=_in_list, form="({0} IN ({1}))", safe=True)
NODES[exp.In] = lambda found: ("IN", [found.this, *found.expressions])
# Each bound has a common type with the value of its own.
NODES[exp.Between] = lambda found: (
    "AND",
    [
        exp.GTE(this=found.this, expression=found.args["low"]),
        exp.LTE(this=found.this, expression=found.args["high"]),
    ],
)


def _lazy(symbol: str, decides: str, decided: str) -> Translation:
    """AND and OR that skip a side if those before it decide, so that these may guard it."""

    def translate(arguments: Sequence[TypedSql], kind: pa.DataType) -> str:
        sides = [a.sql for a in arguments]
        plain = f"({f' {symbol} '.join(sides)})"
        if not any(a.risky for a in arguments[1:]):
            return plain
        return f"CASE {' '.join(f'WHEN {decides}{side} THEN {decided}' for side in sides)} ELSE {plain} END"

    return translate


def _register_connective(symbol: str, translation: Translation, kind: type[exp.Expr]) -> None:
    form = f"({{0}} {symbol} {{1}})"
    function(symbol, takes=[CONDITION, CONDITION], rest=True, gives=BOOLEAN, duckdb=translation, form=form, safe=True)
    NODES[kind] = lambda found: (symbol, list(found.flatten()))


_register_connective("AND", _lazy("AND", "NOT ", "FALSE"), exp.And)
_register_connective("OR", _lazy("OR", "", "TRUE"), exp.Or)
function("NOT", takes=[CONDITION], gives=BOOLEAN, duckdb="(NOT {0})", form="(NOT {0})", safe=True)
node(exp.Not, "NOT", "this")


function("ISNULL", "IS NULL", takes=[ANY], gives=BOOLEAN, duckdb="({0} IS NULL)", safe=True)
function("ISNOTNULL", takes=[ANY], gives=BOOLEAN, duckdb="({0} IS NOT NULL)", safe=True)
for _truth in ("TRUE", "FALSE"):
    _same = f"({{0}} IS NOT DISTINCT FROM {_truth})"
    function(f"IS {_truth}", takes=[CONDITION], gives=BOOLEAN, duckdb=_same, form=f"({{0}} IS {_truth})", safe=True)
NODES[exp.Is] = lambda found: (f"IS {found.expression.sql()}", [found.this])
