"""The list of scalar functions and operators: for each its arguments, its result type and its text in DuckDB.

The meaning of an entry is Spark SQL's in ANSI mode. Spark gets the text as it is; the embedded host gets the text that
`duckdb` makes of its arguments, cast to the type that `gives` returns. `tests/spark/test_scalars.py` compares both for
every entry, over every type it takes.

A family of entries is a module of this package and is found without being listed. Entries of one name are tried in
turn.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import pyarrow as pa
from sqlglot import exp

from panewise.cql.data_types import duckdb_text
from panewise.cql.functions.kinds import UNIT, ArgumentKind


@dataclass(frozen=True)
class TypedSql:
    """A translated expression: DuckDB's text, Spark's type, the literal if it is one, and the text it came from.

    One that is `risky` fails for some values.
    """

    sql: str
    type: pa.DataType
    literal: Any = None
    text: str = ""
    risky: bool = False


Gives: TypeAlias = pa.DataType | Callable[[Sequence[TypedSql]], pa.DataType]
#: DuckDB's text with {0}, {1} for arguments, or a function that writes it from arguments that have been converted.
Translation = str | Callable[[Sequence[TypedSql], pa.DataType], str]


@dataclass(frozen=True)
class ScalarFunction:
    """One entry. The last of `takes` may repeat if `rest` is true; those after `least` may be left out.

    `form` is how a call is written, with {0}, {1} for arguments, where it is not NAME(...). `edges` are lists of
    arguments, as text, that the differential test tries besides generated ones; with `made_up` false only these. `ulps`
    is how far a result may be from Spark's, in units of the last place. An entry that is `safe` fails for no value;
    only entries where this saves work are marked. One that is `stricter` fails for some values for which Spark gives
    numbers: those that wrapped around, or needed more than 38 digits on the way.
    """

    names: tuple[str, ...]
    takes: tuple[ArgumentKind, ...]
    gives: Gives
    duckdb: Translation
    least: int
    rest: bool = False
    form: str | None = None
    edges: tuple[tuple[str, ...], ...] = ()
    made_up: bool = True
    ulps: int = 0
    safe: bool = False
    stricter: bool = False

    def accepts(self, count: int) -> bool:
        return self.least <= count and (self.rest or count <= len(self.takes))

    def kinds(self, count: int) -> list[ArgumentKind]:
        """The kinds of that many arguments."""
        more = count - len(self.takes)
        return [*self.takes[:count], *(self.takes[-1:] * max(more, 0))]

    def result(self, arguments: Sequence[TypedSql]) -> pa.DataType:
        return self.gives(arguments) if callable(self.gives) else self.gives

    def translate(self, arguments: Sequence[TypedSql], kind: pa.DataType) -> str:
        if callable(self.duckdb):
            return self.duckdb(arguments, kind)
        return self.duckdb.format(*(a.sql for a in arguments))

    def call_text(self, arguments: Sequence[str]) -> str:
        """A call as users write it."""
        return self.form.format(*arguments) if self.form else f"{self.names[0]}({', '.join(arguments)})"


#: Entries by name. Operators are called by their symbols.
FUNCTIONS: dict[str, list[ScalarFunction]] = {}
#: Which nodes of the syntax tree are calls: the name of an entry, and the parts of the node that are its arguments.
NODES: dict[type[exp.Expr], Callable[[Any], tuple[str, Sequence[exp.Expr]]]] = {}
#: Names that people may look for here, and what to write instead.
INSTEAD: dict[str, str] = {}
#: Definitions that DuckDB gets before it evaluates anything, for texts that would be long to repeat.
MACROS: dict[str, str] = {}


def function(
    *names: str,
    takes: Sequence[ArgumentKind] = (),
    gives: Gives,
    duckdb: Translation,
    least: int | None = None,
    rest: bool = False,
    form: str | None = None,
    edges: Sequence[Sequence[str]] = (),
    made_up: bool = True,
    ulps: int = 0,
    safe: bool = False,
    stricter: bool = False,
) -> None:
    """Add an entry to the list."""
    least = len(takes) if least is None else least
    entry = ScalarFunction(
        names, tuple(takes), gives, duckdb, least, rest, form, tuple(map(tuple, edges)), made_up, ulps, safe, stricter
    )
    for name in names:
        FUNCTIONS.setdefault(name, []).append(entry)


def unit_of(call: exp.Anonymous) -> exp.Column | None:
    """The bare word at the beginning of a call that means a unit, not a column."""
    first = call.expressions[0] if call.expressions else None
    entries = FUNCTIONS.get(call.name.upper(), [])
    wanted = any(entry.accepts(len(call.expressions)) and entry.takes[:1] == (UNIT,) for entry in entries)
    bare = isinstance(first, exp.Column) and not first.table and not first.this.args.get("quoted")
    return first if wanted and bare else None


def without_units(tree: exp.Expr) -> exp.Expr:
    """The tree itself, in which units are bare words and no longer columns."""
    for unit in [found for call in tree.find_all(exp.Anonymous) if (found := unit_of(call)) is not None]:
        unit.replace(exp.var(unit.name))
    return tree


def node(kind: type[exp.Expr], name: str, *parts: str) -> None:
    """Declare that nodes of a kind are calls of an entry, with these parts as arguments; by default both sides."""
    wanted = parts or ("this", "expression")
    NODES[kind] = lambda found: (name, [found.args[part] for part in wanted if found.args.get(part) is not None])


def suggest_instead(fix: str, *names: str) -> None:
    """Register what to write instead of functions that are not on the list."""
    INSTEAD.update(dict.fromkeys(names, fix))


def macro(head: str, body: str) -> None:
    """Define a macro in DuckDB, such as pw_name(x); entries call it by that name."""
    MACROS[head] = body


def same_type(position: int = 0) -> Callable[[Sequence[TypedSql]], pa.DataType]:
    """The type of an argument as the type of the result."""
    return lambda arguments: arguments[position].type


def duckdb_call(name: str) -> Translation:
    """A function of DuckDB that takes the same arguments, however many."""
    return lambda arguments, kind: f"{name}({', '.join(a.sql for a in arguments)})"


def error_call(message: str, fix: str = "") -> str:
    """DuckDB's text for an error with our sentence, for a branch that only bad values reach."""
    return f"error({duckdb_text(f'{MARK}{message}; {fix}' if fix else f'{MARK}{message}')})"


#: The mark by which the host recognises our sentences among DuckDB's.
MARK = "panewise: "
